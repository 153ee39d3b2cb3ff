package redact

import (
	"testing"
)

// A scrubber that was never made, and one that breaks, withhold what they cannot read.
func TestFailsClosed(t *testing.T) {
	broken := NewScrubber()
	broken.live.Store(&set{})
	unlearned := &Scrubber{}
	unlearned.Learn(Known{Text: NewSecret("a-secret-1")})
	half := NewScrubber(NewSecret("a-secret-1"))
	half.known.Store(nil) // what is learned next cannot be kept
	half.Add(NewSecret("a-secret-2"))
	for name, s := range map[string]*Scrubber{"zero": {}, "nil": nil, "broken": broken, "unlearned": unlearned, "half": half} {
		if got := s.String("text"); got != Withheld {
			t.Errorf("%s: String gives %q", name, got)
		}
		if got := s.Bytes([]byte("text")); string(got) != Withheld {
			t.Errorf("%s: Bytes gives %q", name, got)
		}
		if !s.Holds("text") {
			t.Errorf("%s: Holds says that there is nothing", name)
		}
		if got, err := s.JSON([]byte(`"text"`)); err != ErrWithheld || got != nil {
			t.Errorf("%s: JSON gives %q, %v", name, got, err)
		}
		if got, ok := s.Definition([]byte(`{"name":"a"}`)); ok || got != nil {
			t.Errorf("%s: Definition gives %q", name, got)
		}
	}
	version := NewScrubber().Version()
	if half.Version() == version {
		t.Error("a scrubber that broke has the version it had")
	}
}
