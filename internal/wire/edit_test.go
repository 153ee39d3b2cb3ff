package wire

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func object(t *testing.T, text string) Object {
	t.Helper()
	o, err := ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestEdited(t *testing.T) {
	replace := func(name, value string) Edit { return Edit{Name: name, Value: []byte(value)} }
	remove := func(name string) Edit { return Edit{Name: name} }
	tests := []struct {
		in    string
		edits []Edit
		want  string
	}{
		{`{"a":1,"b":2}`, nil, `{"a":1,"b":2}`},
		{`{ "a" : 1 , "b":2.0}`, []Edit{remove("c")}, `{ "a" : 1 , "b":2.0}`},
		{`{"a": 1,"b":2.0,"c":null}`, []Edit{replace("b", `"x"`)}, `{"a": 1,"b":"x","c":null}`},
		{`{"a":1,"b":2}`, []Edit{remove("a")}, `{"b":2}`},
		{`{"a":1,"b":2}`, []Edit{remove("b")}, `{"a":1}`},
		{`{"a":1}`, []Edit{remove("a")}, `{}`},
		{`{}`, []Edit{replace("a", `1`)}, `{"a":1}`},
		{`{"a":1}`, []Edit{replace("b", `[]`), replace("c", `3`)}, `{"a":1,"b":[],"c":3}`},
		{`{"n\u0061me":1,"name":2}`, []Edit{replace("name", `3`)}, `{"n\u0061me":3,"name":3}`},
		{`{"n\u0061me":1,"x":2,"name":2}`, []Edit{remove("name")}, `{"x":2}`},
		{"{ \"a\" : 1 ,\n \"b\" : 2 ,\t\"c\" : 3 } ", []Edit{replace("b", `"x"`)}, "{ \"a\" : 1 ,\n \"b\" : \"x\" ,\t\"c\" : 3 }"},
		{`{ "a" : 1 , "b" : 2 , "c" : 3 }`, []Edit{remove("a"), remove("c"), replace("d", `4`)}, `{"b" : 2,"d":4 }`},
		{`{ "a" : 1 }`, []Edit{remove("a")}, `{ }`},
		{`{"NAME":1,"name":2}`, []Edit{remove("name")}, `{"NAME":1}`},
	}
	for _, tt := range tests {
		if got := string(object(t, tt.in).Edited(tt.edits...)); got != tt.want {
			t.Errorf("%s edited: %s, want %s", tt.in, got, tt.want)
		}
		with, parsed := object(t, tt.in).With(tt.edits...), object(t, tt.want)
		if string(with.Raw()) != tt.want || !slices.Equal(with.members, parsed.members) {
			t.Errorf("%s with its edits: %s, members %v, want %v", tt.in, with.Raw(), with.members, parsed.members)
		}
	}
	if got := string((Object{}).Edited(replace("a", "1"))); got != `{"a":1}` {
		t.Errorf("no object, edited: %s", got)
	}
	if got := string((Object{}).With(replace("a", "1"), replace("é", "2")).Raw()); got != `{"a":1,"é":2}` {
		t.Errorf("no object, with members: %s", got)
	}
	if got := string((Object{}).Edited()); got != `{}` {
		t.Errorf("no object, not edited: %s", got)
	}
}

// What is edited later reads as what is edited at once, and as the sum of its edits once it is written.
func TestLater(t *testing.T) {
	texts := []string{`{}`, `{"a":1}`, `{ "a" : 1 , "b":{"x":2}, "c":"s" }`, `{"n\u0061me":1,"a":[]}`}
	names := []string{"a", "b", "c", "name"}
	random := rand.New(rand.NewPCG(1, 2))
	someEdits := func() (edits []Edit) {
		for _, name := range names {
			switch random.IntN(4) {
			case 0:
				edits = append(edits, Edit{Name: name})
			case 1:
				edits = append(edits, Edit{Name: name, Value: fmt.Append(nil, random.IntN(100))})
			}
		}
		return edits
	}
	for range 3000 {
		text := texts[random.IntN(len(texts))]
		first, second, third := someEdits(), someEdits(), someEdits()
		at := fmt.Sprintf("%s with %q, then %q, then %q", text, first, second, third)
		original := object(t, text)
		later, atOnce := original.Later(first...).Later(second...), original.With(first...).With(second...)
		if !sameMembers(t, later.Raw(), atOnce.Raw()) || !sameMembers(t, later.Edited(third...), atOnce.Edited(third...)) ||
			!sameMembers(t, later.AppendEdited(nil, third...), atOnce.AppendEdited(nil, third...)) ||
			!sameMembers(t, later.With(third...).Raw(), atOnce.With(third...).Raw()) {
			t.Fatalf("%s: %s, and at once %s", at, later.Edited(third...), atOnce.Edited(third...))
		}
		if later.Len() != atOnce.Len() || later.Unique(names...) != atOnce.Unique(names...) || later.IsZero() {
			t.Fatalf("%s: %d members", at, later.Len())
		}
		for _, name := range names {
			got, ok := later.Value(name)
			want, wanted := atOnce.Value(name)
			if ok != wanted || string(got) != string(want) {
				t.Fatalf("%s: %s is %s, and at once %s", at, name, got, want)
			}
		}
		if rewritten := later.Rewrite(func(_ string, value []byte) []byte { return value }); !sameMembers(t, rewritten, atOnce.Raw()) {
			t.Fatalf("%s: rewritten it is %s", at, rewritten)
		}
		if string(original.Raw()) != text {
			t.Fatalf("%s: the original has become %s", at, original.Raw())
		}
	}
	if (Object{}).Raw() != nil || string((Object{}).Later(Edit{Name: "a", Value: []byte("1")}).Raw()) != `{"a":1}` {
		t.Error("no object, edited later")
	}
}

// sameMembers reports whether two objects have the same members, in whatever order those of different names are.
func sameMembers(t *testing.T, a, b []byte) bool {
	t.Helper()
	members := func(text []byte) []string {
		var list []string
		for name, value := range object(t, string(text)).All() {
			list = append(list, name+" "+string(value))
		}
		slices.SortStableFunc(list, func(a, b string) int {
			return strings.Compare(strings.Fields(a)[0], strings.Fields(b)[0])
		})
		return list
	}
	return slices.Equal(members(a), members(b))
}

func TestRewrite(t *testing.T) {
	for in, want := range map[string]string{
		`{ "keep" : 1 , "k2":2}`:                     `{ "keep" : 1 , "k2":2}`,
		`{"drop":1}`:                                 `{}`,
		`{ "drop":1 , "keep" : 2 , "double": 3 }`:    `{"keep" : 2 , "double": 33 }`,
		`{"double":1,"drop":2,"double":3,"drop": 4}`: `{"double":11,"double":33}`,
		`{"keep":1, "drop":2, "keep":3}`:             `{"keep":1, "keep":3}`,
		`{"dr\u006fp":1}`:                            `{}`,
		`{}`:                                         `{}`,
	} {
		got := string(object(t, in).Rewrite(func(name string, value []byte) []byte {
			switch name {
			case "drop":
				return nil
			case "double":
				return append(slices.Clone(value), value...)
			}
			return value
		}))
		if got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}

func TestEquals(t *testing.T) {
	o := object(t, `{"a":"x","b":"\u0078","c":1,"d":null,"e":""}`)
	for _, tt := range []struct {
		name, s string
		want    bool
	}{{"a", "x", true}, {"b", "x", true}, {"a", "y", false}, {"b", "\\u0078", false}, {"c", "1", false}, {"d", "", false}, {"e", "", true}, {"f", "", false}} {
		if got := o.Equals(tt.name, tt.s); got != tt.want {
			t.Errorf("%s equals %q: %v", tt.name, tt.s, got)
		}
	}
}

func TestOneLine(t *testing.T) {
	const in = "{\n \"a b\" : [ 1.0 ,\t\"x \\\" y\\n\" ] ,\r\n\"c\\\\\":{ }\n}"
	if got, want := string(OneLine([]byte(in))), `{"a b":[1.0,"x \" y\n"],"c\\":{}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if in := []byte(`{ "a" : 1 }`); &OneLine(in)[0] != &in[0] {
		t.Error("a text without a line end was copied")
	}
}

func TestUnquote(t *testing.T) {
	for in, want := range map[string]string{`"a"`: "a", `"\u0061\n"`: "a\n", `"\ud83d"`: "\uFFFD", `"\ud83d\ude00"`: "😀", `""`: ""} {
		if got, ok := Unquote([]byte(in)); !ok || got != want {
			t.Errorf("%s: %q, %v; want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{`1`, `null`, ``, `{}`} {
		if _, ok := Unquote([]byte(in)); ok {
			t.Errorf("%s reads as a string", in)
		}
	}
}

func TestAppendString(t *testing.T) {
	for _, s := range []string{"", "plain", `quote " and \ back`, "line\nend", "é😀", "\x00", "bad\xff", "\x7f"} {
		var got string
		if err := json.Unmarshal(AppendString(nil, s), &got); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		if want := string([]rune(s)); got != want {
			t.Errorf("%q is written as %s", s, AppendString(nil, s))
		}
	}
}

func TestEncode(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{string(AppendResult(nil, []byte(`"1"`), []byte(`{}`))), `{"jsonrpc":"2.0","id":"1","result":{}}`},
		{string(AppendError(nil, nil, &Error{Code: CodeParse, Message: "m"})), `{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}`},
		{string(AppendError(nil, []byte(`1`), &Error{Code: 5, Message: "m", Data: []byte(`[1]`)})), `{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"m","data":[1]}}`},
		{string(AppendRequest(nil, nil, "notifications/x", nil)), `{"jsonrpc":"2.0","method":"notifications/x"}`},
		{string(AppendRequest(nil, []byte(`1`), "m", []byte(`{}`))), `{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`},
	} {
		if tt.got != tt.want {
			t.Errorf("%s, want %s", tt.got, tt.want)
		}
	}
}

func BenchmarkParseRequest(b *testing.B) {
	in := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__echo","arguments":{"message":"hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseRequest(in); err != nil {
			b.Fatal(err)
		}
	}
}
