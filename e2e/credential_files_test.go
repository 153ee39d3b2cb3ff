package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestATokenFileIsReplacedUnderLoad replaces the file while calls go to a server that accepts the newest token only.
func TestATokenFileIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(t *testing.T, path, token string){
		"by another": func(t *testing.T, path, token string) {
			writeFile(t, path+".next", token+"\n")
			if err := os.Rename(path+".next", path); err != nil {
				t.Error(err)
			}
		},
		"in place": writeFile,
		// As Kubernetes mounts a secret: the file is a link into a folder that is a link.
		"by a link": func(t *testing.T, path, token string) {
			version := filepath.Join(filepath.Dir(path), pick("abcdefghijklmnopqrstuvwxyz", 12))
			if err := os.Mkdir(version, 0o700); err != nil {
				t.Error(err)
			}
			writeFile(t, filepath.Join(version, "token"), token)
			data := filepath.Join(filepath.Dir(path), "..data")
			if err := errors.Join(os.Symlink(version, data+".next"), os.Rename(data+".next", data)); err != nil {
				t.Error(err)
			}
			_ = os.Symlink(filepath.Join("..data", "token"), path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replaceUnderLoad(t, write)
		})
	}
}

func replaceUnderLoad(t *testing.T, write func(t *testing.T, path, token string)) {
	t.Helper()
	h := newHunt()
	path := filepath.Join(t.TempDir(), "token")
	var newest atomic.Value
	replace := func(i int) {
		token := h.plant(fmt.Sprint("token ", i), "")
		newest.Store(token)
		write(t, path, token)
	}
	replace(0)
	s := newGuarded(t, func(token string) bool { return token == newest.Load() })
	g := serve(t, "log_level: debug\nupstreams:\n  own:\n    url: "+s.URL+"\n    credential: {bearer: \"${file:"+filepath.ToSlash(path)+"}\"}\n")
	g.allListed(t)

	var made [6]atomic.Int64
	var failures atomic.Int64
	stop := make(chan struct{})
	var together sync.WaitGroup
	for i := range made {
		together.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("%d-%d", i, n)
				r, err := act(t, g, "own", id)
				if made[i].Add(1); err != nil || textOf(r) != id {
					if failures.Add(1) < 4 {
						t.Errorf("call %s: %v %v", id, r, err)
					}
				}
			}
		})
	}
	for i := range 20 {
		// What ran at the last replacement has ended before the next, so that no call meets two.
		for w := range made {
			before := made[w].Load()
			if !eventually(patience, func() bool { return made[w].Load() > before+1 }) {
				t.Error("no calls were made")
			}
		}
		replace(i + 1)
	}
	close(stop)
	together.Wait()
	if failures.Load() > 0 {
		t.Errorf("%d calls failed", failures.Load())
	}
	h.clean(t, "the log", g.out.String())
}

// TestACredentialHelper has a program print the token.
func TestACredentialHelper(t *testing.T) {
	t.Parallel()
	h := newHunt()
	path := filepath.Join(t.TempDir(), "says")
	var newest atomic.Value
	say := func(format, what string) {
		newest.Store(h.plant(what, ""))
		writeFile(t, path, fmt.Sprintf(format, newest.Load()))
	}
	runs := func() int {
		text, _ := os.ReadFile(path + ".runs")
		return strings.Count(string(text), "\n")
	}
	say("%s\n", "the printed token")
	s := newGuarded(t, func(token string) bool { return token == newest.Load() })
	g := serve(t, fmt.Sprintf("log_level: debug\nupstreams:\n  own:\n    url: %s\n    credential: {command: [%s, print-token, %s]}\n", s.URL, quoted(self()), quoted(path)))
	g.allListed(t)
	s.parallel(t, g, "own", "printed", 10)
	say(`{"access_token":%q,"expires_in":3600}`, "the token in JSON")
	before := runs()
	s.parallel(t, g, "own", "in JSON", 50)
	if n := runs() - before; n != 1 {
		t.Errorf("the program ran %d times for one refused token", n)
	}
	say("!%s", "what a failing program prints")
	r, err := act(t, g, "own", "failing")
	// The token that there was is refused first, and that is what a call ends with.
	if v, _, ok := failed(r); err != nil || !ok || v.Cause != "refused" || s.received["failing"] != 1 {
		t.Errorf("with a program that fails: %v %v", r, err)
	}
	h.clean(t, "the words", string(r.body))
	say("%s", "the last token")
	if !eventually(patience, func() bool { r, err := act(t, g, "own", "again"); return err == nil && textOf(r) == "again" }) {
		t.Error("a program that works again is not asked")
	}
	h.clean(t, "the log", g.out.String())
}
