package legacy

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
	"mcp-gateway/upstream/internal/pipe"
)

// A transport reaches one server.
type transport interface {
	// open connects, before the handshake. It ends soon after ctx does, and before it returns an error it has ended all that
	// it started.
	open(ctx context.Context) (conn, error)
	// toModern says which setting makes the gateway speak the modern revision to a server that knows no other.
	toModern() string
}

// transportOf picks the transport that the configuration sets.
func transportOf(u *Upstream) transport {
	var set []transport
	if u.cfg.Stdio != nil {
		set = append(set, &stdio{u: u, server: u.cfg.Stdio})
	}
	if u.cfg.WebSocket != nil {
		set = append(set, &webSocket{u: u, cfg: *u.cfg.WebSocket})
	}
	if u.cfg.SSE != nil {
		set = append(set, &eventStream{u: u, cfg: *u.cfg.SSE})
	}
	if u.cfg.HTTP != nil {
		set = append(set, newStreamable(u, *u.cfg.HTTP))
	}
	if len(set) != 1 {
		panic("legacy.New: Config sets not one way to reach the server, but several or none")
	}
	return set[0]
}

// A conn is one connection to a server, whatever carries it.
type conn interface {
	link.Session
	// Call sends req and waits for its response, a result or the server's own error. Its own error is an *upstream.Error, with
	// errSessionEnded in its chain where a new session may send req again.
	Call(ctx context.Context, req *upstream.Request) (*wire.Message, error)
	// Notify sends one notification and waits until it is written.
	Notify(ctx context.Context, method string, params []byte) error
	// agreed is told the revision that the handshake chose, before anything else is sent.
	agreed(revision string)
	// explain adds to the error of a failed handshake what the connection knows of it, after Close.
	explain(err error) error
}

// errSessionEnded is proof that the server has ended the session before it read the message.
var errSessionEnded = errors.New("the server has ended the session")

// renewedKey marks the ctx of a call that goes out on another session since the server has ended the one before. On a session
// that has only just begun, the same answer once more is about the call.
type renewedKey struct{}

// piped makes a conn of a message pipe.
type piped struct{ *pipe.Pipe }

func (p piped) Call(ctx context.Context, req *upstream.Request) (*wire.Message, error) {
	if req.Header != nil {
		ctx = context.WithValue(ctx, headerKey{}, req.Header)
	}
	return p.Pipe.Call(ctx, req.Method, req.Params.Raw(), req.Notify, req.Hold)
}

// headerKey asks the ctx of a frame for the header of the call that it is.
type headerKey struct{}

// forward adds what of a call's header servers of these revisions may know: what the client sent for them. What is in dst stays.
func forward(dst, header http.Header) {
	for name, values := range header {
		if _, own := dst[name]; !own && !strings.HasPrefix(name, mcp.HeaderParamPrefix) {
			dst[name] = values
		}
	}
}

func (p piped) agreed(string) {}

func (p piped) explain(err error) error { return err }

// pipe makes calls over frames.
func (u *Upstream) pipe(frames pipe.Frames) piped {
	return piped{pipe.New(frames, pipe.Config{
		OnNotification: u.changed, Log: u.cfg.Log.With("upstream", u.cfg.ID),
	})}
}

// A session is one connection after its handshake.
type session struct {
	conn
	info link.Info
}

// dial connects and shakes hands.
func (u *Upstream) dial(ctx context.Context) (*session, link.Info, error) {
	c, err := u.transport.open(ctx)
	if err != nil {
		return nil, link.Info{}, err
	}
	s := &session{conn: c}
	if s.info, err = u.handshake(ctx, c); err == nil {
		return s, s.info, nil
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

// handshake is the first three messages of a session (lifecycle, initialization).
func (u *Upstream) handshake(ctx context.Context, c conn) (link.Info, error) {
	offer := u.cfg.Revision
	if offer == "" {
		offer = mcp.LegacyLatest
	}
	text := wire.AppendString([]byte(`{"protocolVersion":`), offer)
	text = append(text, `,"capabilities":{},"clientInfo":{"name":"mcp-gateway","version":`...)
	params, err := wire.ParseObject(append(wire.AppendString(text, u.version()), "}}"...))
	if err != nil {
		return link.Info{}, fmt.Errorf("initialize: the gateway's own version is no text: %w", err)
	}
	m, err := c.Call(ctx, &upstream.Request{Method: mcp.MethodInitialize, Params: params, Resend: new(upstream.Budget)})
	if err != nil {
		return link.Info{}, refusal("initialize", err)
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
	c.agreed(revision)
	if err := c.Notify(ctx, mcp.NotificationInitialized, nil); err != nil {
		return link.Info{}, refusal(mcp.NotificationInitialized, err)
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
		return &link.VerdictError{Text: fmt.Sprintf("the gateway offered %s, but the server answered with %s, which has no handshake; %s", offer, shown, u.transport.toModern())}
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
		return fmt.Errorf("the server refused initialize; if it speaks only %s, %s: %s", mcp.Modern, u.transport.toModern(), u.quote(stated.Error()))
	}
	said := "that it does not support it"
	if data, err := wire.ParseObject(stated.Data); err == nil {
		if supported, ok := data.Value("supported"); ok {
			said = "that it supports only " + u.quote(string(supported))
		}
	}
	return &link.VerdictError{Text: fmt.Sprintf("the gateway offered %s, but the server says %s; %s", offer, said, u.transport.toModern())}
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
