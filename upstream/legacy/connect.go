package legacy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/child"
	"mcp-gateway/upstream/internal/link"
	"mcp-gateway/upstream/internal/pipe"
)

// A session is one child process after its handshake.
type session struct {
	*pipe.Pipe
	info link.Info
}

// frames turns the child's word for a line that was too long into the pipe's.
type frames struct{ *child.Child }

// Read gives the next line that may be a message.
func (f frames) Read() ([]byte, error) {
	line, err := f.Child.Read()
	if long, ok := errors.AsType[*child.LineTooLongError](err); ok {
		err = &pipe.SkippedError{Err: err, Head: long.Head, Tail: long.Tail}
	}
	return line, err
}

// dial starts the child and shakes hands with it.
func (u *Upstream) dial(ctx context.Context) (*session, link.Info, error) {
	c, err := child.Start(ctx, child.Config{
		Command: u.cfg.Command, Args: u.cfg.Args, Dir: u.cfg.Dir,
		Env:    child.Environ(u.cfg.InheritEnv, u.cfg.Env),
		Redact: u.cfg.Scrub,
		Stderr: func(line string) { u.cfg.Log.Info("server's stderr", "upstream", u.cfg.ID, "line", line) },
		Junk: func(line string) {
			u.cfg.Log.Warn("server wrote what is no message to its stdout", "upstream", u.cfg.ID, "line", line)
		},
		Grace: u.grace, Kill: u.kill,
	})
	if err != nil {
		return nil, link.Info{}, err
	}
	s := &session{Pipe: pipe.New(frames{c}, pipe.Config{
		Concurrency: u.cfg.Concurrency, OnNotification: u.changed, Log: u.cfg.Log.With("upstream", u.cfg.ID),
	})}
	if s.info, err = u.handshake(ctx, s.Pipe); err == nil {
		return s, s.info, nil
	}
	closed := s.Close()
	err = u.explain(err, c)
	if closed != nil {
		return s, link.Info{}, fmt.Errorf("%w; then: %w", err, closed)
	}
	return nil, link.Info{}, err
}

// handshake is the first three messages of a session (lifecycle, initialization).
func (u *Upstream) handshake(ctx context.Context, p *pipe.Pipe) (link.Info, error) {
	offer := u.cfg.Revision
	if offer == "" {
		offer = mcp.LegacyLatest
	}
	params := wire.AppendString([]byte(`{"protocolVersion":`), offer)
	params = append(params, `,"capabilities":{},"clientInfo":{"name":"mcp-gateway","version":`...)
	params = append(wire.AppendString(params, u.version()), "}}"...)
	m, err := p.Call(ctx, mcp.MethodInitialize, params)
	if err != nil {
		return link.Info{}, fmt.Errorf("initialize: %w", err)
	}
	if m.Kind == wire.Failure {
		return link.Info{}, u.refused(offer, m.Error)
	}
	revision, ok := m.Result.String("protocolVersion")
	if !ok || !m.Result.Unique("protocolVersion") {
		return link.Info{}, &link.VerdictError{Text: "the gateway offered " + offer + ", but the server's answer to initialize names no protocolVersion, so it cannot be used"}
	}
	if err := u.disagrees(offer, revision); err != nil {
		return link.Info{}, err
	}
	if err := p.Notify(ctx, mcp.NotificationInitialized, nil); err != nil {
		return link.Info{}, fmt.Errorf("%s: %w", mcp.NotificationInitialized, err)
	}
	return link.Info{Revision: revision, Discover: discovered(revision, m.Result)}, nil
}

func (u *Upstream) version() string {
	if u.cfg.Version == "" {
		return "unknown"
	}
	return u.cfg.Version
}

