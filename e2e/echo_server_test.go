package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
)

// An echo is what a server was sent, by whatever way, and writes into whatever it says.
type echo struct {
	modern bool
	hunt   *hunt      // what has nothing of it is not shown; nil shows all
	mu     sync.Mutex // guards all below
	sent   []string
	wrote  strings.Builder // all that the server said
}

// note takes texts that the server was sent, each once.
func (e *echo) note(texts ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, text := range texts {
		if e.hunt != nil && len(e.hunt.find(text)) == 0 {
			continue
		}
		if len(text) >= gram && !slices.Contains(e.sent, text) {
			e.sent = append(e.sent, text)
		}
	}
}

// request takes all of a request but its body.
func (e *echo) request(r *http.Request) {
	for name, values := range r.Header {
		for _, value := range values {
			e.note(name+": "+value, value)
			if _, token, two := strings.Cut(value, " "); two {
				e.note(token)
			}
		}
	}
	if user, password, ok := r.BasicAuth(); ok {
		e.note(user+":"+password, password) // RFC 6749, section 2.3.1
	}
	e.note(r.RequestURI, "http://"+r.Host+r.RequestURI)
	for _, values := range r.URL.Query() {
		e.note(values...)
	}
	e.note(strings.Split(r.URL.Path, "/")...)
}

// everyWay writes all that was sent in each encoding, as a JSON array.
func (e *echo) everyWay() string {
	return "[" + strings.Join(e.written(), ",") + "]"
}

// written are the JSON strings of all that was sent.
func (e *echo) written() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []string
	for _, text := range e.sent {
		for _, c := range encodings {
			list = append(list, c.write(text))
		}
	}
	return list
}

func (e *echo) texts() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.sent)
}

// said keeps what the server says.
func (e *echo) said(text string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wrote.WriteString(text + "\n")
	return text
}

func (e *echo) stamp(members string) string {
	if !e.modern {
		return ""
	}
	return members + cannedModern
}

var echoTools = []string{"echo", "error", "status", "refuse", "html", "garbage", "events", "unauthorized", "die", "plain"}

// answer is the member of a response that shows everything, of all but the tools that break their transport.
func (e *echo) answer(req cannedRequest) string {
	all := e.everyWay()
	list := strings.TrimSuffix(strings.TrimPrefix(all, "["), "]")
	switch {
	case req.Method == "server/discover" && e.modern:
		return e.said(`"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public",` +
			`"instructions":` + jsonText(all) + `,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":` + jsonText(all) + `}}}`)
	case req.Method == "initialize" && !e.modern:
		return e.said(`"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"echo","version":` + jsonText(all) +
			`},"instructions":` + jsonText(all) + `}`)
	case req.Method == "ping":
		return `"result":{}`
	case req.Method == "tools/list":
		return e.said(`"result":{` + e.stamp(`"ttlMs":0,"cacheScope":"public",`) + `"tools":[` + e.tools(all) + `]}`)
	case req.Method == "tools/call" && req.Params.Name == "error":
		return e.said(`"error":{"code":-31999,"message":` + jsonText(all) + `,"data":{"sent":` + all + `,"names":{` + e.members() + `}},"extra":` + all + `}`)
	case req.Method == "tools/call" && req.Params.Name == "plain":
		return e.said(`"result":{` + e.stamp("") + `"content":[{"type":"text","text":"plain"}]}`)
	case req.Method == "tools/call":
		return e.said(`"result":{` + e.stamp("") + `"content":[{"type":"text","text":` + jsonText(all) + `},` +
			`{"type":"resource","resource":{"uri":` + jsonText("x://"+strings.Join(e.texts(), "/")) + `,"blob":` + encodings[7].write(strings.Join(e.texts(), "\n")) + `}}],` +
			`"structuredContent":{"sent":` + all + `,"names":{` + e.members() + `},"numbers":[` + e.numbers() + `0]},"_meta":{"example.com/sent":[` + list + `]}}`)
	}
	return `"error":{"code":-32601,"message":` + jsonText("no such method "+all) + `}`
}

// tools are those of the server, with all that it was sent in each place of a definition, and some whose names have it too.
func (e *echo) tools(all string) string {
	var list []string
	for _, name := range echoTools {
		list = append(list, `{"name":"`+name+`","title":"one of them","inputSchema":{"type":"object"}}`)
	}
	list = append(list, `{"name":"shows","title":`+jsonText(all)+`,"description":`+jsonText(all)+`,"inputSchema":{"type":"object","description":`+
		jsonText(all)+`,"properties":{"p":{"enum":`+all+`,"default":`+encodings[1].write(all)+`}}},"_meta":{"example.com/sent":`+all+`}}`)
	for i, name := range e.written() {
		list = append(list, `{"name":`+name+`,"inputSchema":{"type":"object"}}`,
			fmt.Sprintf(`{"name":"in-schema-%d",`, i)+`"inputSchema":{"type":"object","properties":{`+name+`:{}},"required":[`+name+`]}}`)
	}
	return strings.Join(list, ",")
}

