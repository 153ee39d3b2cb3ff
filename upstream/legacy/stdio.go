package legacy

import (
	"context"
	"errors"
	"fmt"

	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/child"
)

// stdio is the transport to a server that is a child process.
type stdio struct {
	u      *Upstream
	server *child.Server
}

// A childConn is the connection to one child.
type childConn struct {
	piped
	child *child.Child
}

// open starts the child.
func (s *stdio) open(ctx context.Context) (conn, error) {
	c, err := s.server.Start(ctx, s.u.cfg.Log.With("upstream", s.u.cfg.ID), s.u.cfg.Scrub)
	if err != nil {
		return nil, err
	}
	return &childConn{s.u.pipe(c), c}, nil
}

func (s *stdio) toModern() string { return "set `protocol: modern`" }

// explain tells how the child ended, and its last words.
func (c *childConn) explain(err error) error {
	if e, ok := errors.AsType[*upstream.Error](err); ok && e.Cause == upstream.ConnectionLost {
		err = fmt.Errorf("the server ended before it answered initialize (%s)", c.child.Exit())
	}
	return c.child.LastWords(err)
}
