package exchange

import (
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// Progress prepares a request for the notifications of its own stream: params with token, which no other request of the
// upstream has, in the place of the caller's progress token, and what the stream's notifications go to. That gives notify the
// progress under token, with the caller's token, and the server's log messages. Nothing else belongs to one call. Without
// notify, the caller's token is taken off.
func Progress(params wire.Object, token int64, notify func(upstream.Notification)) (wire.Object, func(upstream.Notification)) {
	if notify == nil {
		return mcp.DropProgressToken(params), nil
	}
	params, callers := mcp.SwapProgressToken(params, token)
	return params, func(n upstream.Notification) {
		switch n.Method {
		case mcp.NotificationProgress:
			if got, ok := mcp.ProgressToken(n.Params); ok && got == token && callers != nil {
				notify(upstream.Notification{Method: n.Method, Params: mcp.RestoreProgressToken(n.Params, callers)})
			}
		case mcp.NotificationMessage:
			notify(n)
		}
	}
}
