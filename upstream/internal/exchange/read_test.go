package exchange

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

const (
	jsonType   = "application/json"
	streamType = "text/event-stream"
)

func TestReplyIsReturned(t *testing.T) {
	for _, test := range []struct {
		name        string
		status      int
		contentType string
		body        string
		kind        wire.Kind
		streamed    bool
	}{
		{"JSON", 200, jsonType, ours, wire.Result, false},
		{"content type with parameters", 200, "Application/JSON ; charset=utf-8", ours, wire.Result, false},
		{"any 2xx", 201, jsonType, ours, wire.Result, false},
		{"error of our id at 500", 500, jsonType, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"m","more":1}}`, wire.Failure, false},
		{"method not found at 404", 404, jsonType, `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"m"}}`, wire.Failure, false},
		{"stream", 200, streamType, "data: " + ours + "\n\n", wire.Result, true},
		{"stream with the rest of the words", 200, streamType + ";charset=utf-8",
			": hello\n\nid: 1\nretry: 5\n\nevent: other\ndata: {\n\nevent: message\ndata: " + ours + "\n\n", wire.Result, true},
		{"stream with strangers", 200, streamType,
			"data: {\"id\":1,\"method\":\"ping\"}\n\ndata: {\"id\":8,\"result\":{}}\n\ndata: {\"error\":{\"code\":1,\"message\":\"m\"}}\n\ndata: " + ours + "\n\n", wire.Result, true},
		{"data over lines", 200, streamType, "data: {\"id\":7,\ndata: \"result\":{}}\n\n", wire.Result, true},
		{"error in a stream", 200, streamType, "data: {\"id\":7,\"error\":{\"code\":1,\"message\":\"m\"}}\n\n", wire.Failure, true},
		{"large", 200, jsonType, `{"id":7,"result":{"s":"` + strings.Repeat("x", 3<<20) + `"}}`, wire.Result, false},
		{"large event", 200, streamType, `data: {"id":7,"result":{"s":"` + strings.Repeat("x", 3<<20) + "\"}}\n\n", wire.Result, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newClient(t, serve(t, answer(test.status, test.contentType, test.body)).URL)
			reply, err := c.Do(t.Context(), request())
			if err != nil {
				t.Fatal(err)
			}
			if reply.Kind != test.kind || reply.Status != test.status || reply.Streamed != test.streamed {
				t.Errorf("reply is kind %d, status %d, streamed %v", reply.Kind, reply.Status, reply.Streamed)
			}
			if len(c.large) != 0 {
				t.Error("a slot for large replies was not given back")
			}
		})
	}
}

func TestReplyIsNotUsable(t *testing.T) {
	const html = "<html>secret words</html>"
	nullError := `{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"m"}}`
	for _, test := range []struct {
		name        string
		status      int
		contentType string
		body        string
		outcome     upstream.Outcome
		cause       upstream.Cause
	}{
		{"truncated JSON", 200, jsonType, ours[:20], upstream.NoResponse, upstream.Unusable},
		{"two messages", 200, jsonType, ours + ours, upstream.NoResponse, upstream.Unusable},
		{"array", 200, jsonType, "[" + ours + "]", upstream.NoResponse, upstream.Unusable},
		{"HTML", 200, "text/html", html, upstream.NoResponse, upstream.Unusable},
		{"HTML under JSON", 200, jsonType, html, upstream.NoResponse, upstream.Unusable},
		{"empty", 200, jsonType, "", upstream.NoResponse, upstream.Unusable},
		{"empty without a type", 200, "", "", upstream.NoResponse, upstream.Unusable},
		{"accepted", 202, "", "", upstream.NoResponse, upstream.Unusable},
		{"stream under JSON", 200, jsonType, "data: " + ours + "\n\n", upstream.NoResponse, upstream.Unusable},
		{"JSON under stream", 200, streamType, ours, upstream.NoResponse, upstream.Unusable},
		{"another id", 200, jsonType, `{"id":8,"result":{}}`, upstream.NoResponse, upstream.Unusable},
		{"the id as a string", 200, jsonType, `{"id":"7","result":{}}`, upstream.NoResponse, upstream.Unusable},
		{"null id", 200, jsonType, nullError, upstream.NoResponse, upstream.Unusable},
		{"no result", 200, jsonType, `{"id":7}`, upstream.NoResponse, upstream.Unusable},
		{"result is no object", 200, jsonType, `{"id":7,"result":[]}`, upstream.NoResponse, upstream.Unusable},
		{"broken event", 200, streamType, "data: {\n\ndata: " + ours + "\n\n", upstream.NoResponse, upstream.Unusable},
		{"stream with another id only", 200, streamType, "data: {\"id\":8,\"result\":{}}\n\n", upstream.NoResponse, upstream.Unusable},
		{"stream without a reply", 200, streamType, "data: {\"method\":\"notifications/message\"}\n\n", upstream.NoResponse, upstream.ConnectionLost},
		{"empty stream", 200, streamType, "", upstream.NoResponse, upstream.ConnectionLost},
		{"stream ends within an event", 200, streamType, "data: " + ours, upstream.NoResponse, upstream.ConnectionLost},
		{"500 text", 500, "text/plain", "oops", upstream.NoResponse, upstream.HTTPError},
		{"500 with a result", 500, jsonType, ours, upstream.NoResponse, upstream.HTTPError},
		{"500 stream without a reply", 500, streamType, "", upstream.NoResponse, upstream.HTTPError},
		{"400 with a null id", 400, jsonType, nullError, upstream.NoResponse, upstream.HTTPError},
		{"404 text", 404, "text/plain", "nothing here", upstream.NoResponse, upstream.HTTPError},
		{"429", 429, "", "", upstream.NoResponse, upstream.HTTPError},
		{"redirect with an error", 307, jsonType, `{"id":7,"error":{"code":1,"message":"m"}}`, upstream.NoResponse, upstream.HTTPError},
		{"401", 401, jsonType, `{"id":7,"error":{"code":1,"message":"m"}}`, upstream.ErrorResponse, upstream.Refused},
		{"403", 403, "text/plain", "no", upstream.ErrorResponse, upstream.Refused},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newClient(t, serve(t, answer(test.status, test.contentType, test.body)).URL)
			_, err := c.Do(t.Context(), request())
			e := want(t, err, test.outcome, test.cause, test.status)
			if strings.Contains(e.Error(), "secret words") {
				t.Errorf("the error quotes the body: %v", e)
			}
		})
	}
}

