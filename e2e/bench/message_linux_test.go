package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestReadMessage(t *testing.T) {
	m := readMessage([]byte(` {"jsonrpc": "2.0","params":{"_meta":{"name":"not this","progressToken": 7 },"arguments" : {"name":"nor this",` +
		`"message":"a \"quoted\\\" } word","n":[1,{"x":null}]} , "name":"small"},"method":"tools/call", "id":"a\\"}`))
	for _, row := range []struct{ what, got, want string }{
		{"id", string(m.id), `"a\\"`}, {"method", string(m.method), "tools/call"}, {"name", string(m.name), "small"}, {"token", string(m.token), "7"},
		{"message", string(member(m.arguments, "message")), `"a \"quoted\\\" } word"`}, {"n", string(member(m.arguments, "n")), `[1,{"x":null}]`},
		{"absent", string(member(m.arguments, "absent")), ""},
	} {
		if row.got != row.want {
			t.Errorf("%s is %s, not %s", row.what, row.got, row.want)
		}
	}
}

func FuzzMember(f *testing.F) {
	f.Add([]byte(`{"a":"\\","b":[{"b":1}],"c":-1.5e3}`), "b")
	f.Add([]byte(`{"a" : null , "b":{}}`), "b")
	f.Add([]byte(`{"a":"`), "a")
	f.Fuzz(func(t *testing.T, object []byte, name string) {
		got := member(object, name)
		// What is no JSON must only not be a panic. Names with escapes, and those that occur twice, are no test's business.
		var members map[string]json.RawMessage
		if json.Unmarshal(object, &members) != nil || bytes.Contains(object, []byte(`\`)) || strings.ContainsRune(name, '\ufffd') ||
			bytes.Count(object, []byte(`"`+name+`"`)) > 1 {
			return
		}
		if want := bytes.TrimSpace(members[name]); !bytes.Equal(got, want) {
			t.Errorf("%q of %q is %q, not %q", name, object, got, want)
		}
	})
}

// TestWrongAnswersAreFound spoils an answer of each kind in each way that matters.
func TestWrongAnswersAreFound(t *testing.T) {
	a := newAnswers(true, 0)
	for _, k := range kinds() {
		i := nextID()
		body, _ := newTemplate([]byte(k.body(k.tool, modernMeta)), hole).with(i)
		m := readMessage(body)
		var stream []byte
		if k.progress {
			for n := 1; n <= notifications; n++ {
				stream = append(append(append(stream, "data: "...), progress(nil, &m, n)...), "\n\n"...)
			}
			stream = append(stream, "data: "...)
		}
		head, rest := a.reply(stream, &m)
		answer := append(head, rest...)
		if err := k.verify(i, answer); err != nil {
			t.Errorf("%s: the backend's own answer: %v", k.name, err)
		}
		spoiled := map[string][]byte{
			"another id":  bytes.Replace(answer, []byte(`"jsonrpc":"2.0","id":`), []byte(`"jsonrpc":"2.0","id":1`), 1),
			"another":     bytes.Replace(answer, []byte(`"text":"`), []byte(`"text":"x`), 1),
			"an error":    bytes.Replace(answer, []byte(`"result"`), []byte(`"error"`), 1),
			"a failure":   bytes.Replace(answer, []byte(`"content"`), []byte(`"isError":true,"content"`), 1),
			"half of it":  answer[:len(answer)/2],
			"nothing":     nil,
			"lost member": bytes.Replace(answer, []byte(`"state":"open"`), []byte(`"state":"shut"`), 1),
			"lost event":  bytes.Replace(answer, []byte(`"progress":7`), []byte(`"progress":8`), 1),
		}
		for what, text := range spoiled {
			if bytes.Equal(text, answer) {
				continue // this kind has nothing of that sort
			}
			if err := k.verify(i, text); err == nil {
				t.Errorf("%s: %s passes", k.name, what)
			}
		}
	}
}
