package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"mcp-gateway/redact"
)

// Config says where the tokens that one upstream is shown come from. Exactly one source is set.
type Config struct {
	Bearer     redact.Secret   // one token for good
	BearerFile string          // a file with the token, read again when it changes and when its token is refused
	Command    []redact.Secret // a program and its arguments, which prints the token
	OAuth2     *OAuth2

	// Query names the parameter of the url that carries the token in place of the Authorization header. Empty is the header.
	Query string
	// Known is told each token, and each new refresh token, before it is first sent anywhere, so that no answer shows it. It
	// may be called from several goroutines. Nil tells nobody.
	Known func(redact.Secret)
	// StateDir keeps refresh tokens that the authorization server has changed. Empty keeps them in memory only.
	StateDir string
	Log      *slog.Logger // nil logs nothing
	// Transport reaches the token endpoint; nil is one of the Credential's own.
	Transport http.RoundTripper
}

const (
	// fetchWait bounds one run of a source, whoever waits for it.
	fetchWait = 30 * time.Second
	// maxToken bounds a token, which has to have room in the headers of a request.
	maxToken = 16 << 10
	// patience is how many runs in a row may bring nothing good until there are pauses between them, which double up to
	// mostPause.
	patience  = 10
	mostPause = 30 * time.Second
	// proven is the life of a token after which its refusal says nothing against the next one.
	proven = 30 * time.Second
)

var (
	// ErrNothingNewer is in what Refresh returns where the refused token is the only one to be had.
	ErrNothingNewer = errors.New("there is no newer credential")
	// ErrClosed is in what Sign and Refresh return after Close where a token would have to be fetched. It is a net.ErrClosed.
	ErrClosed = fmt.Errorf("the credential is being closed: %w", net.ErrClosed)

	errBarren = errors.New("the server refused each token that the source gave lately; it is asked again only after a pause")
)

// A Credential is what the gateway shows one upstream. It is safe for concurrent use. Close is owed.
//
// Its source is asked when a token is needed, never by a timer, and once for all who need one at that moment. A token that
// says how long it lives is renewed beside its use in the last fifth of that.
type Credential struct {
	cfg     Config
	seed    maphash.Seed
	current atomic.Pointer[token] // nil before the first

	// fetch gives a token, and ends soon after ctx does. refused says that the server did not take the one before. Nil for one
	// that never changes.
	fetch func(ctx context.Context, refused bool) (fetched, error)
	// moved reports whether what fetch reads has changed since it last did. Nil where that cannot be told.
	moved  func() bool
	leave  func() error // ends what fetch may have left running; nil where it leaves nothing
	remedy string       // what a person does about a token that is refused, where the source gives no other

	life    context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup
	closing sync.Mutex // one Close at a time looks at what is left

	mu       sync.Mutex // guards the rest
	closed   bool
	flight   *flight
	changed  chan struct{} // closed at the next token
	watching bool
	barren   int // runs in a row that brought nothing good
	pause    time.Time
	failed   error // of the last run

	refreshes, failures uint64
}

// A fetched is what a source gives.
type fetched struct {
	text  string
	lives time.Duration // from before it was asked for; 0 is not known
}

// A token is immutable.
type token struct {
	secret  redact.Secret
	number  uint64   // the same for the same text, so that a token which comes back is known again
	header  []string // of Authorization
	began   time.Time
	early   time.Time // from then on it is renewed; zero is never
	expires time.Time // zero is not known
}

func (t *token) expired(now time.Time) bool { return !t.expires.IsZero() && !now.Before(t.expires) }

func (t *token) old(now time.Time) bool { return !t.early.IsZero() && !now.Before(t.early) }

// New only builds. It panics unless exactly one source is set.
func New(cfg Config) *Credential {
	c := &Credential{cfg: cfg, seed: maphash.MakeSeed(), changed: make(chan struct{})}
	if cfg.Log == nil {
		c.cfg.Log = slog.New(slog.DiscardHandler)
	}
	c.life, c.end = context.WithCancel(context.Background())
	sources := 0
	if !cfg.Bearer.IsZero() {
		sources++
		c.remedy = "the configured bearer was refused, replace it"
		c.tell(cfg.Bearer)
		c.current.Store(c.newToken(fetched{text: cfg.Bearer.Reveal()}, time.Now()))
	}
	if cfg.BearerFile != "" {
		sources++
		f := &file{path: cfg.BearerFile}
		c.fetch, c.moved = f.fetch, f.moved
		c.remedy = "the file of credential.bearer still holds the refused token, replace it"
	}
	if len(cfg.Command) > 0 {
		sources++
		source := &command{words: cfg.Command}
		c.fetch, c.leave = source.fetch, source.close
		c.remedy = "credential.command gave the refused token again, see to its login"
	}
	if cfg.OAuth2 != nil {
		sources++
		c.fetch = c.newGrant(*cfg.OAuth2).fetch
		c.remedy = "the token endpoint gave the refused token again, ask whoever runs it"
	}
	if sources != 1 {
		panic("auth.New: Config sets not one source, but several or none")
	}
	return c
}

