package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// A received message is what a canned server read, and the headers that it came with.
type received struct {
	header http.Header
	body   []byte
}

// A cannedHTTP is a modern server over Streamable HTTP.
type cannedHTTP struct {
	URL string
	// entered gets a value when the tool slow is called; release, when closed, lets it answer.
	entered chan struct{}
	release func()
	left    chan struct{} // gets a value when the caller of slow has gone

	released chan struct{}
	mu       sync.Mutex // guards record
	record   []received
}

// newCannedHTTP starts one. It ends with the test, slow calls included.
func newCannedHTTP(t *testing.T) *cannedHTTP {
	t.Helper()
	c := &cannedHTTP{entered: make(chan struct{}, 16), left: make(chan struct{}, 16), released: make(chan struct{})}
	c.release = sync.OnceFunc(func() { close(c.released) })
	server := httptest.NewServer(c)
	c.URL = server.URL + "/mcp"
	t.Cleanup(func() {
		c.release()
		server.Close()
	})
	return c
}

// calls are the tools/call requests so far.
func (c *cannedHTTP) calls() []received {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.record), func(r received) bool {
		var req cannedRequest
		return json.Unmarshal(r.body, &req) == nil && req.Method != "tools/call"
	})
}

const (
	cannedModern   = `"resultType":"complete",`
	cannedDiscover = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public",` +
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"canned","version":"1"}}}`
)

func (c *cannedHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	c.mu.Lock()
	c.record = append(c.record, received{r.Header.Clone(), body})
	c.mu.Unlock()

	var req cannedRequest
	if err := json.Unmarshal(body, &req); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if req.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	member, status := "", http.StatusOK
	switch req.Method {
	case "server/discover":
		member = `"result":` + cannedDiscover
	case "tools/list":
		member = `"result":` + cannedList(req, `"ttlMs":0,"cacheScope":"public",`+cannedModern)
	case "tools/call":
		if req.Params.Name == "slow" {
			c.entered <- struct{}{}
			select {
			case <-c.released:
			case <-r.Context().Done():
				c.left <- struct{}{}
				return
			}
		}
		member = cannedCall(req, cannedModern)
	default:
		member, status = `"error":{"code":-32601,"message":"no such method"}`, http.StatusNotFound
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, req.ID, member)
}
