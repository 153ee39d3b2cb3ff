package e2e

import (
	"encoding/json"
	"testing"
)

// A verdict is what the gateway says of a call that it could not complete.
type verdict struct {
	Outcome, Cause, Upstream, Method, Retry string
	HTTPStatus                              int // the server's, 0 where there was none
}

// failed reads the verdict of a tools/call; ok is false for a result of the server's own.
func failed(r reply) (v verdict, text string, ok bool) {
	var result struct {
		IsError bool
		Content []struct{ Text string }
		Meta    struct {
			Outcome *verdict `json:"mcp-gateway/outcome"`
		} `json:"_meta"`
	}
	if json.Unmarshal(r.result, &result) != nil || !result.IsError || result.Meta.Outcome == nil {
		return verdict{}, "", false
	}
	for _, content := range result.Content {
		text += content.Text
	}
	return *result.Meta.Outcome, text, true
}

// started is a call that runs while the test goes on.
func started(t *testing.T, url, name string) <-chan reply {
	t.Helper()
	done := make(chan reply, 1)
	go func() {
		r, err := tryPost(t.Context(), url, modernHeader("tools/call", name), modernRequest(`1`, "tools/call", `"name":"`+name+`"`))
		if err != nil {
			r.body = []byte(err.Error())
		}
		done <- r
	}()
	return done
}

func call(t *testing.T, g *gateway, name string) reply {
	t.Helper()
	return modernClient{g.URL}.ask(t, `1`, "tools/call", `"name":"`+name+`"`)
}

// allListed waits until every upstream has listed its tools: one that starts slowly is absent at first.
func (g *gateway) allListed(t *testing.T) {
	t.Helper()
	var absent []byte
	if !eventually(patience, func() bool {
		absent = member(t, member(t, modernClient{g.URL}.ask(t, `1`, "tools/list", "").result, "_meta"), "mcp-gateway/absent")
		return absent == nil
	}) {
		t.Fatalf("absent are %s", absent)
	}
}
