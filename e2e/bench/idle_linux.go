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
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// page is a role: it answers each request with the page of its cursor. A file of -dir is one page: the cursor as it stands in
// JSON on the first line, empty for the first page, and then the text, in which holes stand for the request's id.
func page(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("page", flag.ContinueOnError)
	dir := flags.String("dir", "", "the folder of the pages")
	if err := flags.Parse(args); err != nil {
		return err
	}
	files, err := os.ReadDir(*dir)
	if err != nil {
		return err
	}
	pages := map[string][][]byte{}
	for _, file := range files {
		kept, err := os.ReadFile(filepath.Join(*dir, file.Name()))
		if err != nil {
			return err
		}
		cursor, text, _ := strings.Cut(string(kept), "\n")
		pages[cursor] = newTemplate([]byte(text), hole).pieces
	}
	return serveHTTP(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
		if err != nil {
			return
		}
		pieces := pages[string(member(member(body, "params"), "cursor"))]
		if pieces == nil {
			http.Error(w, "there is no such page", http.StatusNotFound)
			return
		}
		id := member(body, "id")
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

// eachAddress is how many connections have one source address: there are fewer ports than 65,536.
const eachAddress = 10_000

// A crowd is many clients that listen for changes of the tools.
type crowd struct {
	told   atomic.Int64 // of those that have heard of a change
	ended  atomic.Int64 // of those whose stream has ended with a result
	broken atomic.Int64 // of those whose stream has ended otherwise
}

// idle is a role: -n clients that listen at -to. It says over HTTP what has become of them.
func idle(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("idle", flag.ContinueOnError)
	to, key, n := flags.String("to", "", "host:port of the gateway"), flags.String("key", "", "the API key"), flags.Int("n", 1, "how many")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var all crowd
	var streams sync.WaitGroup
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
		streams.Wait()
	}()
	text := listenRequest(*to, *key)
	for i := range *n {
		from := net.Dialer{Timeout: callBound, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i/eachAddress))}}
		c, err := from.DialContext(ctx, "tcp", *to)
		if err != nil {
			return err
		}
		conns = append(conns, c)
		in, err := openListen(c, text)
		if err != nil {
			return fmt.Errorf("the %dth stream: %w", len(conns), err)
		}
		streams.Go(func() { all.follow(in) })
	}
	return serveHTTP(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "told %d\nended %d\nbroken %d\n", all.told.Load(), all.ended.Load(), all.broken.Load())
	}))
}

// listenRequest asks to hear of changes of the tools.
func listenRequest(address, key string) []byte {
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` + modernMeta + `}}}`
	return request(address, key, body, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: subscriptions/listen")
}

// openListen sends the request and reads to the acknowledgement.
func openListen(c net.Conn, request []byte) (*bufio.Reader, error) {
	if err := c.SetDeadline(time.Now().Add(callBound)); err != nil {
		return nil, err
	}
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(c, 512)
	for {
		line, err := nextLine(in)
		if err != nil {
			return nil, err
		}
		if strings.Contains(line, "notifications/subscriptions/acknowledged") {
			return in, c.SetDeadline(time.Time{})
		}
	}
}

// follow counts what comes of one stream. In order is a result, then the last chunk.
func (all *crowd) follow(in *bufio.Reader) {
	told, result := false, false
	for {
		line, err := nextLine(in)
		switch {
		case err != nil:
			all.broken.Add(1)
			return
		case strings.Contains(line, "notifications/tools/list_changed") && !told:
			told = true
			all.told.Add(1)
		case strings.Contains(line, `"resultType":"complete"`):
			result = true
		case line == "0" && result:
			all.ended.Add(1)
			return
		}
	}
}

// nextLine is the next line without its end, or as much of it as there is room for.
func nextLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil
	}
	return strings.TrimRight(string(line), "\r\n"), err
}
