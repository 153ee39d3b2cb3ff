package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
)

// maxArguments bounds the arguments of a call, in bytes, as the gateway does.
const maxArguments = 4 << 20

// Arguments are the arguments of a call as a person gives them: JSON text, the path of a file with it after an @, or - for
// standard input. "" is none.
func Arguments(given string, stdin io.Reader) ([]byte, error) {
	text := []byte(given)
	switch path, isFile := strings.CutPrefix(given, "@"); {
	case given == "":
		return []byte("{}"), nil
	case given == "-":
		var err error
		if text, err = io.ReadAll(io.LimitReader(stdin, maxArguments+1)); err != nil {
			return nil, fmt.Errorf("--args: reading standard input: %w", err)
		}
	case isFile:
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("--args: %w", err)
		}
		defer f.Close()
		if text, err = io.ReadAll(io.LimitReader(f, maxArguments+1)); err != nil {
			return nil, fmt.Errorf("--args: %w", err)
		}
	}
	if len(text) > maxArguments {
		return nil, fmt.Errorf("--args: the arguments are over %d MiB", maxArguments>>20)
	}
	text = bytes.TrimSpace(text)
	// As the gateway would judge a request with them.
	if _, err := wire.ParseObject(text); err != nil {
		return nil, fmt.Errorf("--args is no JSON object: %w; write one such as --args '{\"path\": \".\"}'", err)
	}
	if _, err := wire.ParseRequest(wire.AppendRequest(nil, []byte("1"), mcp.MethodToolsCall, text)); err != nil {
		return nil, fmt.Errorf("--args cannot be sent: %w", err)
	}
	return text, nil
}

// An Answer is the result of one call.
type Answer struct {
	Result    []byte // JSON text, the whole of it; what it may not show is replaced
	IsError   bool   // the tool says that it has failed, or Failed
	Failed    bool   // the gateway could not complete the call; the text of the result says what is known of it
	content   [][]byte
	structure []byte
}

// errMoreInput is for a call that nobody can continue here.
var errMoreInput = errors.New("the tool asks for more input, which this command cannot give: call it from an MCP client")

// Call calls the tool with that public name. Its progress goes to tell in one line each; nil wants none. The error is a
// *wire.Error where the server or the gateway has refused the request.
func (c *Client) Call(ctx context.Context, name string, arguments []byte, tell func(string)) (*Answer, error) {
	edits := []wire.Edit{{Name: "name", Value: wire.AppendString(nil, name)}, {Name: "arguments", Value: arguments}}
	req := &upstream.Request{Method: mcp.MethodToolsCall, Target: name, Resend: new(upstream.Budget)}
	if tell != nil {
		edits = append(edits, wire.Edit{Name: "_meta", Value: []byte(`{"progressToken":1}`)})
		req.Notify = func(n upstream.Notification) {
			if line := progressOf(n); line != "" {
				tell(line)
			}
		}
	}
	req.Params = wire.Object{}.With(edits...)
	result, err := c.ask(ctx, req)
	if err != nil {
		return nil, printable(err)
	}
	if kind, ok := result.String("resultType"); ok && kind != mcp.ResultComplete {
		return nil, errMoreInput
	}
	a := &Answer{Result: result.Raw()}
	raw, _ := result.Value("isError")
	a.IsError = string(raw) == "true"
	meta, _ := result.Object("_meta")
	a.Failed = meta.Has(mcp.MetaOutcome)
	content, _ := result.Value("content")
	a.content, _ = wire.Elements(content, 1_000_000)
	a.structure, _ = result.Value("structuredContent")
	return a, nil
}

// printable is err with a message that a terminal only prints. Its JSON stays as it is.
func printable(err error) error {
	stated, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err
	}
	shown := *stated
	shown.Message = redact.Printable(redact.Cut(stated.Message, maxLine))
	return &shown
}

// ErrorJSON is the JSON-RPC error in err's chain, for a program; nil where there is none.
func ErrorJSON(err error) []byte {
	stated, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return nil
	}
	return append(stated.AppendJSON([]byte(`{"error":`)), '}')
}

// progressOf is a notification in one line, "" for one that says nothing of progress.
func progressOf(n upstream.Notification) string {
	if n.Method != mcp.NotificationProgress {
		return ""
	}
	progress, _ := n.Params.Value("progress")
	text := string(progress)
	if total, ok := n.Params.Value("total"); ok {
		text += "/" + string(total)
	}
	if message, ok := n.Params.String("message"); ok {
		text += " " + message
	}
	return redact.Printable(redact.Cut(strings.TrimSpace(text), 200))
}

// WriteText shows a person what the call has given: texts as they are, and of everything else what it is. Where there is no
// content, the structured one is shown. On a terminal nothing of it acts on that.
func (a *Answer) WriteText(w io.Writer, terminal bool) error {
	var out strings.Builder
	for _, raw := range a.content {
		block, _ := wire.ParseObject(raw)
		text := describe(block)
		if terminal {
			text = harmless(text)
		}
		out.WriteString(text)
		if !strings.HasSuffix(text, "\n") {
			out.WriteByte('\n')
		}
	}
	if len(a.content) == 0 && a.structure != nil {
		var indented bytes.Buffer
		if json.Indent(&indented, a.structure, "", "  ") == nil {
			out.Write(indented.Bytes())
			out.WriteByte('\n')
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// describe is a content block for a person.
func describe(block wire.Object) string {
	kind, _ := block.String("type")
	switch kind {
	case "text":
		text, _ := block.String("text")
		return text
	case "resource":
		resource, _ := block.Object("resource")
		if text, ok := resource.String("text"); ok {
			return text
		}
		return "[resource " + of(resource) + "]"
	case "resource_link":
		return "[resource link " + of(block) + "]"
	case "":
		return "[content of no known type]"
	}
	return "[" + kind + " " + of(block) + "]"
}

// of is what is known of a block beside its type.
func of(block wire.Object) string {
	var parts []string
	for _, member := range []string{"uri", "mimeType"} {
		if text, ok := block.String(member); ok {
			parts = append(parts, text)
		}
	}
	for _, member := range []string{"data", "blob"} {
		if data, ok := block.String(member); ok {
			parts = append(parts, fmt.Sprintf("%d bytes", base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(data, "=")))))
		}
	}
	return strings.Join(parts, ", ")
}

// harmless is text that a terminal only prints, in its lines.
func harmless(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		columns := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
		for j, column := range columns {
			columns[j] = redact.Printable(column)
		}
		lines[i] = strings.Join(columns, "\t")
	}
	return strings.Join(lines, "\n")
}
