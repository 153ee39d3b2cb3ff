package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestServeWithoutAConfiguration is the first command of the README.
func TestServeWithoutAConfiguration(t *testing.T) {
	g := serve(t, "")
	for _, script := range []string{"client-modern.mjs", "client-legacy.mjs"} {
		t.Run(script, func(t *testing.T) {
			var echo string
			for _, tool := range talk(t, script, nil, nil, g.URL).Tools {
				if name := tool["name"].(string); strings.HasSuffix(name, "echo") {
					echo = name
				}
			}
			if echo == "" {
				t.Fatal("no tool of the quickstart is an echo")
			}
			schema := talk(t, script, nil, nil, g.URL).tool(echo)["inputSchema"].(map[string]any)
			var argument string
			for _, name := range schema["required"].([]any) {
				argument = name.(string)
			}
			// As a person tries it, with nothing but curl.
			r := post(t, g.URL, http.Header{"Content-Type": {"application/json"}},
				legacyRequest(`1`, "tools/call", fmt.Sprintf(`"name":%q,"arguments":{%q:"hello curl"}`, echo, argument)))
			if r.status != http.StatusOK || r.frame || !strings.Contains(string(r.result), "hello curl") {
				t.Errorf("a plain POST: %v", r)
			}
			a := talk(t, script, []toolCall{{Name: echo, Arguments: map[string]any{argument: "hello there"}}}, nil, g.URL)
			if text, _ := json.Marshal(a.Results); !strings.Contains(string(text), "hello there") || a.Results[0].Error != nil {
				t.Errorf("%s gives %s", echo, text)
			}
		})
	}
	output := g.out.String()
	if !strings.Contains(output, g.URL) || !strings.Contains(output, "mcpServers") {
		t.Errorf("it prints no client configuration to paste:\n%s", output)
	}
}

func (a account) tool(name string) map[string]any {
	i := slices.IndexFunc(a.Tools, func(tool map[string]any) bool { return tool["name"] == name })
	if i < 0 {
		return nil
	}
	return a.Tools[i]
}

func TestCheckNamesEveryMistake(t *testing.T) {
	path := writeConfig(t, strings.Join([]string{
		`listen: 127.0.0.1:8080`,
		`pathh: /mcp`, // line 2: no such member
		`upstreams:`,
		`  files:`,
		`    command: npx`,
		`    timeout: 30`, // line 6: no unit
		`  web:`,
		`    url: ftp://example.com/mcp`, // line 8: no such scheme
		`  old:`,
		`    url: http://127.0.0.1:9/mcp`,
		`    protocol: ancient`, // line 11: no such protocol
		`  named:`,
		`    command: npx`,
		`    args: ["${env:E2E_NO_SUCH_NAME}"]`, // line 14: not in the environment
	}, "\n")+"\n")
	got := command(t, nil, "check", "-c", path)
	if got.code != 1 {
		t.Errorf("the exit code is %d, want 1", got.code)
	}
	lines := map[string]bool{}
	for _, match := range regexp.MustCompile(regexp.QuoteMeta(filepath.Base(path))+`:(\d+):\d+: \S+: `).FindAllStringSubmatch(got.output, -1) {
		lines[match[1]] = true
	}
	if want := map[string]bool{"2": true, "6": true, "8": true, "11": true, "14": true}; !maps.Equal(lines, want) {
		t.Errorf("the lines named are %v, want %v:\n%s", lines, want, got.output)
	}
	for _, name := range []string{"pathh", "upstreams.files.timeout", "upstreams.web.url", "upstreams.old.protocol", "E2E_NO_SUCH_NAME"} {
		if !strings.Contains(got.output, name) {
			t.Errorf("%s is not named:\n%s", name, got.output)
		}
	}
	if strings.Contains(got.output, "panic") || strings.Contains(got.output, "Usage") {
		t.Errorf("it says more than that:\n%s", got.output)
	}

	// The same mistakes keep it from serving, before anything is started.
	if got := command(t, nil, "serve", "-c", path); got.code != 1 || !strings.Contains(got.output, "E2E_NO_SUCH_NAME") {
		t.Errorf("serve ends with %d:\n%s", got.code, got.output)
	}
}

func TestCheckTakesTheExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(moduleRoot, "configs", "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("the examples are %q: %v", files, err)
	}
	for _, file := range files {
		if got := command(t, nil, "check", "-c", filepath.Join("configs", filepath.Base(file))); got.code != 0 {
			t.Errorf("%s: the exit code is %d:\n%s", file, got.code, got.output)
		}
	}
}

func TestABearerOverCleartextIsWarnedOfAndNeverShown(t *testing.T) {
	const bearer = "s3cr3t-bearer-0f-the-test/+=%"
	for name, config := range map[string]string{
		"literal":     "upstreams:\n  remote:\n    url: http://mcp.example.com/mcp\n    credential:\n      bearer: " + quoted(bearer) + "\n",
		"environment": "upstreams:\n  remote:\n    url: http://mcp.example.com/mcp\n    credential:\n      bearer: ${env:E2E_BEARER}\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := command(t, []string{"E2E_BEARER=" + bearer}, "check", "-c", writeConfig(t, config))
			if got.code != 0 || !strings.Contains(got.output, "upstreams.remote") || !strings.Contains(got.output, "bearer") {
				t.Errorf("the exit code is %d, and it does not warn of the bearer:\n%s", got.code, got.output)
			}
			if strings.Contains(got.output, "s3cr3t") {
				t.Errorf("it shows the bearer:\n%s", got.output)
			}
		})
	}
	local := command(t, []string{"E2E_BEARER=" + bearer}, "check", "-c",
		writeConfig(t, "upstreams:\n  local:\n    url: http://localhost:9/mcp\n    credential:\n      bearer: ${env:E2E_BEARER}\n"))
	if local.code != 0 || strings.Contains(local.output, "bearer") {
		t.Errorf("on loopback it warns with %d:\n%s", local.code, local.output)
	}
}

func TestKeysLetTheirCallersIn(t *testing.T) {
	made := command(t, nil, "key", "alice")
	key := regexp.MustCompile(`mcpgw_[\w-]+`).FindString(made.output)
	sum := regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(made.output)
	if made.code != 0 || key == "" || sum == "" {
		t.Fatalf("key ends with %d:\n%s", made.code, made.output)
	}
	web := newCannedHTTP(t)
	g := serve(t, fmt.Sprintf("callers:\n  keys:\n    alice: %q\nupstreams:\n  web:\n    url: %s\n", sum, web.URL))
	ask := func(authorization ...string) reply {
		h := modernHeader("tools/call", "web__odd")
		for _, value := range authorization {
			h.Add("Authorization", value)
		}
		return post(t, g.URL, h, modernRequest(`1`, "tools/call", `"name":"web__odd"`))
	}
	for _, authorization := range [][]string{nil, {"Bearer " + key + "x"}, {"Bearer " + key[:len(key)-1]}, {key}, {"Basic " + key}, {"Bearer"}, {"Bearer x", "Bearer " + key}} {
		if r := ask(authorization...); r.status != http.StatusUnauthorized || r.header.Get("WWW-Authenticate") == "" || r.result != nil {
			t.Errorf("with %q: %v", authorization, r)
		}
	}
	if calls := web.calls(); len(calls) > 0 {
		t.Error("a call of nobody was routed")
	}
	if r := ask("Bearer " + key); r.status != http.StatusOK || r.result == nil {
		t.Errorf("with the key: %v", r)
	}
	for _, arrived := range web.calls() {
		if got := arrived.header.Get("Authorization"); got != "" {
			t.Errorf("the caller's key went on to the upstream: %s", got)
		}
	}
	if strings.Contains(g.out.String(), key) {
		t.Error("the key stands in the log")
	}
}

func TestVersion(t *testing.T) {
	if got := command(t, nil, "version"); got.code != 0 || strings.TrimSpace(got.output) == "" {
		t.Errorf("version ends with %d: %q", got.code, got.output)
	}
}