func (c *Credential) tell(secret redact.Secret) {
	if c.cfg.Known != nil {
		c.cfg.Known(secret)
	}
}

// newToken makes what is shown of what a source gave.
func (c *Credential) newToken(got fetched, began time.Time) *token {
	t := &token{
		secret: redact.NewSecret(got.text), number: maphash.String(c.seed, got.text),
		header: []string{"Bearer " + got.text}, began: began,
	}
	if got.lives > 0 {
		// By the clock on the wall: the other one stands still while the machine sleeps.
		began = began.Round(0)
		t.expires = began.Add(got.lives)
		t.early = began.Add(time.Duration(float64(got.lives) * (0.8 + 0.1*rand.Float64())))
	}
	return t
}

// Sign puts the credential on r, in place of any Authorization, or any parameter of the name, that is there. It waits for
// the source only where there is no token that can be used, and only within ctx. The number that it returns names the
// token, the same text by the same number; Refresh takes it.
func (c *Credential) Sign(ctx context.Context, r *http.Request) (number uint64, err error) {
	if ctx.Err() != nil {
		return 0, ended(ctx)
	}
	t, err := c.usable(ctx)
	if err != nil {
		return 0, err
	}
	if c.cfg.Query == "" {
		r.Header["Authorization"] = t.header[:1:1]
		return t.number, nil
	}
	target := *r.URL
	query := target.Query()
	query.Set(c.cfg.Query, t.secret.Reveal())
	target.RawQuery = query.Encode()
	r.URL = &target
	return t.number, nil
}

// usable is a token that is not known to be of no use.
func (c *Credential) usable(ctx context.Context) (*token, error) {
	t := c.current.Load()
	if c.fetch == nil {
		return t, nil
	}
	now := time.Now()
	if t == nil || t.expired(now) {
		return c.await(ctx, t)
	}
	switch {
	case c.moved != nil && c.moved():
		if newer, err := c.await(ctx, t); err == nil {
			return newer, nil
		} // what there is may still work
	case t.old(now):
		_, _, _ = c.begin(t, false) // the token still works, and so nobody waits for the next
	}
	return t, nil
}

// Refresh is told that the server refused the token of that number, and returns once there is another. The source is asked
// once for all who were refused the same token, on a time of its own: ctx bounds this wait alone. ErrNothingNewer is in the
// error where the source has no other. What the error says of the source is never in the source's words.
func (c *Credential) Refresh(ctx context.Context, number uint64) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	for c.fetch != nil {
		t := c.current.Load()
		if t == nil || t.number != number {
			return nil
		}
		f, mine, err := c.begin(t, true)
		if err != nil {
			return err
		}
		if err := c.wait(ctx, f); err != nil {
			return err
		}
		switch {
		case c.current.Load().number != number:
			return nil
		case f.err != nil:
			return f.err
		case mine: // what another began may have looked before the token was replaced
			return fmt.Errorf("%w: %s", ErrNothingNewer, c.remedy)
		}
	}
	return fmt.Errorf("%w: %s", ErrNothingNewer, c.remedy)
}

// Changed is closed when there is a token other than the one that there is now. While somebody may wait for that, a file is
// looked at every two seconds; other sources are not asked.
func (c *Credential) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moved != nil && !c.watching && !c.closed {
		c.watching = true
		changed := c.changed
		c.running.Go(func() { c.watch(changed) })
	}
	return c.changed
}

// Counts tells how often the source has given another token than its first, and how often it has failed.
func (c *Credential) Counts() (refreshes, failures uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refreshes, c.failures
}

// Close ends what runs of the source and waits for it. Who waits for a token gets ErrClosed. A token that is there still
// signs, so that calls in flight can finish. The error holds the *process.HeldError of a command that could not be ended; a
// later Close tries again.
func (c *Credential) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end()
	c.running.Wait()
	c.closing.Lock()
	defer c.closing.Unlock()
	if c.leave == nil {
		return nil
	}
	return c.leave()
}

// ended says why ctx has.
func ended(ctx context.Context) error {
	return cmp.Or(context.Cause(ctx), ctx.Err())
}
