package exchange

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/upstream"
)

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	lastChunk  = "0\r\n\r\n"
)

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// The end of a stream comes a little after the reply. Waiting for it, but not for long, keeps the connection.
func TestConnectionIsKept(t *testing.T) { eachTransport(t, testConnectionIsKept) }

func testConnectionIsKept(t *testing.T, newClient maker) {
	event := chunk("data: " + ours + "\n\n")
	for _, test := range []struct {
		name, reply string
		pause       time.Duration
		end         string
		connections int64
	}{
		{"JSON", okReply, 0, "", 1},
		{"stream that ends", streamHead + event, drainTime / 2, lastChunk, 1},
		{"stream that goes on", streamHead + event, 2 * drainTime, lastChunk, 2},
		{"error in text", "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nOops", 0, "", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, "http://server")
				var connections int64
				end := pipes(c, func(n int64, r *bufio.Reader, far net.Conn) {
					connections = n
					for readRequest(t, r) {
						_, _ = io.WriteString(far, test.reply)
						<-time.After(test.pause) // of the bubble's clock
						if test.end != "" {      // a pipe's empty write would wait for a reader
							_, _ = io.WriteString(far, test.end)
						}
					}
				})
				began := time.Now()
				for range 2 {
					if _, err := c.Do(t.Context(), request()); err != nil && !strings.Contains(err.Error(), "HTTP 500") {
						t.Fatal(err)
					}
				}
				if connections != test.connections || time.Since(began) > 2*drainTime {
					t.Errorf("%d connections within %v, want %d within %v", connections, time.Since(began), test.connections, 2*drainTime)
				}
				end()
			})
		})
	}
}

func TestLargeReplyWaitsForASlot(t *testing.T) {
	large := `{"id":7,"result":{"s":"` + strings.Repeat("x", 2*largeResult) + `"}}`
	jsonHead := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(large))
	small := chunk("data: {\"method\":\"" + strings.Repeat("n", 64<<10) + "\"}\n\n")
	comment := chunk(": " + strings.Repeat("c", 64<<10) + "\n\n")
	for _, test := range []struct {
		name, reply string
		waits       bool
	}{
		{"JSON", jsonHead + large, true},
		{"event", streamHead + chunk("data: "+large+"\n\n") + lastChunk, true},
		{"comments", streamHead + strings.Repeat(comment, 40) + chunk("data: "+ours+"\n\n") + lastChunk, false},
		{"many small events", streamHead + strings.Repeat(small, 40) + chunk("data: "+ours+"\n\n") + lastChunk, false},
	} {
		for _, freed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, freed=%v", test.name, freed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newClient(t, "http://server")
					end := pipes(c, func(_ int64, r *bufio.Reader, far net.Conn) {
						readRequest(t, r)
						_, _ = io.WriteString(far, test.reply)
						_, _ = r.ReadByte()
					})
					for range largeSlots {
						c.large <- struct{}{}
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					var hold upstream.Hold
					req := request()
					req.Hold = &hold
					done := make(chan error, 1)
					go func() {
						_, err := c.Do(ctx, req)
						done <- err
					}()
					synctest.Wait()
					if waits := len(done) == 0; waits != test.waits {
						t.Errorf("waits for a slot: %v, want %v", waits, test.waits)
					}
					if freed {
						<-c.large
					}
					err := <-done
					if test.waits && !freed {
						want(t, err, upstream.NoResponse, upstream.Deadline, 0)
					} else if err != nil {
						t.Fatal(err)
					}
					if freed && test.waits && len(c.large) != largeSlots {
						t.Errorf("%d slots are taken while the reply is held, want %d", len(c.large), largeSlots)
					}
					hold.Release()
					taken := largeSlots
					if freed {
						taken--
					}
					if len(c.large) != taken {
						t.Errorf("%d slots are taken at the end, want %d", len(c.large), taken)
					}
					end()
				})
			})
		}
	}
}
