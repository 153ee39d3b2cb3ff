package gateway

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// A server that needs more input ends its request with input_required, and the client makes the request again with the input
// and with the requestState that it was given (2026-07-28, multi round-trip requests). The state that leaves the gateway is
// always one of its own, sealed around the server's, so that nobody but the caller can continue a call, and only that call,
// at the server that asked, and so that the time it has used goes with it: any replica with the same keys takes it.

// purposeState is what a sealed state of a call is for.
const purposeState = "requestState"

// maxServerState bounds a server's own state, as JSON text. The client has to send it back in one request, a third longer.
const maxServerState = 1 << 20

// A round is what a request has brought of the earlier rounds of its call, any of which may have acted.
type round struct {
	legs  int           // rounds that the server has answered
	used  time.Duration // of the call's time, when the request was received
	state []byte        // the server's own, as JSON text; nil where it gave none
}

const foreignState = "requestState is not one that this gateway gave for this call"

// openRound takes what the client has brought of an earlier round. The error is the failure of a call that cannot go on; a
// state that is not of this call is refused, and nobody learns why.
func (c *toolCall) openRound() (*front.Reply, error) {
	params := c.req.Params
	raw, ok := params.Value("requestState")
	if !ok {
		if params.Has("inputResponses") {
			c.round = new(round) // nobody knows of how many before; it has a deadline of its own
		}
		return nil, nil
	}
	token, ok := wire.Unquote(raw)
	if !ok {
		return c.foreign(), nil
	}
	binding, err := c.binding()
	if err != nil {
		return refuse(wire.CodeInvalidParams, err.Error()), nil
	}
	text, err := c.g.ring.Open(purposeState, token, binding)
	if err != nil {
		return c.foreign(), nil
	}
	s, ok := readSealed(text)
	if !ok {
		return c.foreign(), nil
	}
	return nil, c.resume(s)
}

// foreign refuses a state that is not of this call. Somebody may be trying another's, so there is a record.
func (c *toolCall) foreign() *front.Reply {
	reply := refuse(wire.CodeInvalidParams, foreignState)
	reply.After = func(front.Answer) {
		c.g.log.Warn("a call was refused: its requestState was not given for this call, or with a key that is gone",
			"request", c.req.ID, "caller", c.req.Caller, "upstream", c.route.id, "name", c.req.Name)
	}
	return reply
}

// resume holds the state against the clock and the present configuration. Whether the pause is charged to the call's time
// depends on who was waited for.
func (c *toolCall) resume(s sealed) error {
	pause := max(c.req.Received.Sub(s.issued), 0) // the clock of the replica that sealed it may be ahead
	c.round = &round{legs: s.legs, used: s.used, state: s.state}
	cause := upstream.Cause("")
	switch {
	case c.req.Received.After(s.expires), s.person && pause > c.route.inputTimeout:
		cause = upstream.StateExpired
	case s.legs >= c.route.rounds:
		cause = upstream.RoundsExhausted
	case !s.person && s.used+pause >= c.timeout, s.used >= c.timeout:
		cause = upstream.StateUsedUp
	}
	if !s.person {
		c.round.used += pause
	}
	if cause == "" {
		return nil
	}
	return &upstream.Error{Outcome: upstream.NoResponse, Cause: cause, Err: fmt.Errorf("round %d, %v after the one before, with %v used before that", s.legs+1, pause, s.used)}
}

// later reports whether an earlier round of the call may have acted.
func (c *toolCall) later() bool { return c.round != nil }

// used is how much of the call's time had been used when the request was received.
func (c *toolCall) used() time.Duration {
	if c.round == nil {
		return 0
	}
	return c.round.used
}

// deadline is the moment at which the call's time is used up.
func (c *toolCall) deadline() time.Time { return c.req.Received.Add(c.timeout - c.used()) }

// another is what the client gets of a result that asks for another round: the result's requestState replaced by one of the
// gateway's own. The error says why the client is not asked.
func (c *toolCall) another(result wire.Object) ([]byte, error) {
	if c.req.Client.Capabilities == nil {
		return nil, cannotContinue(errors.New("the client's revision knows no further rounds"))
	}
	asked, err := readInputRequired(result)
	if err != nil {
		return nil, &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.Unusable, Err: err}
	}
	capabilities, _ := wire.ParseObject(c.req.Client.Capabilities)
	for _, r := range asked.requests {
		if missing := r.missing(capabilities); missing != "" {
			return nil, cannotContinue(fmt.Errorf("the server asks for %s, which the client has not declared", missing))
		}
	}
	now := time.Now()
	s := sealed{
		person: asked.person(), legs: 1, issued: now, used: c.used() + now.Sub(c.req.Received),
		expires: now.Add(c.timeout + c.route.inputTimeout), state: asked.state,
	}
	if c.round != nil {
		s.legs += c.round.legs
	}
	switch {
	case s.legs >= c.route.rounds:
		return nil, &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.RoundsExhausted}
	case s.used >= c.timeout:
		return nil, &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.BetweenRounds}
	}
	binding, err := c.binding()
	if err != nil {
		return nil, &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.CallerCannotContinue, Err: err}
	}
	return wire.AppendString(nil, c.g.ring.Seal(purposeState, s.text(), binding)), nil
}

func cannotContinue(err error) error {
	return &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.CallerCannotContinue, Err: err}
}

// binding is what a state belongs to: who asks, which server, which tool, which arguments. It is not in the token: whoever
// opens that must come with the same.
func (c *toolCall) binding() ([]byte, error) {
	arguments, err := digest(c.req.Params, "_meta", "inputResponses", "requestState")
	if err != nil {
		return nil, err
	}
	b := appendField(nil, c.req.Caller)
	b = appendField(b, c.route.id)
	b = appendField(b, c.req.Method)
	b = appendField(b, c.sent.Target)
	b = append(b, c.route.identity[:]...)
	b = append(b, arguments[:]...)
	sum := sha256.Sum256(b)
	return sum[:], nil
}

// ofLaterRound is the failure of a round before which another may have acted: what would otherwise say that nothing ran says that
// this round did not.
func ofLaterRound(e *upstream.Error) *upstream.Error {
	if e.Outcome == upstream.NoResponse {
		return e
	}
	after := *e
	after.Outcome = upstream.NoResponse
	switch e.Cause {
	case upstream.DeadlineUnsent:
		after.Cause = upstream.BetweenRounds
	case upstream.Refused:
		after.Cause = upstream.RefusedLater
	case upstream.QueueFull, upstream.NoCredential, upstream.CanceledUnsent, upstream.HopError:
	default:
		after.Cause = upstream.RoundNotSent
	}
	return &after
}
