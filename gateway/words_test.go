package gateway

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mcp-gateway/upstream"
)

var update = flag.Bool("update", false, "write the golden files")

const goldenWords = "testdata/words.txt"

// The file has every text that an agent may read of a failure, for a person to read.
func TestWords(t *testing.T) {
	var rows []string
	row := func(how string, w words) {
		rows = append(rows, fmt.Sprintf("%s\n\tretry: %s\n\tThe tool server \"files\" %s\n", how, w.retry, w.text))
	}
	for how, w := range wordsOf {
		row(string(how.Outcome)+", "+string(how.Cause), w)
	}
	row("error-response, hop-error, with proof that nothing ran", unrunForm)
	row("error-response, refused, for a session that has ended", unrunSession)
	row("no-response, unusable, for an answer that cannot be scrubbed", withheld)
	row("anything else", unknownEnding)
	slices.Sort(rows)
	got := strings.Join(rows, "\n")
	if *update {
		if err := os.WriteFile(goldenWords, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenWords)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the texts are not those of %s; read them as one who asks whether the call ran, and run the test with -update:\n%s", goldenWords, got)
	}
}

// Whoever reads only the text and whoever reads only the object must do the same.
func TestWordsAgreeWithTheirOutcome(t *testing.T) {
	for how, w := range wordsOf {
		unrun := strings.Contains(w.text, "nothing took effect")
		check := strings.Contains(w.text, "check before")
		again := strings.Contains(w.text, "You can try again") || strings.Contains(w.text, "You can make the call again")
		switch how.Outcome {
		case upstream.NotSent:
			if !unrun || check || w.retry == retryCheck {
				t.Errorf("%v does not say that nothing ran: %+v", how, w)
			}
		case upstream.NoResponse:
			if unrun || !check || w.retry != retryCheck {
				t.Errorf("%v does not say that it may have run: %+v", how, w)
			}
		}
		if unrun == check {
			t.Errorf("%v says both or neither: %+v", how, w)
		}
		if (w.retry == retrySafe) != again || (w.retry == retryNo) != strings.Contains(w.text, "Trying again will not help until") {
			t.Errorf("%v says something else than its retry: %+v", how, w)
		}
	}
}

// The list of causes is closed, and each has words.
func TestEveryCauseHasWords(t *testing.T) {
	known := map[upstream.Cause]bool{}
	for how := range wordsOf {
		known[how.Cause] = true
	}
	file, err := parser.ParseFile(token.NewFileSet(), "../upstream/outcome.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	causes := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Cause" {
			return true
		}
		cause, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		causes++
		if !known[upstream.Cause(cause)] {
			t.Errorf("no outcome with the cause %s has words", cause)
		}
		return true
	})
	if causes < len(known) {
		t.Errorf("%d causes are defined, and %d have words", causes, len(known))
	}
}

// A round after another may tell of no failure that claims that nothing ran.
func TestLaterRoundsMayHaveRun(t *testing.T) {
	for how := range wordsOf {
		f := failure{Error: ofLaterRound(&upstream.Error{Outcome: how.Outcome, Cause: how.Cause})}
		if _, ok := wordsOf[way{f.Outcome, f.Cause}]; !ok || f.Outcome != upstream.NoResponse || f.words().retry != retryCheck {
			t.Errorf("%v on a later round: %v, %+v", how, f.Error, f.words())
		}
	}
	if w := (&failure{Error: &upstream.Error{Outcome: upstream.NotSent, Cause: "new"}}).words(); w != unknownEnding {
		t.Errorf("%+v of a cause without words", w)
	}
}
