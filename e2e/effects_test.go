package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// effectsEnv is how many random calls TestOutcomesAreTrue makes on each transport.
const effectsEnv = "E2E_EFFECTS"

// effectFaults are how a server fails a call, before its effect or after it.
var effectFaults = []string{"none", "die", "close", "hang", "truncated", "status", "not-json", "half"}

// TestOutcomesAreTrue has servers that write the effect of each call to a file and fail in every way, before it or after
// it. Whatever the gateway says of a call is held against the file.
func TestOutcomesAreTrue(t *testing.T) {
	runs := times(t, effectsEnv, 24)
	for _, transport := range []string{"stdio", "stdio-modern", "http", "http-modern", "sse", "ws"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "effects")
			g := serve(t, "upstreams:\n  acts:\n"+effectUpstream(t, transport, file)+
				"    timeout: 1s\n    reconnect: {min: 10ms, max: 100ms}\n")
			g.allListed(t)
			source := rand.New(rand.NewPCG(uint64(len(transport)), 1))
			type act struct{ id, fault, when string }
			acts := make(chan act)
			go func() {
				defer close(acts)
				for i := range runs {
					fault := effectFaults[source.IntN(len(effectFaults))]
					if i < 2*len(effectFaults) {
						fault = effectFaults[i/2]
					}
					acts <- act{strconv.Itoa(i), fault, []string{"before", "after"}[i%2]}
				}
			}()
			var mu sync.Mutex
			said := map[string]string{} // by id
			perform := func(a act) {
				word := ""
				// What was not sent is sent again: should it have been sent after all, it takes effect twice.
				sent := eventually(patience, func() bool {
					r, err := tryPost(t.Context(), g.URL, modernHeader("tools/call", "acts__act"), modernRequest(`1`, "tools/call",
						fmt.Sprintf(`"name":"acts__act","arguments":{"id":%q,"fault":%q,"when":%q}`, a.id, a.fault, a.when)))
					word = "ok"
					if v, _, failed := failed(r); failed {
						word = v.Outcome + " " + v.Cause + " " + v.Retry
					} else if err != nil || textOf(r) != a.id {
						word = fmt.Sprint("neither: ", r, err)
					}
					return !strings.HasPrefix(word, "not-sent")
				})
				mu.Lock()
				defer mu.Unlock()
				if said[a.id] = word; !sent {
					t.Errorf("call %s was never sent", a.id)
				}
			}
			var together sync.WaitGroup
			for range 8 {
				together.Go(func() {
					for a := range acts {
						perform(a)
					}
				})
			}
			together.Wait()
			// Once nobody fails it any more, it works. One call may still meet the end that an earlier fault has brought about.
			last := 0
			if !eventually(patience, func() bool {
				last++
				id := fmt.Sprint("last", last)
				perform(act{id, "none", "after"})
				return said[id] == "ok"
			}) {
				t.Errorf("afterwards: %s", said[fmt.Sprint("last", last)])
			}
			judgeEffects(t, file, said)
		})
	}
}

