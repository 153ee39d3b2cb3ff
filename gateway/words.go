package gateway

import (
	"errors"
	"net/http"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
)

// What a caller may do after a failure.
const (
	retrySafe  = "safe"  // nothing ran, and repeating can work
	retryCheck = "check" // it may have run
	retryNo    = "no"    // someone must act first, or it is a final answer
)

// words are what a caller reads of one failure: what happened, whether anything took effect, what works from here. They are
// for an agent that decides what to do next, so they hold no code, no status and no text of a server.
type words struct {
	retry string
	text  string // after "The tool server "NAME" "
}

// The endings that most texts share.
const (
	nothingRan   = " The call was not sent, so nothing took effect."
	notDone      = " The call was not carried out, so nothing took effect."
	tryLater     = " You can try again later."
	trySoon      = " You can try again in a moment."
	askOperator  = " Trying again will not help until whoever runs the gateway has acted."
	mayHaveRun   = " The call may or may not have taken effect: check before repeating it."
	laterNotSent = " That round was not sent, but an earlier round of the same call may have taken effect: check before starting the call anew."
	laterNotDone = " That round was not carried out, but an earlier round of the same call may have taken effect: check before starting the call anew."
)

// A way is how a call failed. The outcome stands in it as well as the cause, since the same cause is told in other words
// where the call may have run: no text that says that nothing took effect is ever said of such a call.
type way struct {
	upstream.Outcome
	upstream.Cause
}

func notSent(c upstream.Cause) way    { return way{upstream.NotSent, c} }
func noResponse(c upstream.Cause) way { return way{upstream.NoResponse, c} }
func refused(c upstream.Cause) way    { return way{upstream.ErrorResponse, c} }

var wordsOf = map[way]words{
	notSent(upstream.Unreachable):     {retrySafe, "could not be reached." + nothingRan + tryLater},
	notSent(upstream.ConnectingStill): {retrySafe, "is still starting." + nothingRan + trySoon},
	notSent(upstream.Reconnecting):    {retrySafe, "has no connection at the moment; the gateway is reconnecting." + nothingRan + trySoon},
	notSent(upstream.GivenUp):         {retryNo, "speaks another protocol revision than the gateway is set to, so the gateway has given up on it." + nothingRan + askOperator},
	notSent(upstream.HeldProcess):     {retryNo, "left a process that the gateway could not end, so it is not started again." + nothingRan + askOperator},
	notSent(upstream.ClosedByGateway): {retrySafe, "has been closed by the gateway." + nothingRan + tryLater},
	notSent(upstream.QueueFull):       {retrySafe, "has too many calls waiting already." + nothingRan + trySoon},
	notSent(upstream.NoCredential):    {retryNo, "needs a credential that the gateway could not get." + nothingRan + askOperator},
	notSent(upstream.DeadlineUnsent):  {retrySafe, "could not take the call within its time limit." + nothingRan + tryLater},
	notSent(upstream.Reload):          {retrySafe, "was stopped to take a new configuration and has not started again yet." + nothingRan + trySoon},
	notSent(upstream.CanceledUnsent):  {retrySafe, "was not called, since the call was cancelled before that." + nothingRan + " You can make the call again."},
	notSent(upstream.WriteFailed):     {retrySafe, "lost its connection before the call could be sent." + nothingRan + trySoon},
	notSent(upstream.StdinFailed):     {retrySafe, "no longer takes any calls and is being restarted." + nothingRan + trySoon},

	refused(upstream.Refused):             {retryNo, "refused the gateway's access." + notDone + askOperator},
	refused(upstream.HopError):            {retryCheck, "refused the form in which the gateway sent the call, which whoever runs the gateway should know of." + mayHaveRun},
	refused(upstream.ErrorWithoutMessage): {retryCheck, "answered with an error that says nothing about its reason." + mayHaveRun},

	noResponse(upstream.Deadline):        {retryCheck, "did not answer within the call's time limit. It is being asked to stop, and may still complete the call." + mayHaveRun},
	noResponse(upstream.Canceled):        {retryCheck, "was still working on the call when it was cancelled. It is being asked to stop, and may still complete the call." + mayHaveRun},
	noResponse(upstream.ConnectionLost):  {retryCheck, "lost its connection during the call, so the answer is lost; the gateway connects again by itself." + mayHaveRun},
	noResponse(upstream.HeldProcess):     {retryCheck, "lost its connection during the call, so the answer is lost. It also left a process that the gateway could not end, so it is not started again until whoever runs the gateway has acted." + mayHaveRun},
	noResponse(upstream.ClosedByGateway): {retryCheck, "was still working on the call when the gateway closed the connection to it, so the answer is lost." + mayHaveRun},
	noResponse(upstream.Shutdown):        {retryCheck, "was still working on the call when the gateway was shut down, so the answer is lost." + mayHaveRun},
	noResponse(upstream.Reload):          {retryCheck, "was still working on the call when the gateway took a new configuration and closed the connection to it, so the answer is lost." + mayHaveRun},
	noResponse(upstream.HTTPError):       {retryCheck, "gave no proper answer, only a failure of its web server." + mayHaveRun},
	noResponse(upstream.TooLarge):        {retryCheck, "gave an answer that is too large to pass on. The call has probably taken effect: check before repeating it."},
	noResponse(upstream.Unusable):        {retryCheck, "answered in a form that cannot be used, so nobody can tell whether the call took effect: check before repeating it."},

	noResponse(upstream.CallerCannotContinue): {retryCheck, "asked for more input, which this client cannot give through the gateway, so the call ended there, and would again." + mayHaveRun},
	noResponse(upstream.RoundsExhausted):      {retryCheck, "asked for more rounds than one call may take, so the call was ended." + mayHaveRun},
	noResponse(upstream.BetweenRounds):        {retryCheck, "asked for another round of the call, and the call's time limit passed before that was sent; nothing of the call was running then." + laterNotSent},
	noResponse(upstream.StateUsedUp):          {retryCheck, "asked for another round of the call, which came after the call's time limit." + laterNotSent},
	noResponse(upstream.StateExpired):         {retryCheck, "asked for more input, which came too late." + laterNotSent},
	noResponse(upstream.RoundNotSent):         {retryCheck, "asked for another round of the call, and then had no connection to take it." + laterNotSent},
	noResponse(upstream.QueueFull):            {retryCheck, "asked for another round of the call, and then had too many calls waiting to take it." + laterNotSent},
	noResponse(upstream.NoCredential):         {retryCheck, "asked for another round of the call, for which the gateway then could not get a credential." + laterNotSent},
	noResponse(upstream.CanceledUnsent):       {retryCheck, "asked for another round of the call, which was cancelled before it was sent." + laterNotSent},
	noResponse(upstream.RefusedLater):         {retryCheck, "asked for another round of the call, and then turned the gateway away." + laterNotDone},
	noResponse(upstream.HopError):             {retryCheck, "asked for another round of the call, and then refused the form in which the gateway sent it, which whoever runs the gateway should know of." + mayHaveRun},
}

