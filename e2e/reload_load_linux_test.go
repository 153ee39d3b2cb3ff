package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// reloadsEnv is how many reloads TestReloadsUnderLoad makes.
const reloadsEnv = "E2E_RELOADS"

// TestReloadsUnderLoad changes the configuration again and again, one time in three to what is none: upstreams come, go and change,
// while clients of both eras call all of them. No call fails but those of an upstream that was away; what has not changed keeps its
// process; and what the gateway holds does not grow.
func TestReloadsUnderLoad(t *testing.T) {
	steady, varying, extra := newCannedStdio(t, "canned"), newCannedStdio(t, "canned"), newCannedStdio(t, "canned")
	web, moving := newCannedHTTP(t), newCannedHTTP(t)
	admin := "http://" + freeAddress(t)
	config := func(i int) string {
		text := fmt.Sprintf("admin: %s\npprof: true\nstart_grace: %ds\nupstreams:\n  steady:\n%s    timeout: %ds\n  web: {url: %s, timeout: %dm}\n",
			strings.TrimPrefix(admin, "http://"), 1+i%3, steady.command(), 60+i, quoted(web.URL), 1+i)
		text += fmt.Sprintf("  moving: {url: %s, start_timeout: %ds}\n", quoted(moving.URL), 60+i)
		if varies(i) {
			text += "  varying:\n" + varying.command() + fmt.Sprintf("    start_timeout: %ds\n", 60+i)
		}
		if i%2 == 0 {
			text += "  extra:\n" + extra.command() + fmt.Sprintf("    prefix: x%d__\n", i)
		}
		if refusedConfig(i) {
			text += "nonsense: true\n"
		}
		return text
	}
	g := serve(t, config(0))
	g.allListed(t)
	before := steady.pids()

	l := &reloadLoad{g: g, legacy: handshake(t, g.URL, "2025-11-25")}
	for _, name := range []string{"steady__odd", "web__odd", "steady__last.of-them", "moving__odd", "varying__odd"} {
		l.run(t, name, l.modern)
		l.run(t, name, l.legacyCall)
	}
	reloads := times(t, reloadsEnv, 30)
	var first footprint
	most := 0
	for i := 1; i <= reloads; i++ {
		most = max(most, len(varying.pids()), len(extra.pids()))
		l.wanted.Store(int64(i))
		if done := g.reload(t, config(i)); done == refusedConfig(i) {
			t.Errorf("reload %d: done is %v", i, done)
		}
		if !refusedConfig(i) {
			l.served.Store(int64(i))
		}
		// All upstreams are in it, and all has been made at least twice.
		if first == (footprint{}) && i >= max(12, reloads/10) && i%12 == 4 {
			first = l.measured(t, admin, func(footprint) bool { return true })
		}
	}
	if most > 1 {
		t.Errorf("%d processes of one upstream ran at a time", most)
	}
	if got := steady.pids(); !slices.Equal(got, before) {
		t.Errorf("the upstream that never changed runs as %d, was %d", got, before)
	}
	all := (reloads/12+1)*12 + 4
	l.wanted.Store(int64(all))
	g.reload(t, config(all))
	l.served.Store(int64(all))
	g.allListed(t)
	last := l.measured(t, admin, func(now footprint) bool { return !now.grown(first) })
	l.end()
	t.Logf("%d calls, %d of them of an upstream that was away; first %+v, last %+v", l.calls.Load(), l.away.Load(), first, last)
	if last.grown(first) {
		t.Error("the gateway holds more than it did")
	}
	for _, c := range []cannedStdio{varying, extra} {
		if !eventually(patience, func() bool { return len(c.pids()) == 1 }) {
			t.Errorf("there still runs %s", describe(c.pids()))
		}
	}
	if names, _ := listed(t, modernClient{g.URL}); !slices.Contains(names, fmt.Sprintf("x%d__odd", all)) || !slices.Contains(names, "varying__odd") {
		t.Errorf("listed are %q", names)
	}
}

// varies reports whether the upstream varying is in the configuration i, and refusedConfig whether that is none.
func varies(i int) bool        { return i%4 < 2 }
func refusedConfig(i int) bool { return i%3 == 2 }

// A reloadLoad is what clients do meanwhile.
type reloadLoad struct {
	g              *gateway
	legacy         legacyClient
	served, wanted atomic.Int64 // the configuration that has been reloaded last, and the one that is written
	calls, away    atomic.Int64
	stop           atomic.Bool
	running        sync.WaitGroup
	pause          sync.RWMutex // held for reading by a call
}

func (l *reloadLoad) modern(t *testing.T, name string) (reply, error) {
	return tryPost(t.Context(), l.g.URL, modernHeader("tools/call", name), modernRequest(`1`, "tools/call", `"name":"`+name+`"`))
}

func (l *reloadLoad) legacyCall(t *testing.T, name string) (reply, error) {
	return tryPost(t.Context(), l.g.URL, legacyHeader(l.legacy.revision, l.legacy.session),
		fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q}}`, name))
}

// run calls the tool until the end. An answer that it is unknown is right only where its upstream was away at a moment of the call.
func (l *reloadLoad) run(t *testing.T, name string, call func(*testing.T, string) (reply, error)) {
	l.running.Go(func() {
		for !l.stop.Load() {
			l.pause.RLock()
			from := l.served.Load()
			r, err := call(t, name)
			to := l.wanted.Load()
			l.pause.RUnlock()
			l.calls.Add(1)
			_, _, failed := failed(r)
			switch {
			case err == nil && r.result != nil && !failed:
			case err == nil && r.code() == -32602 && strings.HasPrefix(name, "varying__") && wasAway(from, to):
				l.away.Add(1)
			default:
				t.Errorf("%s, between configurations %d and %d: %v %v", name, from, to, err, r)
			}
		}
	})
}

func wasAway(from, to int64) bool {
	for i := int(from); i <= int(to); i++ {
		if !varies(i) && !refusedConfig(i) {
			return true
		}
	}
	return false
}

func (l *reloadLoad) end() {
	l.stop.Store(true)
	l.running.Wait()
}

// A footprint is what the gateway holds, by its own account.
type footprint struct{ goroutines, descriptors, heap, resident int }

// measured is the footprint of the gateway while nobody calls it, as soon as it is right, which it need not be at once: what has
// ended is on its way out for a moment, and connections to servers stay open for a while.
func (l *reloadLoad) measured(t *testing.T, admin string, right func(footprint) bool) (now footprint) {
	t.Helper()
	l.pause.Lock()
	defer l.pause.Unlock()
	eventually(patience, func() bool {
		asked(t, http.MethodGet, admin+"/debug/pprof/heap?gc=1") // which collects the garbage
		_, body := asked(t, http.MethodGet, admin+"/metrics")
		now = footprint{metric(t, body, "go_goroutines"), metric(t, body, "process_open_fds"),
			metric(t, body, "go_memstats_heap_inuse_bytes"), metric(t, body, "process_resident_memory_bytes")}
		return right(now)
	})
	return now
}

// grown reports whether more is held than at first. One thing that each reload leaves is more than the margin after a few of them.
func (f footprint) grown(first footprint) bool {
	return f.goroutines > first.goroutines+5 || f.descriptors > first.descriptors+5 || f.heap > first.heap+(2<<20) || f.resident > 2*first.resident
}

// metric is the value of a metric without labels.
func metric(t *testing.T, page, name string) int {
	t.Helper()
	for line := range strings.Lines(page) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(value)
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
