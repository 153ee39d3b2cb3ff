package gateway

import (
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/gateway/config"
)

// A watchedFolder is one with a configuration that a gateway watches.
type watchedFolder struct {
	t     *testing.T
	g     *Gateway
	dir   string
	loads atomic.Int64
	slow  atomic.Int64 // nanoseconds of a load
}

func watching(t *testing.T, text string) *watchedFolder {
	t.Helper()
	f := &watchedFolder{t: t, dir: t.TempDir()}
	f.write("gateway.yaml", text)
	load := func() (*config.Config, []config.Problem, error) {
		f.loads.Add(1)
		<-time.After(time.Duration(f.slow.Load()))
		return config.Load(filepath.Join(f.dir, "gateway.yaml"))
	}
	cfg, _, err := load()
	if err != nil {
		t.Fatal(err)
	}
	cfg.StateDir = t.TempDir()
	made := func(u config.Upstream, _ parts) (engine, error) { return &fake{tools: oneTool}, nil }
	if f.g, err = assemble(cfg, Options{Log: io.Discard, Status: io.Discard, Load: func() (*config.Config, []config.Problem, error) {
		next, warnings, err := load()
		if next != nil {
			next.StateDir = cfg.StateDir
		}
		return next, warnings, err
	}}, made); err != nil {
		t.Fatal(err)
	}
	f.g.snapshot.Load().catalog.Start()
	f.g.retiring.Go(f.g.reloads)
	f.g.retiring.Go(f.g.watch)
	t.Cleanup(func() {
		f.g.end()
		_ = f.g.teardown()
		_ = f.g.closeLog()
	})
	f.loads.Store(0)
	return f
}

func (f *watchedFolder) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// want waits until the files have been looked at many times, and holds what came of it to the number of loads and the prefix that is
// served then.
func (f *watchedFolder) want(loads int64, prefix, after string) {
	f.t.Helper()
	<-time.After(time.Minute)
	synctest.Wait()
	loaded := f.loads.Swap(0)
	if got := f.g.snapshot.Load().cfg.Upstreams[0].Prefix; loaded != loads || got != prefix {
		f.t.Errorf("after %s: loaded %d times, and %q is served; want %d and %q", after, loaded, got, loads, prefix)
	}
}

const watchedText = "watch: true\nupstreams: {a: {command: a, prefix: "

// What has changed is loaded once, also where it cannot be served.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := watching(t, watchedText+"one__}}")
		f.want(0, "one__", "nothing")
		f.write("gateway.yaml", watchedText+"two__}}")
		f.want(1, "two__", "a change")
		f.write("gateway.yaml", watchedText+"}}")
		f.want(1, "two__", "a change for the worse")
		f.write("gateway.yaml", watchedText+"two__}}")
		f.want(1, "two__", "another back")
		f.write("gateway.yaml", watchedText+"three__}}\nstate_dir: elsewhere\nadmin: 127.0.0.1:9")
		f.want(1, "two__", "what a reload cannot change")
		f.write("gateway.yaml", "upstreams: {a: {command: a}}")
		f.want(1, "a__", "one that wants no watch")
		f.write("gateway.yaml", watchedText+"four__}}")
		f.want(0, "a__", "nobody watches")
	})
}

// A file that a configuration refers to is loaded with it, again when it changes, and as soon as it is there.
func TestWatchWhatIsReferredTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := watching(t, watchedText+"one__}}")
		f.write("gateway.yaml", watchedText+"'${file:first}${file:second}'}}")
		f.want(1, "one__", "a reference to what is not there")
		f.write("first", "two")
		f.want(1, "one__", "the first of two files")
		f.write("second", "\x01")
		f.want(1, "one__", "a second that cannot be used")
		f.write("second", "__")
		f.want(1, "two__", "one that can")
		f.write("first", "three")
		f.want(1, "three__", "a change of the first")
		if err := os.Remove(filepath.Join(f.dir, "first")); err != nil {
			t.Fatal(err)
		}
		f.want(0, "three__", "it is away, and may come back")
		f.write("first", "four")
		f.want(1, "four__", "it has come back")
		f.write("gateway.yaml", watchedText+"'${file:third}'}}")
		f.want(1, "four__", "a reference to what is not there")
		f.write("gateway.yaml", watchedText+"five__}}")
		f.want(1, "five__", "nothing refers to it any more")
	})
}

// What still changes is not loaded.
func TestWatchWaitsForTheEndOfAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := watching(t, watchedText+"one__}}")
		<-time.After(time.Second)
		for i := range 5 {
			f.write("gateway.yaml", watchedText+string(rune('a'+i))+"__}}")
			<-time.After(watchInterval)
			synctest.Wait()
			if f.loads.Load() != 0 {
				t.Fatalf("loaded after change %d", i)
			}
		}
		f.want(1, "e__", "the last change")
	})
}

// A reload that takes its time is no reason for another.
func TestWatchAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := watching(t, watchedText+"one__}}")
		f.slow.Store(int64(30 * time.Second))
		f.write("gateway.yaml", watchedText+"two__}}")
		f.want(1, "two__", "a change that takes long to load")
	})
}
