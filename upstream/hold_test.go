package upstream

import "testing"

func TestHold(t *testing.T) {
	back := 0
	giveBack := func() { back++ }
	var h Hold
	h.Keep(giveBack)
	h.Keep(giveBack)
	if back != 0 {
		t.Fatal("given back while it was held")
	}
	h.Release()
	h.Release()
	if back != 2 {
		t.Errorf("given back %d times, want 2", back)
	}
	h.Keep(giveBack) // a reply that comes when nobody writes any more
	var none *Hold
	none.Keep(giveBack)
	none.Release()
	if back != 4 {
		t.Errorf("given back %d times, want 4: nothing may be kept after Release, or by nobody", back)
	}
}
