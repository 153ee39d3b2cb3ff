package legacy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/exchange"
	"mcp-gateway/upstream/internal/pipe"
)

const (
	maxEndpoint = 8 << 10
	// answerWait bounds a POST that no call waits for: an answer to the server, or a cancel.
	answerWait = 2 * time.Second
)

// eventStream is the transport of 2024-11-05, HTTP+SSE: the server's messages come as events of one stream, whose first
// event names the url that takes the client's.
type eventStream struct {
	u   *Upstream
	cfg Remote
}

func (e *eventStream) toModern() string {
	return "set `protocol: modern`, take `transport: sse` out and check the path of `url`"
}

// open opens the stream and waits for the endpoint.
func (e *eventStream) open(ctx context.Context) (conn, error) {
	target := *e.cfg.URL
	target.Fragment = ""
	x := &exchanged{u: e.u, cfg: e.cfg, stream: e.client(&target)}
	x.life, x.end = context.WithCancel(context.Background())
	// The stream outlives the attempt, which ends it only as long as it is not open.
	stop := context.AfterFunc(ctx, x.end)
	err := x.listen()
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = x.Close() // it has no error
		if ctx.Err() != nil {
			err = fmt.Errorf("the server named no endpoint in time: %w", context.Cause(ctx))
		}
		return nil, refusal("event stream", otherTransport(err))
	}
	return e.u.pipe(x), nil
}

// otherTransport names the settings for the servers that refuse the stream since they have another transport.
func otherTransport(err error) error {
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok || e.Cause != upstream.HTTPError || e.HTTPStatus < 400 || e.HTTPStatus >= 500 || e.HTTPStatus == http.StatusTooManyRequests {
		return err
	}
	return fmt.Errorf("a server of Streamable HTTP needs `transport: sse` taken out, one that speaks only "+mcp.Modern+" also `protocol: modern`: %w", err)
}

func (e *eventStream) client(target *url.URL) *exchange.Client {
	return exchange.New(exchange.Config{
		URL: target, Credential: e.cfg.Credential, Transport: e.cfg.Transport, Log: e.u.cfg.Log,
	})
}

// An exchanged carries the client's messages in POSTs, each on its own so that a slow one holds up no other, and the server's in a
// stream. A cancel follows the POST of what it cancels. Other messages keep no order, but for initialize and initialized, which are
// sent one after the other.
type exchanged struct {
	u      *Upstream
	cfg    Remote
	life   context.Context // of the stream
	end    context.CancelFunc
	stream *exchange.Client
	posts  *exchange.Client // to the endpoint; nil before that is known
	events *exchange.Stream
	ending sync.Once
}

var _ pipe.Sender = (*exchanged)(nil)

// listen opens the stream and takes the endpoint off it.
func (x *exchanged) listen() error {
	header := x.header()
	header["Cache-Control"] = []string{"no-store"}
	events, err := x.stream.Listen(x.life, header, nil)
	if err != nil {
		return err
	}
	x.events = events
	first, err := events.Next()
	for err == nil && len(first.Data) == 0 {
		first, err = events.Next()
	}
	if err != nil {
		return fmt.Errorf("the stream ended before it named an endpoint: %w", err)
	}
	if first.Name != "endpoint" {
		return errors.New("the stream does not begin with an endpoint: this is no server of HTTP+SSE; for Streamable HTTP take `transport: sse` out")
	}
	target, err := endpoint(x.cfg.URL, first.Data)
	if err != nil {
		return err
	}
	x.posts = exchange.New(exchange.Config{
		URL: target, Credential: x.cfg.Credential, Transport: x.cfg.Transport, Log: x.u.cfg.Log,
	})
	return nil
}

// header is what all requests have in common.
func (x *exchanged) header() http.Header {
	h := http.Header{"User-Agent": {mcp.GatewayName + "/" + x.u.version()}}
	maps.Copy(h, x.cfg.Header)
	return h
}

// endpoint resolves what the server named against the stream's url. Another origin would get the credential, and could be
// any host that the gateway reaches.
func endpoint(stream *url.URL, named []byte) (*url.URL, error) {
	if len(named) > maxEndpoint {
		return nil, fmt.Errorf("the server's endpoint is over %d KiB", maxEndpoint>>10)
	}
	target, err := stream.Parse(string(named))
	if err != nil {
		return nil, errors.New("the server's endpoint is no url") // err quotes it
	}
	if theirs, ours := origin(target), origin(stream); theirs != ours {
		return nil, fmt.Errorf("the server's endpoint is at %s, but only one at %s, where the stream is, is taken", theirs, ours)
	}
	target.User, target.Fragment = nil, ""
	return target, nil
}

// origin is scheme, host and port.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// Read gives the data of the next message event.
func (x *exchanged) Read() ([]byte, error) {
	for {
		event, err := x.events.Next()
		if err != nil {
			return nil, err
		}
		if event.Name == "message" && len(event.Data) > 0 {
			return event.Data, nil
		}
	}
}

// Send posts one frame. What the server answers to a POST with an error proves nothing of what it did, but 401 and 403.
func (x *exchanged) Send(ctx context.Context, frame []byte) error {
	header := x.header()
	header["Content-Type"] = []string{"application/json"}
	if call, ok := ctx.Value(headerKey{}).(http.Header); ok {
		forward(header, call)
	}
	return x.posts.Post(ctx, &exchange.Request{Body: frame, Header: header, Resend: new(upstream.Budget)})
}

// Write posts what no call waits for. That it fails is not the end: the stream tells of that.
func (x *exchanged) Write(frame []byte) (int, error) {
	ctx, cancel := context.WithTimeout(x.life, answerWait)
	defer cancel()
	if err := x.Send(ctx, frame); err != nil {
		x.u.cfg.Log.Debug("server did not take an answer or a cancel", "upstream", x.u.cfg.ID, "error", err)
	}
	return len(frame), nil
}

// Close ends the stream and all POSTs.
func (x *exchanged) Close() error {
	x.end()
	x.ending.Do(func() {
		x.stream.Close()
		if x.posts != nil {
			x.posts.Close()
		}
		if x.events != nil {
			x.events.Close()
		}
	})
	return nil
}
