package auth

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/redact"
)

// A rotation is a token endpoint that gives a new refresh token each time, and takes the second use of one for theft: then
// nothing is good any more.
type rotation struct {
	mu      sync.Mutex
	n       int
	revoked bool
}

func (r *rotation) answer(w http.ResponseWriter, a asked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.revoked || a.form.Get("refresh_token") != fmt.Sprint("planted-refresh-", r.n) {
		r.revoked = true
		saying(400, `{"error":"invalid_grant"}`)(w, a)
		return
	}
	r.n++
	saying(200, fmt.Sprintf(`{"access_token":"access-%d","refresh_token":"planted-refresh-%d"}`, r.n, r.n))(w, a)
}

// kept gives the one file of dir that holds a token.
func kept(t *testing.T, dir string) (path, text string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "refresh-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		if strings.HasSuffix(p, ".lock") {
			continue
		}
		if path != "" {
			t.Fatalf("%v hold tokens", paths)
		}
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		path, text = p, string(data)
	}
	return path, text
}

func TestARotatedRefreshTokenIsKept(t *testing.T) {
	var w witness
	dir := filepath.Join(t.TempDir(), "state", "mcp-gateway")
	e := serveTokens(t, (&rotation{}).answer)
	cfg := witnessed(&w, e.client(refreshing))
	cfg.StateDir = dir
	var before string // what was kept when the access token became known, and so before it was used
	cfg.Known = func(s redact.Secret) {
		w.tell(s)
		if s.Reveal() == "access-1" {
			_, before = kept(t, dir)
		}
	}
	first := newCredential(t, cfg)
	expect(t, first, "access-1")
	path, text := kept(t, dir)
	if text != "planted-refresh-1" || before != text {
		t.Errorf("kept %q, and %q before the access token was known", text, before)
	}
	if !w.knows("planted-refresh-1") {
		t.Error("nobody was told of the refresh token")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if strings.Contains(path, "planted") {
		t.Errorf("the name shows the token: %s", path)
	}

	var next witness
	second := newCredential(t, func() Config { // the next start
		c := witnessed(&next, e.client(refreshing))
		c.StateDir = dir
		return c
	}())
	expect(t, second, "access-2")
	if !next.knows("planted-refresh-1") {
		t.Error("nobody was told of the refresh token that was kept")
	}
	if text := w.logged() + next.logged(); text != "" {
		t.Errorf("on record:\n%s", text)
	}
}

// Two that were configured alike, as an upstream and its successor are during a reload, must not spend one token twice.
func TestTwoCredentialsShareARotatedToken(t *testing.T) {
	dir := t.TempDir()
	r := &rotation{}
	e := serveTokens(t, r.answer)
	cfg := e.client(refreshing)
	cfg.StateDir = dir
	var running sync.WaitGroup
	for range 2 {
		c := newCredential(t, cfg)
		running.Go(func() {
			for range 20 {
				_, number, err := sign(t.Context(), c)
				if err == nil {
					err = c.Refresh(t.Context(), number)
				}
				if err != nil && !strings.Contains(err.Error(), "only after a pause") {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	if r.revoked {
		t.Error("a refresh token was used twice")
	}
}

func TestTheLockIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := from(tripFunc(func(*http.Request) (*http.Response, error) {
			t.Error("the token was sent")
			return jsonAnswer(200, `{}`), nil
		}))
		cfg.StateDir, cfg.OAuth2.RefreshToken = t.TempDir(), redact.NewSecret(plantedRefresh)
		c := newCredential(t, cfg)
		unlock, err := newRefresh(c, *cfg.OAuth2).lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		began := time.Now()
		if _, _, err := sign(t.Context(), c); err == nil || !strings.Contains(err.Error(), "another process") || time.Since(began) != fetchWait {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestARefreshTokenThatCannotBeKept(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	write(t, blocked, "")
	for dir, warnings := range map[string]int{filepath.Join(blocked, "state"): 2, "": 1} {
		var w witness
		e := serveTokens(t, (&rotation{}).answer)
		cfg := witnessed(&w, e.client(refreshing))
		cfg.StateDir = dir
		c := newCredential(t, cfg)
		number := expect(t, c, "access-1")
		if err := c.Refresh(t.Context(), number); err != nil { // it goes on in memory
			t.Fatal(err)
		}
		expect(t, c, "access-2")
		if n := strings.Count(w.logged(), "the next start needs a new one"); n != warnings || strings.Contains(w.logged(), "planted") {
			t.Errorf("%q: warned %d times, want %d:\n%s", dir, n, warnings, w.logged())
		}
	}
}

func TestAnAnswerWithoutARefreshTokenKeepsTheOld(t *testing.T) {
	n := 0
	e := serveTokens(t, func(w http.ResponseWriter, a asked) {
		n++
		if a.form.Get("refresh_token") != plantedRefresh {
			t.Errorf("asked with %q", a.form.Get("refresh_token"))
		}
		saying(200, fmt.Sprintf(`{"access_token":"access-%d"}`, n))(w, a)
	})
	cfg := e.client(refreshing)
	cfg.StateDir = t.TempDir()
	c := newCredential(t, cfg)
	if err := c.Refresh(t.Context(), expect(t, c, "access-1")); err != nil {
		t.Fatal(err)
	}
	expect(t, c, "access-2")
	if path, _ := kept(t, cfg.StateDir); path != "" {
		t.Errorf("the configured token was written to %s", path)
	}
}

// An older token in place of one that cannot be read would be used twice.
func TestAKeptTokenThatCannotBeRead(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"empty":       func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			e := serveTokens(t, (&rotation{}).answer)
			cfg := e.client(refreshing)
			cfg.StateDir = t.TempDir()
			c := newCredential(t, cfg)
			if err := spoil(newRefresh(c, *cfg.OAuth2).path); err != nil {
				t.Fatal(err)
			}
			if _, _, err := sign(t.Context(), c); err == nil || !strings.Contains(err.Error(), "kept in state_dir") {
				t.Errorf("error is %v", err)
			}
			if seen := e.requests(); len(seen) != 0 {
				t.Errorf("asked with %v", seen)
			}
		})
	}
}

// What could not be written is newer than what is there.
func TestMemoryIsNewerThanTheFile(t *testing.T) {
	c := newCredential(t, Config{Bearer: redact.NewSecret("x"), StateDir: t.TempDir()})
	r := newRefresh(c, OAuth2{RefreshToken: redact.NewSecret(plantedRefresh)})
	r.rotated("planted-refresh-1")
	for _, newest := range []string{"planted-refresh-1", "planted-refresh-2"} {
		r.token = redact.NewSecret(newest)
		if got, err := r.current(); err != nil || got.Reveal() != newest {
			t.Errorf("the token is %q, %v; want %q", got.Reveal(), err, newest)
		}
	}
	if err := keep(r.path, "planted-refresh-3"); err != nil { // by another
		t.Fatal(err)
	}
	if got, err := r.current(); err != nil || got.Reveal() != "planted-refresh-3" {
		t.Errorf("the token is %q, %v; want the other's", got.Reveal(), err)
	}
	r.token = redact.NewSecret("planted-refresh-4")
	if got, err := r.current(); err != nil || got.Reveal() != "planted-refresh-4" {
		t.Errorf("the token is %q, %v; want what came after", got.Reveal(), err)
	}
}

// A person who configures another token, or another client, is not given what came of the one before.
func TestWhatIsKeptBelongsToOneConfiguration(t *testing.T) {
	c := newCredential(t, Config{Bearer: redact.NewSecret("x"), StateDir: "dir"})
	base := OAuth2{TokenURL: redact.NewSecret("a"), ClientID: "b", RefreshToken: redact.NewSecret("c")}
	paths := map[string]bool{newRefresh(c, base).path: true}
	for _, change := range []func(*OAuth2){
		func(o *OAuth2) { o.TokenURL = redact.NewSecret("ab") },
		func(o *OAuth2) { o.ClientID = "b2" },
		func(o *OAuth2) { o.RefreshToken = redact.NewSecret("c2") },
		// Joined, these two are the same.
		func(o *OAuth2) {
			o.TokenURL, o.ClientID, o.RefreshToken = redact.NewSecret("a\nb"), "c", redact.NewSecret("d")
		},
		func(o *OAuth2) {
			o.TokenURL, o.ClientID, o.RefreshToken = redact.NewSecret("a"), "b\nc", redact.NewSecret("d")
		},
	} {
		other := base
		change(&other)
		paths[newRefresh(c, other).path] = true
	}
	if len(paths) != 6 {
		t.Errorf("they share %d files: %v", len(paths), paths)
	}
}
