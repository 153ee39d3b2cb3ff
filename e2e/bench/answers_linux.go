package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
)

// large is the size of the large results in bytes, as they stand on the wire.
const large = 1 << 20

// notifications is how many the tool notify sends before its result.
const notifications = 20

// callable are the tools that do something. A call of fail is answered with an error, and one of hang over HTTP not at all.
var callable = []string{"small", "accept", "text", "escapes", "structured", "notify", "hang", "fail"}

// answers are what a backend says, prepared.
type answers struct {
	modern bool   // members that only revision 2026-07-28 has
	before []byte // the members that each result begins with
	tools  []byte // the result of tools/list
}

// newAnswers prepares them; more is how many tools there are beside those that can be called.
func newAnswers(modern bool, more int) *answers {
	a := &answers{modern: modern}
	if modern {
		a.before = []byte(`"resultType":"complete",`)
	}
	a.tools = a.list(more)
	return a
}

func (a *answers) list(more int) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	b.Write(a.before)
	if a.modern {
		b.WriteString(`"ttlMs":0,"cacheScope":"public",`)
	}
	b.WriteString(`"tools":[`)
	for i, name := range callable {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":%q,"description":"A tool of the benchmark.","inputSchema":{"type":"object"}}`, name)
	}
	for i := range more {
		fmt.Fprintf(&b, `,{"name":"more-%d","description":"Looks for the rows of a table that a condition is true of, and gives them in order.",`+
			`"inputSchema":{"type":"object","properties":{"table":{"type":"string"},"condition":{"type":"string"},"limit":{"type":"integer"}},"required":["table"]}}`, i)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// reply appends the response to a request. What comes after it in the message is the second value, which is shared.
func (a *answers) reply(out []byte, m *message) (head, rest []byte) {
	out = append(append(append(out, `{"jsonrpc":"2.0","id":`...), m.id...), ',')
	switch string(m.method) {
	case "tools/call":
		return a.call(out, m)
	case "tools/list":
		return append(append(append(out, `"result":`...), a.tools...), '}'), nil
	case "server/discover":
		if a.modern {
			return append(out, `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},`+
				`"ttlMs":0,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"backend","version":"1"}}}}`...), nil
		}
	case "initialize":
		if !a.modern {
			out = append(append(out, `"result":{"protocolVersion":`...), m.revision...)
			return append(out, `,"capabilities":{"tools":{}},"serverInfo":{"name":"backend","version":"1"}}}`...), nil
		}
	case "ping":
		return append(out, `"result":{}}`...), nil
	}
	return append(out, `"error":{"code":-32601,"message":"no such method"}}`...), nil
}

func (a *answers) call(out []byte, m *message) (head, rest []byte) {
	begun := append(append(out, `"result":{`...), a.before...)
	switch string(m.name) {
	case "small":
		begun = append(append(begun, `"content":[{"type":"text","text":`...), member(m.arguments, "message")...)
		return append(begun, `}]}}`...), nil
	case "accept":
		blob := text(member(m.arguments, "blob"))
		begun = fmt.Appendf(begun, `"content":[{"type":"text","text":"%s"}]}}`, accepted(string(member(m.arguments, "call")), blob))
		return begun, nil
	case "text":
		return begun, largeText()
	case "escapes":
		return begun, largeEscapes()
	case "structured":
		return begun, largeStructured()
	case "notify":
		return append(begun, `"content":[{"type":"text","text":"notified"}]}}`...), nil
	}
	return append(out, `"error":{"code":-32602,"message":"no tool that answers"}}`...), nil
}

// progress appends one of the notifications of a call.
func progress(out []byte, m *message, i int) []byte {
	out = append(append(out, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`...), m.token...)
	out = strconv.AppendInt(append(out, `,"progress":`...), int64(i), 10)
	out = strconv.AppendInt(append(out, `,"total":`...), notifications, 10)
	return append(out, `,"message":"still at it"}}`...)
}

// accepted is the text that answers the tool accept. The blob is as it stands on the wire.
func accepted(call string, blob []byte) string {
	return fmt.Sprintf("call %s has %d bytes, %08x", call, len(blob), crc32.ChecksumIEEE(blob))
}

// The large results, each from a result's content to the end of the response.
var (
	largeText    = sync.OnceValue(func() []byte { return textContent(prose(large)) })
	largeEscapes = sync.OnceValue(func() []byte { return textContent(source(large)) })

	largeStructured = sync.OnceValue(func() []byte {
		return fmt.Appendf(nil, `"content":[{"type":"text","text":"see structuredContent"}],"structuredContent":{"rows":%s}}}`, rows(large))
	})
)

func textContent(quoted []byte) []byte {
	return fmt.Appendf(nil, `"content":[{"type":"text","text":%s}]}}`, quoted)
}

var words = strings.Fields("the gateway passes what a server says byte for byte and its caller knows whether a call ran so that " +
	"nothing is sent twice and no secret leaves while lists keep their order and every answer belongs to one request")

// prose is a JSON string of that size in which nothing is escaped.
func prose(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	out := []byte{'"'}
	for len(out) < size-1 {
		out = append(append(out, words[random.IntN(len(words))]...), ' ')
	}
	return append(out[:size-1], '"')
}

// source is a JSON string of about that size that quotes source code and JSON, as a server in Go escapes it.
func source(size int) []byte {
	random := rand.New(rand.NewPCG(3, 4))
	var code strings.Builder
	for size > 0 {
		before := code.Len()
		word := words[random.IntN(len(words))]
		fmt.Fprintf(&code, "func %s%d(ctx context.Context, list []string) (string, error) {\n\tif len(list) > %d && ctx.Err() == nil {\n"+
			"\t\treturn `{\"%s\": \"C:\\\\%s\", \"quoted\": \"a \\\"b\\\" c\"}`, nil\n\t}\n\treturn \"\", errors.New(\"no %s\")\n}\n\n",
			word, random.IntN(1000), random.IntN(10), word, word, word)
		quoted, _ := json.Marshal(code.String()[before:])
		size -= len(quoted) - 2
	}
	quoted, _ := json.Marshal(code.String())
	return quoted
}

// rows is a JSON array of about that size, of objects with many small members.
func rows(size int) []byte {
	random := rand.New(rand.NewPCG(5, 6))
	out := []byte{'['}
	for i := 0; len(out) < size; i++ {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `{"id":%d,"name":"%s-%s","state":"open","score":%.3f,"done":%t,"parent":null,"tags":["%s","%s"],"at":{"line":%d,"column":%d}}`,
			i, words[random.IntN(len(words))], words[random.IntN(len(words))], random.Float64(), i%3 == 0,
			words[random.IntN(len(words))], words[random.IntN(len(words))], random.IntN(5000), random.IntN(120))
	}
	return append(out, ']')
}
