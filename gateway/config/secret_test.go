package config

import (
	"reflect"
	"testing"

	"mcp-gateway/redact"
)

// What may hold a secret has a type that masks it: a plain string is allowed in the places named here only.
func TestPlacesThatHoldSecrets(t *testing.T) {
	plain := map[string]bool{
		"Config.Hash": true, "Reading.Files": true, "Config.LogLevel": true, "Config.Admin": true,
		"Config.Listen": true, "Config.Path": true, "Config.Hosts": true, "Config.Origins": true, "Config.StateDir": true,
		"Upstream.ID": true, "Upstream.Prefix": true, "Upstream.Engine": true, "Upstream.Cwd": true, "Upstream.Revision": true,
		"EnvVar.Name": true, "Header.Name": true, "Tools.Allow": true, "Tools.Deny": true, "Known.Name": true,
		"ForwardHeader.Name": true, "ToolTimeout.Pattern": true,
		"Credential.BearerFile": true, "Credential.Query": true, "OAuth2.ClientID": true, "OAuth2.Scopes": true, "OAuth2.Resource": true,
	}
	secret := reflect.TypeFor[redact.Secret]()
	seen, secrets := map[reflect.Type]bool{}, 0
	var walk func(t reflect.Type, at string)
	walk = func(typ reflect.Type, at string) {
		switch typ.Kind() {
		case reflect.String:
			if !plain[at] {
				t.Errorf("%s is a plain string: make it a redact.Secret, or name it here", at)
			}
		case reflect.Slice, reflect.Pointer, reflect.Map:
			walk(typ.Elem(), at)
		case reflect.Struct:
			if typ == secret {
				secrets++
				return
			}
			if seen[typ] || typ.PkgPath() == "mcp-gateway/auth" {
				return
			}
			seen[typ] = true
			for field := range typ.Fields() {
				walk(field.Type, typ.Name()+"."+field.Name)
			}
		}
	}
	walk(reflect.TypeFor[Config](), "")
	if secrets < 8 {
		t.Errorf("the walk met %d secrets, it does not reach them all", secrets)
	}
}

func TestPointer(t *testing.T) {
	for text, want := range map[string]bool{
		"/etc/key": true, "./key": true, "~/key": true, "https://h.example/x": true,
		"https://u:p@h.example/x": false, "key": false, "/wJalrXUtnFEMI0K7MDENG": false, "": false,
	} {
		if got := pointer(text); got != want {
			t.Errorf("pointer(%q) = %t", text, got)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"upstreams", "listen", "path", "shutdown_delay", "shutdown_timeout"}
	for name, want := range map[string]string{
		"upstream": "upstreams", "Listen": "listen", "shutdownDelay": "shutdown_delay", "shutdown-timeout": "shutdown_timeout",
		"pathx": "path", "pxyh": "", "zebra": "", "mcpServers": "upstreams", "lsiten": "listen",
	} {
		if got := nearest(name, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
