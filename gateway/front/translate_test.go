package front

import (
	"strings"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

func TestLegacyResult(t *testing.T) {
	const (
		audio = `{"type":"audio","data":"AAAA","mimeType":"audio/wav"}`
		link  = `{"type":"resource_link", "uri":"x:y","name":"n","title":"T","description":"d","annotations":{"audience":["user"]}}`
		text  = `{"type":"text","text":"t"}`
		other = `{"type":"hologram"}`
		full  = `{"content":[` + text + `,` + audio + ` , ` + link + `,` + other + `]}`

		audioText = `{"type":"text","text":"[audio audio/wav: left out, since this client speaks a revision of MCP without audio]"}`
		linkText  = `{"type":"text","text":"[resource T] x:y: d","annotations":{"audience":["user"]}}`
	)
	tests := []struct {
		name, method, revision, from string
		in, want                     string
	}{
		{"blocks at 2024-11-05", mcp.MethodToolsCall, mcp.Revision20241105, mcp.Revision20251125, full,
			`{"content":[` + text + `,` + audioText + `,` + linkText + `,` + other + `]}`},
		{"blocks at 2025-03-26", mcp.MethodToolsCall, mcp.Revision20250326, mcp.Modern, full,
			`{"content":[` + text + `,` + audio + `,` + linkText + `,` + other + `]}`},
		{"blocks at 2025-06-18", mcp.MethodToolsCall, mcp.Revision20250618, mcp.Modern, full, full},
		{"nothing to translate", mcp.MethodToolsCall, mcp.Revision20241105, mcp.Modern, `{ "content":[ ` + text + ` ]}`, `{ "content":[ ` + text + ` ]}`},
		{"content that is none", mcp.MethodToolsCall, mcp.Revision20241105, mcp.Modern, `{"content":7}`, `{"content":7}`},
		{"modern members", mcp.MethodToolsCall, mcp.Revision20251125, mcp.Modern,
			`{"resultType":"complete","a":1,"ttlMs":0,"cacheScope":"private","structuredContent":{"x":[1.0]}}`, `{"a":1,"structuredContent":{"x":[1.0]}}`},
		{"a legacy server's own members of those names", mcp.MethodToolsCall, mcp.Revision20251125, mcp.Revision20251125,
			`{"resultType":"mine","ttlMs":1,"cacheScope":2}`, `{"resultType":"mine","ttlMs":1,"cacheScope":2}`},
		{"structured array", mcp.MethodToolsCall, mcp.Revision20250618, mcp.Modern, `{"structuredContent":[],"content":[]}`, `{"content":[]}`},
		{"structured null", mcp.MethodToolsCall, mcp.Revision20251125, mcp.Modern, `{"structuredContent":null}`, `{}`},
		{"structured null of a legacy server", mcp.MethodToolsCall, mcp.Revision20251125, mcp.Revision20251125, `{"structuredContent":null}`, `{"structuredContent":null}`},
		{"structured null where it may be ignored", mcp.MethodToolsCall, mcp.Revision20250326, mcp.Modern, `{"structuredContent":null}`, `{"structuredContent":null}`},
		{"output schemas", mcp.MethodToolsList, mcp.Revision20250618, mcp.Modern,
			`{"tools":[{"name":"a","outputSchema":true},{"name":"b","outputSchema":{"type":"object","x":1.0}}, {"name":"c","outputSchema":{"type":["object"]},"z":null}]}`,
			`{"tools":[{"name":"a"},{"name":"b","outputSchema":{"type":"object","x":1.0}},{"name":"c","z":null}]}`},
		{"output schema, escaped", mcp.MethodToolsList, mcp.Revision20251125, mcp.Modern, `{"tools":[{"\u006futputSchema":{}}]}`, `{"tools":[{}]}`},
		{"output schemas where they may be ignored", mcp.MethodToolsList, mcp.Revision20250326, mcp.Modern, `{"tools":[{"outputSchema":true}]}`, `{"tools":[{"outputSchema":true}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := string(appendLegacyResult(nil, []byte("1"), tt.method, tt.revision, &Reply{Result: object(tt.in), Revision: tt.from}))
			if want := `{"jsonrpc":"2.0","id":1,"result":` + tt.want + `}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestModernResult(t *testing.T) {
	tests := []struct{ in, kind, want string }{
		{`{}`, "", `{"resultType":"complete"}`},
		{`{ "a" : 1 }`, "complete", `{ "a" : 1,"resultType":"complete" }`},
		{`{"a":1}`, "input_required", `{"a":1,"resultType":"input_required"}`},
		{`{"resultType":"complete", "a":1}`, "complete", `{"resultType":"complete", "a":1}`},
		{`{"\u0072esultType":"x"}`, "complete", `{"\u0072esultType":"x"}`},
	}
	for _, tt := range tests {
		got := string(appendModernResult(nil, []byte(`"i"`), &Reply{Result: object(tt.in), Type: tt.kind}))
		if want := `{"jsonrpc":"2.0","id":"i","result":` + tt.want + `}`; got != want {
			t.Errorf("%s becomes\n%s, want\n%s", tt.in, got, want)
		}
	}
}

func TestMissingCapability(t *testing.T) {
	tests := []struct {
		declared, data string
		passes         bool
	}{
		{`{}`, `{"requiredCapabilities":{"sampling":{}}}`, true},
		{`{"sampling":{}}`, `{"requiredCapabilities":{"sampling":{"tools":{}}}}`, true},
		{`{"elicitation":{}}`, `{"requiredCapabilities":{"elicitation":{"url":{}}}}`, true},
		{`{"elicitation":{}}`, `{"requiredCapabilities":{"elicitation":{"form":{}}}}`, false},
		{`{"elicitation":{"url":{}}}`, `{"requiredCapabilities":{"elicitation":{"form":{}}}}`, true},
		{`{"sampling":{"tools":{}}}`, `{"requiredCapabilities":{"sampling":{}}}`, false},
		{`{"roots":{}}`, `{"requiredCapabilities":{"roots":{},"sampling":{}}}`, true},
		{`{}`, `{"requiredCapabilities":["sampling"]}`, false},
		{`{}`, `{"requiredCapabilities":{"form":{}}}`, true},
		{`{}`, `7`, false},
	}
	for _, tt := range tests {
		m, err := wire.ParseReply([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"m","data":` + tt.data + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		got := modernError(m.Error, object(tt.declared))
		if passes := got.Code == mcp.CodeMissingCapability; passes != tt.passes {
			t.Errorf("declared %s, missed %s: passed on %v, want %v", tt.declared, tt.data, passes, tt.passes)
		}
		if !tt.passes && (got.Code != wire.CodeInternal || !strings.Contains(string(got.Data), "-32021")) {
			t.Errorf("missed %s: code %d, data %s, want the original in an internal error", tt.data, got.Code, got.Data)
		}
	}
}
