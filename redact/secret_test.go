package redact_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"mcp-gateway/redact"
)

const planted = "planted-secret-1"

// A Secret shows itself nowhere, at any depth, in exported and unexported fields, behind pointers and in maps.
func TestSecretShowsItselfNowhere(t *testing.T) {
	s := redact.NewSecret(planted)
	type holder struct {
		Exported redact.Secret
		hidden   redact.Secret
		deep     *struct{ s redact.Secret }
	}
	h := holder{s, s, &struct{ s redact.Secret }{s}}
	values := []any{s, &s, h, &h, []redact.Secret{s}, map[string]redact.Secret{"a": s}, map[redact.Secret]int{s: 1}, fmt.Errorf("x %w %v", errWith{s}, s)}
	var out bytes.Buffer
	loggers := []*slog.Logger{
		slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil)),
	}
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%T", "%w", "%10.3s", "%c", "%U", "%e"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		fmt.Fprintln(&out, v)
		if text, err := json.Marshal(v); err == nil {
			out.Write(text)
		}
		for _, log := range loggers {
			log.Info("m", "v", v)
			log.With("v", v).WithGroup("g").Info("m", slog.Group("g", "v", v))
		}
	}
	text, err := yaml.Dump(map[string]any{"a": s, "b": []redact.Secret{s}})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(text)
	for _, form := range []string{planted, fmt.Sprintf("%x", planted), fmt.Sprintf("%X", planted), planted[:8]} {
		if strings.Contains(out.String(), form) {
			t.Errorf("%q is in\n%s", form, out.String())
		}
	}
	if n := strings.Count(out.String(), redact.Mask); n < 60 {
		t.Errorf("%d masks", n)
	}
}

type errWith struct{ s redact.Secret }

func (e errWith) Error() string { return "with " + e.s.String() }

func TestSecret(t *testing.T) {
	s := redact.NewSecret(planted)
	if s.Reveal() != planted || s.IsZero() {
		t.Error("a Secret lost what it holds")
	}
	for _, zero := range []redact.Secret{{}, redact.NewSecret("")} {
		if zero.Reveal() != "" || !zero.IsZero() || fmt.Sprint(zero) != "" {
			t.Error("the zero Secret holds something")
		}
	}
	if text, _ := json.Marshal(map[string]any{"a": s}); string(text) != `{"a":"[redacted]"}` {
		t.Errorf("JSON %s", text)
	}
	if text, _ := yaml.Dump(map[string]any{"a": s}); string(text) != "a: '[redacted]'\n" {
		t.Errorf("YAML %s", text)
	}
}

func TestCredentialName(t *testing.T) {
	for name, want := range map[string]bool{
		"GITHUB_TOKEN": true, "API_KEYS": true, "PGPASSWORD": true, "TOKEN2": true, "TOKENS2": true, "x-api-key": true, "Authorization": true,
		"apiKey": true, "accessToken": true, "Cookie": true, "PASS": true, "db.password": true, "AUTH_HEADER": true,
		"PWD": false, "OLDPWD": false, "DB_PWD": true, "KEY_FILE": false, "TOKEN_URL": false, "AUTH_TYPE": false, "keyPath": false,
		"DB_PASSWD": true, "PGPASSWD": true, "PASSPHRASE": true, "sshPassphrase": true, "X_PASSCODE": true, "PAT": true, "GITHUB_PAT": true, "JWT": true,
		"my-jwts": true, "BEARER": true, "MCP_BEARER2": true, "SIGNING_PRIVATE": true, "PRIVATE_PEM": true,
		"FORPAT": false, "SPAT_LEVEL": false, "PATTERN": false, "PRIVATELY": false, "PAT_FILE": false, "FORBEARER": false,
		"PATH": false, "HOME": false, "": false, "_": false, "KEYBOARD": false, "SSH_AUTH_SOCK": false, "API_KEY_ID": false, "X-Team": false,
	} {
		if got := redact.CredentialName(name); got != want {
			t.Errorf("CredentialName(%q) = %t", name, got)
		}
	}
}

func TestURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://mcp.example.com/mcp":                        "https://mcp.example.com/mcp",
		"https://u:planted@h.example:8443/a/b?x=1&y#planted": "https://h.example:8443/a/b?x=[redacted]&y",
		"wss://h.example/s/planted0planted0planted/x":        "wss://h.example/s/[redacted]/x",
		"https://h.example/?planted0planted0planted=1&a=":    "https://h.example/?[redacted]=[redacted]&a=[redacted]",
		"http://[::1]:80":                     "http://[::1]:80",
		"http://h.example/%70lanted0planted0": "http://h.example/[redacted]",
		"http://h.example/a%2Fb":              "http://h.example/a%2Fb",
		"http://h.example/%zz?planted":        "[invalid url]",
		"planted":                             "[invalid url]",
		"mailto:planted@h.example":            "[invalid url]",
		"http:///planted":                     "[invalid url]",
		"http://h.example/\x1bplanted":        "[invalid url]",
		"":                                    "[invalid url]",
	} {
		if got := redact.URL(raw); got != want {
			t.Errorf("URL(%q) = %q, want %q", raw, got, want)
		}
	}
}
