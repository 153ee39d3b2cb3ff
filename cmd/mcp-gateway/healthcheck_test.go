package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// healthcheckOf runs the subcommand against address.
func healthcheckOf(address string) error {
	root := rootCommand()
	root.SetArgs([]string{"healthcheck", "--admin", address})
	return root.Execute()
}

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		want   string
	}{
		"alive":      {http.StatusOK, ""},
		"not":        {http.StatusServiceUnavailable, "503 Service Unavailable"},
		"elsewhere":  {http.StatusFound, "302 Found"},
		"no content": {http.StatusNoContent, "204 No Content"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Method+" "+r.URL.Path)
				if c.status == http.StatusFound {
					w.Header().Set("Location", "/readyz")
				}
				w.WriteHeader(c.status)
			}))
			err := healthcheckOf(server.Listener.Addr().String())
			server.Close()
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error that has %q", err, c.want)
			}
			if len(asked) != 1 || asked[0] != "GET /healthz" {
				t.Errorf("it asked %q, want GET /healthz once", asked)
			}
		})
	}
}

// Where nobody listens, the words name the setting.
func TestHealthcheckOfNobody(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	ln.Close()
	if err := healthcheckOf(address); err == nil || !strings.Contains(err.Error(), "is admin set to "+address) {
		t.Errorf("got %v", err)
	}
	if err := healthcheckOf("a b"); err == nil || !strings.Contains(err.Error(), "127.0.0.1:9090") {
		t.Errorf("got %v", err)
	}
}

// A gateway that takes connections and never answers is not healthy either, and the check ends by itself.
func TestHealthcheckOfTheStuck(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if err := healthcheckOf(ln.Addr().String()); err == nil || !strings.Contains(err.Error(), "asking whether the gateway is alive") {
		t.Errorf("got %v", err)
	}
}

// The image asks where nothing else is said.
func TestHealthcheckAsksLoopback(t *testing.T) {
	cmd := healthcheckCommand()
	if !cmd.Hidden {
		t.Error("it is shown to people, who have better commands")
	}
	if got := cmd.Flags().Lookup("admin").DefValue; got != "127.0.0.1:9090" {
		t.Errorf("it asks %s", got)
	}
}
