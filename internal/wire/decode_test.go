package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestParseRequestRefuses(t *testing.T) {
	deep := func(n int) string {
		return `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}`
	}
	tests := []struct {
		name, in string
		code     int64
		id       string // what the answer repeats
	}{
		{"empty", "", CodeParse, ""},
		{"space", " \n", CodeParse, ""},
		{"truncated", `{"jsonrpc":"2.0","id":1`, CodeParse, ""},
		{"something follows", `{"jsonrpc":"2.0","id":1,"method":"m"} garbage{`, CodeParse, ""},
		{"second message follows", `{"jsonrpc":"2.0","id":1,"method":"m"}{"jsonrpc":"2.0","id":2,"method":"n"}`, CodeParse, ""},
		{"raw bad UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", CodeParse, ""},
		{"deeper than allowed", deep(MaxRequestDepth), CodeParse, ""},
		{"leading zero", `{"jsonrpc":"2.0","id":01,"method":"m"}`, CodeParse, ""},
		{"string", `"x"`, CodeInvalidRequest, ""},
		{"null", `null`, CodeInvalidRequest, ""},
		{"method twice", `{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}`, CodeInvalidRequest, "1"},
		{"method twice, once escaped", `{"jsonrpc":"2.0","id":1,"method":"m","\u006dethod":"n"}`, CodeInvalidRequest, "1"},
		{"params twice", `{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}`, CodeInvalidRequest, "1"},
		{"id twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`, CodeInvalidRequest, "1"},
		{"name twice in params", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"a","name":"b"}}`, CodeInvalidRequest, "1"},
		{"name twice deep below", `{"jsonrpc":"2.0","id":"x","method":"m","params":{"arguments":[{"a":1,"a":2}]}}`, CodeInvalidRequest, `"x"`},
		{"no version", `{"id":1,"method":"m"}`, CodeInvalidRequest, "1"},
		{"other version", `{"jsonrpc":"1.0","id":1,"method":"m"}`, CodeInvalidRequest, "1"},
		{"version in another case", `{"JSONRPC":"2.0","id":1,"method":"m"}`, CodeInvalidRequest, "1"},
		{"no method", `{"jsonrpc":"2.0","id":1}`, CodeInvalidRequest, "1"},
		{"method in another case", `{"jsonrpc":"2.0","id":1,"Method":"m"}`, CodeInvalidRequest, "1"},
		{"method beside one in another case", `{"jsonrpc":"2.0","id":1,"method":"m","Method":"n"}`, CodeInvalidRequest, "1"},
		{"params beside an escaped one in another case", `{"jsonrpc":"2.0","id":1,"method":"m","params":{},"\u0050arams":{}}`, CodeInvalidRequest, "1"},
		{"method beside one that ends early", `{"jsonrpc":"2.0","id":1,"method":"m","method\u0000":"n"}`, CodeInvalidRequest, "1"},
		{"method a number", `{"jsonrpc":"2.0","id":1,"method":1}`, CodeInvalidRequest, "1"},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"m"}`, CodeInvalidRequest, ""},
		{"id a fraction", `{"jsonrpc":"2.0","id":1.5,"method":"m"}`, CodeInvalidRequest, ""},
		{"id with exponent", `{"jsonrpc":"2.0","id":1e3,"method":"m"}`, CodeInvalidRequest, ""},
		{"id an object", `{"jsonrpc":"2.0","id":{},"method":"m"}`, CodeInvalidRequest, ""},
		{"params an array", `{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}`, CodeInvalidParams, "1"},
		{"request and response", `{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, CodeInvalidRequest, "1"},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`, CodeInvalidRequest, "1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseRequest([]byte(tt.in))
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("error %v, want a *SyntaxError", err)
			}
			if syntax.Code != tt.code || string(syntax.ID) != tt.id {
				t.Errorf("code %d, id %s (%v); want %d, %s", syntax.Code, syntax.ID, err, tt.code, tt.id)
			}
		})
	}
	if _, err := ParseRequest([]byte(deep(MaxRequestDepth - 2))); err != nil {
		t.Errorf("the deepest message allowed: %v", err)
	}
	if _, err := ParseRequest([]byte(` [{}]`)); !errors.Is(err, ErrBatch) {
		t.Errorf("an array: %v, want ErrBatch", err)
	}
}

func TestParseRequestKeepsBytes(t *testing.T) {
	const params = `{ "name":"safe","NAME":"evil", "n":12345678901234567890, "half":"\ud83d", "none":null}`
	for _, id := range []string{`1`, `"1"`, `9007199254740993`, `-12345678901234567890`, `"\u0031"`} {
		m, err := ParseRequest([]byte(` {"id" : ` + id + `,"method":"tools/call","params":` + params + `,"jsonrpc":"2.0","extra":{}} `))
		if err != nil {
			t.Fatal(err)
		}
		if m.Kind != Request || m.Method != "tools/call" || string(m.ID) != id || string(m.Params.Raw()) != params {
			t.Errorf("kind %d, method %q, id %s, params %s", m.Kind, m.Method, m.ID, m.Params.Raw())
		}
		if name, ok := m.Params.String("name"); !ok || name != "safe" {
			t.Errorf("name %q, want the one that is written so", name)
		}
	}
}

