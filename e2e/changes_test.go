package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// lively is the command of the lively server over stdio.
func lively(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("    command: node\n    args: [%s, stdio]\n    env: {%s: %s}\n    protocol: modern\n",
		quoted(filepath.Join(peers(t), "lively-server.mjs")), runEnv, quoted(run.id))
}

// livelyHTTP starts it over Streamable HTTP.
func livelyHTTP(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("    url: http://127.0.0.1:%d/mcp\n", nodeServer(t, filepath.Join(peers(t), "lively-server.mjs"), "http").port(t))
}

// growing is a legacy server over stdio whose tool grow adds one, as the others' do.
func growing(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("    command: node\n    args: [%s]\n    env: {%s: %s}\n",
		quoted(filepath.Join(peers(t), "growing-legacy.mjs")), runEnv, quoted(run.id))
}

// TestOfficialClientsFollowChanges has servers of both eras add tools while official clients of both eras are connected.
func TestOfficialClientsFollowChanges(t *testing.T) {
	for _, script := range []string{"follow-modern.mjs", "follow-legacy.mjs"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			g := serve(t, "upstreams:\n  legacy:\n"+growing(t)+"  web:\n"+livelyHTTP(t)+"  pipe:\n"+lively(t))
			g.allListed(t)
			prefixes := []string{"legacy__", "web__", "pipe__"}
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join(peers(t), script), g.URL}, prefixes...)...)
			cmd.Env = append(os.Environ(), runEnv+"="+run.id)
			cmd.WaitDelay = 5 * time.Second
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.Bytes())
			}
			var followed struct {
				Before  []string
				Grown   map[string]string
				Results map[string]bool
				Stale   int
			}
			if err := json.Unmarshal(out, &followed); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, prefix := range prefixes {
				name := followed.Grown[prefix]
				if name == "" || slices.Contains(followed.Before, name) || !followed.Results[prefix] {
					t.Errorf("the client never was given the new tool of %s, or could not call it: %s", prefix, out)
				}
			}
			if followed.Stale > 0 {
				t.Errorf("%d lists could not be had", followed.Stale)
			}
		})
	}
}

// A stream is one that the gateway keeps open; events are the messages in it.
type stream struct {
	events chan map[string]json.RawMessage
	close  context.CancelFunc
}

// listen opens subscriptions/listen with a string for an id and waits until it is acknowledged.
func listen(t *testing.T, g *gateway) *stream {
	t.Helper()
	s := openStream(t, http.MethodPost, g.URL, modernHeader("subscriptions/listen", ""),
		modernRequest(`"7"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"promptsListChanged":true}`))
	first := s.next(t)
	if string(first["method"]) != `"notifications/subscriptions/acknowledged"` {
		t.Fatalf("the first message is %s", first)
	}
	var params struct {
		Notifications map[string]bool
		Meta          map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(first["params"], &params) != nil || len(params.Notifications) != 1 || !params.Notifications["toolsListChanged"] ||
		string(params.Meta["io.modelcontextprotocol/subscriptionId"]) != `"7"` {
		t.Errorf("acknowledged is %s", first["params"])
	}
	return s
}

// openStream reads events until the test or the stream ends.
func openStream(t *testing.T, method, url string, header http.Header, body []byte) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := direct.Do(req)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	if media := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || media != "text/event-stream" {
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		cancel()
		t.Fatalf("%d %s, want a stream: %s", resp.StatusCode, media, text)
	}
	s := &stream{make(chan map[string]json.RawMessage, 256), cancel}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(s.events)
		lines := bufio.NewReader(resp.Body)
		for {
			line, err := lines.ReadBytes('\n')
			if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				var message map[string]json.RawMessage
				if json.Unmarshal(data, &message) == nil {
					s.events <- message
				}
			}
			if err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		resp.Body.Close()
		reading.Wait()
	})
	return s
}

// next waits for a message; it is nil once the stream has ended.
func (s *stream) next(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	select {
	case message := <-s.events:
		return message
	case <-time.After(patience):
		t.Fatal("the stream says nothing")
		return nil
	}
}

