package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// page is a role: it answers each request with the text of -file, in which holes stand for the request's id.
func page(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("page", flag.ContinueOnError)
	file := flags.String("file", "", "the text")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	pieces := newTemplate(text, hole).pieces
	return serveHTTP(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
		if err != nil {
			return
		}
		id := readMessage(body).id
		size := (len(pieces) - 1) * len(id)
		for _, piece := range pieces {
			size += len(piece)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(size))
		for i, piece := range pieces {
			if i > 0 {
				_, _ = w.Write(id)
			}
			_, _ = w.Write(piece)
		}
	}))
}

// idle is a role: -n clients that listen at -to for changes of the tools. It says over HTTP how many were told of one so far, and how
// many streams have ended.
func idle(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("idle", flag.ContinueOnError)
	to, key, n := flags.String("to", "", "host:port of the gateway"), flags.String("key", "", "the API key"), flags.Int("n", 1, "how many")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var told, ended atomic.Int64
	var streams sync.WaitGroup
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
		streams.Wait()
	}()
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` + modernMeta + `}}}`
	text := request(*to, *key, body, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: subscriptions/listen")
	for range *n {
		c, err := net.DialTimeout("tcp", *to, callBound)
		if err != nil {
			return err
		}
		conns = append(conns, c)
		if _, err := c.Write(text); err != nil {
			return err
		}
		in := bufio.NewReaderSize(c, 512)
		_ = c.SetReadDeadline(time.Now().Add(callBound))
		if err := nextEvent(in, "acknowledged"); err != nil {
			return fmt.Errorf("the %dth stream: %w", len(conns), err)
		}
		_ = c.SetReadDeadline(time.Time{})
		streams.Go(func() {
			defer ended.Add(1)
			for nextEvent(in, "list_changed") == nil {
				told.Add(1)
			}
		})
	}
	return serveHTTP(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "told %d\nended %d\n", told.Load(), ended.Load())
	}))
}

// nextEvent reads on to the line of an event that holds word.
func nextEvent(in *bufio.Reader, word string) error {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if strings.Contains(string(line), word) {
			return nil
		}
	}
}
