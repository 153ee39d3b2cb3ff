package front

import (
	"bytes"
	"math"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

// copied is how large a result may be to become one piece with what stands around it.
const copied = 16 << 10

// modernResult is the response for a modern client, in pieces that are written one after the other.
func modernResult(id []byte, reply *Reply) [][]byte {
	if len(reply.Result.Raw()) <= copied || !reply.Result.Has("resultType") {
		return [][]byte{appendModernResult(nil, id, reply)}
	}
	return [][]byte{openResponse(make([]byte, 0, 64+len(id)), id, reply.Result), reply.Result.Raw(), {'}'}}
}

// appendModernResult appends the response for a modern client: the result as it came, with the resultType that a
// legacy server leaves out.
func appendModernResult(dst, id []byte, reply *Reply) []byte {
	dst = openResponse(dst, id, reply.Result)
	if reply.Result.Has("resultType") {
		return append(append(dst, reply.Result.Raw()...), '}')
	}
	value := []byte(`"` + mcp.ResultComplete + `"`)
	if reply.Type != "" && reply.Type != mcp.ResultComplete {
		value = wire.AppendString(nil, reply.Type)
	}
	dst = reply.Result.AppendEdited(dst, wire.Edit{Name: "resultType", Value: value})
	return append(dst, '}')
}

// openResponse appends a response up to its result, with room for that and a little more.
func openResponse(dst, id []byte, result wire.Object) []byte {
	if dst == nil {
		dst = make([]byte, 0, len(`{"jsonrpc":"2.0","id":,"result":}`)+len(id)+len(result.Raw())+len(`,"resultType":"complete"`)+8)
	}
	dst = wire.AppendResult(dst, id, nil)
	return dst[:len(dst)-1]
}

// appendLegacyResult appends the response for a client of a revision with a handshake. It takes off what only modern
// results have, unless a legacy server wrote it, and changes what the client would have to reject. What it may ignore stays.
func appendLegacyResult(dst, id []byte, method, revision string, reply *Reply) []byte {
	var edits [5]wire.Edit
	n := 0
	edit := func(name string, value []byte) {
		edits[n] = wire.Edit{Name: name, Value: value}
		n++
	}
	if reply.Revision == mcp.Modern {
		for _, name := range [...]string{"resultType", "ttlMs", "cacheScope"} {
			if reply.Result.Has(name) {
				edit(name, nil)
			}
		}
	}
	switch method {
	case mcp.MethodToolsCall:
		// A legacy server's own is left: a client of such a revision gets it from that server without the gateway as well.
		if raw, ok := reply.Result.Value("structuredContent"); ok && reply.Revision == mcp.Modern && structured(revision) && raw[0] != '{' {
			edit("structuredContent", nil)
		}
		if raw, ok := reply.Result.Value("content"); ok {
			if content := olderContent(raw, revision); content != nil {
				edit("content", content)
			}
		}
	case mcp.MethodToolsList:
		if raw, ok := reply.Result.Value("tools"); ok && structured(revision) {
			if tools := objectOutputs(raw); tools != nil {
				edit("tools", tools)
			}
		}
	}
	dst = openResponse(dst, id, reply.Result)
	if n == 0 {
		return append(append(dst, reply.Result.Raw()...), '}')
	}
	return append(reply.Result.AppendEdited(dst, edits[:n]...), '}')
}

// structured reports whether a legacy revision has structured output, which it knows as objects only.
func structured(revision string) bool {
	return revision == mcp.Revision20250618 || revision == mcp.Revision20251125
}

// olderContent is a tool result's content with text in place of the blocks that the revision does not have; nil where
// there are none of them.
func olderContent(raw []byte, revision string) []byte {
	audio := revision == mcp.Revision20241105
	link := audio || revision == mcp.Revision20250326
	if !link {
		return nil
	}
	blocks, ok := wire.Elements(raw, math.MaxInt)
	if !ok {
		return nil
	}
	return replaceElements(blocks, func(block wire.Object) []byte {
		switch kind, _ := block.String("type"); {
		case kind == "audio" && audio:
			return asText(block, audioText(block))
		case kind == "resource_link" && link:
			return asText(block, linkText(block))
		}
		return nil
	})
}

// objectOutputs is a list of tools without the output schemas that are not those of objects; nil where there are none.
func objectOutputs(raw []byte) []byte {
	if !bytes.Contains(raw, []byte("output")) && bytes.IndexByte(raw, '\\') < 0 {
		return nil
	}
	tools, ok := wire.Elements(raw, math.MaxInt)
	if !ok {
		return nil
	}
	return replaceElements(tools, func(tool wire.Object) []byte {
		if !tool.Has("outputSchema") {
			return nil
		}
		if schema, ok := tool.Object("outputSchema"); ok {
			if kind, _ := schema.String("type"); kind == "object" {
				return nil
			}
		}
		return tool.Edited(wire.Edit{Name: "outputSchema"})
	})
}

// replaceElements is the array of elements with those replaced for which replace gives a text; nil where it gives none.
func replaceElements(elements [][]byte, replace func(wire.Object) []byte) []byte {
	changed := false
	size := 2
	for i, element := range elements {
		if o, err := wire.ParseObject(element); err == nil {
			if text := replace(o); text != nil {
				elements[i] = text
				changed = true
			}
		}
		size += len(elements[i]) + 1
	}
	if !changed {
		return nil
	}
	out := append(make([]byte, 0, size), '[')
	for i, element := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, element...)
	}
	return append(out, ']')
}

// asText is a text block in place of block, for the same audience.
func asText(block wire.Object, text string) []byte {
	out := wire.AppendString([]byte(`{"type":"text","text":`), text)
	if annotations, ok := block.Value("annotations"); ok {
		out = append(append(out, `,"annotations":`...), annotations...)
	}
	return append(out, '}')
}

func audioText(block wire.Object) string {
	kind, _ := block.String("mimeType")
	return "[audio " + kind + ": left out, since this client speaks a revision of MCP without audio]"
}

func linkText(block wire.Object) string {
	name, _ := block.String("title")
	if name == "" {
		name, _ = block.String("name")
	}
	uri, _ := block.String("uri")
	text := "[resource " + name + "] " + uri
	if description, _ := block.String("description"); description != "" {
		text += ": " + description
	}
	return text
}
