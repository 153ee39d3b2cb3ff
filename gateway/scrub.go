package gateway

import (
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

// notify passes the notifications of the call on to its client; nil where it takes none. One that cannot be cleaned is
// dropped.
func (c *toolCall) notify() func(upstream.Notification) {
	if c.req.Notify == nil {
		return nil
	}
	return func(n upstream.Notification) {
		params, err := c.clean(n.Params, mcp.MetaProgressToken)
		if err != nil {
			c.g.log.Warn("a notification of a call was dropped", "request", c.req.ID, "upstream", c.route.id, "error", err)
			return
		}
		n.Params = ownMeta(params)
		c.req.Notify(n)
	}
}