// TestNoticesReachEveryListener looks at what a change sends, and at how streams end with the gateway.
func TestNoticesReachEveryListener(t *testing.T) {
	t.Parallel()
	g := start(t, "upstreams:\n  pipe:\n"+lively(t))
	g.allListed(t)
	modern := listen(t, g)
	c := handshake(t, g.URL, "2025-11-25")
	header := legacyHeader(c.revision, c.session)
	header.Set("Accept", "text/event-stream")
	header.Del("Content-Type")
	legacy := openStream(t, http.MethodGet, g.URL, header, nil)

	grown := textOf(call(t, g, "pipe__grow"))
	for name, s := range map[string]*stream{"modern": modern, "legacy": legacy} {
		notice := s.next(t)
		if string(notice["method"]) != `"notifications/tools/list_changed"` || notice["id"] != nil {
			t.Errorf("%s: the notice is %s", name, notice)
		}
		if tagged := strings.Contains(string(notice["params"]), `"io.modelcontextprotocol/subscriptionId":"7"`); tagged != (name == "modern") {
			t.Errorf("%s: the notice's params are %s", name, notice["params"])
		}
	}
	if names, _ := listed(t, modernClient{g.URL}); !slices.Contains(names, "pipe__"+grown) {
		t.Errorf("after the notice %q is not in the list: %q", grown, names)
	}

	g.stop(t)
	last := map[string]json.RawMessage{}
	for message := range modern.events {
		last = message
	}
	if string(last["id"]) != `"7"` || !strings.Contains(string(last["result"]), `"resultType":"complete"`) {
		t.Errorf("the last message of the modern stream is %s", last)
	}
	for message := range legacy.events {
		if message["id"] != nil {
			t.Errorf("the legacy stream ended with %s", message)
		}
	}
}

// A turncoat is a legacy server over Streamable HTTP that can forget its session and then answer with a revision that nobody knows.
type turncoat struct {
	*faulty
	turned atomic.Bool
}

func (c *turncoat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !c.turned.Load() {
		c.faulty.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	var req cannedRequest
	if err != nil || json.Unmarshal(body, &req) != nil || req.Method != "initialize" {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	c.answer(w, req, `"result":{"protocolVersion":"1999-01-01","capabilities":{"tools":{}},"serverInfo":{"name":"turncoat","version":"2"}}`)
}

// TestAGivenUpUpstreamLeavesTheList has a server that comes back with another revision, which is for good.
func TestAGivenUpUpstreamLeavesTheList(t *testing.T) {
	t.Parallel()
	old := &turncoat{faulty: newFaulty(t, false)}
	server := httptest.NewServer(old)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	other := newCannedHTTP(t)
	g := serve(t, "upstreams:\n  old: {url: "+quoted(server.URL+"/mcp")+legacyPin+"}\n  web: {url: "+quoted(other.URL)+"}\n")
	g.allListed(t)
	before, _ := listed(t, modernClient{g.URL})
	notices := listen(t, g)

	old.turned.Store(true)
	v, _, ok := failed(call(t, g, "old__fine"))
	if !ok || v.Outcome == "no-response" {
		t.Errorf("the call that found out: %+v", v)
	}
	if notice := notices.next(t); string(notice["method"]) != `"notifications/tools/list_changed"` {
		t.Errorf("the listener was sent %s", notice)
	}
	r := modernClient{g.URL}.ask(t, `1`, "tools/list", "")
	if absent := member(t, member(t, r.result, "_meta"), "mcp-gateway/absent"); string(absent) != `{"old":"given-up"}` {
		t.Errorf("absent are %s", absent)
	}
	after, _ := listed(t, modernClient{g.URL})
	if want := slices.DeleteFunc(before, func(name string) bool { return strings.HasPrefix(name, "old__") }); !slices.Equal(after, want) {
		t.Errorf("listed are %q, want %q", after, want)
	}
	want := verdict{"not-sent", "given-up", "old", "tools/call", "no", 0}
	if v, _, ok := failed(call(t, g, "old__fine")); !ok || v != want {
		t.Errorf("a later call: %+v, want %+v", v, want)
	}
}
