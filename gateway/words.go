package gateway

import (
	"errors"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// What a caller may do after a failure.
const (
	retrySafe  = "safe"  // nothing ran, and repeating can work
	retryCheck = "check" // it may have run
	retryNo    = "no"    // someone must act first, or it is a final answer
)

// words are what a caller reads of one cause: what happened, whether anything took effect, what works from here. They are
// for an agent that decides what to do next, so they hold no code, no status and no text of a server.
type words struct {
	retry string
	text  string // after "The tool server "NAME" "
}

// The endings that most texts share.
const (
	nothingRan  = " The call was not sent, so nothing took effect."
	tryLater    = " You can try again later."
	askOperator = " Trying again will not help until whoever runs the gateway has acted."
	mayHaveRun  = " It may or may not have taken effect: check before repeating it."
)

var wordsOf = map[upstream.Cause]words{
	upstream.Unreachable:          {retrySafe, "could not be reached." + nothingRan + tryLater},
	upstream.ConnectingStill:      {retrySafe, "is still starting." + nothingRan + " You can try again in a moment."},
	upstream.Reconnecting:         {retrySafe, "has no connection at the moment; the gateway is reconnecting." + nothingRan + " You can try again in a moment."},
	upstream.GivenUp:              {retryNo, "speaks another protocol revision than the gateway is set to, so the gateway has given up on it." + nothingRan + askOperator},
	upstream.HeldProcess:          {retryNo, "left a process that the gateway could not end, so it is not started again." + nothingRan + askOperator},
	upstream.ClosedByGateway:      {retrySafe, "has been closed by the gateway." + nothingRan + tryLater},
	upstream.QueueFull:            {retrySafe, "has too many calls waiting already." + nothingRan + " You can try again in a moment."},
	upstream.NoCredential:         {retryNo, "needs a credential that the gateway could not get." + nothingRan + askOperator},
	upstream.DeadlineUnsent:       {retrySafe, "could not take the call before its time limit." + nothingRan + tryLater},
	upstream.CanceledUnsent:       {retrySafe, "was not called, since the call was cancelled before it was sent." + nothingRan},
	upstream.WriteFailed:          {retrySafe, "lost its connection before the call could be sent." + nothingRan + tryLater},
	upstream.StdinFailed:          {retrySafe, "no longer takes any calls and is being restarted." + nothingRan + tryLater},
	upstream.Refused:              {retryNo, "refused the gateway's access. The call was not carried out." + askOperator},
	upstream.HopError:             {retryCheck, "refused the form in which the gateway sent the call, which whoever runs the gateway should know of." + mayHaveRun},
	upstream.ErrorWithoutMessage:  {retryNo, "answered with an error that says nothing about its reason."},
	upstream.Deadline:             {retryCheck, "did not answer within the call's time limit. It is being asked to stop, and may still complete the call." + mayHaveRun},
	upstream.Canceled:             {retryCheck, "was still working on the call when it was cancelled. It is being asked to stop." + mayHaveRun},
	upstream.RoundNotSent:         {retryCheck, "asked for another round of the call, which was not sent." + mayHaveRun},
	upstream.CallerCannotContinue: {retryCheck, "asked for more input, which cannot be given through the gateway, so the call ended there." + mayHaveRun},
	upstream.ConnectionLost:       {retryCheck, "lost its connection during the call, so its answer is lost." + mayHaveRun},
	upstream.HTTPError:            {retryCheck, "failed to answer properly." + mayHaveRun},
	upstream.TooLarge:             {retryCheck, "gave an answer that is too large to pass on. The call has probably taken effect: check before repeating it."},
	upstream.Unusable:             {retryCheck, "answered in a form that cannot be used, so that nobody can tell whether the call took effect: check before repeating it."},
	upstream.Shutdown:             {retryCheck, "was still working on the call when the gateway closed the connection to it, so its answer is lost." + mayHaveRun},
}

// hopUnrun is said where the server has compared the call's headers with its body, and so has not begun.
var hopUnrun = words{retryNo, "refused the form in which the gateway sent the call. The call was not carried out." + askOperator}

// A failure is a call to an upstream that the gateway could not complete.
type failure struct {
	*upstream.Error
	upstream, method string
}

// words follow the outcome: a text that says that nothing ran is never said of a call that may have run.
func (f *failure) words() words {
	w, ok := wordsOf[f.Cause]
	switch {
	case errors.Is(f.Err, upstream.ErrHeaderMismatch):
		return hopUnrun
	case f.Outcome != upstream.NoResponse && ok:
		return w
	case f.Outcome == upstream.NoResponse && w.retry == retryCheck:
		return w
	case f.Outcome == upstream.NoResponse && f.Cause == upstream.ClosedByGateway:
		return wordsOf[upstream.Shutdown]
	}
	return wordsOf[upstream.ConnectionLost]
}

// outcome is the object that tells a program what the text tells a reader.
func (f *failure) outcome(dst []byte) []byte {
	dst = append(dst, `{"outcome":`...)
	dst = wire.AppendString(dst, string(f.Outcome))
	dst = append(dst, `,"cause":`...)
	dst = wire.AppendString(dst, string(f.Cause))
	dst = append(dst, `,"upstream":`...)
	dst = wire.AppendString(dst, f.upstream)
	dst = append(dst, `,"method":`...)
	dst = wire.AppendString(dst, f.method)
	dst = append(dst, `,"retry":`...)
	dst = wire.AppendString(dst, f.words().retry)
	if f.HTTPStatus != 0 {
		dst = append(dst, `,"httpStatus":`...)
		dst = appendInt(dst, f.HTTPStatus)
	}
	return append(dst, '}')
}

// toolResult is the failure as a tool's result: models see results, and rarely protocol errors.
func (f *failure) toolResult(serverInfo []byte) wire.Object {
	text := `The tool server "` + f.upstream + `" ` + f.words().text
	dst := append([]byte(nil), `{"content":[{"type":"text","text":`...)
	dst = wire.AppendString(dst, text)
	dst = append(dst, `}],"isError":true,"resultType":"complete","_meta":{"`+mcp.MetaOutcome+`":`...)
	dst = f.outcome(dst)
	dst = append(dst, `,"`+mcp.MetaServerInfo+`":`...)
	dst = append(append(dst, serverInfo...), `}}`...)
	o, _ := wire.ParseObject(dst) // made of quoted strings alone
	return o
}
