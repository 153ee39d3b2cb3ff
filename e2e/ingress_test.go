package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An ingress is nginx in front of servers, as Debian packages it.
type ingress struct {
	URL    string // of the MCP endpoint behind it
	config string // its file
	text   func(gateways []string) string
	cmd    *exec.Cmd
	exited chan struct{}
}

// only has it ask no other gateways than these from now on. What it has asked before is still answered.
func (in *ingress) only(t *testing.T, gateways ...string) {
	t.Helper()
	if err := os.WriteFile(in.config, []byte(in.text(gateways)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := in.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// newIngress starts nginx with more settings of its one location. It passes on the Host that clients ask for, which a gateway on
// loopback checks, and ends with the test.
// Without nginx the test is skipped, but not in CI.
func newIngress(t *testing.T, location string, gateways ...string) *ingress {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		if _, err = os.Stat("/usr/sbin/nginx"); err == nil {
			program = "/usr/sbin/nginx"
		} else if os.Getenv("CI") != "" {
			t.Fatal("there is no nginx on this machine, and CI is set: install Debian's nginx-light")
		} else {
			t.Skip("there is no nginx on this machine: install it to test behind an ingress")
		}
	}
	for range 10 {
		if in := tryIngress(t, program, location, gateways); in != nil {
			return in
		}
	}
	t.Fatal("nginx found no free port")
	return nil
}

// tryIngress is nil where somebody else has taken the port meanwhile.
func tryIngress(t *testing.T, program, location string, gateways []string) *ingress {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	dir := t.TempDir()
	text := func(gateways []string) string {
		user := ""
		if os.Geteuid() == 0 {
			user = "user root; " // whose folder it works in
		}
		return user + fmt.Sprintf(`daemon off; master_process on; pid %[1]s/pid; error_log stderr warn;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
  upstream gateways { server %[2]s; }
  server { listen %[3]s; location / { proxy_http_version 1.1; proxy_set_header Host $host; proxy_pass http://gateways; %[4]s } }
}
`, dir, strings.Join(gateways, "; server "), address, location)
	}
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, []byte(text(gateways)), 0o600); err != nil {
		t.Fatal(err)
	}
	in := &ingress{URL: "http://" + address + "/mcp", config: config, text: text, cmd: exec.Command(program, "-p", dir, "-c", config), exited: make(chan struct{})}
	out := newTranscript()
	in.cmd.Env = append(os.Environ(), runEnv+"="+run.id)
	in.cmd.Stdout, in.cmd.Stderr = out, out
	if err := in.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(in.exited)
		_ = in.cmd.Wait() // it ends by a signal
	}()
	end := func() {
		_ = in.cmd.Process.Signal(os.Interrupt)
		<-in.exited
	}
	if !eventually(patience, func() bool {
		select {
		case <-in.exited:
			return true
		default:
		}
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}) {
		end()
		t.Fatalf("nginx never listened:\n%s", out)
	}
	select {
	case <-in.exited:
		if strings.Contains(out.String(), "Address already in use") {
			return nil
		}
		t.Fatalf("nginx ended:\n%s", out)
	default:
	}
	t.Cleanup(end)
	return in
}

// host is the address of a gateway for an ingress.
func (g *gateway) host() string {
	return strings.TrimSuffix(strings.TrimPrefix(g.URL, "http://"), "/mcp")
}

// TestASilentCallOutlivesTheIngress has nginx cut what says nothing for three seconds, and a call that is silent for longer.
func TestASilentCallOutlivesTheIngress(t *testing.T) {
	for name, client := range map[string]func(t *testing.T, url string) (http.Header, []byte){
		"modern": func(*testing.T, string) (http.Header, []byte) {
			return modernHeader("tools/call", "web__slow"), modernRequest(`1`, "tools/call", `"name":"web__slow"`)
		},
		"legacy": func(t *testing.T, url string) (http.Header, []byte) {
			c := handshake(t, url, "2025-11-25")
			return legacyHeader(c.revision, c.session), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"web__slow"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := newCannedHTTP(t)
			g := serve(t, "stream_after: 1s\nkeepalive: 1s\nupstreams:\n  web: {url: "+quoted(web.URL)+"}\n")
			in := newIngress(t, "proxy_read_timeout 3s;", g.host())
			header, body := client(t, in.URL)
			resp, err := direct.Do(request(t, in.URL, header, body))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if media := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || media != "text/event-stream" {
				t.Fatalf("%d %s, want a stream", resp.StatusCode, media)
			}
			// Ten comments a second apart are three times what the ingress takes of silence.
			lines := bufio.NewReader(resp.Body)
			for comments := 0; comments < 10; {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatalf("after %d comments: %v", comments, err)
				}
				if strings.HasPrefix(line, ":") {
					comments++
				}
			}
			web.release()
			rest, err := io.ReadAll(lines)
			if err != nil || !strings.Contains(string(rest), "slow but sure") {
				t.Errorf("the answer is %q: %v", rest, err)
			}
		})
	}
}

func request(t *testing.T, url string, header http.Header, body []byte) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	return req
}

// TestADisconnectBehindTheIngress ends the call at the server.
func TestADisconnectBehindTheIngress(t *testing.T) {
	t.Parallel()
	web := newCannedHTTP(t)
	g := serve(t, "upstreams:\n  web: {url: "+quoted(web.URL)+"}\n")
	in := newIngress(t, "", g.host())
	req := request(t, in.URL, modernHeader("tools/call", "web__slow"), modernRequest(`1`, "tools/call", `"name":"web__slow"`))
	conn, err := net.Dial("tcp", req.URL.Host)
	if err != nil {
		t.Fatal(err)
	}
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	select {
	case <-web.entered:
	case <-time.After(patience):
		t.Fatal("the call never arrived")
	}
	conn.Close()
	select {
	case <-web.left:
	case <-time.After(patience):
		t.Error("the server never heard of it")
	}
}
