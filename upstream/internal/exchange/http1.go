package exchange

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// maxDirect bounds the body of a request that is written whole before anything of its response is read. A server may
	// answer before it has read a larger one, and then read no more of it.
	maxDirect = 32 << 10
	// maxKept bounds the connections that wait for the next request.
	maxKept = 256
	// maxInformational bounds the responses of status 1xx before the one that counts.
	maxInformational = 5
)

var (
	errHeader   = fmt.Errorf("the response's header is over %d KiB", maxHeader>>10)
	errSwitched = errors.New("the server switched to another protocol, which nobody had asked for")
)

// An http1 is a connection to the server that carries one exchange at a time (RFC 9112), on the goroutine of whoever calls:
// net/http's own transport hands each to two others and back, at a third of what a small call costs, and does not say what
// it has written. Responses are parsed by net/http.
type http1 struct {
	*conn
	r       *bufio.Reader
	w       *bufio.Writer
	header  int      // how many bytes more may be read; math.MaxInt but for a header
	abandon func()   // closes the connection
	names   []string // of a request's headers
	idle    idle
	since   time.Time // of when it is kept
}

// direct reports whether a client reaches its server through connections of its own.
func (c *Client) direct() bool {
	u := c.cfg.URL
	if u.Scheme != "http" || c.cfg.Transport != nil || !watchesIdle || slices.ContainsFunc([]byte(u.Host), func(b byte) bool { return b >= 0x80 || b == '%' }) {
		return false
	}
	proxy, err := http.ProxyFromEnvironment(c.template)
	return proxy == nil && err == nil
}

// addressOf is the host and port that u names.
func addressOf(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

// roundTrip sends r with that body, and gives the response with its header read. It is given up when ctx ends, and so is the
// response's body. What has been sent is in l, whatever the error.
func (c *Client) roundTrip(ctx context.Context, l *leg, r *http.Request, body []byte) (*http.Response, error) {
	if err := errors.Join(c.bad, checkFields(r.Header)); err != nil {
		return nil, err
	}
	p, err := c.connect(ctx, l)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		c.keep(p)
		return nil, ctx.Err()
	}
	stop := context.AfterFunc(ctx, p.abandon)
	p.leg.Store(l)
	resp, err := p.exchange(r, body)
	if err != nil {
		stop()
		_ = p.Close() // nothing depends on how it closes
		return nil, err
	}
	resp.Body = &http1Body{src: resp.Body, from: p, stop: stop, last: resp.Close}
	return resp, nil
}

// checkFields says what of h would not be a header.
func checkFields(h http.Header) error {
	for name, values := range h {
		if !fieldName(name) {
			return fmt.Errorf("%q cannot be the name of a header", name)
		}
		for _, value := range values {
			if !fieldValue(value) {
				return fmt.Errorf("the value of the header %q has characters that no header may have", name)
			}
		}
	}
	return nil
}

// fieldName reports whether a header may have the name (RFC 9110, section 5.1).
func fieldName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		case c <= ' ', c >= 0x7f, strings.IndexByte("\"(),/:;<=>?@[\\]{}", c) >= 0:
			return false
		}
	}
	return s != ""
}

// fieldValue reports whether a header may have the value (RFC 9110, section 5.5).
func fieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// connect gives the newest of the connections that are kept and still open, or a new one.
func (c *Client) connect(ctx context.Context, l *leg) (*http1, error) {
	for {
		p := c.takeKept()
		if p == nil {
			break
		}
		if p.idle.quiet() {
			l.connected, l.reused = true, true
			return p, nil
		}
		_ = p.Close() // the server has closed it, or says what nobody asked for
	}
	raw, err := c.dial(ctx, "tcp", c.address)
	if err != nil {
		return nil, err
	}
	l.connected = true
	p := &http1{conn: raw.(*conn)}
	p.abandon = func() { _ = p.Close() }
	p.r, p.w = bufio.NewReader(p), bufio.NewWriter(p.conn)
	p.idle.watch(p.conn.Conn)
	return p, nil
}

// prepare writes down what all requests of c's connections begin with.
func (c *Client) prepare() {
	c.bad = checkFields(c.fixed)
	c.start = startLine(c.template)
	var fields strings.Builder
	writeFields(&fields, c.fixed, slices.Collect(maps.Keys(c.fixed)))
	c.fields = fields.String()
}

// writeFields writes the headers of h that have these names, in order.
func writeFields(w io.StringWriter, h http.Header, names []string) {
	slices.Sort(names)
	for _, name := range names {
		for _, value := range h[name] {
			for _, s := range [...]string{name, ": ", value, "\r\n"} {
				_, _ = w.WriteString(s) // a buffer, which keeps its first error for its end
			}
		}
	}
}

// startLine is what r begins with (RFC 9112, section 3).
func startLine(r *http.Request) string {
	return r.Method + " " + r.URL.RequestURI() + " HTTP/1.1\r\nHost: " + r.Host + "\r\n"
}

