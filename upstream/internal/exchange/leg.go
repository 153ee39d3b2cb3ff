package exchange

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// A leg is the record of one attempt to send: whether a byte of it can have reached the transport. The connection that
// carries it asks it before the first write, so that "not sent", once said, stays true.
type leg struct {
	state     atomic.Int32
	connected bool // it was given a connection
	reused    bool // which had carried requests before
	signing   either
}

// The states of a leg.
const (
	legIdle      int32 = iota // nothing has been written
	legWriting                // the first write runs
	legSent                   // at least one byte was taken, or that cannot be known
	legFailed                 // the first write took no byte
	legWithdrawn              // nothing will be written
)

var errWithdrawn = errors.New("the request was withdrawn before it was sent")

// trace has net/http's transport say which connection it takes.
func (l *leg) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: l.gotConn})
}

// gotConn is called before anything is written. HTTP/1 gives the connection to this request alone; on any other, which
// bytes are whose cannot be told, so that the request counts as sent.
func (l *leg) gotConn(info httptrace.GotConnInfo) {
	l.connected, l.reused = true, info.Reused
	c, exclusive := carrier(info.Conn)
	if !exclusive {
		l.state.CompareAndSwap(legIdle, legSent)
		return
	}
	c.leg.Store(l)
}

// withdraw reports whether not one byte was sent, and none will be.
func (l *leg) withdraw() bool {
	return l.state.CompareAndSwap(legIdle, legWithdrawn) || l.state.Load() == legFailed
}

// carrier finds the connection that a Client dialed below c, and whether it carries one request at a time.
func carrier(c net.Conn) (found *conn, exclusive bool) {
	for {
		switch layer := c.(type) {
		case *conn:
			return layer, true
		case *tls.Conn:
			if layer.ConnectionState().NegotiatedProtocol == "h2" {
				return nil, false
			}
			c = layer.NetConn()
		default:
			return nil, false
		}
	}
}

// A conn is a connection of a Client. What it writes before it is given to a leg belongs to none: handshakes, and the
// words with a proxy.
type conn struct {
	net.Conn
	client *Client
	leg    atomic.Pointer[leg]
}

// Write writes p unless the leg that it belongs to was withdrawn or has failed.
func (c *conn) Write(p []byte) (int, error) {
	l := c.leg.Load()
	if l == nil {
		return c.Conn.Write(p)
	}
	switch l.state.Load() {
	case legSent:
		return c.Conn.Write(p)
	case legWriting: // an upgraded connection: its request has been answered before its write has returned
		return c.Conn.Write(p)
	}
	if !l.state.CompareAndSwap(legIdle, legWriting) {
		return 0, errWithdrawn
	}
	n, err := c.Conn.Write(p)
	if n == 0 && err != nil {
		l.state.Store(legFailed)
	} else {
		l.state.Store(legSent)
	}
	return n, err
}

// Close closes the connection and takes it off its client's list.
func (c *conn) Close() error {
	c.client.mu.Lock()
	delete(c.client.conns, c)
	c.client.mu.Unlock()
	return c.Conn.Close()
}

// dial connects for the client's transport, which lets a dial go on after the request that asked for it has ended; Close
// ends it.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	c.running.Add(1)
	c.mu.Unlock()
	defer c.running.Done()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	raw, err := c.dialer(ctx, network, address)
	if err != nil {
		return nil, err
	}
	dialed := &conn{Conn: raw, client: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.Join(errClosed, raw.Close())
	}
	c.conns[dialed] = struct{}{}
	return dialed, nil
}

// dropConns closes every connection, those in a TLS handshake included.
func (c *Client) dropConns() {
	c.mu.Lock()
	left := make([]*conn, 0, len(c.conns))
	for dialed := range c.conns {
		left = append(left, dialed)
	}
	c.mu.Unlock()
	for _, dialed := range left {
		_ = dialed.Close() // nothing depends on how it closes
	}
}
