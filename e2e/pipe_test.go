package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
)

// A pipeClient is a raw client of a legacy server over stdio, without a gateway.
type pipeClient struct {
	in  io.Writer
	out *bufio.Reader
}

// openPipe starts the server and shakes hands. It ends with the test.
func openPipe(t *testing.T, command []string) pipeClient {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), runEnv+"="+run.id)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		// With a timer of its own running, server-everything outlives its input.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	c := pipeClient{in, bufio.NewReader(out)}
	c.ask(t, `0`, "initialize", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}`)
	c.write(t, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	// server-everything adds a tool once it is initialized; the answer to a ping comes after that.
	c.ask(t, `0`, "ping", "")
	return c
}

func (c pipeClient) write(t *testing.T, message []byte) {
	t.Helper()
	if _, err := c.in.Write(append(message, '\n')); err != nil {
		t.Fatal(err)
	}
}

// ask sends a request and reads to the answer; it makes one request at a time.
func (c pipeClient) ask(t *testing.T, id, method, members string) reply {
	t.Helper()
	c.write(t, legacyRequest(id, method, members))
	for {
		line, err := c.out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%s over stdio: %v", method, err)
		}
		r := reply{body: line, frame: true}
		r.parse()
		var message struct{ Method string }
		if err := json.Unmarshal(line, &message); err == nil && message.Method == "" && string(r.id) == id {
			return r
		}
	}
}
