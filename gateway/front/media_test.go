package front

import (
	"net/http"
	"testing"
)

func TestAccept(t *testing.T) {
	both, json, events, neither := accepts{true, true}, accepts{json: true}, accepts{events: true}, accepts{}
	tests := []struct {
		lines []string
		want  accepts
	}{
		{nil, both},
		{[]string{"*/*"}, both},
		{[]string{"application/json, text/event-stream"}, both},
		{[]string{"application/json", "text/event-stream"}, both},
		{[]string{"Application/JSON;charset=utf-8 ; q=0.5,TEXT/event-stream;q=1"}, both},
		{[]string{"application/*, text/*"}, both},
		{[]string{"application/json"}, json},
		{[]string{"application/*"}, json},
		{[]string{"text/event-stream"}, events},
		{[]string{"text/*"}, events},
		{[]string{"*/*, text/event-stream;q=0"}, json},
		{[]string{"text/event-stream; q=0.000, */*"}, json},
		{[]string{"application/json;q=0, */*;q=0.1"}, events},
		{[]string{"application/*;q=0, application/json, text/event-stream"}, both},
		{[]string{"*/*;q=0"}, neither},
		{[]string{"text/html"}, neither},
		{[]string{"application/jsonx, text/event-streams"}, neither},
		{[]string{""}, neither},
		{[]string{"application/json;q=0.001"}, json},
	}
	for _, tt := range tests {
		if got := readAccept(tt.lines); got != tt.want {
			t.Errorf("Accept %q reads as %+v, want %+v", tt.lines, got, tt.want)
		}
	}
}

func TestContentType(t *testing.T) {
	tests := []struct {
		types []string
		want  bool
	}{
		{[]string{"application/json"}, true},
		{[]string{"Application/Json ; charset=utf-8"}, true},
		{nil, false},
		{[]string{"application/json", "application/json"}, false},
		{[]string{"application/jsonp"}, false},
		{[]string{"text/plain;application/json"}, false},
		{[]string{""}, false},
	}
	for _, tt := range tests {
		if got := isJSON(http.Header{"Content-Type": tt.types}); got != tt.want {
			t.Errorf("Content-Type %q is JSON: %v, want %v", tt.types, got, tt.want)
		}
	}
}