func TestParseRequestKinds(t *testing.T) {
	for in, want := range map[string]Kind{
		`{"jsonrpc":"2.0","method":"m"}`:                                 Notification,
		`{"jsonrpc":"2.0","method":"m","params":null,"id":"a"}`:          Request,
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                           Result,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"x"}}`: Failure,
	} {
		m, err := ParseRequest([]byte(in))
		if err != nil || m.Kind != want {
			t.Errorf("%s: kind %d, %v; want %d", in, m.Kind, err, want)
		}
	}
}

func TestParseReply(t *testing.T) {
	m, err := ParseReply([]byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":null,"x":1.0,"x":2},"more":1}`))
	if err != nil || m.Kind != Result || string(m.Result.Raw()) != `{"content":[],"structuredContent":null,"x":1.0,"x":2}` {
		t.Fatalf("%+v, %v", m, err)
	}
	if m.Result.Unique("x") || !m.Result.Unique("content", "absent") {
		t.Error("Unique does not tell a repeated member")
	}
	m, err = ParseReply([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"","data":{"a":1},"more":[2]}}`))
	if err != nil || m.Kind != Failure || string(m.ID) != "null" || !m.Error.BadMessage || string(m.Error.Data) != `{"a":1}` {
		t.Fatalf("%+v, %v", m, err)
	}
	if got := string(m.Error.AppendJSON(nil)); got != `{"code":-32001,"message":"","data":{"a":1},"more":[2]}` {
		t.Errorf("the error is passed on as %s", got)
	}
	m, err = ParseReply([]byte("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"t\":\"a\xffb\"}}"))
	if err != nil || string(m.Result.Raw()) != "{\"t\":\"a\uFFFDb\"}" {
		t.Fatalf("bad UTF-8 in a reply: %v", err)
	}
	for _, in := range []string{
		`{"id":1,"id":2,"result":{}}`, `{"id":1,"result":{},"result":{}}`, `{"id":1,"result":[]}`, `{"id":1,"result":null}`,
		`{"id":1,"error":"x"}`, `{"id":1,"error":{"message":"no code"}}`, `{"id":1,"error":{"code":1.5,"message":"x"}}`,
		`{"id":1,"error":{"code":1,"code":2,"message":"x"}}`, `{"id":1}`, `<html>`, `{"id":1,"result":{}}x`, `{"id":1,"result":{`,
	} {
		if _, err := ParseReply([]byte(in)); err == nil {
			t.Errorf("%s: no error", in)
		}
	}
}

func TestErrorsQuoteNothing(t *testing.T) {
	for _, in := range []string{`{"s3cr3t":1,"s3cr3t":2}`, `{"jsonrpc":"2.0","id":1,"method":"m"} s3cr3t`, `{"a":s3cr3t}`, `s3cr3t`} {
		_, err := ParseRequest([]byte(in))
		if err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestBatch(t *testing.T) {
	got, err := Batch([]byte(` [ {"a":1}, 2 ,"x"] `), 3)
	if err != nil || len(got) != 3 || string(got[0]) != `{"a":1}` || string(got[2]) != `"x"` {
		t.Errorf("%q, %v", got, err)
	}
	for _, in := range []string{`[]`, `[1,2,3,4]`, `{}`, `[1`, ``} {
		if _, err := Batch([]byte(in), 3); err == nil {
			t.Errorf("%s: no error", in)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"x":[1,{"y":null}]}}}`,
		`{"jsonrpc":"2.0","id":"\ud83d","result":{"\u0061":1e400,"b":-0}}`, `[{}]`, `{"error":{"code":1,"message":"x"}}`, "\xff", `{"a":{"a":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		for _, parse := range []func([]byte) (*Message, error){ParseRequest, ParseReply} {
			m, err := parse(data)
			if err != nil {
				continue
			}
			if !json.Valid(bytes.ToValidUTF8(data, []byte("\uFFFD"))) {
				t.Fatal("took what is not JSON")
			}
			for _, o := range []Object{m.Params, m.Result} {
				checkObject(t, o)
			}
			if m.ID != nil && !json.Valid(m.ID) {
				t.Fatalf("id %q", m.ID)
			}
		}
		if !bytes.Equal(before, data) {
			t.Fatal("the input was changed")
		}
	})
}

// checkObject holds the spans against encoding/json's reading of the same text.
func checkObject(t *testing.T, o Object) {
	if o.IsZero() {
		return
	}
	var want map[string]json.RawMessage
	if err := json.Unmarshal(o.Raw(), &want); err != nil {
		t.Fatalf("object %q: %v", o.Raw(), err)
	}
	last := map[string]string{}
	for name, value := range o.All() {
		last[name] = string(value)
	}
	if len(last) != len(want) {
		t.Fatalf("object %q has %d names, want %d", o.Raw(), len(last), len(want))
	}
	edited := o.AppendEdited(nil, Edit{Name: "added \"by\" the test", Value: []byte(`1`)})
	if !json.Valid(edited) {
		t.Fatalf("edited: %q", edited)
	}
	if compact := OneLine(o.Raw()); !json.Valid(compact) || bytes.ContainsAny(compact, "\n\r") {
		t.Fatalf("one line: %q", compact)
	}
}
