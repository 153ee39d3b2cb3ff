package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The canned servers answer with texts written by hand. A gateway that decodes and encodes what it passes on changes
// them: member order, numbers that no float64 holds, escapes that need not be, white space, repeated odd names.

// A cannedTool is one tool of both canned servers.
type cannedTool struct {
	name       string
	definition string // %s is its name
	result     string // %s is what only a modern server adds
	failure    string // the JSON-RPC error instead of a result
}

var cannedTools = []cannedTool{
	{
		name: "odd",
		definition: `{"x-before":12345678901234567890,"name":"%s","title":"cut \ud83d","description":"a\/b \u00e9 é \u2028 <&>",` +
			`"inputSchema":{"type":"object","$defs":{"p":{"type":"number","const":1.0}},"properties":{"p":{"$ref":"#/$defs/p"},` +
			`"P":{"default":1E400},"":{"const":-0.0}},"x-unknown":[{},[],null]},` +
			`"outputSchema":{"type":"object","properties":{"n":{}}},"execution":{"taskSupport":"optional","later":[1.0,1e2]},` +
			`"icons":[{"src":"data:image/svg+xml;base64,PHN2Zy8-_w","sizes":["any"],"later":null}],` +
			`"annotations":{"readOnlyHint":true,"later":{"b":1,"a":2}},"_meta":{"example.com/deep":{"n":0.10}},"zz":null}`,
		result: `{%s"content":[{"type":"text","text":"cut \ud83d","later":{"k":20000000000000000001}},` +
			`{"type":"image","data":"-_-_","mimeType":"image/png"}],` +
			`"structuredContent":{"n":12345678901234567890,"f":1.0,"z":{"b":1,"a":[null]}},` +
			`"_meta":{"example.com/k":{"v":1.10},"plain":"é\u00e9"},"isError":false,"unknown":{"later":[1,2.0,3e0]},"also":null}`,
	},
	{
		name:       "spaced",
		definition: "{ \"description\" : \"white  space\",\n\t\"inputSchema\" : { \"type\" : \"object\" } , \"name\" : \"%s\" }",
		result:     "{ %s\"content\" : [ ] ,\n\t\"structuredContent\" : { \"b\" : 1 , \"a\" : \"two  spaces\" } }",
	},
	{
		name:       "null",
		definition: `{"name":"%s","inputSchema":{"type":"object"}}`,
		result:     `{%s"content":[{"type":"text","text":"null"}],"structuredContent":null}`,
	},
	{
		name:       "error",
		definition: `{"name":"%s","inputSchema":{"type":"object"}}`,
		failure:    `{"data":{"n":12345678901234567890,"s":"\ud83d","z":null},"message":"no\u0074 today","code":-31999,"later":1.0}`,
	},
	{
		name:       "last.of-them",
		definition: `{"name":"%s","inputSchema":{"type":"object","properties":{}}}`,
		result:     `{%s"content":[{"type":"text","text":"last"}]}`,
	},
	{
		name:       "slow",
		definition: `{"name":"%s","inputSchema":{"type":"object"}}`,
		result:     `{%s"content":[{"type":"text","text":"slow but sure"}]}`,
	},
}

// pages are the tools by page. The second one's cursor is the empty string, which is a cursor like any other.
func pages() [][]cannedTool {
	middle := len(cannedTools) / 2
	return [][]cannedTool{cannedTools[:middle], cannedTools[middle:]}
}

func cannedNames() []string {
	var names []string
	for _, tool := range cannedTools {
		names = append(names, tool.name)
	}
	return names
}

// A cannedRequest is what a canned server reads of a message to choose its answer.
type cannedRequest struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name            string
		Cursor          *string
		Arguments       json.RawMessage
		ProtocolVersion string
	}
}

// cannedList is the page of tools/list that a request asks for.
func cannedList(req cannedRequest, modern string) string {
	page, next := pages()[0], `,"nextCursor":""`
	if req.Params.Cursor != nil {
		page, next = pages()[1], ""
	}
	list := ""
	for i, tool := range page {
		if i > 0 {
			list += ","
		}
		list += fmt.Sprintf(tool.definition, tool.name)
	}
	return fmt.Sprintf(`{%s"tools":[%s]%s}`, modern, list, next)
}

// cannedCall is the member of the response that answers tools/call.
func cannedCall(req cannedRequest, modern string) string {
	i := slices.IndexFunc(cannedTools, func(tool cannedTool) bool { return tool.name == req.Params.Name })
	if i < 0 {
		return `"error":{"code":-32602,"message":"unknown tool"}`
	}
	if tool := cannedTools[i]; tool.failure == "" {
		return `"result":` + fmt.Sprintf(tool.result, modern)
	}
	return `"error":` + cannedTools[i].failure
}
