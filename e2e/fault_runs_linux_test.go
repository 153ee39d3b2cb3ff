package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A forgetful server is a legacy one over Streamable HTTP that forgets its session before every third call.
type forgetful struct {
	*faulty
	calls, forgot atomic.Int32
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	var req cannedRequest
	_ = json.Unmarshal(body, &req)
	f.mu.Lock()
	known := req.Method == "initialize" || r.Header.Get("Mcp-Session-Id") == fmt.Sprintf("session-%d", f.sessions)
	f.mu.Unlock()
	if req.Method == "tools/call" && known && f.calls.Add(1)%3 == 0 {
		f.forgot.Add(1)
		f.mu.Lock()
		f.sessions++
		f.mu.Unlock()
		known = false
	}
	if !known && r.Method == http.MethodPost {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	f.faulty.ServeHTTP(w, r)
}

// statOf reads the state of a process and the id of its parent; both are empty where there is none.
func statOf(pid string) (state, parent string) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "", ""
	}
	// The name, which may hold anything, is in parentheses.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	return fields[0], fields[1]
}

// children are the gateway's own, zombies apart.
func (g *gateway) children() (living, zombies int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		state, parent := statOf(filepath.Base(dir))
		switch {
		case parent != fmt.Sprint(g.cmd.Process.Pid):
		case state == "Z":
			zombies++
		default:
			living++
		}
	}
	return living, zombies
}

// descriptors are what the gateway has open.
func (g *gateway) descriptors() []string {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", g.cmd.Process.Pid))
	var open []string
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil {
			open = append(open, target)
		}
	}
	return open
}

// TestFaultRuns has upstreams that fail all the time, each in its own way, and one beside them that works and loses no call. When
// they are gone nothing of them is left.
func TestFaultRuns(t *testing.T) {
	steady, exits, junk, changes := newCannedStdio(t, "canned"), newCannedStdio(t, "canned"), newCannedStdio(t, "faulty"), newFaulty(t, true)
	forgets := &forgetful{faulty: newFaulty(t, false)}
	server := httptest.NewServer(forgets)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	var lists atomic.Int32
	changes.lists(func(*string) string { return toolsNamed("fine", fmt.Sprintf("tool-%d", lists.Add(1))) })

	alone := "upstreams:\n  steady:\n" + steady.command()
	g := serve(t, alone)
	g.allListed(t)
	// What the first calls leave open stays open.
	for range 3 {
		call(t, g, "steady__odd")
	}
	before := g.descriptors()
	childrenBefore, _ := g.children()

	if !g.reload(t, alone+"  exits:\n"+exits.shell(`exec timeout --foreground 1 "$0"`)+"    reconnect: {min: 10ms, max: 200ms}\n"+
		"  junk:\n"+junk.command()+
		"  changes: {url: "+quoted(changes.URL)+", poll: 1s}\n"+
		"  forgets: {url: "+quoted(server.URL+"/mcp")+", protocol: legacy}\n") {
		t.Fatal("the configuration was not taken")
	}
	g.allListed(t)
	var over atomic.Bool
	var steadily sync.WaitGroup
	steadily.Go(func() {
		for !over.Load() {
			r, err := tryPost(t.Context(), g.URL, modernHeader("tools/call", "steady__odd"), modernRequest(`1`, "tools/call", `"name":"steady__odd"`))
			if _, _, failed := failed(r); err != nil || failed || r.result == nil {
				t.Errorf("the one beside them: %v %v", r, err)
				return
			}
		}
	})
	good := map[string]int{}
	starts := map[int]bool{}
	if !eventually(2*patience, func() bool {
		for _, name := range []string{"junk__noise", "changes__fine", "forgets__fine", "exits__odd"} {
			r := call(t, g, name)
			v, _, failed := failed(r)
			switch {
			case !failed && r.result != nil:
				good[name]++
			case name != "exits__odd":
				t.Errorf("%s: %v", name, r)
				return true
			case v.Outcome == "error-response":
				t.Errorf("%s: %+v", name, v)
			}
		}
		for _, pid := range exits.pids() {
			starts[pid] = true
		}
		return len(starts) >= 8 && lists.Load() >= 4 && forgets.forgot.Load() >= 5
	}) {
		t.Errorf("the faults were not met: %d processes, %d lists, %d sessions forgotten", len(starts), lists.Load(), forgets.forgot.Load())
	}
	over.Store(true)
	steadily.Wait()
	if good["exits__odd"] == 0 {
		t.Error("no call to the one that exits was ever answered")
	}

	if !g.reload(t, alone) {
		t.Fatal("the configuration was not taken back")
	}
	var after []string
	var children, zombies int
	if !eventually(patience, func() bool {
		after = g.descriptors()
		children, zombies = g.children()
		return len(after) <= len(before) && children <= childrenBefore && zombies == 0
	}) {
		t.Errorf("open are\n%q\nwere\n%q\n%d children, were %d, and %d zombies", after, before, children, childrenBefore, zombies)
	}
	for name, left := range map[string][]int{"exits": exits.pids(), "junk": junk.pids()} {
		if len(left) > 0 {
			t.Errorf("of %s there is left %s", name, describe(left))
		}
	}
	if r := call(t, g, "steady__odd"); r.result == nil {
		t.Errorf("afterwards: %v", r)
	}
}
