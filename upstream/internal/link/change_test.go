package link

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/upstream"
)

func changesOf(l *Link[*session]) upstream.Changes {
	s, _ := l.Status()
	return s.Changes
}

func wantChanges(t *testing.T, l *Link[*session], want upstream.Changes) {
	t.Helper()
	synctest.Wait()
	if got := changesOf(l); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestChangesAreCountedAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := start(t, &dialer{script: []func(context.Context) (*session, error){works(newSession())}}, nil)
		defer closeLink(t, l)
		synctest.Wait()
		_, changed := l.Status()
		l.Changed(Tools)
		<-changed
		wantChanges(t, l, upstream.Changes{Tools: 1})
		for range 50 {
			l.Changed(Tools)
			<-time.After(10 * time.Millisecond)
		}
		wantChanges(t, l, upstream.Changes{Tools: 1})
		<-time.After(500 * time.Millisecond)
		wantChanges(t, l, upstream.Changes{Tools: 2}) // the last is not lost
		l.Changed(Tools)
		<-time.After(999 * time.Millisecond)
		wantChanges(t, l, upstream.Changes{Tools: 2})
		<-time.After(time.Minute)
		wantChanges(t, l, upstream.Changes{Tools: 3})
		l.Changed(Tools)
		wantChanges(t, l, upstream.Changes{Tools: 4})
	})
}

func TestEachKindOfChangeIsCountedOnItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := start(t, &dialer{script: []func(context.Context) (*session, error){works(newSession())}}, nil)
		defer closeLink(t, l)
		synctest.Wait()
		all := []Change{Tools, Prompts, Resources, Updated}
		want := upstream.Changes{}
		for i, counter := range []*uint64{&want.Tools, &want.Prompts, &want.Resources, &want.Updated} {
			l.Changed(all[i])
			*counter = 1
			wantChanges(t, l, want) // at once, though another was counted just before
			<-time.After(100 * time.Millisecond)
		}
		l.Changed(Updated)
		l.Changed(Tools)
		<-time.After(600 * time.Millisecond) // a second after the first of tools
		want.Tools++
		wantChanges(t, l, want)
		<-time.After(300 * time.Millisecond)
		want.Updated++
		wantChanges(t, l, want)
		<-time.After(time.Minute)
		l.Changed(Updated) // it is due before tools are, whatever their order
		<-time.After(400 * time.Millisecond)
		l.Changed(Tools)
		<-time.After(100 * time.Millisecond)
		l.Changed(Tools)
		l.Changed(Updated)
		want.Tools, want.Updated = want.Tools+1, want.Updated+1
		wantChanges(t, l, want)
		<-time.After(500 * time.Millisecond)
		want.Updated++
		wantChanges(t, l, want)
		<-time.After(400 * time.Millisecond)
		want.Tools++
		wantChanges(t, l, want)
		<-time.After(time.Minute)
		for _, kind := range all { // together
			l.Changed(kind)
		}
		wantChanges(t, l, upstream.Changes{Tools: 5, Prompts: 2, Resources: 2, Updated: 5})
	})
}

// What is owed when a session ends, or told while there is none, is counted by the next one.
func TestAChangeOutlivesItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newSession()
		d := &dialer{script: []func(context.Context) (*session, error){works(first), works(newSession())}}
		l, _ := start(t, d, nil)
		defer closeLink(t, l)
		synctest.Wait()
		l.Changed(Tools)
		wantChanges(t, l, upstream.Changes{Tools: 1})
		l.Changed(Tools)
		synctest.Wait()
		l.Lost(first, errors.New("gone"))
		synctest.Wait()
		l.Changed(Prompts)
		wantChanges(t, l, upstream.Changes{Tools: 1})
		<-time.After(time.Minute)
		wantState(t, l, upstream.Live)
		wantChanges(t, l, upstream.Changes{Tools: 2, Prompts: 1})
	})
}

func TestAPaceGrowsWhileNothingLivesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPace(time.Second, 8*time.Second)
		p.pause.Rand = func(n int64) int64 { return n - 1 }
		for i, test := range []struct{ lived, want time.Duration }{
			{0, 2 * time.Second}, {settled - 1, 4 * time.Second}, {0, 8 * time.Second}, {0, 8 * time.Second}, {settled, 2 * time.Second},
		} {
			began := time.Now()
			if !p.Wait(t.Context(), test.lived) || time.Since(began) != test.want {
				t.Errorf("pause %d took %v, want %v", i, time.Since(began), test.want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if p.Wait(ctx, 0) || time.Since(began) != time.Second {
			t.Errorf("a pause went on for %v after the end of its ctx", time.Since(began))
		}
	})
}
