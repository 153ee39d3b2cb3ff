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
	s := newSessions(3)
	for i := range byte(5) {
		s.end(sessionID{i})
		s.end(sessionID{i})
	}
	for i := range byte(5) {
		if got, want := s.ended(sessionID{i}), i >= 2; got != want {
			t.Errorf("session %d is remembered: %v, want %v", i, got, want)
		}
	}
	if len(s.gone) != 3 {
		t.Errorf("%d sessions are remembered, want 3", len(s.gone))
	}
}

// A stream that is asked for just before its session ends must not outlive it.
func TestStreamOfAnEndedSession(t *testing.T) {
	s, first := newSessions(3), &listener{over: make(chan struct{})}
	if !s.attach(sessionID{1}, first) || !s.attach(sessionID{2}, &listener{over: make(chan struct{})}) {
		t.Fatal("a session that lives gets no stream")
	}
	s.end(sessionID{1})
	<-first.over
	if s.attach(sessionID{1}, &listener{over: make(chan struct{})}) {
		t.Error("a session that has ended gets a stream")
	}
	s.end(sessionID{1})
	s.detach(sessionID{1}, first)
	s.end(sessionID{1})
	if len(s.streams) != 1 {
		t.Errorf("%d streams are known, want that of the other session", len(s.streams))
	}
}

// What the older stream had no time to tell, the newer one tells.
func TestNewerStreamGoesOnWhereTheOlderEnds(t *testing.T) {
	s, older, newer := newSessions(3), &listener{over: make(chan struct{})}, &listener{over: make(chan struct{})}
	older.seen.Store(4)
	newer.seen.Store(6)
	s.attach(sessionID{1}, older)
	s.attach(sessionID{1}, newer)
	<-older.over
	if seen := newer.seen.Load(); seen != 4 {
		t.Errorf("the newer stream begins at %d changes, want 4", seen)
	}
	s.detach(sessionID{1}, older)
	s.end(sessionID{1})
	<-newer.over
}

type refusal struct{ text string }

func (r refusal) Error() string     { return r.text }
func (r refusal) Challenge() string { return `Bearer realm="x"` }

func TestCallers(t *testing.T) {
	_, server := start(t, Config{Authenticate: func(r *http.Request) (Caller, error) {
		switch key := r.Header.Get("Authorization"); key {
		case "a", "b":
			return Caller{Name: key}, nil
		case "":
			return Caller{}, refusal{"an API key is needed"}
		}
		return Caller{}, errors.New("the token eyJ.secret is broken")
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
	send(t, http.MethodPost, url, header(), strings.Repeat(" ", maxBody+1)).want(t, http.StatusRequestEntityTooLarge)
	token := initialize(t, url, mcp.Revision20251125, "Authorization", "a")
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	send(t, http.MethodPost, url, header("Authorization", "a", "Mcp-Session-Id", token), ping).want(t, http.StatusOK)
	send(t, http.MethodPost, url, header("Authorization", "b", "Mcp-Session-Id", token), ping).want(t, http.StatusNotFound)
	send(t, http.MethodDelete, url, header("Authorization", "b", "Mcp-Session-Id", token), "").want(t, http.StatusNotFound)
	send(t, http.MethodPost, url, header("Authorization", "a", "Mcp-Session-Id", token), ping).want(t, http.StatusOK)
}