// write writes r with that body.
func (p *http1) write(r *http.Request, body []byte) error {
	c := p.client
	start := c.start
	if r.URL != c.template.URL { // a credential has changed it
		start = startLine(r)
	}
	// The writer keeps its first error for Flush.
	_, _ = p.w.WriteString(start)
	_, _ = p.w.WriteString(c.fields)
	p.names = p.names[:0]
	for name := range r.Header {
		if _, ok := c.fixed[name]; !ok {
			p.names = append(p.names, name)
		}
	}
	writeFields(p.w, r.Header, p.names)
	_, _ = p.w.WriteString("Content-Length: ")
	_, _ = p.w.Write(strconv.AppendInt(p.w.AvailableBuffer(), int64(len(body)), 10))
	_, _ = p.w.WriteString("\r\n\r\n")
	_, _ = p.w.Write(body)
	return p.w.Flush()
}

// exchange writes r and reads the header of its response.
func (p *http1) exchange(r *http.Request, body []byte) (*http.Response, error) {
	if err := p.write(r, body); err != nil {
		return nil, err
	}
	p.header = maxHeader
	for range maxInformational + 1 {
		if resp := readPlain(p.r, r); resp != nil {
			p.header = math.MaxInt
			return resp, nil
		}
		resp, err := http.ReadResponse(p.r, r)
		switch {
		case err != nil:
			return nil, err
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errSwitched
		case resp.StatusCode >= http.StatusOK:
			p.header = math.MaxInt
			return resp, nil
		}
	}
	return nil, errors.New("the server says over and over that it will answer")
}

// Read reads from the connection.
func (p *http1) Read(b []byte) (int, error) {
	if p.header <= 0 {
		return 0, errHeader
	}
	n, err := p.conn.Read(b[:min(len(b), p.header)])
	if p.header != math.MaxInt {
		p.header -= n
	}
	return n, err
}

// An http1Body is the body of a response. Its end leaves the connection to the next request; Close before it ends both. Close may
// be called while a Read waits.
type http1Body struct {
	src   io.Reader
	from  *http1
	stop  func() bool
	last  bool // no request may follow
	whole bool // it has been read to its end
	ended atomic.Bool
}

func (b *http1Body) Read(into []byte) (int, error) {
	// From then on the connection is another's.
	switch {
	case b.whole:
		return 0, io.EOF
	case b.ended.Load():
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.src.Read(into)
	if err == io.EOF {
		b.whole = true
		b.end(!b.last && b.from.r.Buffered() == 0)
	} else if err != nil {
		b.end(false)
	}
	return n, err
}

func (b *http1Body) Close() error {
	b.end(b.src == http.NoBody && !b.last)
	return nil
}

// end gives the connection back, once. One that its call has abandoned is of no use.
func (b *http1Body) end(keep bool) {
	if b.ended.Swap(true) {
		return
	}
	if keep = b.stop() && keep; keep {
		b.from.client.keep(b.from)
	} else {
		_ = b.from.Close() // nothing depends on how it closes
	}
}

// keep has p wait for the next request, for as long as idleTimeout.
func (c *Client) keep(p *http1) {
	p.leg.Store(nil)
	p.since = time.Now()
	var surplus *http1
	c.mu.Lock()
	switch {
	case c.closed:
		surplus = p
	case len(c.kept) == maxKept:
		surplus = c.kept[0]
		c.kept = append(slices.Delete(c.kept, 0, 1), p)
	default:
		c.kept = append(c.kept, p)
		if c.sweeper == nil {
			c.sweeper = time.AfterFunc(idleTimeout, c.sweep)
		}
	}
	c.mu.Unlock()
	if surplus != nil {
		_ = surplus.Close()
	}
}

// takeKept takes the newest connection that is kept, nil where there is none.
func (c *Client) takeKept() *http1 {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.kept) - 1
	if last < 0 || time.Since(c.kept[last].since) >= idleTimeout {
		return nil // they are the sweeper's
	}
	p := c.kept[last]
	c.kept[last] = nil
	c.kept = c.kept[:last]
	return p
}

// sweep closes the connections that have been kept for idleTimeout.
func (c *Client) sweep() {
	c.mu.Lock()
	due := 0
	for due < len(c.kept) && time.Since(c.kept[due].since) >= idleTimeout {
		due++
	}
	old := slices.Clone(c.kept[:due])
	c.kept = slices.Delete(c.kept, 0, due)
	switch {
	case len(c.kept) == 0 || c.closed:
		c.sweeper = nil
	default:
		c.sweeper.Reset(time.Until(c.kept[0].since.Add(idleTimeout)))
	}
	c.mu.Unlock()
	for _, p := range old {
		_ = p.Close()
	}
}

// dropKept closes the connections that no exchange uses.
func (c *Client) dropKept() {
	c.mu.Lock()
	kept := c.kept
	c.kept = nil
	if c.sweeper != nil {
		c.sweeper.Stop()
		c.sweeper = nil
	}
	c.mu.Unlock()
	for _, p := range kept {
		_ = p.Close()
	}
}
