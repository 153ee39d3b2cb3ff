package e2e

import (
	"slices"
	"testing"
)

// TestAKilledUpstreamKeepsItsTools asks for the list all the while that one comes back.
func TestAKilledUpstreamKeepsItsTools(t *testing.T) {
	first := newCannedStdio(t, "canned")
	g := serve(t, "upstreams:\n  first:\n"+first.command()+"    reconnect: {min: 500ms, max: 1s}\n")
	g.allListed(t)
	names, _ := listed(t, modernClient{g.URL})
	before := first.pids()
	if len(before) != 1 || len(names) != len(cannedTools) {
		t.Fatalf("it runs as %d and lists %q", before, names)
	}
	kill(t, before[0])
	lists, away := 0, false
	if !eventually(patience, func() bool {
		got, _ := listed(t, modernClient{g.URL})
		if lists++; !slices.Equal(got, names) {
			t.Errorf("list %d is %q, was %q", lists, got, names)
			return true
		}
		now := first.pids()
		away = away || len(now) == 0
		return len(now) == 1 && now[0] != before[0]
	}) {
		t.Fatal("it never came back")
	}
	if !away {
		t.Log("no list was asked for while it was away")
	}
	if !eventually(patience, func() bool { return call(t, g, "first__odd").result != nil }) {
		t.Error("it answers no call")
	}
}
