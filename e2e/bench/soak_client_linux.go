package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// A tally is what the traffic came to.
type tally struct {
	answered, failed, unsent, unknown, left atomic.Int64 // calls
	notices, streams                        atomic.Int64
	kills, reloads, refused                 atomic.Int64
}

func (t *tally) String() string {
	return fmt.Sprintf("%d calls answered, %d with an error, %d known not to have run, %d not known, %d left by their client; "+
		"%d notices on %d streams; %d servers killed, %d reloads, %d refused", t.answered.Load(), t.failed.Load(), t.unsent.Load(), t.unknown.Load(),
		t.left.Load(), t.notices.Load(), t.streams.Load(), t.kills.Load(), t.reloads.Load(), t.refused.Load())
}

// judge is nil where the traffic was what it is meant to be.
func (t *tally) judge() error {
	if t.answered.Load() == 0 || t.failed.Load() == 0 || t.left.Load() == 0 || t.streams.Load() == 0 {
		return errors.New("there was no traffic of some kind")
	}
	return nil
}

// A soakClient does one thing after the other.
type soakClient struct {
	*soaking
	random  *rand.Rand
	kinds   []kind
	legacy  bool
	session string
	http    http.Client
	known   map[string]template // answers that were found to be right, by the tool's public name
}

func newSoakClient(s *soaking, random *rand.Rand, legacy bool) *soakClient {
	return &soakClient{soaking: s, random: random, kinds: kinds(), legacy: legacy,
		http: http.Client{Transport: &http.Transport{}}, known: map[string]template{}}
}

// ended reports whether it is over, or ctx has ended.
func ended(ctx context.Context, over <-chan struct{}) bool {
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// call makes calls until it is over, and begins anew now and then.
func (c *soakClient) call(ctx context.Context, over <-chan struct{}) error {
	defer c.http.CloseIdleConnections()
	for !ended(ctx, over) {
		if c.legacy && c.session == "" {
			var err error
			if c.session, err = handshake(ctx, c.soaking.gateway.address, c.key); err != nil {
				return err
			}
		}
		if err := c.any(ctx); err != nil {
			return err
		}
		if c.random.IntN(50) == 0 {
			c.session = ""
			c.http.CloseIdleConnections()
		}
	}
	return nil
}

// any makes one call of any kind of any upstream.
func (c *soakClient) any(ctx context.Context) error {
	upstream := [...]string{"steady", "steady", "failing", "failing", "pipe"}[c.random.IntN(5)]
	switch n := c.random.IntN(20); {
	case n < 9:
		return c.answered(ctx, c.kinds[0], upstream)
	case n < 17:
		return c.answered(ctx, c.kinds[1+c.random.IntN(len(c.kinds)-1)], upstream)
	case n == 17:
		return c.fails(ctx, kind{tool: "fail", arguments: "{}"}, upstream)
	case n == 18:
		return c.fails(ctx, kind{tool: "no-such-tool", arguments: "{}"}, upstream)
	case c.legacy || upstream == "pipe": // a legacy client's call goes on without it, and the pipe's tool does not hang
		return c.answered(ctx, c.kinds[0], upstream)
	}
	return c.leaves(ctx, upstream)
}

// answered makes a call and checks what comes back: the answer that is due, or an outcome that says what became of the call.
func (c *soakClient) answered(ctx context.Context, k kind, upstream string) error {
	i, name := nextID(), upstream+"__"+k.tool
	body, err := c.post(ctx, k, name, i)
	if err != nil {
		return err
	}
	if !like(c.known[name], i, body) {
		if err := k.verify(i, body); err != nil {
			return c.explained(ctx, name, err)
		}
		c.known[name] = newTemplate(body, i.String())
	}
	c.tally.answered.Add(1)
	return nil
}

// like says whether an answer is one that was found to be right, but for its id. To look closer would cost more than to answer.
func like(right template, i id, body []byte) bool {
	var compare comparison
	compare.begin(right, i)
	return compare.feed(body) == nil && compare.end() == nil
}

// fails makes a call whose answer is due to be an error of the server's own, or the gateway's for a tool that is not there.
func (c *soakClient) fails(ctx context.Context, k kind, upstream string) error {
	i, name := nextID(), upstream+"__"+k.tool
	body, err := c.post(ctx, k, name, i)
	if err != nil {
		return err
	}
	_, err = readAnswer(i, body)
	if failed, ok := errors.AsType[*failure](err); ok && string(member(member(failed.answer, "error"), "code")) == "-32602" && failed.outcome() == "" {
		c.tally.failed.Add(1)
		return nil
	}
	if err == nil {
		return fmt.Errorf("%s: a call that must fail has the answer %.300s", name, body)
	}
	return c.explained(ctx, name, err)
}

// leaves makes a call that is not answered, and goes.
func (c *soakClient) leaves(ctx context.Context, upstream string) error {
	patience, cancel := context.WithTimeout(ctx, time.Duration(1+c.random.IntN(200))*time.Millisecond)
	defer cancel()
	name := upstream + "__hang"
	i := nextID()
	body, err := c.post(patience, kind{tool: "hang", arguments: "{}"}, name, i)
	if patience.Err() != nil {
		c.tally.left.Add(1)
		return nil
	}
	if err == nil {
		_, err = readAnswer(i, body)
	}
	return c.explained(ctx, name, err)
}

// explained counts a call whose answer is not the one due, and is an error unless that says what became of the call.
func (c *soakClient) explained(ctx context.Context, name string, unlike error) error {
	failed, ok := errors.AsType[*failure](unlike)
	if !ok {
		return fmt.Errorf("%s: %w", name, unlike)
	}
	switch failed.outcome() {
	case "not-sent":
		c.tally.unsent.Add(1)
	case "no-response":
		c.tally.unknown.Add(1)
	default:
		return fmt.Errorf("%s: %w", name, unlike)
	}
	// Nothing is to be won by asking a server again at once that is not there.
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
	}
	return nil
}

