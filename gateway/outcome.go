package gateway

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"mcp-gateway/gateway/front"
	"mcp-gateway/gateway/observe"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// conclude turns what came of a call into the reply. What is recorded of it is written once the client has it.
func (c *toolCall) conclude(ctx context.Context, resp *upstream.Response, err error) *front.Reply {
	if err == nil {
		err = c.finish(resp)
	}
	stated, own := errors.AsType[*wire.Error](err)
	failed, ok := errors.AsType[*upstream.Error](err)
	switch {
	case err == nil:
	case own && !ok:
		c.pass(stated)
	default:
		if !ok {
			failed = &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.Unusable, Err: err}
		}
		failed = c.cutOff(ctx, failed)
		if c.later() {
			failed = ofLaterRound(failed)
		}
		c.fail(failed)
		if own {
			c.failed.Code = stated.Code
		}
	}
	c.took = time.Since(c.req.Received)
	c.reply.After = c.record
	return &c.reply
}

// record records what became of the call.
func (c *toolCall) record(sent front.Answer) {
	r := observe.Record{Outcome: "ok"}
	switch {
	case c.failed != nil:
		r = *c.failed
	case c.toolFailed:
		r.Outcome = "tool-error"
	}
	r.Request, r.Caller, r.Method, r.Name = c.req.ID, c.req.Caller, c.req.Method, c.req.Name
	r.Upstream, r.Target, r.Listed = c.route.id, c.sent.Target, c.listed
	r.Duration, r.UpstreamDuration = c.took, c.upstreamTook
	r.Status, r.Bytes = sent.Status, sent.Bytes
	c.g.observer.Record(r)
}

// finish makes the reply of a result that ends the round. The error is the failure of a call that it does not finish.
func (c *toolCall) finish(resp *upstream.Response) error {
	if err := unfinished(resp); err != nil {
		return err
	}
	result := resp.Result
	var state []byte
	if resp.Type == mcp.ResultInputRequired {
		var err error
		if state, err = c.another(result); err != nil {
			return err
		}
	}
	result, err := c.clean(result)
	if err != nil {
		return &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.Unusable, Err: err}
	}
	result = ownMeta(result)
	if state != nil {
		if !c.namesPass(resp.Result) {
			return &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.Unusable, Err: errNamesSecret}
		}
		// It takes the place of the server's own last, since nothing must change in it.
		result = result.With(wire.Edit{Name: "requestState", Value: state})
	}
	raw, _ := result.Value("isError")
	c.toolFailed = string(raw) == "true"
	c.reply.Result, c.reply.Type, c.reply.Revision = result, resp.Type, resp.Revision
	return nil
}

// unfinished gives the failure of a response that is no end of a round: one of which two readers could think differently, or
// that no reader could take for a result of a tool. What a reader may put up with passes as the server wrote it.
func unfinished(resp *upstream.Response) error {
	reason := ""
	isError, _ := resp.Result.Value("isError")
	content, _ := resp.Result.Value("content")
	switch {
	case !resp.Result.Unique("_meta", "content", "isError", "resultType", "structuredContent"):
		reason = "the result repeats a member"
	case resp.Type == mcp.ResultInputRequired:
		return nil
	case resp.Type != mcp.ResultComplete:
		reason = "the result is of a type that the revision does not define"
	case content != nil && content[0] != '[':
		reason = "the result's content is not a list"
	case isError != nil && isError[0] != 't' && isError[0] != 'f' && isError[0] != 'n':
		reason = "the result's isError is neither true nor false"
	default:
		return nil
	}
	return &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.Unusable, Err: errors.New(reason)}
}

// fail makes the reply of a call that could not be completed.
func (c *toolCall) fail(e *upstream.Error) {
	f := &failure{Error: e, upstream: c.route.id, method: c.req.Method}
	c.failed = &observe.Record{
		Outcome: string(e.Outcome), Cause: string(e.Cause), HTTPStatus: e.HTTPStatus, Err: e.Err,
		Canceled: e.Cause == upstream.Canceled || e.Cause == upstream.CanceledUnsent,
		Retry:    f.words().retry, Words: f.text(),
	}
	c.reply.Result, c.reply.Type, c.reply.Revision = f.toolResult(c.g.serverInfo), mcp.ResultComplete, mcp.Modern
}

