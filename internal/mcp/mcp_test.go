package mcp

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"mcp-gateway/internal/wire"
)

func TestHeaderCodec(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "": "", "a b": "a b", " lead": "=?base64?IGxlYWQ=?=", "trail\t": "=?base64?dHJhaWwJ?=", "é": "=?base64?w6k=?=",
		"=?base64?x?=": "=?base64?PT9iYXNlNjQ/eD89?=", "line\nend": "=?base64?bGluZQplbmQ=?=", "=?BASE64?eA==?=": "=?BASE64?eA==?=",
	} {
		if got := EncodeHeader(in); got != want {
			t.Errorf("%q is sent as %q, want %q", in, got, want)
		}
		if got, ok := DecodeHeader(want); !ok || got != in {
			t.Errorf("%q reads as %q, %v", want, got, ok)
		}
	}
	if got, ok := DecodeHeader("  padded \t"); !ok || got != "padded" {
		t.Errorf("white space around a value counts: %q", got)
	}
	for _, bad := range []string{"=?base64?eA=?=", "=?base64?e A==?=", "=?base64?____?=", "\xc3\xa9", "a\x01b", "\x7f", "=?base64?eB==?="} {
		if got, ok := DecodeHeader(bad); ok {
			t.Errorf("%q reads as %q, want a refusal", bad, got)
		}
	}
}

func TestHeaderParams(t *testing.T) {
	got, err := HeaderParams([]byte(`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Region"},"x-mcp-header":{"type":"string"},
		"b":{"type":"object","properties":{"c":{"type":"integer","x-mcp-header":"count"}},"default":{"x-mcp-header":1}}}}`))
	want := []HeaderParam{{Header: "Mcp-Param-Region", Path: []string{"a"}}, {Header: "Mcp-Param-Count", Path: []string{"b", "c"}, Integer: true}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for name, schema := range map[string]string{
		"empty name":   `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`,
		"no token":     `{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}`,
		"not a string": `{"properties":{"a":{"type":"string","x-mcp-header":1}}}`,
		"number":       `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`,
		"no type":      `{"properties":{"a":{"x-mcp-header":"A"}}}`,
		"twice":        `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`,
		"items":        `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`,
		"anyOf":        `{"properties":{"a":{"anyOf":[{"type":"string","x-mcp-header":"A"}]}}}`,
		"$defs":        `{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}`,
		"root":         `{"type":"object","x-mcp-header":"A"}`,
		"escaped":      `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-heade\u0072":"A"}}}}`,
	} {
		if _, err := HeaderParams([]byte(schema)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	many := `{"properties":{`
	for i := range maxHeaderParams + 1 {
		many += fmt.Sprintf(`"p%d":{"type":"string","x-mcp-header":"H%d"},`, i, i)
	}
	if _, err := HeaderParams([]byte(many + `"last":true}}`)); err == nil {
		t.Error("any number of header params is taken")
	}
	for _, fine := range []string{`{}`, `true`, `{"properties":{"x-mcp-header":{"type":"array"}}}`, `{"properties":{"a":{"enum":[{"x-mcp-header":"A"}]}}}`} {
		if params, err := HeaderParams([]byte(fine)); err != nil || params != nil {
			t.Errorf("%s: %v, %v", fine, params, err)
		}
	}
}

func TestWithoutHeaderKeyword(t *testing.T) {
	for in, want := range map[string]string{
		`{"type": "object"}`: `{"type": "object"}`,
		`{"properties":{"a":{"type":"array","items":{"x-mcp-header":"A","n":1.0}},"x-mcp-header":{"x-mcp-header":"B"}},"default":{"x-mcp-header":1}}`: `{"properties":{"a":{"type":"array","items":{"n":1.0}},"x-mcp-header":{}},"default":{"x-mcp-header":1}}`,
		`{"properties":{"a":{"x-mcp-header":1},"b":2},"properties":{"c":{"x-mcp-header":1}}}`:                                                         `{"properties":{"a":{},"b":2},"properties":{"c":{}}}`,
		`{"anyOf":[{"x-mcp-header":"A"},true]}`: `{"anyOf":[{},true]}`,
	} {
		got, ok := WithoutHeaderKeyword([]byte(in))
		if string(got) != want || !ok {
			t.Errorf("%s becomes %s, %v, want %s", in, got, ok, want)
		}
	}
	deep := strings.Repeat(`{"items":`, 3*schemaDepth) + `{"x-mcp-header":"A"}` + strings.Repeat("}", 3*schemaDepth)
	if _, ok := WithoutHeaderKeyword([]byte(deep)); ok {
		t.Error("a schema too deep to be mended passes for one that is")
	}
}

func TestHeaderParamAgrees(t *testing.T) {
	text, number := HeaderParam{Path: []string{"s"}}, HeaderParam{Path: []string{"o", "n"}, Integer: true}
	arguments, err := wire.ParseObject([]byte(`{"s":"é","o":{"n":42},"b":true,"none":null,"empty":""}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		param  HeaderParam
		values []string
		want   bool
	}{
		{text, []string{"=?base64?w6k=?="}, true}, {text, []string{"é"}, false}, {text, nil, false}, {text, []string{"x"}, false},
		{text, []string{"=?base64?w6k=?=", "=?base64?w6k=?="}, false},
		{number, []string{"42"}, true}, {number, []string{" 42.0 "}, true}, {number, []string{"43"}, false}, {number, []string{"x"}, false},
		{number, []string{"0x2Ap0"}, false}, {number, []string{"+42"}, false}, {number, []string{"4_2"}, false}, {number, []string{"42e0"}, true}, {number, []string{"NaN"}, false},
		{HeaderParam{Path: []string{"b"}}, []string{"true"}, true}, {HeaderParam{Path: []string{"b"}}, []string{"TRUE"}, false},
		{HeaderParam{Path: []string{"none"}}, nil, true}, {HeaderParam{Path: []string{"none"}}, []string{""}, false},
		{HeaderParam{Path: []string{"absent", "deep"}}, nil, true}, {HeaderParam{Path: []string{"empty"}}, []string{""}, true},
	} {
		if got := tt.param.Agrees(tt.values, arguments); got != tt.want {
			t.Errorf("%v against %q: %v", tt.param.Path, tt.values, got)
		}
	}
}
