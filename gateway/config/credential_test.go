package config_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcp-gateway/gateway/config"
)

func TestCredentials(t *testing.T) {
	var got []string
	for _, u := range load(t, "credentials.good.yaml").Upstreams {
		c := u.Credential
		if c == nil {
			t.Fatalf("%s has no credential", u.ID)
		}
		line := fmt.Sprintf("%s bearer=%s file=%s command=%q query=%s", u.ID, c.Bearer.Reveal(), c.BearerFile, reveal(c.Command), c.Query)
		if o := c.OAuth2; o != nil {
			line += fmt.Sprintf(" oauth2=%s %s %s %s %q %s", o.TokenURL.Reveal(), o.ClientID, o.ClientSecret.Reveal(), o.RefreshToken.Reveal(), o.Scopes, o.Resource)
		}
		got = append(got, line)
	}
	want := []string{
		"env bearer=planted-env-1 file= command=[] query=",
		"file bearer= file=" + filepath.Join("testdata", "token.txt") + " command=[] query=",
		"joined bearer=aplanted-file-token file= command=[] query=",
		"two bearer=planted-file-tokenplanted-file-token file= command=[] query=",
		`program bearer= file= command=["/opt/my tools/helper"] query=`,
		`arguments bearer= file= command=["helper" "--token" "planted-env-1" "--scope" "read"] query=`,
		`client bearer= file= command=[] query= oauth2=http://localhost:9/token?tenant=a gateway planted-env-1  ["read" "files:write"] https://h.example/`,
		`refresh bearer= file= command=[] query= oauth2=https://auth.example/token   planted-env-1 [] `,
		"socket bearer=planted-env-1 file= command=[] query=access_token",
		"socket-user bearer=planted-env-1 file= command=[] query=t",
		`referenced bearer= file= command=["token helper"] query=a.b~c`,
		`spaced bearer= file= command=["token helper" "a"] query=`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	absolute, err := filepath.Abs(filepath.Join("testdata", "token.txt"))
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Parse("f", []byte("upstreams: {a: {url: 'https://h.example/', credential: {bearer: '${file:"+absolute+"}'}}}"))
	if err != nil || c.Upstreams[0].Credential.BearerFile != absolute {
		t.Errorf("an absolute path: %v, %v", c, err)
	}
}

func TestSecretsOfCredentials(t *testing.T) {
	c := load(t, "cleartext.good.yaml")
	known := knownTexts(c)
	for _, want := range []string{"planted-helper-1", "planted-file-token", "planted-token-url-1", "planted-client-1", "planted-resource-1", "short"} {
		if !slices.Contains(known, want) {
			t.Errorf("%q is not known", want)
		}
	}
	if u := c.Upstreams[4]; u.Credential != nil || u.ForwardHeaders != nil {
		t.Errorf("the url's side is left in %v", u)
	}
}

func TestCallSettings(t *testing.T) {
	c := load(t, "calls.good.yaml")
	if c.StreamAfter != 2*time.Second {
		t.Errorf("stream_after is %v", c.StreamAfter)
	}
	var got []string
	for _, u := range c.Upstreams {
		got = append(got, fmt.Sprintf("%s %d %d %v %v %d %v %t %v",
			u.ID, u.Concurrency, u.Queue, u.Poll, u.InputTimeout, u.Rounds, u.ToolTimeouts, u.ResultsVerbatim, u.ForwardHeaders))
	}
	want := []string{
		"piped 0 256 0s 10m0s 16 [] false []",
		"socket 4 0 1m0s 10m0s 16 [] false []",
		"events 32 256 0s 10m0s 16 [] false []",
		"streamed 0 256 0s 10m0s 16 [] false []",
		"plain 8 10 0s 1m0s 3 [{build_* 30m0s} {a.b 1s} {* 2m0s}] true [{X-User false} {X-Tenant true} {traceparent false}]",
		"whole 32 256 0s 10m0s 16 [] false []",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
