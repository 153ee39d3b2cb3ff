package gateway

import (
	"errors"
	"math"
	"slices"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// clean is what the upstream wrote without the gateway's credentials, unless its answers pass as they are. The members named in
// keep are left. An error is redact.ErrWithheld: nobody knows what the text holds.
func (c *toolCall) clean(o wire.Object, keep ...string) (wire.Object, error) {
	if c.route.verbatim || o.IsZero() {
		return o, nil
	}
	text, err := c.g.scrubber.JSON(o.Raw(), keep...)
	if err != nil || len(text) == len(o.Raw()) && &text[0] == &o.Raw()[0] {
		return o, err
	}
	return wire.ParseObject(text)
}

var errNamesSecret = errors.New("the result asks for input under a name that holds a credential of the gateway")

// namesPass reports whether what a server asks for keeps its names as it is cleaned: an answer under another name would not be
// one to the server.
func (c *toolCall) namesPass(result wire.Object) bool {
	requests, ok := result.Value("inputRequests")
	if c.route.verbatim || !ok {
		return true
	}
	// One level down, where a member called name is a request's own key and no name of what is defined.
	_, ok = c.g.scrubber.Definition(slices.Concat([]byte("["), requests, []byte("]")))
	return ok && c.toolsPass(requests)
}

// toolsPass is namesPass for the tools that the server offers to the client's model.
func (c *toolCall) toolsPass(requests []byte) bool {
	all, _ := wire.ParseObject(requests)
	for _, request := range all.All() {
		r, _ := wire.ParseObject(request)
		params, _ := r.Object("params")
		raw, _ := params.Value("tools")
		tools, _ := wire.Elements(raw, math.MaxInt)
		for _, tool := range tools {
			if _, ok := c.g.scrubber.Definition(tool); !ok {
				return false
			}
		}
	}
	return true
}

var errRepeats = errors.New("its params repeat a member")

// notify passes the notifications of the call on to its client; nil where it takes none. One that cannot be cleaned is
// dropped, and so is one of which two readers could think differently.
func (c *toolCall) notify() func(upstream.Notification) {
	if c.req.Notify == nil {
		return nil
	}
	return func(n upstream.Notification) {
		params, err := wire.Object{}, errRepeats
		if n.Params.Unique("_meta", "level", mcp.MetaProgressToken) {
			params, err = c.clean(n.Params, mcp.MetaProgressToken)
		}
		if err != nil {
			c.g.log.Warn("a notification of a call was dropped", "request", c.req.ID, "upstream", c.route.id, "error", err)
			return
		}
		n.Params = ownMeta(params)
		c.req.Notify(n)
	}
}
