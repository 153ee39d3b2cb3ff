package process

import (
	"bytes"
	"os"
	"testing"
)

func TestParseStat(t *testing.T) {
	for _, test := range []struct {
		stat string
		want status
		ok   bool
	}{
		{"42 (cat) S 7 40 39 0", status{42, 7, 40, 39, false}, true},
		{"42 (a) Z 1 2 (b) R) Z 7 40 39 0", status{42, 7, 40, 39, true}, true},
		{"42 (gone) X 7 40 39", status{42, 7, 40, 39, true}, true},
		{"42 (cat) S 7 40", status{}, false},
		{"42 (cat) S 7 40 x", status{}, false},
		{"42 cat S 7 40 39", status{}, false},
		{")( S 7 40 39", status{}, false},
		{"x (cat) S 7 40 39", status{}, false},
		{"", status{}, false},
	} {
		if got, ok := parseStat([]byte(test.stat)); got != test.want || ok != test.ok {
			t.Errorf("%q: %+v, %v; want %+v, %v", test.stat, got, ok, test.want, test.ok)
		}
	}
}

func TestParsePidfd(t *testing.T) {
	for _, test := range []struct {
		info string
		pid  int
		ok   bool
	}{
		{"pos:\t0\nflags:\t02000002\nPid:\t42\nNSpid:\t42\n", 42, true},
		{"Pid:\t42", 42, true},
		{"NSpid:\t42\nPid:\t-1\n", 0, false},
		{"Pid:\t0\n", 0, false},
		{"Pid:\tx\n", 0, false},
		{"pos:\t0\n", 0, false},
		{"", 0, false},
	} {
		if pid, ok := parsePidfd([]byte(test.info)); ok != test.ok || ok && pid != test.pid {
			t.Errorf("%q: %d, %v; want %d, %v", test.info, pid, ok, test.pid, test.ok)
		}
	}
}

func TestTheHandleOfAChildIsFound(t *testing.T) {
	p, _ := start(t, play("echo"))
	if held := handles(); !held[p.PID()] || held[os.Getpid()] {
		t.Errorf("handles of %v, want that of %d", held, p.PID())
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if handles()[p.PID()] {
		t.Error("a handle is left after Close")
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (cat) S 7 40 39 0"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if got, ok := parseStat(stat); ok && !bytes.Contains(stat, []byte("(")) {
			t.Errorf("%q gave %+v", stat, got)
		}
	})
}

func FuzzParsePidfd(f *testing.F) {
	f.Add([]byte("pos:\t0\nPid:\t42\n"))
	f.Fuzz(func(t *testing.T, info []byte) {
		if pid, ok := parsePidfd(info); ok && pid <= 0 {
			t.Errorf("%q gave %d", info, pid)
		}
	})
}