func TestErrorWithoutIDIsInTheChain(t *testing.T) {
	c := newClient(t, serve(t, answer(400, jsonType, `{"id":null,"error":{"code":-32020,"message":"m"}}`)).URL)
	_, err := c.Do(t.Context(), request())
	if stated, ok := errors.AsType[*wire.Error](err); !ok || stated.Code != -32020 {
		t.Errorf("error is %v, want the server's in its chain", err)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	hits := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		hits++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	_, err := newClient(t, s.URL).Do(t.Context(), request())
	want(t, err, upstream.NoResponse, upstream.HTTPError, 307)
	if hits != 1 {
		t.Errorf("the server was asked %d times", hits)
	}
}

func TestEncodingThatWasNotAskedFor(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(ours))
	_ = z.Close()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if encoding := r.Header.Get("Accept-Encoding"); encoding != "" {
			t.Errorf("net/http asked for %q by itself", encoding)
		}
		w.Header().Set("Content-Encoding", "gzip")
		answer(200, jsonType, packed.String())(w, r)
	})
	_, err := newClient(t, s.URL).Do(t.Context(), request())
	if e := want(t, err, upstream.NoResponse, upstream.Unusable, 200); !strings.Contains(e.Error(), `"gzip"`) {
		t.Errorf("%v does not name the encoding", e)
	}
}

func TestReplyIsTooLarge(t *testing.T) {
	block := bytes.Repeat([]byte("x"), 1<<20)
	for _, test := range []struct {
		name, contentType string
		length            int64
	}{
		{"announced", jsonType, maxResult + 1},
		{"not announced", jsonType, -1},
		{"event", streamType, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				if test.length > 0 {
					w.Header().Set("Content-Length", fmt.Sprint(test.length))
				}
				_, _ = w.Write([]byte("data: "))
				for range maxResult>>20 + 1 {
					if _, err := w.Write(block); err != nil {
						return
					}
				}
			})
			_, err := newClient(t, s.URL).Do(t.Context(), request())
			want(t, err, upstream.NoResponse, upstream.TooLarge, 200)
		})
	}
}

func TestHeaderIsTooLarge(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 2*maxHeader))
		answer(200, jsonType, ours)(w, r)
	})
	_, err := newClient(t, s.URL).Do(t.Context(), request())
	want(t, err, upstream.NoResponse, upstream.ConnectionLost, 0)
}

func TestNotificationsComeInOrderBeforeTheReply(t *testing.T) {
	var stream strings.Builder
	for i := range 5 {
		fmt.Fprintf(&stream, "data: {\"method\":\"notifications/progress\",\"params\":{\"progress\":%d}}\n\n", i)
	}
	stream.WriteString("data: " + ours + "\n\ndata: {\"method\":\"late\"}\n\n")
	c := newClient(t, serve(t, answer(200, streamType, stream.String())).URL)
	var got []string
	req := request()
	req.Notify = func(n upstream.Notification) { got = append(got, n.Method+string(n.Params.Raw())) }
	if _, err := c.Do(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if len(got) != 5 || got[4] != `notifications/progress{"progress":4}` {
		t.Errorf("notifications: %q", got)
	}
}