// times is how often a test does what it does: usual, unless the environment says otherwise.
func times(t *testing.T, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// judgeEffects holds what was said of each call against what happened.
func judgeEffects(t *testing.T, file string, said map[string]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	effects := map[string]int{}
	for id := range strings.Lines(string(text)) {
		effects[strings.TrimSpace(id)]++
	}
	words := map[string]int{}
	for id, word := range said {
		words[word]++
		outcome, _, _ := strings.Cut(word, " ")
		switch n := effects[id]; {
		case n > 1:
			t.Errorf("call %s took effect %d times: %s", id, n, word)
		case outcome == "ok" && n == 0:
			t.Errorf("call %s succeeded, but took no effect", id)
		case (outcome == "not-sent" || strings.HasSuffix(word, " safe")) && n != 0:
			t.Errorf("call %s took effect, and the gateway says %s", id, word)
		case outcome != "ok" && outcome != "not-sent" && outcome != "no-response":
			t.Errorf("call %s: %s", id, word)
		}
	}
	if words["ok"] == 0 || len(words) < 3 {
		t.Errorf("the faults were not met: %v", words)
	}
	t.Log(words)
}

// effectUpstream is the upstream's part of a configuration.
func effectUpstream(t *testing.T, transport, file string) string {
	t.Helper()
	if transport == "stdio" || transport == "stdio-modern" {
		c := newCannedStdio(t, transport+"-effects")
		c.record = file
		pin := "legacy"
		if transport == "stdio-modern" {
			pin = "modern"
		}
		return c.command() + "    protocol: " + pin + "\n"
	}
	s := newEffects(t, transport, file)
	switch transport {
	case "http":
		return "    url: " + s.URL + "/mcp\n    protocol: legacy\n"
	case "sse":
		return "    url: " + s.URL + "/sse\n    protocol: legacy\n    transport: sse\n"
	case "ws":
		return "    url: ws" + strings.TrimPrefix(s.URL, "http") + "/ws\n"
	}
	return "    url: " + s.URL + "/mcp\n"
}

// An effectCall is one call of the tool act.
type effectCall struct {
	Method string
	ID     json.RawMessage
	Params struct {
		Arguments struct{ ID, Fault, When string }
	}
}

// answerEffects is the answer to everything but act, of either era.
func answerEffects(line []byte, modern bool) (effectCall, string) {
	var c effectCall
	if json.Unmarshal(line, &c) != nil || c.ID == nil || c.Method == "" {
		return c, ""
	}
	stamp := ""
	if modern {
		stamp = cannedModern
	}
	var req cannedRequest
	_ = json.Unmarshal(line, &req)
	member := `"error":{"code":-32601,"message":"no such method"}`
	switch c.Method {
	case "server/discover":
		if modern {
			member = `"result":` + cannedDiscover
		}
	case "initialize":
		if !modern {
			member = fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"effects","version":"1"}}`, req.Params.ProtocolVersion)
		}
	case "ping":
		member = `"result":{}`
	case "tools/list":
		member = `"result":{` + stamp + toolsNamed("act") + `}`
	case "tools/call":
		member = `"result":{` + stamp + `"content":[{"type":"text","text":"` + c.Params.Arguments.ID + `"}]}`
	}
	return c, message(req, member)
}

// note writes the effect of a call.
func note(file, id string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString(id + "\n"); err != nil {
		panic(err)
	}
}

// playEffects is the server over stdio. The file that others record their lines in is that of the effects here.
func playEffects(modern bool) int {
	file := os.Getenv(recordEnv)
	return readLines(func(line []byte) bool {
		c, answer := answerEffects(line, modern)
		if c.Method != "tools/call" {
			if answer != "" {
				fmt.Println(answer)
			}
			return true
		}
		a := c.Params.Arguments
		if a.Fault == "none" || a.When == "after" {
			note(file, a.ID)
		}
		switch a.Fault {
		case "none":
			fmt.Println(answer)
		case "die":
			os.Exit(3)
		case "close":
			os.Stdout.Close()
			return false
		case "truncated":
			fmt.Println(answer[:len(answer)-2])
		case "not-json":
			fmt.Println("Internal error")
		case "half":
			fmt.Print(answer[:len(answer)/2])
			return false
		case "status":
			fmt.Println(strings.Replace(answer, `"result"`, `"reslut"`, 1))
		}
		return true // hang says nothing more
	})
}

// An effects server has every transport over HTTP, each in its place.
type effects struct {
	URL    string
	modern bool
	file   string
	server *flaky
	life   context.Context

	mu      sync.Mutex // guards streams
	streams map[string]chan string
}

func newEffects(t *testing.T, transport, file string) *effects {
	t.Helper()
	e := &effects{modern: transport == "http-modern", file: file, life: t.Context(), streams: map[string]chan string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mcp", e.post)
	mux.HandleFunc("GET /sse", e.events)
	mux.HandleFunc("POST /messages", e.message)
	mux.HandleFunc("GET /ws", e.webSocket)
	e.server = newFlaky(t, mux)
	e.URL = e.server.URL
	return e
}
