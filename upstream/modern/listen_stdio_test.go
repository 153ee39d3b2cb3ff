package modern

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// listened is a server over stdio that plays the events of each listen, one text with a line for each.
func listened() int {
	var plays []string
	for _, name := range []string{"FIRST", "SECOND", "THIRD"} {
		plays = append(plays, os.Getenv(name))
	}
	listens := 0
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		m, err := wire.ParseRequest(in.Bytes())
		if err != nil {
			return 1
		}
		text := result(`{"resultType":"complete"}`)
		switch {
		case m.ID == nil:
			continue
		case m.Method == mcp.MethodDiscover:
			text = result(announces)
		case m.Method == mcp.MethodListen:
			text = plays[min(listens, len(plays)-1)]
			if listens++; text == "" {
				return 3
			}
		}
		if _, err := os.Stdout.WriteString(strings.ReplaceAll(text, "ID", string(m.ID)) + "\n"); err != nil {
			return 1
		}
	}
	return 0
}

const (
	acknowledged = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}`
	toolsChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}`
)

// overPipe starts the server above and waits until it has counted so.
func overPipe(t *testing.T, first, second string, want upstream.Changes, change ...func(*Config)) (*Upstream, *logged) {
	t.Helper()
	third := acknowledged
	u, out := play(t, "listened", []string{"FIRST=" + first, "SECOND=" + second, "THIRD=" + third}, change...)
	for {
		status, changed := u.Status()
		if status.Changes == want && status.State == upstream.Live {
			return u, out
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("status %+v, want changes %+v", status, want)
		}
	}
}

func TestAListenOverStdio(t *testing.T) {
	other := strings.Replace(toolsChanged, `:ID}`, `:4711}`, 1)
	text := strings.Replace(toolsChanged, `:ID}`, `:"ID"}`, 1)
	none := `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`
	// The calls beside it have all the places that there are.
	u, out := overPipe(t, strings.Join([]string{acknowledged, other, text, none, toolsChanged}, "\n"), "", upstream.Changes{Tools: 1}, func(cfg *Config) {
		cfg.Concurrency, cfg.Queue = 1, 1
	})
	for range 3 {
		if _, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList}); err != nil {
			t.Fatal(err)
		}
	}
	if load := u.Load(); load != (upstream.Load{}) {
		t.Errorf("load %+v", load)
	}
	if status, _ := u.Status(); status.Changes != (upstream.Changes{Tools: 1}) {
		t.Errorf("changes %+v", status.Changes)
	}
	if got := strings.Count(out.String(), "belongs to no call"); got != 3 {
		t.Errorf("%d notifications are said to be nobody's, want 3:\n%s", got, out)
	}
}

// However the server ends a listen, it is opened again, and the child lives on.
func TestAListenOverStdioThatEnds(t *testing.T) {
	for name, end := range map[string]string{
		"by a result": result(`{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":ID}}`),
		"by a cancel": `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":ID}}`,
		"by an error": failure(`{"code":-32603,"message":"no"}`),
	} {
		t.Run(name, func(t *testing.T) {
			u, _ := overPipe(t, acknowledged+"\n"+end, acknowledged, upstream.Changes{Tools: 1, Prompts: 1})
			if status, _ := u.Status(); status.Session != 1 {
				t.Errorf("session %d", status.Session)
			}
		})
	}
}

func TestAServerOverStdioWithoutListen(t *testing.T) {
	u, out := overPipe(t, failure(`{"code":-32601,"message":"no"}`), acknowledged, upstream.Changes{})
	if _, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList}); err != nil {
		t.Fatal(err)
	}
	out.await(t, "noticed only by `poll`") // which a Close before the server's answer would keep from being said
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
}

// A child that ends has not refused to be listened to.
func TestAListenOverStdioEndsWithTheChild(t *testing.T) {
	u, out := play(t, "listened", nil)
	for {
		status, changed := u.Status()
		if status.Session == 3 {
			break
		}
		<-changed
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "subscriptions/listen") {
		t.Errorf("the log:\n%s", out)
	}
}
