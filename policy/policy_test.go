package policy_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"mcp-gateway/policy"
)

// match asks a policy with one pattern.
func match(pattern, name string) bool {
	return policy.New(map[string]policy.Tools{"a": {Allow: []string{pattern}}}).Allows("", "a", name)
}

func TestMatch(t *testing.T) {
	for _, row := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "a.b/c\nd", true},
		{"?", "", false},
		{"?", "é", true},
		{"?", "\xff", true},
		{"??", "é", false},
		{"read_*", "read_file", true},
		{"read_*", "read_", true},
		{"read_*", "READ_file", false},
		{"*_file", "read_file", true},
		{"*_file", "read_files", false},
		{"a*b*c", "aXbXbYc", true},
		{"a*b*c", "aXcXb", false},
		{"*é", "aéé", true},
		{"a**b", "ab", true},
		{"[a]", "a", false},
		{"[a]", "[a]", true},
		{`\*`, `\x`, true},
		{"a?c", "abc", true},
		{"*a?", "aaab", true},
	} {
		if got := match(row.pattern, row.name); got != row.want {
			t.Errorf("match(%q, %q) = %t", row.pattern, row.name, got)
		}
	}
}

func TestAllows(t *testing.T) {
	p := policy.New(map[string]policy.Tools{
		"all":    {},
		"none":   {Allow: []string{}},
		"some":   {Allow: []string{"read_*", "list"}, Deny: []string{"read_secret*"}},
		"most":   {Deny: []string{"delete_*"}},
		"denied": {Allow: []string{"*"}, Deny: []string{"**"}},
		// What is allowed is denied as well, in part or in whole.
		"same":  {Allow: []string{"read", "list_*"}, Deny: []string{"list_*", "read"}},
		"wider": {Allow: []string{"read_a?", "read_*b"}, Deny: []string{"r*"}},
		"rest":  {Allow: []string{"read_*"}, Deny: []string{"read_?"}},
		"one":   {Allow: []string{"a", "b"}, Deny: []string{"b"}},
		"empty": {Deny: []string{"?*"}},
		"every": {Deny: []string{"*"}},
	})
	for _, row := range []struct {
		upstream, tool string
		want           bool
	}{
		{"all", "anything", true},
		{"none", "anything", false},
		{"some", "read_file", true},
		{"some", "read_secret_file", false},
		{"some", "list", true},
		{"some", "lists", false},
		{"some", "List", false},
		{"most", "delete_all", false},
		{"most", "read", true},
		{"denied", "read", false},
		{"unknown", "read", false},
		{"same", "read", false},
		{"rest", "read_a", false},
		{"rest", "read_*", false},
		{"rest", "read_ab", true},
	} {
		if got := p.Allows("alice", row.upstream, row.tool); got != row.want {
			t.Errorf("%s %s = %t", row.upstream, row.tool, got)
		}
	}
	for upstream, want := range map[string]bool{
		"all": true, "none": false, "some": true, "most": true, "denied": false, "unknown": false,
		"same": false, "wider": false, "rest": true, "one": true, "empty": true, "every": false,
	} {
		if got := p.AllowsSome("alice", upstream); got != want {
			t.Errorf("AllowsSome %s = %t", upstream, got)
		}
	}
}

func TestAllowsKeepsItsOwnRules(t *testing.T) {
	allow := []string{"read"}
	p := policy.New(map[string]policy.Tools{"a": {Allow: allow}})
	allow[0] = "*"
	if p.Allows("", "a", "write") {
		t.Error("a later change of the configuration reached the policy")
	}
}

// A pattern that would make a backtracking matcher run for ages takes its product of steps at most.
func TestMatchOfManyStarsEnds(t *testing.T) {
	pattern := strings.Repeat("a*", 200) + "b"
	if match(pattern, strings.Repeat("a", 20_000)) {
		t.Error("matched a name without b")
	}
}

func TestAllowsAllocatesNothing(t *testing.T) {
	p := policy.New(map[string]policy.Tools{"a": {Allow: []string{"x*", "*_file"}, Deny: []string{"*secret*"}}})
	if n := testing.AllocsPerRun(100, func() { p.Allows("alice", "a", "read_the_file") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Who may see nothing of an upstream is allowed no name of it, whatever the patterns.
func FuzzAllowsSome(f *testing.F) {
	f.Add("a*", "a**", "ab")
	f.Add("a?*", "?*", "*?")
	f.Add("*", "*?", "")
	f.Fuzz(func(t *testing.T, allow, deny, name string) {
		if len(allow+deny+name) > 300 || !utf8.ValidString(allow) || !utf8.ValidString(deny) || !utf8.ValidString(name) {
			return
		}
		p := policy.New(map[string]policy.Tools{"a": {Allow: []string{allow}, Deny: []string{deny}}})
		if p.Allows("", "a", name) && !p.AllowsSome("", "a") {
			t.Errorf("allow %q, deny %q: allows %q, and nothing", allow, deny, name)
		}
	})
}

func FuzzMatch(f *testing.F) {
	f.Add("a*b?c", "aXbYc")
	f.Add("**", "é")
	f.Add("?", "\xff")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if strings.ToValidUTF8(pattern, "") != pattern || strings.ToValidUTF8(name, "") != name || len(pattern) > 100 {
			return
		}
		quoted := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(pattern))
		if want := regexp.MustCompile(`(?s)^(?:` + quoted + `)$`).MatchString(name); match(pattern, name) != want {
			t.Errorf("match(%q, %q) = %t", pattern, name, !want)
		}
	})
}
