package upstreamtest

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// Run holds an engine to the contract of [upstream.Upstream] on tr. Leftover children are for the TestMain of the caller to
// find.
func Run(t *testing.T, tr Transport) {
	// What a first engine leaves for the life of the process does not count.
	t.Run("First", func(t *testing.T) { start(t, tr, func(*Request) {}) })
	for _, c := range []struct {
		name  string
		test  func(t *testing.T, tr Transport)
		needs Feature
	}{
		{"Status", testStatus, 0},
		{"ConcurrentCalls", testConcurrentCalls, 0},
		{"BytesPassWhole", testBytesPassWhole, 0},
		{"LargeMessages", testLargeMessages, 0},
		{"ServerErrorPassesWhole", testServerError, 0},
		{"EndedBeforeTheSend", testEndedBeforeTheSend, 0},
		{"EndedWhileItRuns", testEndedWhileItRuns, 0},
		{"Silence", testSilence, 0},
		{"SlowDrip", testSlowDrip, Parts},
		{"BadRepliesHarmNoOtherCall", testBadReplies, 0},
		{"MalformedMessages", testMalformed, 0},
		{"TooLargeReplies", testTooLarge, 0},
		{"ReplyForAnUnknownID", testUnknownID, 0},
		{"RepeatedReply", testRepeatedReply, 0},
		{"ErrorWithoutAnID", testErrorWithoutID, 0},
		{"ServerDiesDuringACall", testServerDies, 0},
		{"ServerDiesDuringItsReply", testServerDiesInReply, Parts},
		{"Progress", testProgress, 0},
		{"ProgressThatNobodyWants", testNoProgress, 0},
		{"SlowCaller", testSlowCaller, 0},
		{"LogMessages", testLogMessages, 0},
		{"Changes", testChanges, 0},
		{"HalfClosed", testHalfClosed, Halves},
		{"SessionLostEveryThirdCall", testEveryThirdCall, 0},
		{"Reconnects", testReconnects, 0},
		{"NothingIsSentTwice", testNothingIsSentTwice, 0},
		{"RandomFaults", testRandomFaults, 0},
		{"Close", testClose, 0},
		{"CloseWhileCallsRun", testCloseWhileCallsRun, 0},
		{"CloseDuringAConnect", testCloseDuringAConnect, Mutes},
		{"QuiesceDuringAConnect", testQuiesceDuringAConnect, Mutes},
		{"QuiesceWhileCallsRun", testQuiesceWhileCallsRun, 0},
	} {
		if tr.Lacks&c.needs == 0 {
			before := holds()
			t.Run(c.name, func(t *testing.T) { c.test(t, tr) })
			wantFootprint(t, before, 0)
		}
	}
}

// start runs an engine on a server that h answers, and waits until it is live. At the end of the test no call may have arrived
// more often than it was allowed to.
func start(t *testing.T, tr Transport, h Handler) upstream.Upstream {
	t.Helper()
	return startOn(t, tr, newReceived(t), h)
}

func startOn(t *testing.T, tr Transport, in *received, h Handler) upstream.Upstream {
	t.Helper()
	t.Cleanup(in.check)
	u := tr.Start(t, in.counted(h))
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	Await(t, u, upstream.Live)
	return u
}

// Await waits until u is in the state, and gives what it is then.
func Await(t testing.TB, u upstream.Upstream, state upstream.State) upstream.Status {
	t.Helper()
	for {
		status, changed := u.Status()
		if status.State == state {
			return status
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("the upstream is %s (%v), want %s", status.State, status.Err, state)
		}
	}
}

// A done is what became of a call.
type done struct {
	resp *upstream.Response
	err  error
}

// call calls the tool with the given arguments, and sends what became of it.
func call(ctx context.Context, u upstream.Upstream, tool, arguments string) <-chan done {
	return callWith(ctx, u, tool, `"arguments":`+arguments, nil)
}

// callWith calls the tool with these members in its params, and with a Notify.
func callWith(ctx context.Context, u upstream.Upstream, tool, members string, notify func(upstream.Notification)) <-chan done {
	return callMarked(ctx, u, tool, marks.Add(1), members, notify)
}

// callMarked calls the tool as the one with that mark.
func callMarked(ctx context.Context, u upstream.Upstream, tool string, mark int64, members string, notify func(upstream.Notification)) <-chan done {
	out := make(chan done, 1)
	go func() {
		params := wire.AppendString([]byte(`{"name":`), tool)
		params = strconv.AppendInt(append(params, `,"mark":`...), mark, 10)
		params = append(append(append(params, ','), members...), '}')
		o, err := wire.ParseObject(params)
		if err != nil {
			out <- done{err: err}
			return
		}
		req := &upstream.Request{Method: mcp.MethodToolsCall, Target: tool, Params: o, Notify: notify, Resend: new(upstream.Budget)}
		resp, err := u.Call(ctx, req)
		out <- done{resp, err}
	}()
	return out
}

// result checks that the call succeeded with these members in its result.
func (d done) result(t *testing.T, tr Transport, members string) {
	t.Helper()
	if d.err != nil {
		t.Fatalf("the call failed: %v", d.err)
	}
	if want, got := expected(tr.Revision, members), string(d.resp.Result.Raw()); got != want {
		t.Errorf("result is %.200s, want %.200s", got, want)
	}
	if d.resp.Type != mcp.ResultComplete || d.resp.Revision != tr.Revision {
		t.Errorf("type %q of revision %q, want complete of %s", d.resp.Type, d.resp.Revision, tr.Revision)
	}
}

// failed checks the outcome of a call that the engine could not complete.
func (d done) failed(t *testing.T, outcome upstream.Outcome, cause upstream.Cause) {
	t.Helper()
	e, ok := errors.AsType[*upstream.Error](d.err)
	if !ok {
		t.Fatalf("the call gave %v, want %s (%s)", d.err, outcome, cause)
	}
	if e.Outcome != outcome || e.Cause != cause {
		t.Errorf("the call gave %v, want %s (%s)", e, outcome, cause)
	}
}
