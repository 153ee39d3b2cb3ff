package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/redact"
)

// An issuer gives token-1, token-2, … and counts. Each answer goes through gate, if there is one.
type issuer struct {
	asked atomic.Int64
	lives int // seconds; 0 says nothing of it
	down  atomic.Bool
	gate  func(*http.Request) error
}

func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	n := i.asked.Add(1)
	if i.gate != nil {
		if err := i.gate(r); err != nil {
			return nil, err
		}
	}
	if i.down.Load() {
		return jsonAnswer(503, `{"error":"temporarily_unavailable"}`), nil
	}
	life := ""
	if i.lives > 0 {
		life = fmt.Sprintf(`,"expires_in":%d`, i.lives)
	}
	return jsonAnswer(200, fmt.Sprintf(`{"access_token":"token-%d"%s}`, n, life)), nil
}

// hold is a gate that opens with its channel, or with the request.
func hold(open <-chan struct{}) func(*http.Request) error {
	return func(r *http.Request) error {
		select {
		case <-open:
			return nil
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

// from is a Credential of client credentials.
func from(i http.RoundTripper) Config {
	return Config{OAuth2: &OAuth2{TokenURL: redact.NewSecret("http://issuer/token"), ClientID: "gateway", ClientSecret: redact.NewSecret("planted-client-secret")}, Transport: i}
}

func (i *issuer) expect(t *testing.T, asked int64) {
	t.Helper()
	synctest.Wait()
	if got := i.asked.Load(); got != asked {
		t.Errorf("the source was asked %d times, want %d", got, asked)
	}
}

func TestOneRefreshForAllThatSawTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		i := &issuer{}
		c := newCredential(t, from(i))
		first := expect(t, c, "token-1")
		i.gate = hold(open)
		changed := c.Changed()
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				if err := c.Refresh(t.Context(), first); err != nil {
					t.Error(err)
				}
			})
		}
		i.expect(t, 2)
		if expect(t, c, "token-1") != first {
			t.Error("the same token has another number")
		}
		select {
		case <-changed:
			t.Error("it has changed before there was another token")
		default:
		}
		close(open)
		calls.Wait()
		<-changed
		if expect(t, c, "token-2") == first {
			t.Error("another token has the same number")
		}
		if err := c.Refresh(t.Context(), first); err != nil { // who comes late takes the winner's
			t.Error(err)
		}
		i.expect(t, 2)
	})
}

func TestOneRunForAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lives: 100}
		c := newCredential(t, from(i))
		for round := int64(1); round <= 3; round++ {
			var calls sync.WaitGroup
			for range 50 {
				calls.Go(func() { expect(t, c, fmt.Sprint("token-", round)) })
			}
			calls.Wait()
			i.expect(t, round)
			if _, err := c.await(t.Context(), nil); err != nil { // who has looked before all that, and comes now
				t.Error(err)
			}
			i.expect(t, round)
			<-time.After(100 * time.Second)
		}
	})
}

func TestADeadlineBoundsItsOwnWaitOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		i := &issuer{gate: hold(open)}
		c := newCredential(t, from(i))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		other := make(chan error)
		go func() {
			_, _, err := sign(t.Context(), c)
			other <- err
		}()
		if _, _, err := sign(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want its deadline", err)
		}
		close(open)
		if err := <-other; err != nil {
			t.Errorf("the other's wait: %v", err)
		}
		i.expect(t, 1)
	})
}

func TestASourceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{gate: hold(nil)}
		c := newCredential(t, from(i))
		began := time.Now()
		_, _, err := sign(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), "no answer within 30s") || time.Since(began) != fetchWait {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestRenewedAtUseBeforeItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		i := &issuer{lives: 100}
		c := newCredential(t, from(i))
		expect(t, c, "token-1")
		i.gate = hold(open)
		<-time.After(79 * time.Second)
		expect(t, c, "token-1")
		i.expect(t, 1)
		<-time.After(11 * time.Second)
		i.expect(t, 1) // no timer asks
		for range 3 {
			expect(t, c, "token-1") // and nobody waits
		}
		i.expect(t, 2)
		close(open)
		synctest.Wait()
		expect(t, c, "token-2")
	})
}

func TestRenewalsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lives: 100}
		var all []*Credential
		signAll := func() {
			for _, c := range all {
				if _, _, err := sign(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 64 {
			all = append(all, newCredential(t, from(i)))
		}
		signAll()
		<-time.After(85 * time.Second)
		signAll()
		synctest.Wait()
		if n := i.asked.Load() - 64; n == 0 || n == 64 {
			t.Errorf("%d of 64 were renewed at the same moment", n)
		}
		<-time.After(5 * time.Second)
		signAll()
		i.expect(t, 128)
	})
}

func TestWhatCannotBeRenewedWorksUntilItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		i := &issuer{lives: 100}
		c := newCredential(t, witnessed(&w, from(i)))
		expect(t, c, "token-1")
		i.down.Store(true)
		<-time.After(95 * time.Second)
		for range 3 {
			expect(t, c, "token-1")
			synctest.Wait()
		}
		if n := strings.Count(w.logged(), "could not be renewed"); n != 1 {
			t.Errorf("the failure is on record %d times:\n%s", n, w.logged())
		}
		<-time.After(5 * time.Second)
		if _, _, err := sign(t.Context(), c); err == nil || !strings.Contains(err.Error(), "temporarily_unavailable") {
			t.Errorf("signed with what has expired: %v", err)
		}
		i.down.Store(false)
		if _, _, err := sign(t.Context(), c); err != nil {
			t.Errorf("signed after the recovery: %v", err)
		}
	})
}

func TestPausesOfASourceThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{}
		i.down.Store(true)
		c := newCredential(t, from(i))
		fail := func() {
			t.Helper()
			if _, _, err := sign(t.Context(), c); err == nil || !strings.Contains(err.Error(), "temporarily_unavailable") {
				t.Fatalf("error is %v, want the last one", err)
			}
		}
		for range 2 * patience {
			fail()
		}
		i.expect(t, patience)
		asked := int64(patience)
		for _, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			<-time.After(pause*time.Second - 1)
			fail()
			i.expect(t, asked)
			<-time.After(1)
			fail()
			asked++
			i.expect(t, asked)
		}
		<-time.After(mostPause)
		i.down.Store(false)
		expect(t, c, fmt.Sprint("token-", asked+1))
	})
}

func TestPausesWhereEachNewTokenIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{}
		c := newCredential(t, from(i))
		renew := func() error {
			_, number, err := sign(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			return c.Refresh(t.Context(), number)
		}
		for n := range patience {
			if err := renew(); err != nil {
				t.Fatalf("refresh %d: %v", n+1, err)
			}
		}
		if err := renew(); !errors.Is(err, errBarren) {
			t.Errorf("error is %v, want %v", err, errBarren)
		}
		i.expect(t, patience+1)
		<-time.After(proven)
		for n := range patience { // the token has lived: that it ends now says nothing
			if err := renew(); err != nil {
				t.Fatalf("refresh %d: %v", n+1, err)
			}
		}
	})
}

func TestTheSameTokenAgain(t *testing.T) {
	asked := 0
	c := newCredential(t, from(tripFunc(func(*http.Request) (*http.Response, error) {
		asked++
		return jsonAnswer(200, `{"access_token":"always"}`), nil
	})))
	number := expect(t, c, "always")
	if err := c.Refresh(t.Context(), number); !errors.Is(err, ErrNothingNewer) || asked != 2 {
		t.Errorf("%v after %d answers", err, asked)
	}
	if expect(t, c, "always") != number {
		t.Error("the refused token has another number, and would go out again")
	}
}

func TestCloseEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		i := &issuer{gate: hold(nil)}
		c := New(witnessed(&w, from(i)))
		waits := make(chan error)
		go func() {
			_, _, err := sign(t.Context(), c)
			waits <- err
		}()
		i.expect(t, 1)
		began := time.Now()
		if err := c.Close(); err != nil || time.Since(began) != 0 {
			t.Errorf("Close: %v after %v", err, time.Since(began))
		}
		closedError(t, <-waits)
		_, _, err := sign(t.Context(), c)
		closedError(t, err)
		i.expect(t, 1)
		if text := w.logged(); text != "" {
			t.Errorf("the gateway's own end is on record as a failure:\n%s", text)
		}
	})
}

func TestAfterCloseATokenStillSigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lives: 100}
		c := New(from(i))
		number := expect(t, c, "token-1")
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		<-time.After(95 * time.Second)
		expect(t, c, "token-1")
		closedError(t, c.Refresh(t.Context(), number))
		i.expect(t, 1)
	})
}
