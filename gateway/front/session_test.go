package front

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/seal"
)

func TestSessionToken(t *testing.T) {
	ring, began := testRing(t), time.Unix(1_900_000_000, 0)
	s := newSession(mcp.Revision20250618, canRoots|canElicitURL, strings.Repeat("name", 1000), began)
	token := s.token(ring)
	if len(token) > maxToken {
		t.Errorf("the token has %d bytes, want at most %d", len(token), maxToken)
	}
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			t.Fatalf("the token %q has a character that is not visible ASCII", token)
		}
	}
	caller := strings.Repeat("name", 1000)
	got, ok := openSession(ring, token, caller, began.Add(sessionLife-time.Second))
	if !ok || got != s {
		t.Errorf("the token opens to %+v %v, want %+v", got, ok, s)
	}
	if newSession(s.revision, s.capabilities, caller, began).id == s.id {
		t.Error("two sessions have one id")
	}
	other, err := seal.NewRing([][]byte{bytes.Repeat([]byte{8}, seal.KeySize)})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := openSession(other, token, caller, began); ok {
		t.Error("a ring with other keys opens the token")
	}
	if _, ok := openSession(ring, token, caller, began.Add(sessionLife)); ok {
		t.Error("an expired token opens")
	}
	if _, ok := openSession(ring, token, "another", began); ok {
		t.Error("another caller's token opens")
	}
	if _, ok := openSession(ring, ring.Seal("cursor", []byte("x"), nil), caller, began); ok {
		t.Error("a token of another purpose opens")
	}
	if _, ok := openSession(ring, ring.Seal(sessionPurpose, []byte("short"), nil), caller, began); ok {
		t.Error("a token of another layout opens")
	}
	if _, ok := openSession(ring, token+strings.Repeat("A", maxToken), caller, began); ok {
		t.Error("a token over the bound opens")
	}
}

func FuzzOpenSession(f *testing.F) {
	ring, began := testRing(f), time.Unix(1_900_000_000, 0)
	token := newSession(mcp.Revision20251125, 0, "", began).token(ring)
	f.Add(token[:len(token)-1])
	f.Add("")
	f.Fuzz(func(t *testing.T, sent string) {
		if _, ok := openSession(ring, sent, "", began); ok && sent != token {
			t.Errorf("%q opens", sent)
		}
	})
}

func TestCapabilities(t *testing.T) {
	for text, want := range map[string]capabilities{
		`{}`: 0,
		`{"roots":{"listChanged":true},"experimental":{}}`: canRoots,
		`{"sampling":{"tools":{},"context":{}}}`:           canSampling | canSampleTools | canSampleContext,
		`{"elicitation":{}}`:                               canElicitForm,
		`{"elicitation":{"url":{}}}`:                       canElicitURL,
		`{"elicitation":{"url":{},"form":{}}}`:             canElicitURL | canElicitForm,
	} {
		if got := readCapabilities(object(text)); got != want {
			t.Errorf("%s reads as %b, want %b", text, got, want)
		}
	}
}

func TestEndedSessionsAreBounded(t *testing.T) {
	ended := newEndedSessions(3)
	for i := range byte(5) {
		ended.add(sessionID{i})
		ended.add(sessionID{i})
	}
	for i := range byte(5) {
		if got, want := ended.has(sessionID{i}), i >= 2; got != want {
			t.Errorf("session %d is remembered: %v, want %v", i, got, want)
		}
	}
	if len(ended.ids) != 3 {
		t.Errorf("%d sessions are remembered, want 3", len(ended.ids))
	}
}

type refusal struct{ text string }

func (r refusal) Error() string     { return r.text }
func (r refusal) Challenge() string { return `Bearer realm="x"` }

func TestCallers(t *testing.T) {
	_, server := start(t, Config{MaxBody: 1000, Authenticate: func(r *http.Request) (string, error) {
		switch key := r.Header.Get("Authorization"); key {
		case "a", "b":
			return key, nil
		case "":
			return "", refusal{"an API key is needed"}
		}
		return "", errors.New("the token eyJ.secret is broken")
	}})
	url := server.URL + "/mcp"
	got := send(t, http.MethodPost, url, header(), `{`)
	got.want(t, http.StatusUnauthorized, "an API key is needed")
	if got := got.header.Get("Www-Authenticate"); got != `Bearer realm="x"` {
		t.Errorf("WWW-Authenticate %q", got)
	}
	got = send(t, http.MethodDelete, url, http.Header{"Authorization": {"c"}}, "")
	got.want(t, http.StatusUnauthorized, "could not be authenticated")
	if strings.Contains(got.body, "secret") {
		t.Errorf("an error that is not meant for the client reached it: %s", got.body)
	}
	// Nothing is spent on a body that is refused for its size.
	send(t, http.MethodPost, url, header(), strings.Repeat(" ", 1001)).want(t, http.StatusRequestEntityTooLarge)
	token := initialize(t, url, mcp.Revision20251125, "Authorization", "a")
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	send(t, http.MethodPost, url, header("Authorization", "a", "Mcp-Session-Id", token), ping).want(t, http.StatusOK)
	send(t, http.MethodPost, url, header("Authorization", "b", "Mcp-Session-Id", token), ping).want(t, http.StatusNotFound)
	send(t, http.MethodDelete, url, header("Authorization", "b", "Mcp-Session-Id", token), "").want(t, http.StatusNotFound)
	send(t, http.MethodPost, url, header("Authorization", "a", "Mcp-Session-Id", token), ping).want(t, http.StatusOK)
}