// members have what was sent as names.
func (e *echo) members() string {
	seen := map[string]bool{}
	var list []string
	for _, written := range e.written() {
		var name string
		_ = json.Unmarshal([]byte(written), &name)
		if !seen[name] {
			seen[name] = true
			list = append(list, written+":"+written)
		}
	}
	return strings.Join(list, ",")
}

// numbers have what was sent where that is a number.
func (e *echo) numbers() string {
	list := ""
	for _, text := range e.texts() {
		if strings.Trim(text, "0123456789") == "" {
			list += text + ","
		}
	}
	return list
}

// notifications are the progress and the log messages of a call.
func (e *echo) notifications(r json.RawMessage) []string {
	all := e.everyWay()
	return []string{
		e.said(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(r) + `,"progress":1,"message":` + jsonText(all) + `}}`),
		e.said(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":` + jsonText(all) + `,"data":{"sent":` + all + `}}}`),
		e.said(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(r) + `,"progress":2,"x":` + all + `}}`),
	}
}

// progressToken reads the token that the notifications of a call have to have.
func progressToken(body []byte) json.RawMessage {
	var m struct {
		Params struct {
			Meta struct{ ProgressToken json.RawMessage } `json:"_meta"`
		}
	}
	if json.Unmarshal(body, &m) != nil || m.Params.Meta.ProgressToken == nil {
		return json.RawMessage("0")
	}
	return m.Params.Meta.ProgressToken
}

// line is all that was sent where only one line has room, of at most n bytes.
func (e *echo) line(n int) string {
	texts := e.texts()
	slices.SortFunc(texts, func(a, b string) int { return len(a) - len(b) })
	text := ""
	for _, sent := range texts {
		for _, more := range []string{sent, url.QueryEscape(sent)} {
			if more = " " + strings.NewReplacer("\r", "", "\n", "").Replace(more); len(text)+len(more) <= n {
				text += more
			}
		}
	}
	return e.said(strings.ToValidUTF8(text, ""))
}

// startEcho serves e over Streamable HTTP at /…/mcp, over HTTP+SSE at /…/sse and /…/post, and over WebSocket at /…/ws. It ends with the test.
func startEcho(t *testing.T, e *echo) string {
	t.Helper()
	s := &echoHTTP{echo: e, life: t.Context(), streams: map[string]chan string{}}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

type echoHTTP struct {
	*echo
	life    context.Context
	mu      sync.Mutex // guards streams
	streams map[string]chan string
}

func (s *echoHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.request(r)
	switch {
	case strings.HasSuffix(r.URL.Path, "/ws"):
		s.webSocket(w, r)
	case strings.HasSuffix(r.URL.Path, "/sse") && r.Method == http.MethodGet:
		s.events(w, r)
	case strings.HasSuffix(r.URL.Path, "/post"):
		s.posted(w, r)
	case r.Method == http.MethodPost:
		s.post(w, r)
	default:
		w.Header().Set("X-Sent", s.line(2000))
		http.Error(w, s.said(s.everyWay()), http.StatusMethodNotAllowed)
	}
}

// post answers over Streamable HTTP.
func (s *echoHTTP) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req cannedRequest
	if err != nil || json.Unmarshal(body, &req) != nil {
		return
	}
	w.Header().Set("X-Sent", s.line(2000))
	if req.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if req.Method == "tools/call" && s.breaks(w, r, req) {
		return
	}
	if !s.modern && req.Method == "initialize" {
		w.Header().Set("Mcp-Session-Id", "echo-session")
	}
	if req.Method == "tools/call" && req.Params.Name == "events" {
		s.stream(w, body, req)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, message(req, s.answer(req)))
}

// breaks answers the tools that HTTP itself answers, and reports whether it did.
func (s *echoHTTP) breaks(w http.ResponseWriter, r *http.Request, req cannedRequest) bool {
	all := s.said(s.everyWay())
	switch req.Params.Name {
	case "status":
		return s.raw(w, "HTTP/1.1 500 "+s.line(3000)+"\r\nContent-Type: text/html\r\n", all)
	case "refuse":
		req.Params.Name = "error"
		return s.raw(w, "HTTP/1.1 400 "+s.line(3000)+"\r\nContent-Type: application/json\r\n", message(req, s.answer(req)))
	case "html":
		w.Header().Set("Content-Type", `text/html; charset="`+strings.NewReplacer(`"`, "", `\`, "").Replace(s.line(500))+`"`)
		fmt.Fprint(w, "<!doctype html><h1>"+all+"</h1>")
	case "garbage":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":`+string(req.ID)+`,"result":{"sent":`+all+`,"cut":`)
	case "unauthorized":
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+strings.NewReplacer(`"`, "", `\`, "").Replace(s.line(800))+`", error="`+strings.NewReplacer(`"`, "", `\`, "").Replace(s.line(300))+`"`)
		w.Header().Set("Retry-After", s.line(200))
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, all)
	case "die":
		return s.raw(w, "HTTP/1.1 200 OK\r\nContent-Length: oh "+s.line(400)+"\r\nBad"+s.line(200)+" header\r\n", "")
	default:
		return false
	}
	return true
}

// raw writes a response by hand, its head as it is.
func (s *echoHTTP) raw(w http.ResponseWriter, head, body string) bool {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return true
	}
	defer conn.Close()
	fmt.Fprintf(buffered, "%sConnection: close\r\n\r\n%s", head, body)
	_ = buffered.Flush()
	return true
}

// stream has comments, odd events and notifications before the answer.
func (s *echoHTTP) stream(w http.ResponseWriter, body []byte, req cannedRequest) {
	w.Header().Set("Content-Type", "text/event-stream")
	line := s.line(4000)
	fmt.Fprintf(w, ": %s\n\nretry: %s\nid: %s\nevent: %s\ndata: %s\n\n", line, line, line, line, s.said(s.everyWay()))
	for _, n := range s.notifications(progressToken(body)) {
		fmt.Fprintf(w, ":%s\nid: %s\nevent: message\ndata: %s\n\n", line, line, n)
		_ = http.NewResponseController(w).Flush()
	}
	fmt.Fprintf(w, "data: %s\n\n: %s\n\n", message(req, s.answer(req)), line)
}

// events opens a stream of HTTP+SSE.
func (s *echoHTTP) events(w http.ResponseWriter, r *http.Request) {
	out := make(chan string, 64)
	s.mu.Lock()
	id := strconv.Itoa(len(s.streams))
	s.streams[id] = out
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	// What may be in the path and the query of the stream's url is in that of the endpoint too.
	target := strings.TrimSuffix(r.URL.EscapedPath(), "sse") + "post?id=" + id + "&" + r.URL.RawQuery
	fmt.Fprintf(w, ": %s\n\nevent: endpoint\ndata: %s\n\n", s.line(4000), target)
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case event := <-out:
			if event == "" {
				return
			}
			fmt.Fprint(w, event)
		case <-r.Context().Done():
			return
		case <-s.life.Done():
			return
		}
	}
}

// posted takes one message of HTTP+SSE.
func (s *echoHTTP) posted(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req cannedRequest
	if err != nil || json.Unmarshal(body, &req) != nil {
		return
	}
	s.mu.Lock()
	out := s.streams[r.URL.Query().Get("id")]
	s.mu.Unlock()
	if req.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	line := s.line(4000)
	switch name := req.Params.Name; {
	case req.Method != "tools/call":
	case name == "status":
		s.raw(w, "HTTP/1.1 500 "+line[:min(len(line), 3000)]+"\r\nContent-Type: text/html\r\n", s.said(s.everyWay()))
		return
	case name == "garbage", name == "html":
		out <- "event: message\ndata: {" + s.said(s.everyWay()) + "\n\n"
	case name == "die":
		out <- ":" + line + "\nevent: " + line + "\ndata: bye\n\n"
		out <- ""
		w.WriteHeader(http.StatusAccepted)
		return
	case name == "events":
		for _, n := range s.notifications(progressToken(body)) {
			out <- ": " + line + "\nid:" + line + "\nevent: message\ndata: " + n + "\n\n"
		}
	}
	out <- "event: message\ndata: " + message(req, s.answer(req)) + "\n\n"
	w.WriteHeader(http.StatusAccepted)
}

// webSocket serves one connection.
func (s *echoHTTP) webSocket(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 20)
	for {
		_, frame, err := conn.Read(s.life)
		if err != nil {
			return
		}
		var req cannedRequest
		if json.Unmarshal(frame, &req) != nil || req.ID == nil {
			continue
		}
		answer := message(req, s.answer(req))
		switch name := req.Params.Name; {
		case req.Method != "tools/call":
		case name == "die", name == "status":
			reason := s.line(118)
			_ = conn.Close(websocket.StatusInternalError, reason)
			return
		case name == "garbage", name == "html":
			_ = conn.Write(s.life, websocket.MessageText, []byte("{"+s.said(s.everyWay())))
		case name == "events":
			for _, n := range s.notifications(progressToken(frame)) {
				_ = conn.Write(s.life, websocket.MessageText, []byte(n))
			}
		}
		if conn.Write(s.life, websocket.MessageText, []byte(answer)) != nil {
			return
		}
	}
}