// pass makes the reply of a server's own error.
func (c *toolCall) pass(e *wire.Error) {
	c.failed = &observe.Record{Outcome: string(upstream.ErrorResponse), Code: e.Code, Err: e}
	passed := *e
	if e.BadMessage {
		c.failed.Cause = string(upstream.ErrorWithoutMessage)
		f := &failure{Error: &upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.ErrorWithoutMessage}, upstream: c.route.id}
		passed.Message = f.text()
		passed.Raw = passed.Raw.With(wire.Edit{Name: "message", Value: wire.AppendString(nil, passed.Message)})
	}
	raw, err := c.clean(passed.Raw, "code")
	if err != nil {
		c.failed.Err = err
		c.reply.Error, c.reply.Revision = &wire.Error{Code: e.Code, Message: withheldError}, mcp.Modern
		c.failed.Words = withheldError
		return
	}
	c.reply.Error, c.reply.Revision = passedError(raw, passed), mcp.Modern
	c.failed.Words = c.reply.Error.Message
}

// withheldError is the message of a server's error whose own nobody could look into.
const withheldError = "The server answered with an error, but the gateway could not look for secrets in its text, so the text is withheld." + mayHaveRun

// passedError is a server's own error with the text raw, whole but for what it must not claim.
func passedError(raw wire.Object, e wire.Error) *wire.Error {
	e.Message, _ = raw.String("message")
	if data, ok := raw.Object("data"); ok {
		raw = raw.With(wire.Edit{Name: "data", Value: underUpstream(data)})
	}
	// A code that a client cannot read is passed on with the whole error as its data.
	if own, err := wire.ParseObject(underUpstream(raw)); err == nil {
		raw = own
	}
	e.Data, _ = raw.Value("data")
	e.Raw = raw
	return &e
}

// ownMeta moves what a server writes under the gateway's own names to mcp-gateway/upstream, so that no server can forge an
// outcome, and one of a gateway behind this one is not lost.
func ownMeta(result wire.Object) wire.Object {
	raw, ok := result.Value("_meta")
	if !ok || !mayClaim(raw) {
		return result
	}
	meta, err := wire.ParseObject(raw)
	if err != nil {
		return result
	}
	return result.With(wire.Edit{Name: "_meta", Value: underUpstream(meta)})
}

func mayClaim(raw []byte) bool {
	return bytes.Contains(raw, []byte(mcp.MetaPrefix)) || bytes.IndexByte(raw, '\\') >= 0
}

// underUpstream is o's text with the members under the gateway's own names moved into one.
func underUpstream(o wire.Object) []byte {
	if !mayClaim(o.Raw()) {
		return o.Raw()
	}
	moved := []byte{'{'}
	rest := o.Rewrite(func(name string, value []byte) []byte {
		if !strings.HasPrefix(name, mcp.MetaPrefix) {
			return value
		}
		if len(moved) > 1 {
			moved = append(moved, ',')
		}
		moved = append(append(wire.AppendString(moved, name), ':'), value...)
		return nil
	})
	if len(moved) == 1 {
		return rest
	}
	own, err := wire.ParseObject(rest)
	if err != nil {
		return rest // it is a part of a parsed text
	}
	return own.Edited(wire.Edit{Name: mcp.MetaUpstream, Value: append(moved, '}')})
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }

// cutOff gives a call that the gateway itself has ended the cause that says so, and leaves every other.
func (c *toolCall) cutOff(ctx context.Context, e *upstream.Error) *upstream.Error {
	cut := *e
	shutdown := errors.Is(context.Cause(ctx), front.ErrShutdown)
	switch {
	case shutdown && e.Cause == upstream.CanceledUnsent:
		cut.Cause = upstream.ClosedByGateway
	case shutdown && (e.Cause == upstream.Canceled || e.Outcome == upstream.NoResponse && e.Cause == upstream.ClosedByGateway):
		cut.Cause = upstream.Shutdown
	}
	return &cut
}
