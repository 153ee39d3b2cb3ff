package modern

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/child"
	"mcp-gateway/upstream/internal/exchange"
	"mcp-gateway/upstream/internal/pipe"
)

const stdioHint = "a server with an initialize handshake needs `protocol: legacy`"

// overStdio is the transport to a server that is a child process.
type overStdio struct {
	u      *Upstream
	server *child.Server
}

// A childConn is the connection to one child.
type childConn struct {
	*pipe.Pipe
	u     *Upstream
	child *child.Child
}

// open starts the child.
func (o *overStdio) open(ctx context.Context) (conn, error) {
	log := o.u.cfg.Log.With("upstream", o.u.cfg.ID)
	c, err := o.server.Start(ctx, log, o.u.cfg.Scrub)
	if err != nil {
		return nil, err
	}
	return &childConn{u: o.u, child: c, Pipe: pipe.New(c, pipe.Config{
		NoAnswers: true, Log: log,
		OnNotification: func(method string, _ wire.Object) {
			log.LogAttrs(context.Background(), slog.LevelDebug, "server's notification belongs to no call; dropped",
				slog.String("method", method[:min(len(method), 100)]))
		},
	})}, nil
}

func (o *overStdio) closing() {}

func (o *overStdio) close() {}

func (o *overStdio) hint() string { return stdioHint }

// ask sends req, which is canceled on the wire when ctx ends, except server/discover. Log messages on a pipe name no call, so
// that none are asked for.
func (c *childConn) ask(ctx context.Context, req *upstream.Request) (exchange.Reply, error) {
	client := req.Client
	client.LogLevel = ""
	params := req.Params.Edited(wire.Edit{Name: "_meta", Value: c.u.metaOf(req.Params, client)})
	m, err := c.Call(ctx, req.Method, params, req.Notify, req.Hold)
	return exchange.Reply{Message: m}, err
}

// listen sends a request that is open as long as the child.
func (c *childConn) listen(ctx context.Context, req *upstream.Request, hear func(upstream.Notification)) (exchange.Reply, error) {
	req.Notify = hear
	return c.ask(ctx, req)
}

// explain tells how the child ended or that it is silent, and its last words.
func (c *childConn) explain(err error) error {
	if e, ok := errors.AsType[*upstream.Error](err); ok {
		switch e.Cause {
		case upstream.ConnectionLost:
			err = fmt.Errorf("the server ended before it answered server/discover (%s); %s", c.child.Exit(), stdioHint)
		case upstream.Deadline:
			err = fmt.Errorf("the server did not answer server/discover; %s", stdioHint)
		}
	}
	return c.child.LastWords(err)
}
