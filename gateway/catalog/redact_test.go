package catalog

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/policy"
)

// A vault is what Redact takes out, in its plainest form.
type vault struct {
	secret  atomic.Pointer[string]
	version atomic.Uint64
	judged  atomic.Int32
}

func newVault(secret string) *vault {
	v := &vault{}
	v.set(secret)
	return v
}

func (v *vault) set(secret string) {
	v.secret.Store(&secret)
	v.version.Add(1)
}

func (v *vault) redact(definition []byte) ([]byte, bool) {
	v.judged.Add(1)
	secret := []byte(*v.secret.Load())
	if bytes.Contains(definition, append([]byte(`__`), secret...)) {
		return nil, false
	}
	if !bytes.Contains(definition, secret) {
		return definition, true
	}
	return bytes.ReplaceAll(definition, secret, []byte("[redacted]")), true
}

func startRedacted(t *testing.T, v *vault, out *strings.Builder, sources ...Source) *Catalog {
	t.Helper()
	rules := map[string]policy.Tools{}
	for i := range sources {
		rules[sources[i].ID] = policy.Tools{}
		sources[i].Timeout = time.Minute
	}
	c := New(Config{
		Sources: sources, Policy: policy.New(rules), ServerInfo: []byte(`{}`), Log: slog.New(slog.NewTextHandler(out, nil)),
		Redact: v.redact, Secrets: v.version.Load,
	})
	c.Start()
	t.Cleanup(c.Close)
	return c
}

const secretive = `{"tools":[{"name":"plain","description":"n"},{"name":"says","description":"hunter22"},{"name":"hunter22"}]}`

// A definition is served without what is secret, or not at all; a server whose results pass as they are is left alone.
func TestDefinitionsAreRedacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		c := startRedacted(t, newVault("hunter22"), &out, one(newScript(map[string]string{"": secretive})),
			Source{ID: "v", Prefix: "v__", Upstream: newScript(map[string]string{"": secretive}), Verbatim: true})
		wantNames(t, c, "s__plain", "s__says", "v__plain", "v__says", "v__hunter22")
		if got, want := string(c.View().Tool("s", "says").JSON), `{"name":"s__says","description":"[redacted]"}`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got, want := string(c.View().Tool("v", "says").JSON), `{"name":"v__says","description":"hunter22"}`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		c.Close()
		if got := out.String(); strings.Contains(got, "hunter22") || !strings.Contains(got, "upstream=s tools=1") {
			t.Errorf("logged\n%s", got)
		}
	})
}

// What is prepared is judged again before it is served, once for each new set of secrets, and those whose list differs are told.
func TestListingsAreJudgedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		v := newVault("unknown")
		c := startRedacted(t, v, &out, one(newScript(map[string]string{"": secretive})),
			Source{ID: "o", Prefix: "o__", Upstream: newScriptOf("other")})
		wantNames(t, c, "s__plain", "s__says", "s__hunter22", "o__other")
		wantTold(t, c, 2, "two listings")
		old := c.Fresh(t.Context(), "me")
		judged := v.judged.Load()

		v.set("hunter22")
		got := c.Fresh(t.Context(), "me")
		if text := string(got.Page(0).Raw()); strings.Contains(text, "hunter22") || !strings.Contains(text, "[redacted]") {
			t.Errorf("served %s", text)
		}
		if got.Digest == old.Digest {
			t.Error("a cursor of the old list leads into the new one")
		}
		if text := string(old.Tool("s", "says").JSON); !strings.Contains(text, "hunter22") {
			t.Error("a view that was given out has changed")
		}
		wantNames(t, c, "s__plain", "s__says", "o__other")
		wantTold(t, c, 3, "a list that differs")
		if n := v.judged.Load() - judged; n != 4 {
			t.Errorf("judged %d definitions, want all 4", n)
		}
		if c.Fresh(t.Context(), "me") != got || v.judged.Load()-judged != 4 {
			t.Error("judged again with the same secrets")
		}
		if got := strings.Count(out.String(), "names that hold a credential"); got != 1 {
			t.Errorf("logged %d times, want once:\n%s", got, out.String())
		}
		v.set("in no definition")
		again := c.Fresh(t.Context(), "me")
		wantTold(t, c, 3, "secrets that are in no definition")
		if &again.Page(0).Raw()[0] != &got.Page(0).Raw()[0] {
			t.Error("a page that is the same was put together again")
		}
	})
}

// A listing that was judged while the secrets changed is judged again before it is served.
func TestSecretsThatChangeDuringAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		v := newVault("unknown")
		s := newScript(map[string]string{"": strings.Replace(secretive, `]}`, `],"nextCursor":"2"}`, 1), "2": pageOf("last")})
		s.onPage = func() {
			if s.count() == 2 {
				v.set("hunter22")
			}
		}
		c := startRedacted(t, v, &out, one(s))
		synctest.Wait()
		if text := string(c.Fresh(t.Context(), "me").Page(0).Raw()); strings.Contains(text, "hunter22") || !strings.Contains(text, "s__last") {
			t.Errorf("served %s", text)
		}
	})
}

// A description that is judged otherwise makes another digest, though the tools are the same.
func TestRedactedTextIsInTheDigest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		list := map[string]string{"": `{"tools":[{"name":"says","description":"hunter22"}]}`}
		a := startRedacted(t, newVault("hunter22"), &out, one(newScript(list)))
		b := startRedacted(t, newVault("unknown"), &out, one(newScript(list)))
		synctest.Wait()
		if a.View().Digest == b.View().Digest {
			t.Error("two lists that differ have one digest")
		}
	})
}

// What a listing was besides its tools stays when they are judged again, nothing is logged twice, and only what was judged with other
// secrets is judged.
func TestJudgingKeepsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		v := newVault("hunter22")
		s := newScript(map[string]string{"": strings.Replace(secretive, `]}`, `,{"name":"task","execution":{"taskSupport":"required"}}]}`, 1)})
		o := newScriptOf("other")
		c := startRedacted(t, v, &out, one(s), Source{ID: "o", Prefix: "o__", Upstream: o})
		wantNames(t, c, "s__plain", "s__says", "o__other")
		before := c.sources[0].listing
		v.set("hunter22")
		c.Relist(t.Context(), "o")
		judged := v.judged.Load()
		c.Fresh(t.Context(), "me")
		if got := v.judged.Load() - judged; got != 2 {
			t.Errorf("judged %d definitions, want the 2 of s", got)
		}
		now := c.sources[0].listing
		if now == before || now.revision != before.revision || now.invalid != 1 || now.withheld != 1 || len(now.leftOut) != 1 {
			t.Errorf("the listing is %+v, was %+v", now, before)
		}
		c.Relist(t.Context(), "s")
		wantNames(t, c, "s__plain", "s__says", "o__other")
		c.Close()
		if got := strings.Count(out.String(), "left out"); got != 2 {
			t.Errorf("logged %d times, want one tool and one count:\n%s", got, out.String())
		}
	})
}
