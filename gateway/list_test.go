package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/gateway/catalog"
	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/policy"
	"mcp-gateway/upstream"
)

func TestListPages(t *testing.T) {
	var list strings.Builder
	list.WriteString(`{"tools":[`)
	for i := range 1500 {
		if i > 0 {
			list.WriteString(",")
		}
		list.WriteString(fmt.Sprintf(`{"name":"t%d"}`, i))
	}
	list.WriteString(`]}`)
	synctest.Test(t, func(t *testing.T) {
		fakeA := &fake{tools: list.String()}
		g := gatewayOver(t, two, map[string]*fake{"a": fakeA, "b": {tools: oneTool}})
		ask := func(caller, text string) *front.Reply {
			return g.dispatch(t.Context(), &front.Request{Method: mcp.MethodToolsList, Params: params(t, text), Caller: caller})
		}
		total, cursor := 0, `null`
		for pages := 1; ; pages++ {
			reply := ask("me", `{"cursor":`+cursor+`}`)
			if reply.Error != nil {
				t.Fatal(reply.Error)
			}
			raw, _ := reply.Result.Value("tools")
			tools, _ := wire.Elements(raw, 2000)
			total += len(tools)
			next, ok := reply.Result.Value("nextCursor")
			if !ok {
				if pages != 2 {
					t.Errorf("%d pages, want 2", pages)
				}
				break
			}
			cursor = string(next)
		}
		if total != 1501 {
			t.Errorf("%d tools, want 1501: all of a and the one of b that is not denied", total)
		}
		a := g.snapshot.Load().catalog
		fakeA.mu.Lock()
		fakeA.tools = strings.Replace(list.String(), `"t7"`, `"seven"`, 1)
		fakeA.mu.Unlock()
		<-time.After(5 * time.Second)
		a.Relist(t.Context(), "a")
		if reply := ask("me", `{"cursor":`+cursor+`}`); reply.Error == nil {
			t.Error("a cursor of a list that has changed is taken")
		}
		for caller, bad := range map[string]string{"other": cursor, "me": `"forged"`, "third": `7`, "fourth": `""`} {
			if reply := ask(caller, `{"cursor":`+bad+`}`); reply.Error == nil || reply.Error.Code != wire.CodeInvalidParams {
				t.Errorf("%s with cursor %s: %+v", caller, bad, reply)
			}
		}
		if reply := g.dispatch(t.Context(), &front.Request{Method: "prompts/list"}); reply.Error == nil || reply.Error.Code != wire.CodeMethodNotFound {
			t.Errorf("%+v", reply)
		}
	})
}

// A noticing upstream tells of changes to its tools.
type noticing struct {
	*fake
	status  upstream.Status
	changed chan struct{}
}

func (n *noticing) Status() (upstream.Status, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.status, n.changed
}

// notice tells of a change, and then has these tools; "" never lists.
func (n *noticing) notice(tools string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tools = tools
	n.status.Changes.Tools++
	close(n.changed)
	n.changed = make(chan struct{})
}

// A client that lists after a server's notice sees what it was told of, or waits for it as long as it may.
func TestListAfterANoticeIsFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gatewayOver(t, two, map[string]*fake{"a": {tools: oneTool}, "b": {tools: oneTool}})
		n := &noticing{fake: &fake{tools: oneTool}, status: upstream.Status{State: upstream.Live, Session: 1}, changed: make(chan struct{})}
		snap := &snapshot{catalog: catalog.New(catalog.Config{
			Sources: []catalog.Source{{ID: "n", Prefix: "n__", Upstream: n, Timeout: time.Minute}},
			Policy:  policy.New(map[string]policy.Tools{"n": {}}), ServerInfo: []byte(`{}`), Log: slog.New(slog.DiscardHandler),
		})}
		snap.catalog.Start()
		defer snap.catalog.Close()
		list := func(ctx context.Context) string {
			raw, _ := g.listTools(ctx, snap, &front.Request{Method: mcp.MethodToolsList}).Result.Value("tools")
			return string(raw)
		}
		synctest.Wait()
		for _, name := range []string{"second", "third"} {
			n.notice(`{"tools":[{"name":"` + name + `"}]}`)
			synctest.Wait()
			if got, want := list(t.Context()), `[{"name":"n__`+name+`"}]`; got != want {
				t.Errorf("listed %s, want %s", got, want)
			}
		}
		n.notice("")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		if got := list(ctx); got != `[{"name":"n__third"}]` || time.Since(began) != 2*time.Second {
			t.Errorf("listed %s after %v, want the last good list when the request ends", got, time.Since(began))
		}
	})
}
