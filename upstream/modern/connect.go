package modern

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/exchange"
	"mcp-gateway/upstream/internal/link"
)

// A transport reaches one server.
type transport interface {
	// open gives a connection, over which nothing has been sent yet. Before it returns an error it has ended all that it started.
	open(ctx context.Context) (conn, error)
	// closing is told that what open gave is being closed for good, and close, after that, ends what may be left.
	closing()
	close()
	// hint names the settings for the servers that most often refuse server/discover.
	hint() string
}

// A conn carries requests to a server that is believed to be there.
type conn interface {
	link.Session
	// ask sends req with the metadata of this hop, and waits for its reply, a result or the server's own error. Its own error is
	// an *upstream.Error.
	ask(ctx context.Context, req *upstream.Request) (exchange.Reply, error)
	// listen sends subscriptions/listen, and returns with its end as ask does. What the server sends for it goes to hear, one after
	// another, which must not wait.
	listen(ctx context.Context, req *upstream.Request, hear func(upstream.Notification)) (exchange.Reply, error)
	// explain adds to the error of a failed server/discover what the connection knows of it, after Close.
	explain(err error) error
}

// A session is the time between a successful server/discover and the end of its connection, or the server's of which that tells.
type session struct {
	conn
	end       context.CancelFunc // of the listening; nil where there is none
	listening sync.WaitGroup
	failed    chan struct{} // closed by fail
	err       error         // why, after failed; only the listening fails a session
}

// Done is closed once the session has ended by itself.
func (s *session) Done() <-chan struct{} {
	if done := s.conn.Done(); done != nil {
		return done
	}
	return s.failed
}

// Err says why, after Done.
func (s *session) Err() error {
	if s.conn.Done() != nil {
		return s.conn.Err()
	}
	return s.err
}

// fail ends a session whose connection cannot tell that the server has gone.
func (s *session) fail(err error) {
	s.err = err
	close(s.failed)
}

// Close ends the listening and the connection.
func (s *session) Close() error {
	if s.end != nil {
		s.end()
	}
	err := s.conn.Close()
	s.listening.Wait()
	return err
}

// dial asks the server who it is. It gives up for good only where the server states, in JSON-RPC, that it speaks another
// revision; whatever else stands in between may come and go.
func (u *Upstream) dial(ctx context.Context) (*session, link.Info, error) {
	c, err := u.transport.open(ctx)
	if err != nil {
		return nil, link.Info{}, err
	}
	s := &session{conn: c, failed: make(chan struct{})}
	info, err := u.discover(ctx, c)
	if err == nil {
		s.subscribe(ctx, u, info.Discover)
		return s, info, nil
	}
	closed := c.Close()
	if _, verdict := errors.AsType[*link.VerdictError](err); !verdict {
		err = c.explain(err)
	}
	if closed != nil {
		return s, link.Info{}, fmt.Errorf("%w; then: %w", err, closed)
	}
	return nil, link.Info{}, err
}

// discover makes the one request that comes before all others.
func (u *Upstream) discover(ctx context.Context, c conn) (link.Info, error) {
	reply, err := c.ask(ctx, &upstream.Request{Method: mcp.MethodDiscover})
	if err != nil {
		return link.Info{}, u.undiscovered(err)
	}
	if reply.Kind == wire.Failure {
		return link.Info{}, u.disowned(reply.Error, reply.Status)
	}
	if _, err := resultType(mcp.MethodDiscover, reply.Result); err != nil {
		return link.Info{}, fmt.Errorf("server/discover: %w", err)
	}
	versions, ok := stringsOf(reply.Result, "supportedVersions")
	if !ok {
		return link.Info{}, errors.New("server/discover: the result has no list of supportedVersions")
	}
	if slices.Contains(versions, mcp.Modern) {
		return link.Info{Revision: mcp.Modern, Discover: reply.Result}, nil
	}
	return link.Info{}, u.verdict("it supports "+named(versions), versions)
}

// undiscovered explains an exchange that gave no answer of the server's.
func (u *Upstream) undiscovered(err error) error {
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		return fmt.Errorf("server/discover: %w", err)
	}
	// Who refuses the version's header has not read which request it is.
	stated, ok := errors.AsType[*wire.Error](err)
	if ok && e.HTTPStatus == http.StatusBadRequest && stated.Code == mcp.CodeUnsupportedVersion {
		return u.disowned(stated, e.HTTPStatus)
	}
	switch status := e.HTTPStatus; {
	case e.Cause == upstream.Refused:
		return &link.RefusedError{Err: fmt.Errorf("server/discover: check the credential: %w", err)}
	case status >= 400 && status < 500 && status != http.StatusTooManyRequests, e.Cause == upstream.Unusable:
		return fmt.Errorf("server/discover: %s: %w", u.transport.hint(), err)
	}
	return fmt.Errorf("server/discover: %w", err)
}

// disowned explains a JSON-RPC error to server/discover.
func (u *Upstream) disowned(stated *wire.Error, status int) error {
	switch stated.Code {
	case wire.CodeMethodNotFound:
		return u.verdict("it does not know server/discover", nil)
	case mcp.CodeUnsupportedVersion:
		data, _ := wire.ParseObject(stated.Data)
		versions, _ := stringsOf(data, "supported")
		return u.verdict("it supports "+named(versions), versions)
	}
	if status == 0 {
		return fmt.Errorf("server/discover: %s: %w", u.transport.hint(), stated)
	}
	if status >= 500 || status == http.StatusTooManyRequests {
		return fmt.Errorf("server/discover (HTTP %d): %w", status, stated)
	}
	return fmt.Errorf("server/discover (HTTP %d): %s: %w", status, u.transport.hint(), stated)
}

// verdict says what each side speaks, and which setting would work if there is one.
func (u *Upstream) verdict(said string, versions []string) error {
	text := "the gateway speaks " + mcp.Modern + " to this server, but " + said
	if versions == nil {
		return &link.VerdictError{Text: text + "; " + u.transport.hint()}
	}
	for _, v := range versions {
		if mcp.IsLegacy(v) {
			return &link.VerdictError{Text: text + "; set `protocol: legacy`"}
		}
	}
	return &link.VerdictError{Text: text + "; no setting of this gateway speaks one of those"}
}

// named lists versions for a person. A server may send any strings, so that only what looks like a revision is shown.
func named(versions []string) string {
	var shown []string
	for _, v := range versions {
		if len(v) <= 32 && len(shown) < 8 && !strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) {
			shown = append(shown, v)
		}
	}
	if len(shown) == 0 {
		return "none that it names"
	}
	return strings.Join(shown, ", ")
}

// maxVersions bounds how many revisions are read of what a server supports.
const maxVersions = 64

// stringsOf is a member that is an array of strings.
func stringsOf(o wire.Object, name string) ([]string, bool) {
	raw, _ := o.Value(name)
	elements, ok := wire.Elements(raw, maxVersions)
	if !ok || !o.Unique(name) {
		return nil, false
	}
	list := make([]string, 0, len(elements))
	for _, e := range elements {
		s, ok := wire.Unquote(e)
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}