var (
	// unrunForm is said where the server has compared the call's headers with its body, and so has not begun.
	unrunForm = words{retryNo, "refused the form in which the gateway sent the call." + notDone + askOperator}

	// unrunSession is said where the server did not know its session any more and there was none to send the call on again.
	unrunSession = words{retrySafe, "ended its session with the gateway before it took the call, and a new one could not be used in time." + notDone + trySoon}

	// withheld is said where nobody can tell whether an answer holds a secret.
	withheld = words{retryCheck, "answered, but the gateway could not look for secrets in the answer, so the answer is withheld. The call has probably taken effect: check before repeating it."}

	// unknownEnding is said of a failure that has no words: it claims nothing.
	unknownEnding = words{retryCheck, "did not complete the call." + mayHaveRun}
)

// A failure is a call to an upstream that the gateway could not complete.
type failure struct {
	*upstream.Error
	upstream, method string
}

func (f *failure) words() words {
	switch {
	case errors.Is(f.Err, redact.ErrWithheld):
		return withheld
	case f.Outcome == upstream.ErrorResponse && errors.Is(f.Err, upstream.ErrHeaderMismatch):
		return unrunForm
	case f.Outcome == upstream.ErrorResponse && f.Cause == upstream.Refused && f.HTTPStatus == http.StatusNotFound:
		return unrunSession
	}
	if w, ok := wordsOf[way{f.Outcome, f.Cause}]; ok {
		return w
	}
	return unknownEnding
}

func (f *failure) text() string { return `The tool server "` + f.upstream + `" ` + f.words().text }

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
	dst := append([]byte(nil), `{"content":[{"type":"text","text":`...)
	dst = wire.AppendString(dst, f.text())
	dst = append(dst, `}],"isError":true,"resultType":"complete","_meta":{"`+mcp.MetaOutcome+`":`...)
	dst = f.outcome(dst)
	dst = append(dst, `,"`+mcp.MetaServerInfo+`":`...)
	dst = append(append(dst, serverInfo...), `}}`...)
	o, _ := wire.ParseObject(dst) // made of quoted strings alone
	return o
}
