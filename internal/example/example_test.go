package example

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect runs the server over pipes with the SDK's client at the other end. When the test is over, the client's end of
// the server's input closes, and Run must return nil.
func connect(t *testing.T, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Run(context.Background(), in, out) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	session, err := client.Connect(context.Background(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v at the end of its input, want nil", err)
		}
	})
	return session
}

func call(t *testing.T, session *mcp.ClientSession, name, arguments string) *mcp.CallToolResult {
	t.Helper()
	result, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %s: %v", name, arguments, err)
	}
	return result
}

func words(result *mcp.CallToolResult) string {
	content, ok := result.Content[0].(*mcp.TextContent)
	if !ok || len(result.Content) != 1 {
		return "not one text"
	}
	return content.Text
}

func TestList(t *testing.T) {
	session := connect(t, nil)
	list, err := session.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	structured := map[string]bool{}
	for _, tool := range list.Tools {
		structured[tool.Name] = tool.OutputSchema != nil
		a := tool.Annotations
		if tool.Title == "" || tool.Description == "" || a == nil || !a.ReadOnlyHint || *a.DestructiveHint || *a.OpenWorldHint {
			t.Errorf("%s does not say that it is safe: title %q, description %q, %+v", tool.Name, tool.Title, tool.Description, a)
		}
	}
	want := map[string]bool{"add": true, "current_time": true, "echo": false, "wait": false}
	if diff := cmp.Diff(want, structured); diff != "" {
		t.Errorf("tools, and which have an output schema (-want +got):\n%s", diff)
	}
}

func TestCall(t *testing.T) {
	session := connect(t, nil)
	for _, tt := range []struct{ name, arguments, want string }{
		{"echo", `{"message":"hello,\n\u0000 \"you\" \ud83d\ude00"}`, "hello,\n\x00 \"you\" 😀"},
		{"echo", `{"message":""}`, ""},
		{"add", `{"a":1.5,"b":-3}`, `{"sum":-1.5}`},
		{"wait", `{"seconds":0}`, "Waited 0 seconds."},
	} {
		if result := call(t, session, tt.name, tt.arguments); result.IsError || words(result) != tt.want {
			t.Errorf("%s %s: %q, error %v; want %q", tt.name, tt.arguments, words(result), result.IsError, tt.want)
		}
	}
	sum := call(t, session, "add", `{"a":2,"b":40}`).StructuredContent
	if diff := cmp.Diff(any(map[string]any{"sum": 42.0}), sum); diff != "" {
		t.Errorf("structured content (-want +got):\n%s", diff)
	}
}

func TestCallRefuses(t *testing.T) {
	session := connect(t, nil)
	for _, tt := range []struct{ name, arguments string }{
		{"echo", `{}`}, {"echo", `{"message":1}`}, {"echo", `{"message":"a","more":1}`},
		{"add", `{"a":1}`}, {"add", `{"a":1e308,"b":1e308}`},
		{"current_time", `{"timezone":"Mars/Olympus"}`}, {"current_time", `{"timezone":"../../etc/passwd"}`},
		{"wait", `{"seconds":61}`}, {"wait", `{"seconds":-1}`}, {"wait", `{"seconds":1.5}`},
	} {
		if result := call(t, session, tt.name, tt.arguments); !result.IsError || words(result) == "" {
			t.Errorf("%s %s: %q, error %v; want an error in words", tt.name, tt.arguments, words(result), result.IsError)
		}
	}
}

// The bubble's clock begins at midnight UTC on Saturday, 2000-01-01.
func TestCurrentTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		session := connect(t, nil)
		for arguments, want := range map[string]map[string]any{
			`{}`:                            {"time": "2000-01-01T00:00:00Z", "timezone": "UTC", "weekday": "Saturday"},
			`{"timezone":"Asia/Tokyo"}`:     {"time": "2000-01-01T09:00:00+09:00", "timezone": "Asia/Tokyo", "weekday": "Saturday"},
			`{"timezone":"America/Denver"}`: {"time": "1999-12-31T17:00:00-07:00", "timezone": "America/Denver", "weekday": "Friday"},
		} {
			got := call(t, session, "current_time", arguments).StructuredContent
			if diff := cmp.Diff(any(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", arguments, diff)
			}
		}
	})
}

func TestWaitReportsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var progress []float64
		session := connect(t, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
				progress = append(progress, req.Params.Progress, req.Params.Total)
			},
		})
		start := time.Now()
		params := &mcp.CallToolParams{Name: "wait", Arguments: map[string]any{"seconds": 3}}
		params.SetProgressToken("token")
		result, err := session.CallTool(context.Background(), params)
		if err != nil || result.IsError || words(result) != "Waited 3 seconds." {
			t.Fatalf("%v, %v", result, err)
		}
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("waited %v by the bubble's clock, want 3s", waited)
		}
		if result := call(t, session, "wait", `{"seconds":2}`); result.IsError {
			t.Errorf("without a token for progress: %v", words(result))
		}
		synctest.Wait()
		if diff := cmp.Diff([]float64{1, 3, 2, 3, 3, 3}, progress); diff != "" {
			t.Errorf("progress and total of each notification (-want +got):\n%s", diff)
		}
	})
}

// Run returns only once no handler runs, so that a wait which ignored its cancel would take the minute.
func TestWaitIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		t.Cleanup(func() {
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("the server was busy for %v by the bubble's clock", took)
			}
		})
		session := connect(t, nil)
		ctx, cancel := context.WithTimeout(context.Background(), 2500*time.Millisecond)
		defer cancel()
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "wait", Arguments: map[string]any{"seconds": 60}})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	defer toServer.Close()
	defer fromServer.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Run(ctx, in, out); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
