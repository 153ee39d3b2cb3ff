package e2e

import (
	"slices"
	"testing"
)

// TestAKilledUpstreamKeepsItsTools asks for the list all the while that one comes back. Since it comes back with the tools that it
// had, nobody is told of a change.
func TestAKilledUpstreamKeepsItsTools(t *testing.T) {
	t.Parallel()
	first := newCannedStdio(t, "canned")
	g := start(t, "upstreams:\n  first:\n"+first.command()+"    reconnect: {min: 500ms, max: 1s}\n")
	g.allListed(t)
	notices := listen(t, g)
	names, _ := listed(t, modernClient{g.URL})
	before := first.pids()
	if len(before) != 1 || len(names) != len(cannedTools) {
		t.Fatalf("it runs as %d and lists %q", before, names)
	}
	kill(t, before[0])
	lists := 0
	if !eventually(patience, func() bool {
		got, _ := listed(t, modernClient{g.URL})
		if lists++; !slices.Equal(got, names) {
			t.Errorf("list %d is %q, was %q", lists, got, names)
			return true
		}
		return len(only(first, "tools/list")) == 2*len(pages())
	}) {
		t.Fatal("it never came back and was listed again")
	}
	if !eventually(patience, func() bool {
		r := call(t, g, "first__odd")
		_, _, failed := failed(r)
		return !failed && r.result != nil
	}) {
		t.Error("it answers no call")
	}
	g.stop(t)
	for message := range notices.events {
		if message["method"] != nil {
			t.Errorf("the listener was told %s", message)
		}
	}
}
