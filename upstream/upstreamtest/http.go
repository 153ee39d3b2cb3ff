package upstreamtest

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/sse"
	"mcp-gateway/internal/wire"
)

// Discovered is a result of server/discover that announces nothing to listen to.
const Discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`

// HTTP runs a modern server over Streamable HTTP until the test ends. A request whose first message is its response is
// answered in JSON, any other as a stream. It takes listens for changes of its lists.
func HTTP(t *testing.T, h Handler) *httptest.Server {
	t.Helper()
	var open listens
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return // the engine gave up while it sent
		}
		m, err := wire.ParseRequest(data)
		if err != nil {
			t.Errorf("the engine sent %q: %v", data, err)
			return
		}
		out := &reply{t: t, w: w, id: m.ID}
		switch m.Method {
		case mcp.MethodDiscover:
			out.Send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + announcing + `}`)
			return
		case mcp.MethodListen:
			out.open()
			out.listen(&open, m, r.Context().Done())
			return
		}
		h(&Request{Message: m, Revision: mcp.Modern, Canceled: r.Context().Done(), Sender: announcer{out, &open}})
	}))
	t.Cleanup(s.Close)
	return s
}

// A reply is one response over HTTP.
type reply struct {
	t      *testing.T
	w      http.ResponseWriter
	id     []byte
	stream bool
	begun  bool // a message was sent in part
}

// Send writes JSON or an event. A write that fails is the engine's leaving, which the handler sees as Canceled.
func (r *reply) Send(message string) {
	switch {
	case r.begun && r.stream:
		r.write(message + "\n\n")
	case r.begun:
		r.write(message)
	case !r.stream && r.whole(message):
		r.w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(r.w, message)
	default:
		if !r.stream {
			r.stream = true
			r.w.Header().Set("Content-Type", "text/event-stream")
		}
		r.write(string(sse.AppendEvent(nil, []byte(message))))
	}
	r.begun = false
}

// whole reports whether the message is the response, or cannot be read at all.
func (r *reply) whole(message string) bool {
	if strings.HasPrefix(message, `{"jsonrpc":"2.0","id":`+string(r.id)+`,`) {
		return true // as most are, and large ones take long to read
	}
	m, err := wire.ParseReply([]byte(message))
	return err != nil || bytes.Equal(m.ID, r.id)
}

// Part writes the next part of an event where a stream has begun, else of a JSON body.
func (r *reply) Part(text string) {
	switch {
	case r.begun:
	case r.stream:
		text = "data: " + text
	default:
		r.w.Header().Set("Content-Type", "application/json")
	}
	r.begun = true
	r.write(text)
}

func (r *reply) write(text string) {
	_, _ = io.WriteString(r.w, text)
	_ = http.NewResponseController(r.w).Flush()
}

// Die cuts the connection.
func (r *reply) Die() {
	if c := r.hijack(); c != nil {
		_ = c.Close()
	}
}

func (r *reply) hijack() net.Conn {
	c, _, err := http.NewResponseController(r.w).Hijack()
	if err != nil {
		r.t.Errorf("cannot cut the connection: %v", err)
		return nil
	}
	return c
}

// HalfClose ends the server's direction, and takes what comes until the engine ends the other.
func (r *reply) HalfClose() {
	if c := r.hijack(); c != nil {
		_ = c.(*net.TCPConn).CloseWrite() // it fails where the engine has cut it
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
}

// Refuse answers with a status, and a text that is no message.
func (r *reply) Refuse(status int) bool {
	if r.stream || r.begun {
		return false
	}
	http.Error(r.w, "refused", status)
	return true
}
