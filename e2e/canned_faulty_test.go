package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A faulty server over Streamable HTTP has a tool for each fault, one that is silent, and two that work: fine, and held,
// which answers once it is released. In one era it speaks 2026-07-28, in the other 2025-11-25 with sessions, and nothing of the other's.
type faulty struct {
	URL    string
	modern bool
	// entered gets a value when the tool held is called; release, when closed, lets it answer.
	entered chan struct{}
	release func()

	released chan struct{}
	mu       sync.Mutex // guards all below
	seen     map[string]int
	sessions int
	list     func(cursor *string) string // the result of tools/list, but for what only a modern server adds
}

// newFaulty starts one. It ends with the test, held calls included.
func newFaulty(t *testing.T, modern bool) *faulty {
	t.Helper()
	f := &faulty{modern: modern, entered: make(chan struct{}, 64), released: make(chan struct{}), seen: map[string]int{}}
	f.list = func(*string) string {
		return toolsNamed(append([]string{"fine", "held", "silent"}, faultNames()...)...)
	}
	f.release = sync.OnceFunc(func() { close(f.released) })
	server := httptest.NewServer(f)
	f.URL = server.URL + "/mcp"
	t.Cleanup(func() {
		f.release()
		server.CloseClientConnections()
		server.Close()
	})
	return f
}

// lists replaces what tools/list answers.
func (f *faulty) lists(list func(cursor *string) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = list
}

// asked is how often a method, or a tool, was called.
func (f *faulty) asked(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[name]
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	switch {
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusOK)
		return
	case err != nil || r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var req cannedRequest
	if err := json.Unmarshal(body, &req); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.seen[req.Method]++
	f.seen[req.Params.Name]++
	f.mu.Unlock()
	switch {
	case req.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case req.Method == "tools/call":
		f.call(w, r, req)
	default:
		f.answer(w, req, f.member(w, req))
	}
}

// member answers all but calls.
func (f *faulty) member(w http.ResponseWriter, req cannedRequest) string {
	switch {
	case req.Method == "server/discover" && f.modern:
		return `"result":` + cannedDiscover
	case req.Method == "initialize" && !f.modern:
		f.mu.Lock()
		f.sessions++
		if w != nil { // nil over stdio, which has no sessions
			w.Header().Set("Mcp-Session-Id", fmt.Sprintf("session-%d", f.sessions))
		}
		f.mu.Unlock()
		return `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"faulty","version":"1"}}`
	case req.Method == "ping" && !f.modern:
		return `"result":{}`
	case req.Method == "tools/list":
		f.mu.Lock()
		list := f.list
		f.mu.Unlock()
		return `"result":{` + f.stamp(`"ttlMs":0,"cacheScope":"public",`) + list(req.Params.Cursor) + `}`
	}
	return `"error":{"code":-32601,"message":"no such method"}`
}

// stamp is what a modern server adds to a result.
func (f *faulty) stamp(members string) string {
	if !f.modern {
		return ""
	}
	return members + cannedModern
}

// toolsNamed is the member of a list.
func toolsNamed(names ...string) string {
	definitions := make([]string, len(names))
	for i, name := range names {
		definitions[i] = fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name)
	}
	return `"tools":[` + strings.Join(definitions, ",") + `]`
}

func (f *faulty) call(w http.ResponseWriter, r *http.Request, req cannedRequest) {
	for _, fault := range faults {
		if fault.name == req.Params.Name {
			fault.answer(f, w, r, req)
			return
		}
	}
	switch req.Params.Name {
	case "silent":
		<-r.Context().Done()
		return
	case "held":
		f.entered <- struct{}{}
		select {
		case <-f.released:
		case <-r.Context().Done():
			return
		}
	}
	f.answer(w, req, f.text(req.Params.Name))
}

// text is the member of a response that is one text.
func (f *faulty) text(text string) string {
	return `"result":{` + f.stamp("") + `"content":[{"type":"text","text":"` + text + `"}]}`
}

// playFaulty is a server over stdio whose tools answer with the name that they were called by: held only once release is called,
// noise among lines that are no messages, large-line and huge-line with long texts, silent never.
func playFaulty(modern bool) int {
	f := &faulty{modern: modern, list: func(*string) string {
		return toolsNamed("fine", "held", "release", "noise", "large-line", "huge-line", "silent")
	}}
	var held []cannedRequest
	return playLines(func(req cannedRequest) {
		switch name := req.Params.Name; {
		case req.Method != "tools/call":
			fmt.Println(message(req, f.member(nil, req)))
		case name == "held":
			held = append(held, req)
		case name == "large-line":
			fmt.Println(message(req, f.text(strings.Repeat("x", large))))
		case name == "huge-line":
			fmt.Println(message(req, f.text(strings.Repeat("x", huge))))
		case name == "noise":
			fmt.Print("<!doctype html>\n\n{\"listening\":true}\n\x1f\x8b\x08\x00\xff\n[]\nnull\n")
			fmt.Println(message(req, f.text(name)))
		case name == "release":
			for _, held := range append(held, req) {
				fmt.Println(message(held, f.text(held.Params.Name)))
			}
		case name != "silent":
			fmt.Println(message(req, f.text(name)))
		}
	})
}

func (f *faulty) answer(w http.ResponseWriter, req cannedRequest, member string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, message(req, member))
}

func message(req cannedRequest, member string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, req.ID, member)
}
