package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// nginxConfig is plain: no log, connections to the backend kept, answers passed on as they come.
const nginxConfig = `daemon off;
worker_processes auto;
error_log stderr error;
pid %[1]s/pid;
%[4]s
events { worker_connections 4096; }
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	client_max_body_size 8m;
	client_body_buffer_size 1m;
	keepalive_requests 1000000000;
	tcp_nodelay on;
	upstream backend {
		server %[3]s;
		keepalive %[5]d;
		keepalive_requests 1000000000;
	}
	server {
		listen %[2]s;
		location / {
			proxy_pass http://backend;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering off;
		}
	}
}
`

var errNotInstalled = errors.New("it is not installed")

// startNginx starts nginx in front of a backend, with all that it writes below dir.
func startNginx(ctx context.Context, dir, backend string) (*process, error) {
	path, err := exec.LookPath("nginx")
	if err != nil {
		// Debian has it where only root's PATH leads.
		if path, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, errNotInstalled
		}
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	user := ""
	if os.Getuid() == 0 {
		user = "user root;" // the folder is root's
	}
	file := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(nginxConfig, dir, address, backend, user, upstreamConnections)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	// nginx does not say when it serves; the shell becomes nginx, so that its process is the one that was started.
	cmd := exec.Command("/bin/sh", "-c", `echo "ready $1"; exec "$0" -p "$2" -c "$3"`, path, address, dir, file)
	p, err := launch(ctx, "nginx", cmd, regexp.MustCompile(`^ready (\S+)$`))
	if err != nil {
		return nil, err
	}
	p.family = true
	if err := p.awaitPort(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// awaitPort waits until the process accepts connections.
func (p *process) awaitPort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.Dial("tcp", p.address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-p.exited:
			return p.problem("ended before it served", p.exit)
		case <-ctx.Done():
			return p.problem("accepts no connection", err)
		}
	}
}
