package upstream

import (
	"context"
	"errors"
	"fmt"
)

// An Outcome says what became of a call that did not succeed.
type Outcome string

// The outcomes, told apart by what crossed the transport.
const (
	// NotSent: not one byte of the message reached the transport.
	NotSent Outcome = "not-sent"
	// ErrorResponse: the server answered with an error, or refused before it ran anything.
	ErrorResponse Outcome = "error-response"
	// NoResponse: everything else. The call may have run.
	NoResponse Outcome = "no-response"
)

// A Cause says why a call failed; each has its own words for the caller. The list is closed.
type Cause string

// The causes.
const (
	Unreachable          Cause = "unreachable"
	ConnectingStill      Cause = "connecting"
	Reconnecting         Cause = "reconnecting"
	GivenUp              Cause = "given-up"
	HeldProcess          Cause = "held"
	ClosedByGateway      Cause = "closed"
	QueueFull            Cause = "queue-full"
	NoCredential         Cause = "no-credential"
	DeadlineUnsent       Cause = "deadline-unsent"
	CanceledUnsent       Cause = "canceled-unsent"
	WriteFailed          Cause = "write-failed"
	StdinFailed          Cause = "stdin-failed"
	Refused              Cause = "refused"
	RefusedLater         Cause = "refused-later" // on a later round
	HopError             Cause = "hop-error"
	ErrorWithoutMessage  Cause = "error-without-message"
	Deadline             Cause = "deadline"
	BetweenRounds        Cause = "deadline-between-rounds"
	Canceled             Cause = "canceled"
	RoundNotSent         Cause = "round-not-sent"
	RoundsExhausted      Cause = "rounds-exhausted"
	StateExpired         Cause = "state-expired"
	StateUsedUp          Cause = "state-used-up"
	ConnectionLost       Cause = "connection-lost"
	HTTPError            Cause = "http-error"
	TooLarge             Cause = "too-large"
	Unusable             Cause = "unusable"
	Shutdown             Cause = "shutdown"
	Reload               Cause = "reload"
	CallerCannotContinue Cause = "caller-cannot-continue"
)

// An Error is a call that the gateway could not complete.
type Error struct {
	Outcome    Outcome
	Cause      Cause
	HTTPStatus int   // the server's, 0 where there was none
	Err        error // for the log only; it may quote the server
}

// Error gives outcome, cause and what is behind them. It is for the log.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s (%s)", e.Outcome, e.Cause)
	}
	return fmt.Sprintf("%s (%s): %v", e.Outcome, e.Cause, e.Err)
}

// Unwrap gives what is behind the failure.
func (e *Error) Unwrap() error { return e.Err }

// Ended is the failure of a call whose ctx has ended: by its deadline, or because it was given up. sent says whether a byte
// of it may have reached the transport; err is for the log.
func Ended(ctx context.Context, sent bool, err error) *Error {
	late := errors.Is(context.Cause(ctx), context.DeadlineExceeded)
	switch {
	case sent && late:
		return &Error{Outcome: NoResponse, Cause: Deadline, Err: err}
	case sent:
		return &Error{Outcome: NoResponse, Cause: Canceled, Err: err}
	case late:
		return &Error{Outcome: NotSent, Cause: DeadlineUnsent, Err: err}
	}
	return &Error{Outcome: NotSent, Cause: CanceledUnsent, Err: err}
}

// ErrHeaderMismatch is in the chain of a HopError where the server has refused the headers of a call before it ran
// anything: with a fresh listing, the call may be sent again.
var ErrHeaderMismatch = errors.New("the server refused the headers of the call")
