package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// A soakTally is what the traffic came to.
type soakTally struct {
	answered, unsent, unknown atomic.Int64
	kills, reloads, refused   atomic.Int64
}

func (t *soakTally) String() string {
	return fmt.Sprintf("%d calls answered, %d known not to have run, %d not known; %d backends killed, %d reloads, %d refused",
		t.answered.Load(), t.unsent.Load(), t.unknown.Load(), t.kills.Load(), t.reloads.Load(), t.refused.Load())
}

// judge is nil where the traffic was what it is meant to be.
func (t *soakTally) judge() error {
	fmt.Println(t.String())
	if t.answered.Load() == 0 {
		return fmt.Errorf("no call was answered")
	}
	return nil
}

// A soakClient makes one call after the other, each of another kind.
type soakClient struct {
	*soaking
	random  *rand.Rand
	legacy  bool
	session string
	http    http.Client
}

func (c *soakClient) repeat(ctx context.Context, over <-chan struct{}) error {
	c.http.Transport = &http.Transport{}
	defer c.http.CloseIdleConnections()
	for {
		select {
		case <-over:
			return nil
		default:
		}
		if c.legacy && c.session == "" {
			var err error
			if c.session, err = handshake(ctx, c.gateway.address, c.key); err != nil {
				return err
			}
		}
		if err := c.call(ctx); err != nil {
			return err
		}
		if c.random.IntN(50) == 0 {
			c.session = ""
			c.http.CloseIdleConnections()
		}
	}
}

// call makes one call of any kind of any upstream and checks what comes back: the answer that is due, or an outcome that says what
// became of the call.
func (c *soakClient) call(ctx context.Context) error {
	all := kinds()
	k := all[[...]int{0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 5}[c.random.IntN(12)]]
	upstream := [...]string{"steady", "steady", "failing", "failing", "pipe"}[c.random.IntN(5)]
	name := upstream + "__" + k.tool
	text := k.modern(c.gateway.address, c.key, name)
	if c.legacy {
		text = k.legacy(c.gateway.address, c.key, c.session, name)
	}
	i := nextID()
	whole, _ := newTemplate(text, hole).with(i)
	head, body, _ := strings.Cut(string(whole), "\r\n\r\n")
	ctx, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.gateway.address+"/mcp", strings.NewReader(body))
	if err != nil {
		return err
	}
	for _, line := range strings.Split(head, "\r\n")[2:] {
		if name, value, _ := strings.Cut(line, ": "); name != "Content-Length" {
			req.Header.Set(name, value)
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := k.verify(i, answer); err != nil {
		return c.explained(name, resp.StatusCode, answer, err)
	}
	c.tally.answered.Add(1)
	return nil
}

// explained counts an answer that is not the one due, and is an error unless it says what became of the call.
func (c *soakClient) explained(name string, status int, answer []byte, unlike error) error {
	says := func(word string) bool { return bytes.Contains(answer, []byte(word)) }
	switch {
	case says(`"outcome":"not-sent"`):
		c.tally.unsent.Add(1)
	case says(`"outcome":"no-response"`):
		c.tally.unknown.Add(1)
	default:
		return fmt.Errorf("%s: HTTP %d %.300s: %w", name, status, answer, unlike)
	}
	// Nothing is to be won by asking a server again at once that is not there.
	time.Sleep(10 * time.Millisecond)
	return nil
}
