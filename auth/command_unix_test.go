//go:build unix

package auth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcp-gateway/redact"
)

// shell is a command that runs script.
func shell(script string) Config {
	return Config{Command: []redact.Secret{redact.NewSecret("sh"), redact.NewSecret("-c"), redact.NewSecret(script)}}
}

func TestWhatACommandPrints(t *testing.T) {
	t.Setenv("PLANTED_NAME", "planted-environment")
	for _, row := range []struct{ script, token, want string }{
		{`echo planted-1`, "planted-1", ""},
		{`printf '\r\n planted-1 \r\n'`, "planted-1", ""},
		{`echo '{"access_token":"planted-2","expires_in":3600,"token_type":"Bearer"}'`, "planted-2", ""},
		{`echo '{"access_token":"planted-2","expires_in":"3600"}'`, "planted-2", ""},
		{`echo planted-3; cat; echo planted-err >&2`, "planted-3", ""}, // stdin has an end
		{`sleep 60 & echo planted-4`, "planted-4", ""},                 // what it leaves behind holds nothing up
		{`printf %s "$PLANTED_NAME"`, "", "printed nothing"},           // of the environment only what is named
		{`echo planted one`, "", "white space"},
		{`echo '{"access_token":7,"x":"planted"}'`, "", "no JSON object with access_token"},
		{`echo '{"token":"planted"}'`, "", "has no access_token"},
		{`echo planted-out; echo planted-err! >&2; exit 3`, "", "(exit status 3) with 12 bytes of output and 13 on stderr"},
		{`head -c 70000 /dev/zero | tr '\0' p; exit 0`, "", "over 64 KiB"},
		{`head -c 9000000 /dev/zero | tr '\0' p; sleep 60`, "", "over 64 KiB"},
		{`kill -9 $$`, "", "signal: killed"},
	} {
		t.Run(row.script, func(t *testing.T) {
			var w witness
			c := newCredential(t, witnessed(&w, shell(row.script)))
			if row.want == "" {
				expect(t, c, row.token)
				if !w.knows(row.token) {
					t.Error("nobody was told of the token")
				}
			} else if _, _, err := sign(t.Context(), c); err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "planted") {
				t.Errorf("error is %v, want %q", err, row.want)
			}
			if strings.Contains(w.logged(), "planted") {
				t.Errorf("what it said is on record:\n%s", w.logged())
			}
		})
	}
}

func TestHowLongWhatACommandPrintsLives(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`{"access_token":"x","expires_in":90}`: 90 * time.Second, `{"access_token":"x","expires_in":"1.5"}`: 1500 * time.Millisecond,
		`{"access_token":"x","expires_in":1e300}`: (1<<31 - 1) * time.Second, `{"access_token":"x","expires_in":-1}`: 0,
		`{"access_token":"x"}`: 0, `x`: 0,
	} {
		if got, err := printed([]byte(text)); err != nil || got.text != "x" || got.lives != want {
			t.Errorf("%s: %+v, %v; want %v", text, got, err, want)
		}
	}
}

func TestACommandThatIsNotThere(t *testing.T) {
	c := newCredential(t, Config{Command: []redact.Secret{redact.NewSecret("no-such-helper")}})
	if _, _, err := sign(t.Context(), c); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "credential.command") {
		t.Errorf("error is %v", err)
	}
}

// stubborn ends by nothing but SIGKILL. It writes its pid to path.
func stubborn(path string) Config {
	return shell(fmt.Sprintf(`trap '' TERM; echo $$ >%[1]s.new; mv %[1]s.new %[1]s; while :; do sleep 0.1; done`, path))
}

// pidAt waits for the pid in path.
func pidAt(t *testing.T, path string) (pid int) {
	t.Helper()
	for {
		text, err := os.ReadFile(path)
		if err == nil {
			if _, err := fmt.Sscan(string(text), &pid); err != nil {
				t.Fatal(err)
			}
			return pid
		}
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("it never started")
		}
	}
}

func expectGone(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there (%v)", pid, err)
	}
}

func TestCloseEndsACommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pid")
	c := New(stubborn(path))
	waits := make(chan error)
	go func() {
		_, _, err := sign(t.Context(), c)
		waits <- err
	}()
	pid := pidAt(t, path)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	expectGone(t, pid)
	closedError(t, <-waits)
}

func TestACommandIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() {
		_, err := (&command{words: stubborn(path).Command}).fetch(ctx, false)
		done <- err
	}()
	pid := pidAt(t, path)
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "no token within 30s") {
		t.Errorf("error is %v", err)
	}
	expectGone(t, pid)
}
