package front

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the front answers into the conversations")

// A conversation is a file in testdata: prose, then what a client sends and what it must get, in turns. A request is a
// method, headers, an empty line and a body, an answer likewise with a status. In a request, a line @post stands for the
// headers of every POST and @modern for those of every modern one; META stands for the modern _meta, and SESSION for the
// token that was given last. In the files whose name holds "listen", all listening ends at once.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { converse(t, file) })
	}
}

func converse(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, server := start(t, Config{Changes: new(changes).of})
	if strings.Contains(file, "listen") {
		f.EndStreams()
	}
	prose, sections := split(string(text))
	out := prose
	token := ""
	for i := 0; i < len(sections); i += 2 {
		got := exchange(t, server.URL+"/mcp", sections[i].text, &token)
		out += "-- " + sections[i].name + " --\n" + sections[i].text + "-- answer --\n" + got
		if !*update && (i+1 == len(sections) || got != sections[i+1].text) {
			t.Errorf("to %q the front answers\n%s\nrun go test with -update and look at the change", sections[i].name, got)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

type section struct{ name, text string }

// split reads the txtar format: prose, then sections that begin with a line "-- name --".
func split(text string) (prose string, sections []section) {
	for line := range strings.SplitAfterSeq(text, "\n") {
		name, ok := strings.CutPrefix(line, "-- ")
		if name, ok2 := strings.CutSuffix(name, " --\n"); ok && ok2 {
			// Answers are made anew with -update, so that a file may begin with requests alone.
			if name != "answer" && len(sections)%2 == 1 {
				sections = append(sections, section{name: "answer"})
			}
			sections = append(sections, section{name: name})
		} else if len(sections) == 0 {
			prose += line
		} else {
			sections[len(sections)-1].text += line
		}
	}
	return prose, sections
}

var shown = []string{"Allow", "Content-Type", "Mcp-Session-Id", "Www-Authenticate", "X-Accel-Buffering", "Cache-Control"}

func exchange(t *testing.T, url, request string, token *string) string {
	head, body, _ := strings.Cut(request, "\n\n")
	lines := strings.Split(head, "\n")
	h := map[string][]string{}
	for _, line := range lines[1:] {
		switch line {
		case "@post", "@modern":
			h["Content-Type"] = []string{"application/json"}
			h["Accept"] = []string{"application/json, text/event-stream"}
			if line == "@modern" {
				h["Mcp-Protocol-Version"] = []string{"2026-07-28"}
			}
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.ReplaceAll(strings.TrimSpace(value), "SESSION", *token)
		h[key] = append(h[key], value)
	}
	body = strings.ReplaceAll(strings.TrimSuffix(body, "\n"), "META", testMeta)
	got := send(t, lines[0], url, h, body)
	var out bytes.Buffer
	out.WriteString(strconv.Itoa(got.status) + "\n")
	for _, key := range shown {
		for _, value := range got.header[key] {
			if key == "Mcp-Session-Id" {
				*token = value
				value = "SESSION"
			}
			out.WriteString(key + ": " + value + "\n")
		}
	}
	for key := range got.header {
		if strings.HasPrefix(key, "Mcp-") && !slices.Contains(shown, key) {
			t.Errorf("an answer has the header %s", key)
		}
	}
	out.WriteString("\n")
	if got.body != "" {
		out.WriteString(strings.TrimSuffix(got.body, "\n") + "\n")
	}
	return out.String()
}
