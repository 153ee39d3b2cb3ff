package front

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/mcp"
)

const cancelOf1 = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`

// A message of an array means the calls that stand before it, and none that comes after.
func TestCancelInTheArrayOfItsCall(t *testing.T) {
	for body, want := range map[string]string{
		`[` + legacyCall("1", "x") + `,` + cancelOf1 + `]`:                                   "202 ",
		`[` + legacyCall("1", "x") + `,` + legacyCall("1", "x") + `,` + cancelOf1 + `]`:      "202 ",
		`[` + legacyCall("1", "x") + `,` + legacyCall("2", "x") + `,` + cancelOf1 + `]`:      `200 [{"jsonrpc":"2.0","id":2,"result":{"content":[]}}]`,
		`[` + cancelOf1 + `,` + legacyCall("1", "x") + `]`:                                   `200 [{"jsonrpc":"2.0","id":1,"result":{"content":[]}}]`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},` + cancelOf1 + `]`:                       `200 [{"jsonrpc":"2.0","id":1,"result":{}}]`,
		`[` + legacyCall("1", "x") + `,` + strings.Replace(cancelOf1, "1}", `"1"}`, 1) + `]`: `200 [{"jsonrpc":"2.0","id":1,"result":{"content":[]}}]`,
	} {
		synctest.Test(t, func(t *testing.T) {
			client, f, end := onPipe(t, Config{Dispatch: func(ctx context.Context, _ *Request) *Reply {
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				return done
			}})
			h := header("Mcp-Session-Id", newSession(mcp.Revision20250326, 0, "", time.Now()).token(testRing(t)))
			if _, err := io.WriteString(client, raw(http.MethodPost, h, body)); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			if got := strconv.Itoa(resp.StatusCode) + " " + string(text); err != nil || got != want {
				t.Errorf("%s is answered with %s, want %s", body, got, want)
			}
			synctest.Wait()
			if n := len(f.flights.all) + len(f.flights.byKey); n != 0 {
				t.Errorf("%s: %d calls are kept", body, n)
			}
			end()
		})
	}
}

// Two calls with one id are the client's mistake, which must not leave one of them without an end.
func TestLegacyCancelOfTwoCallsWithOneID(t *testing.T) {
	g := newGate()
	f, server := start(t, Config{Dispatch: g.dispatch})
	url := server.URL + "/mcp"
	h := header("Mcp-Session-Id", initialize(t, url, mcp.Revision20251125))
	answers := make(chan answer)
	call := func() { answers <- send(t, http.MethodPost, url, h.Clone(), legacyCall("1", "x")) }
	for range 3 {
		go call()
		<-g.began
	}
	// One that has ended takes none of the others along.
	g.release <- done
	(<-answers).want(t, http.StatusOK)
	send(t, http.MethodPost, url, h.Clone(), cancelOf1).want(t, http.StatusAccepted)
	for range 2 {
		if cause := <-g.ended; !errors.Is(cause, ErrCanceled) {
			t.Errorf("a call ended with %v, want ErrCanceled", cause)
		}
		(<-answers).want(t, http.StatusAccepted)
	}
	server.Close()
	if n := len(f.flights.all) + len(f.flights.byKey); n != 0 {
		t.Errorf("%d calls are kept", n)
	}
}

// Whichever of the calls with one key ends first, the others can still be cancelled.
func TestFlightsOfOneKey(t *testing.T) {
	key := flightKey{id: "1"}
	for first := range 3 {
		f := newFlights()
		var calls [3]*flight
		var running [3]context.Context
		for i := range calls {
			running[i], calls[i] = f.begin(t.Context(), key)
		}
		_, other := f.begin(t.Context(), flightKey{id: "2"})
		f.end(calls[first])
		f.cancelAll(key)
		for i, ctx := range running {
			if canceled := errors.Is(context.Cause(ctx), ErrCanceled); canceled != (i != first) {
				t.Errorf("with the end of call %d, call %d is cancelled: %v", first, i, canceled)
			}
		}
		for i, call := range calls {
			if i != first {
				f.end(call)
			}
		}
		if len(f.byKey) != 1 {
			t.Errorf("%d keys are known, want that of the other call", len(f.byKey))
		}
		f.end(other)
	}
}

func TestArrayInAnArray(t *testing.T) {
	_, server := start(t, Config{})
	for _, body := range []string{`[[]]`, `[[` + legacyCall("1", "legacy") + `]]`} {
		send(t, http.MethodPost, server.URL+"/mcp", header(), body).want(t, http.StatusOK, `[{"jsonrpc":"2.0",`, `"code":-32600`)
	}
}

// A grant ends with its key, though another of the same name has taken its place.
func TestListeningEndsWithItsGrant(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		synctest.Test(t, func(t *testing.T) {
			older, newer := [32]byte{1}, [32]byte{2}
			granted := older
			token := newSession(mcp.LegacyLatest, 0, "alice", time.Now()).token(testRing(t))
			h, body := modernHeader(mcp.MethodListen, ""), listenBody(`"toolsListChanged":true`)
			if method == http.MethodGet {
				h, body = header("Mcp-Session-Id", token), ""
			}
			s, f, end := listenOnPipe(t, Config{
				Changes:      new(changes).of,
				Authenticate: func(*http.Request) (Caller, error) { return Caller{Name: "alice", Grant: older}, nil },
				Admits:       func(c Caller) bool { return c == Caller{Name: "alice", Grant: granted} },
			}, h, body)
			s.event()
			f.Readmit()
			synctest.Wait()
			if served(f) != 1 {
				t.Fatalf("%s: the listening has ended, and its caller is let in as before", method)
			}
			granted = newer
			f.Readmit()
			if method == http.MethodPost {
				s.want(listenResult)
			}
			s.want("end")
			end()
		})
	}
}