// disagrees is the verdict on a revision that the server chose, or nil.
func (u *Upstream) disagrees(offer, revision string) error {
	shown := "a revision that cannot be shown"
	if len(revision) <= 32 && revision != "" && !strings.ContainsFunc(revision, func(r rune) bool { return r <= ' ' || r > '~' }) {
		shown = revision
	}
	switch {
	case revision == mcp.Modern:
		return &link.VerdictError{Text: fmt.Sprintf("the gateway offered %s, but the server answered with %s, which has no handshake; set `protocol: modern`", offer, shown)}
	case !mcp.IsLegacy(revision):
		return &link.VerdictError{Text: fmt.Sprintf("the gateway offered %s, but the server answered with %s; no setting of this gateway speaks that", offer, shown)}
	case u.cfg.Revision != "" && revision != u.cfg.Revision:
		return &link.VerdictError{Text: fmt.Sprintf("the configuration pins revision %s, but the server answered with %s; set `revision: %s`, or take `revision` out", u.cfg.Revision, shown, shown)}
	}
	return nil
}

// refused explains an error to initialize. Only one that states the server's revisions is a verdict; any other may pass.
func (u *Upstream) refused(offer string, stated *wire.Error) error {
	if stated.Code != mcp.CodeUnsupportedVersion {
		return fmt.Errorf("the server refused initialize; if it speaks only %s, set `protocol: modern`: %s", mcp.Modern, u.quote(stated.Error()))
	}
	said := "that it does not support it"
	if data, err := wire.ParseObject(stated.Data); err == nil {
		if supported, ok := data.Value("supported"); ok {
			said = "that it supports only " + u.quote(string(supported))
		}
	}
	return &link.VerdictError{Text: fmt.Sprintf("the gateway offered %s, but the server says %s; set `protocol: modern`", offer, said)}
}

// quoted bounds what an error shows of the server's words.
const quoted = 1 << 10

// quote is the end of what the server said, redacted before it is cut, in one line.
func (u *Upstream) quote(text string) string {
	text = strings.Join(strings.FieldsFunc(u.cfg.Scrub(text), func(r rune) bool { return r == '\n' || r == '\r' }), " | ")
	if len(text) > quoted {
		text = "…" + strings.ToValidUTF8(text[len(text)-quoted:], "")
	}
	return text
}

// explain adds to a failed start what is known of the child after its end.
func (u *Upstream) explain(err error, c *child.Child) error {
	if _, ok := errors.AsType[*link.VerdictError](err); ok {
		return err
	}
	if e, ok := errors.AsType[*upstream.Error](err); ok && e.Cause == upstream.ConnectionLost {
		err = fmt.Errorf("the server ended before it answered initialize (%s)", c.Exit())
	}
	if tail := c.Tail(); tail != "" {
		err = fmt.Errorf("%w; its stderr ends with: %s", err, u.quote(tail))
	}
	return err
}

// discovered is what a modern server would have answered to server/discover: the handshake's own bytes under the modern names.
func discovered(revision string, result wire.Object) wire.Object {
	edits := []wire.Edit{{Name: "supportedVersions", Value: append(wire.AppendString([]byte{'['}, revision), ']')}}
	capabilities := []byte("{}")
	if raw, ok := result.Value("capabilities"); ok && raw[0] == '{' {
		capabilities = raw
	}
	edits = append(edits, wire.Edit{Name: "capabilities", Value: capabilities})
	if raw, ok := result.Value("instructions"); ok && raw[0] == '"' {
		edits = append(edits, wire.Edit{Name: "instructions", Value: raw})
	}
	if raw, ok := result.Value("serverInfo"); ok && raw[0] == '{' {
		meta := wire.Object{}.AppendEdited(nil, wire.Edit{Name: mcp.MetaServerInfo, Value: raw})
		edits = append(edits, wire.Edit{Name: "_meta", Value: meta})
	}
	discover, err := wire.ParseObject(wire.Object{}.AppendEdited(nil, edits...))
	if err != nil {
		return wire.Object{} // it was made of parsed values
	}
	return discover
}
