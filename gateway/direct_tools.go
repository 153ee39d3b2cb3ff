package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
)

// A ListedTool is one tool as callers see it.
type ListedTool struct {
	Name        string          `json:"name"`               // public
	Upstream    string          `json:"upstream,omitempty"` // "" where only the gateway that lists it knows
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Definition  json.RawMessage `json:"definition"` // all of it, as it is served
}

// A Listing is the result of `tools`, for a program.
type Listing struct {
	Tools  []ListedTool      `json:"tools"`
	Absent map[string]string `json:"absent"` // why an upstream lists nothing, by its id
}

// maxListed bounds how many pages of a list are read.
const maxListed = 100

// Tools lists all tools.
func (c *Client) Tools(ctx context.Context) (*Listing, error) {
	list := &Listing{Tools: []ListedTool{}, Absent: map[string]string{}}
	err := pages(ctx, c.askNoting(list.Absent), func(tool wire.Object) {
		t := ListedTool{Definition: tool.Raw()}
		t.Name, _ = tool.String("name")
		t.Upstream = c.upstreamOf(t.Name)
		t.Title = titleOf(tool)
		t.Description, _ = tool.String("description")
		list.Tools = append(list.Tools, t)
	})
	if err != nil {
		return list, printable(err)
	}
	return list, nil
}

// titleOf is a tool's title, which older revisions know in its annotations only.
func titleOf(tool wire.Object) string {
	title, ok := tool.String("title")
	if !ok {
		annotations, _ := tool.Object("annotations")
		title, _ = annotations.String("title")
	}
	return title
}

type asker func(context.Context, *upstream.Request) (wire.Object, error)

// askNoting asks, and notes which upstreams a list says are absent.
func (c *Client) askNoting(absent map[string]string) asker {
	return func(ctx context.Context, req *upstream.Request) (wire.Object, error) {
		result, err := c.ask(ctx, req)
		if err != nil {
			return result, err
		}
		meta, _ := result.Object("_meta")
		list, _ := meta.Object(mcp.MetaAbsent)
		for id, reason := range list.All() {
			text, _ := wire.Unquote(reason)
			absent[redact.Printable(id)] = redact.Printable(text)
		}
		return result, nil
	}
}

// pages gives each tool of every page to take.
func pages(ctx context.Context, ask asker, take func(tool wire.Object)) error {
	var params wire.Object
	for range maxListed {
		result, err := ask(ctx, &upstream.Request{Method: mcp.MethodToolsList, Params: params, Resend: new(upstream.Budget)})
		if err != nil {
			return err
		}
		raw, _ := result.Value("tools")
		elements, ok := wire.Elements(raw, 1_000_000)
		if !ok {
			return errors.New("the answer to tools/list has no tools")
		}
		for _, element := range elements {
			if tool, err := wire.ParseObject(element); err == nil {
				take(tool)
			}
		}
		cursor, ok := result.Value("nextCursor")
		if !ok || string(cursor) == "null" {
			return nil
		}
		params = wire.Object{}.With(wire.Edit{Name: "cursor", Value: cursor})
	}
	return fmt.Errorf("the list has more than %d pages", maxListed)
}

// WriteText shows a person the tools. Its texts are servers', cut to a line.
func (l *Listing) WriteText(w io.Writer, style Style) error {
	byUpstream := false
	for _, t := range l.Tools {
		byUpstream = byUpstream || t.Upstream != ""
	}
	return writeTable(w, func(table io.Writer) {
		// The head has as many bytes around it as the names, or the columns would not stand below each other.
		fmt.Fprintf(table, "%s\t", style.strong("TOOL"))
		if byUpstream {
			fmt.Fprint(table, "UPSTREAM\t")
		}
		fmt.Fprintln(table, "DESCRIPTION")
		for _, t := range l.Tools {
			fmt.Fprintf(table, "%s\t", style.strong(redact.Printable(t.Name)))
			if byUpstream {
				fmt.Fprintf(table, "%s\t", t.Upstream)
			}
			fmt.Fprintln(table, t.about())
		}
	})
}

// maxAbout bounds what a line tells of a tool, in characters.
const maxAbout = 80

// about is the title and the first line of the description.
func (t *ListedTool) about() string {
	first, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
	text := strings.TrimSpace(first)
	switch {
	case text == "":
		text = t.Title
	case t.Title != "" && t.Title != text:
		text = t.Title + ": " + text
	}
	text = redact.Printable(text)
	if utf8.RuneCountInString(text) > maxAbout {
		text = string([]rune(text)[:maxAbout-1]) + "…"
	}
	return text
}

// AbsentIDs are the upstreams that list nothing, in order.
func (l *Listing) AbsentIDs() []string { return slices.Sorted(maps.Keys(l.Absent)) }

// Has reports whether a tool of that public name is listed.
func (l *Listing) Has(name string) bool {
	return slices.ContainsFunc(l.Tools, func(t ListedTool) bool { return t.Name == name })
}

// Similar are the names of the list that a person may have meant by name, the three nearest at most.
func (l *Listing) Similar(name string) []string {
	var out []string
	for _, t := range l.Tools {
		if near(name, t.Name) {
			out = append(out, t.Name)
		}
	}
	return out[:min(len(out), 3)]
}

// near reports whether a public name is name with another case, without its prefix, or with few other letters.
func near(name, public string) bool {
	name, public = strings.ToLower(name), strings.ToLower(public)
	if _, bare, ok := strings.Cut(name, "__"); ok {
		name = strings.TrimLeft(name, "_")
		if strings.HasSuffix(public, "__"+bare) {
			return true
		}
	} else if strings.HasSuffix(public, "__"+name) {
		return true
	}
	return len(name) <= 128 && distance(name, public) <= max(1, len(public)/5)
}

// distance counts the letters to insert, delete or replace between a and b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
