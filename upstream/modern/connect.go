package modern

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/link"
)

// A session is the time between a successful server/discover and the moment at which the server cannot be reached.
type session struct{ u *Upstream }

// Done is never closed: nothing on the wire tells that the server has gone but a call that cannot reach it.
func (s *session) Done() <-chan struct{} { return nil }

// Err is not asked, since Done is never closed.
func (s *session) Err() error { return nil }

// Close ends the calls in flight where the upstream is being closed. A session that was lost leaves them: they run on
// connections of their own, and one call's dial says nothing about another's reply.
func (s *session) Close() error {
	if s.u.closing.Load() {
		s.u.client.Close()
	}
	return nil
}

// legacyHint names the settings for the servers that most often refuse server/discover.
const legacyHint = "a server with an initialize handshake needs `protocol: legacy`, one with an SSE endpoint also `transport: sse`"

// dial asks the server who it is. It gives up for good only where the server states, in JSON-RPC, that it speaks another
// revision; whatever else stands in between may come and go.
func (u *Upstream) dial(ctx context.Context) (*session, link.Info, error) {
	reply, err := u.send(ctx, &upstream.Request{Method: mcp.MethodDiscover})
	if err != nil {
		return nil, link.Info{}, undiscovered(err)
	}
	if reply.Kind == wire.Failure {
		return nil, link.Info{}, disowned(reply.Error, reply.Status)
	}
	if _, err := resultType(mcp.MethodDiscover, reply.Result); err != nil {
		return nil, link.Info{}, fmt.Errorf("server/discover: %w", err)
	}
	versions, ok := stringsOf(reply.Result, "supportedVersions")
	if !ok {
		return nil, link.Info{}, errors.New("server/discover: the result has no list of supportedVersions")
	}
	for _, v := range versions {
		if v == mcp.Modern {
			return &session{u}, link.Info{Revision: mcp.Modern, Discover: reply.Result}, nil
		}
	}
	return nil, link.Info{}, verdict("it supports "+named(versions), versions)
}

// undiscovered explains an exchange that gave no answer of the server's.
func undiscovered(err error) error {
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		return fmt.Errorf("server/discover: %w", err)
	}
	// Who refuses the version's header has not read which request it is.
	stated, ok := errors.AsType[*wire.Error](err)
	if ok && e.HTTPStatus == http.StatusBadRequest && stated.Code == mcp.CodeUnsupportedVersion {
		return disowned(stated, e.HTTPStatus)
	}
	switch status := e.HTTPStatus; {
	case e.Cause == upstream.Refused:
		return &link.RefusedError{Err: fmt.Errorf("server/discover: check the credential: %w", err)}
	case status >= 400 && status < 500 && status != http.StatusTooManyRequests, e.Cause == upstream.Unusable:
		return fmt.Errorf("server/discover: %s: %w", legacyHint, err)
	}
	return fmt.Errorf("server/discover: %w", err)
}

// disowned explains a JSON-RPC error to server/discover.
func disowned(stated *wire.Error, status int) error {
	switch stated.Code {
	case wire.CodeMethodNotFound:
		return verdict("it does not know server/discover", nil)
	case mcp.CodeUnsupportedVersion:
		data, _ := wire.ParseObject(stated.Data)
		versions, _ := stringsOf(data, "supported")
		return verdict("it supports "+named(versions), versions)
	}
	if status >= 500 || status == http.StatusTooManyRequests {
		return fmt.Errorf("server/discover (HTTP %d): %w", status, stated)
	}
	return fmt.Errorf("server/discover (HTTP %d): %s: %w", status, legacyHint, stated)
}

// verdict says what each side speaks, and which setting would work if there is one.
func verdict(said string, versions []string) error {
	text := "the gateway speaks " + mcp.Modern + " to this server, but " + said
	if versions == nil {
		return &link.VerdictError{Text: text + "; " + legacyHint}
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
