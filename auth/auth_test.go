package auth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcp-gateway/auth"
)

func newCaller(t *testing.T, name string) (auth.Key, string) {
	t.Helper()
	secret, stored := auth.NewKey()
	key, err := auth.ParseKey(name, stored)
	if err != nil {
		t.Fatal(err)
	}
	return key, secret.Reveal()
}

func TestAuthenticate(t *testing.T) {
	alice, aliceKey := newCaller(t, "alice")
	bob, bobKey := newCaller(t, "bob")
	_, other := newCaller(t, "other")
	callers := auth.NewCallers(alice, bob)
	for _, row := range []struct {
		name    string
		headers []string
		caller  string
		reason  string
	}{
		{"first", []string{"Bearer " + aliceKey}, "alice", ""},
		{"last", []string{"bearer  " + bobKey + " "}, "bob", ""},
		{"none", nil, "", "an API key is needed"},
		{"twice", []string{"Bearer " + aliceKey, "Bearer " + aliceKey}, "", "more than one"},
		{"two in one", []string{"Bearer " + aliceKey + ", Bearer " + aliceKey}, "", "not known"},
		{"unknown", []string{"Bearer " + other}, "", "not known"},
		{"cut", []string{"Bearer " + aliceKey[:len(aliceKey)-1]}, "", "not known"},
		{"other scheme", []string{"Basic " + aliceKey}, "", "not an API key"},
		{"no scheme", []string{aliceKey}, "", "not an API key"},
		{"other prefix", []string{"Bearer x" + aliceKey}, "", "not an API key"},
		{"empty", []string{""}, "", "not an API key"},
		{"the hash", []string{"Bearer sha256:" + alice.Hash()}, "", "not an API key"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
			r.Header["Authorization"] = row.headers
			caller, err := callers.Authenticate(r)
			if caller.Name != row.caller {
				t.Errorf("caller %q, want %q", caller.Name, row.caller)
			}
			if row.reason == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			denied, ok := errors.AsType[*auth.Unauthenticated](err)
			if !ok || !strings.Contains(denied.Reason, row.reason) || denied.Challenge() != "Bearer" {
				t.Fatalf("error %v, want one with %q", err, row.reason)
			}
			if strings.Contains(err.Error(), aliceKey[10:]) || strings.Contains(err.Error(), other) {
				t.Errorf("what was sent is in %q", err)
			}
		})
	}
}

func TestNoCallersLetEveryoneIn(t *testing.T) {
	var callers auth.Callers
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header["Authorization"] = []string{"Bearer x", "Bearer y"}
	if caller, err := callers.Authenticate(r); err != nil || caller.Name != "" || !callers.None() {
		t.Errorf("%v, %v", caller, err)
	}
}

func TestNewKey(t *testing.T) {
	one, stored := auth.NewKey()
	two, _ := auth.NewKey()
	if text := one.Reveal(); len(text) != len("mcpgw_")+43 || !strings.HasPrefix(text, "mcpgw_") || text == two.Reveal() {
		t.Error("a key is not 32 random bytes")
	}
	if len(stored) != len("sha256:")+64 || strings.Contains(stored, one.Reveal()) {
		t.Errorf("stored as %q", stored)
	}
}

func TestParseKeyRefuses(t *testing.T) {
	secret, stored := auth.NewKey()
	for _, row := range [][3]string{
		{"a", secret.Reveal(), "is the key itself"},
		{"a", "sha256:" + strings.Repeat("g", 64), "other characters"},
		{"a", stored[:len(stored)-1], "it has 63"},
		{"a", "", "must begin with sha256:"},
		{"a", "SHA256:" + stored[7:], "must begin with sha256:"},
		{"", stored, "caller's name"},
		{"-a", stored, "caller's name"},
		{"a b", stored, "caller's name"},
		{strings.Repeat("a", 65), stored, "caller's name"},
	} {
		_, err := auth.ParseKey(row[0], row[1])
		if err == nil || !strings.Contains(err.Error(), row[2]) || strings.Contains(err.Error(), secret.Reveal()) {
			t.Errorf("ParseKey(%q, …): %v, want %q", row[0], err, row[2])
		}
	}
	if _, err := auth.ParseKey("a", strings.ToUpper(stored[7:])); err == nil {
		t.Error("a hash without its prefix passed")
	}
}

func TestKeyInTheNamesPlaceIsRefused(t *testing.T) {
	key, stored := auth.NewKey()
	if _, err := auth.ParseKey(key.Reveal(), stored); err == nil || strings.Contains(err.Error(), key.Reveal()) {
		t.Errorf("an API key as a name: %v", err)
	}
}

// Who was let in by a key is let in no longer than that key is under that name.
func TestHas(t *testing.T) {
	alice, aliceKey := newCaller(t, "alice")
	anew, _ := newCaller(t, "alice")
	bob, _ := newCaller(t, "bob")
	renamed := alice
	renamed.Name = "bob"
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header.Set("Authorization", "Bearer "+aliceKey)
	caller, err := auth.NewCallers(bob, alice).Authenticate(r)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		callers auth.Callers
		caller  auth.Caller
		want    bool
	}{
		"the same":             {auth.NewCallers(alice, bob), caller, true},
		"another key":          {auth.NewCallers(anew, bob), caller, false},
		"another key as well":  {auth.NewCallers(anew, alice), caller, true},
		"another name":         {auth.NewCallers(renamed), caller, false},
		"gone":                 {auth.NewCallers(bob), caller, false},
		"callers none":         {auth.NewCallers(), caller, false},
		"nobody, callers none": {auth.NewCallers(), auth.Caller{}, true},
		"nobody":               {auth.NewCallers(alice), auth.Caller{}, false},
	} {
		if got := row.callers.Has(row.caller); got != row.want {
			t.Errorf("%s: let in %v, want %v", name, got, row.want)
		}
	}
}