// post calls the tool by that name, and gives the body of the answer.
func (c *soakClient) post(ctx context.Context, k kind, name string, i id) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*callBound)
	defer cancel()
	meta := modernMeta
	if c.legacy {
		meta = ""
	}
	body, _ := newTemplate([]byte(k.body(name, meta)), hole).with(i)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.soaking.gateway.address+"/mcp", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+c.key)
	if c.legacy {
		req.Header.Set("MCP-Protocol-Version", "2025-11-25")
		req.Header.Set("Mcp-Session-Id", c.session)
	} else {
		req.Header.Set("MCP-Protocol-Version", "2026-07-28")
		req.Header.Set("Mcp-Method", "tools/call")
		req.Header.Set("Mcp-Name", name)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return answer, nil
}

// hear listens until it is over, on one stream after the other: some end when the client has heard a notice, some after a while.
func (c *soakClient) hear(ctx context.Context, over <-chan struct{}) error {
	for !ended(ctx, over) {
		if err := c.listen(ctx, over); err != nil {
			return fmt.Errorf("listening: %w", err)
		}
	}
	return nil
}

// listen holds one stream.
func (c *soakClient) listen(ctx context.Context, over <-chan struct{}) error {
	var dialer net.Dialer
	address := c.soaking.gateway.address
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	in, err := openListen(conn, listenRequest(address, c.key))
	if err != nil {
		return err
	}
	c.tally.streams.Add(1)
	patience := time.Now().Add(time.Duration(1+c.random.IntN(10_000)) * time.Millisecond)
	if err := conn.SetReadDeadline(patience); err != nil {
		return err
	}
	for !ended(ctx, over) {
		line, err := nextLine(in)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		if strings.Contains(line, "notifications/tools/list_changed") {
			c.tally.notices.Add(1)
			if c.random.IntN(2) == 0 {
				return nil
			}
		}
	}
	return nil
}
