package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcp-gateway/internal/leakcheck"
	"mcp-gateway/redact"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// newCredential makes one that is closed with the test.
func newCredential(t *testing.T, cfg Config) *Credential {
	t.Helper()
	c := New(cfg)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// sign gives what a request is signed with.
func sign(ctx context.Context, c *Credential) (shown string, number uint64, err error) {
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header["Authorization"] = []string{"Bearer caller", "Bearer other"}
	number, err = c.Sign(ctx, r)
	if err != nil {
		return "", 0, err
	}
	return strings.TrimPrefix(strings.Join(r.Header["Authorization"], ", "), "Bearer "), number, nil
}

// expect signs with want, and gives the number of it.
func expect(t *testing.T, c *Credential, want string) uint64 {
	t.Helper()
	shown, number, err := sign(t.Context(), c)
	if err != nil || shown != want {
		t.Fatalf("signed with %q, %v; want %q", shown, err, want)
	}
	return number
}

// A witness is a log and what Known was told.
type witness struct {
	mu    sync.Mutex
	out   bytes.Buffer
	known []string
}

func (w *witness) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

func (w *witness) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.String()
}

func (w *witness) tell(s redact.Secret) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known = append(w.known, s.Reveal())
}

func (w *witness) knows(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.known, text)
}

// witnessed has w hear and see all of a Credential.
func witnessed(w *witness, cfg Config) Config {
	cfg.Log = slog.New(slog.NewTextHandler(w, nil))
	cfg.Known = w.tell
	return cfg
}

func TestAFixedBearer(t *testing.T) {
	var w witness
	c := newCredential(t, witnessed(&w, Config{Bearer: redact.NewSecret("planted-bearer")}))
	number := expect(t, c, "planted-bearer")
	if !w.knows("planted-bearer") {
		t.Error("nobody was told of the token")
	}
	if err := c.Refresh(t.Context(), number); !errors.Is(err, ErrNothingNewer) || strings.Contains(err.Error(), "planted") {
		t.Errorf("Refresh: %v", err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	if _, _, err := sign(ended, c); !errors.Is(err, why) {
		t.Errorf("Sign after the end: %v", err)
	}
	if err := c.Refresh(ended, number); !errors.Is(err, why) {
		t.Errorf("Refresh after the end: %v", err)
	}
	if text := fmt.Sprintf("%v %+v %#v", c, c, c); strings.Contains(text, "planted") {
		t.Errorf("it shows as %s", text)
	}
	select {
	case <-c.Changed():
		t.Error("it has changed")
	default:
	}
}

func TestATokenInTheQuery(t *testing.T) {
	c := newCredential(t, Config{Bearer: redact.NewSecret("planted+/="), Query: "token"})
	r := httptest.NewRequest(http.MethodGet, "http://h/mcp?b=x%20y&token=old&a=%2f", nil)
	r.Header.Set("Authorization", "Basic of-the-url")
	shared := r.URL
	before := *shared
	if _, err := c.Sign(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if want := "http://h/mcp?a=%2F&b=x+y&token=planted%2B%2F%3D"; r.URL.String() != want {
		t.Errorf("signed as %s, want %s", r.URL, want)
	}
	if *shared != before || r.Header.Get("Authorization") != "Basic of-the-url" {
		t.Errorf("what others share was changed: %s, %q", shared, r.Header)
	}
}

func TestExactlyOneSource(t *testing.T) {
	for _, cfg := range []Config{{}, {Bearer: redact.NewSecret("x"), BearerFile: "y"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v was taken", cfg)
				}
			}()
			_ = New(cfg).Close()
		}()
	}
}

func TestCheckToken(t *testing.T) {
	for text, want := range map[string]string{
		"": "empty", "planted token": "white space", "planted\n": "white space", "plant\u00e9d": "non-ASCII",
		strings.Repeat("p", maxToken+1): "over 16 KiB", strings.Repeat("p", maxToken): "", "~!planted-._+/=": "",
	} {
		err := checkToken(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "plant")) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
}

func BenchmarkSign(b *testing.B) {
	for _, source := range []string{"bearer", "file"} {
		b.Run(source, func(b *testing.B) {
			cfg := Config{Bearer: redact.NewSecret("planted-bearer")}
			if source == "file" {
				cfg = Config{BearerFile: tokenFile(b, "planted-file")}
			}
			c := New(cfg)
			defer c.Close()
			r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Sign(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A tripFunc is an authorization server in memory.
type tripFunc func(*http.Request) (*http.Response, error)

func (f tripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func jsonAnswer(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

// closedError is what a wait ends with after Close.
func closedError(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrClosed) || !errors.Is(err, net.ErrClosed) {
		t.Errorf("error is %v, want %v", err, ErrClosed)
	}
}
