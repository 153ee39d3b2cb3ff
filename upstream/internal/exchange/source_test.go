package exchange

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/auth"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
)

// A guarded server takes some tokens, and counts what arrived of each call.
type guarded struct {
	mu       sync.Mutex
	good     []string
	arrivals map[string]int // by call
	// refused is told of each call that shows another token, before the answer.
	refused func()
}

func (g *guarded) serve(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	if g.arrivals == nil {
		g.arrivals = make(map[string]int)
	}
	g.arrivals[r.Header.Get("X-Call")]++
	good := slices.Contains(g.good, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	g.mu.Unlock()
	if !good {
		if g.refused != nil {
			g.refused()
		}
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	answer(200, jsonType, ours)(w, r)
}

func (g *guarded) accept(tokens ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.good = tokens
}

func (g *guarded) arrived(call string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.arrivals[call]
}

// call makes one call.
func call(ctx context.Context, c *Client, name string) error {
	req := request()
	req.Header.Set("X-Call", name)
	req.Resend = new(upstream.Budget)
	_, err := c.Do(ctx, req)
	return err
}

// The authorization server rotates refresh tokens and takes the second use of one for theft, and the end of an access token
// meets many calls at once.
func TestManyCallsAtTheEndOfAToken(t *testing.T) {
	const calls = 50
	var g guarded
	var mu sync.Mutex
	grants := 0
	issuer := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.FormValue("refresh_token") != fmt.Sprint("refresh-", grants) {
			t.Errorf("refreshed with %q after %d grants", r.FormValue("refresh_token"), grants)
		}
		grants++
		g.accept(fmt.Sprint("access-", grants))
		answer(200, jsonType, fmt.Sprintf(`{"access_token":"access-%d","refresh_token":"refresh-%[1]d"}`, grants))(w, r)
	})
	s := serve(t, g.serve)
	credential := auth.New(auth.Config{StateDir: t.TempDir(), OAuth2: &auth.OAuth2{
		TokenURL: redact.NewSecret(issuer.URL), ClientID: "gateway", RefreshToken: redact.NewSecret("refresh-0"),
	}})
	defer credential.Close()
	c := newClient(t, s.URL, func(cfg *Config) { cfg.Credential = credential })
	if err := call(t.Context(), c, "first"); err != nil {
		t.Fatal(err)
	}
	g.accept() // the token is at its end; all see that before one of them is told
	var met sync.WaitGroup
	met.Add(calls)
	g.refused = func() {
		met.Done()
		met.Wait()
	}
	var running sync.WaitGroup
	for n := range calls {
		running.Go(func() {
			name := fmt.Sprint("call ", n)
			if err := call(t.Context(), c, name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := g.arrived(name); got != 2 {
				t.Errorf("%s arrived %d times, want its refusal and once more", name, got)
			}
		})
	}
	running.Wait()
	if grants != 2 {
		t.Errorf("%d grants, want one for the first token and one for the second", grants)
	}
}

func TestAFileReplacedUnderLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	put := func(token string) {
		if err := errors.Join(os.WriteFile(path+".new", []byte(token+"\n"), 0o600), os.Rename(path+".new", path)); err != nil {
			t.Error(err)
		}
	}
	var g guarded
	s := serve(t, g.serve)
	put("token-0")
	g.accept("token-0")
	credential := auth.New(auth.Config{BearerFile: path})
	defer credential.Close()
	c := newClient(t, s.URL, func(cfg *Config) { cfg.Credential = credential })
	ctx, stop := context.WithCancel(t.Context())
	const callers = 8
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	finished := make([]chan struct{}, callers)
	for n := range callers {
		finished[n] = make(chan struct{})
		running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprint(n, ".", i)
				if err := call(context.Background(), c, name); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if got := g.arrived(name); got > 2 {
					t.Errorf("%s arrived %d times", name, got)
				}
				select {
				case finished[n] <- struct{}{}:
				case <-ctx.Done():
				}
			}
		})
	}
	for n := 1; n <= 20; n++ {
		token := fmt.Sprint("token-", n)
		g.accept(token, fmt.Sprint("token-", n-1))
		put(token)
		g.accept(token) // calls on their way still show the one before
		for range 3 {
			for _, f := range finished {
				<-f // no call lives through two changes
			}
		}
	}
}

func TestAForbiddenCallIsNotRefreshed(t *testing.T) {
	s := serve(t, answer(403, jsonType, `{}`))
	source := &source{tokens: []uint64{1, 2}}
	c := newClient(t, s.URL, func(cfg *Config) { cfg.Credential = source })
	want(t, call(t.Context(), c, ""), upstream.ErrorResponse, upstream.Refused, 403)
	if source.at != 0 {
		t.Error("the token was refreshed")
	}
}

// A source that never settles holds up no Close.
func TestCloseWhileACredentialIsFetched(t *testing.T) {
	for _, signs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, "http://server", func(cfg *Config) { cfg.Credential = hanging{signs} })
			end := pipes(c, func(_ int64, r *bufio.Reader, far net.Conn) {
				readRequest(t, r)
				_, _ = io.WriteString(far, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
				_, _ = r.ReadByte()
			})
			done := make(chan error, 1)
			go func() { done <- call(t.Context(), c, "") }()
			synctest.Wait()
			end()
			want(t, <-done, upstream.NotSent, upstream.ClosedByGateway, 0)
		})
	}
}

// The source may be closed before its upstream is.
func TestACredentialThatIsClosed(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	closed := fmt.Errorf("closing: %w", net.ErrClosed)
	for _, source := range []*source{{sign: closed}, {tokens: []uint64{1}, fresh: closed}} {
		c := newClient(t, s.URL, func(cfg *Config) { cfg.Credential = source })
		want(t, call(t.Context(), c, ""), upstream.NotSent, upstream.ClosedByGateway, 0)
	}
}

func TestEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(context.Background())
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(context.Background())
		quiet, parent, other := &either{Context: ctx, life: life}, &either{Context: ctx, life: life}, &either{Context: context.Background(), life: life}
		<-time.After(1)
		if quiet.Err() != nil || parent.Err() != nil {
			t.Error("it has ended")
		}
		waits := parent.Done()
		cancel(why)
		<-waits
		for _, e := range []*either{quiet, parent} {
			if !errors.Is(e.Err(), context.Canceled) || !errors.Is(context.Cause(e), why) {
				t.Errorf("ended with %v, %v", e.Err(), context.Cause(e))
			}
		}
		waits = other.Done()
		end()
		<-waits
		if !errors.Is(other.Err(), context.Canceled) || !errors.Is(context.Cause(other), errClosed) {
			t.Errorf("ended with %v, %v", other.Err(), context.Cause(other))
		}
		third := &either{Context: context.Background(), life: context.Background()}
		waits = third.Done()
		third.stop()
		<-waits // what the wait took is freed
	})
}
