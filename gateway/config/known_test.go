package config_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"mcp-gateway/gateway/config"
	"mcp-gateway/redact"
)

// learned shows each Known in a line: what it is, its name, its text.
func learned(c *config.Config) []string {
	lines := map[string]bool{}
	for _, k := range c.Secrets() {
		kind := "credential"
		switch {
		case k.Record:
			kind = "record"
		case k.Userinfo:
			kind = "userinfo"
		}
		if k.Header {
			kind += " header"
		}
		lines[strings.TrimSpace(kind+" "+k.Name)+" = "+k.Text.Reveal()] = true
	}
	return slices.Sorted(maps.Keys(lines))
}

func knownTexts(c *config.Config) []string {
	var texts []string
	for _, k := range c.Secrets() {
		texts = append(texts, k.Text.Reveal())
	}
	return texts
}

// parse loads one upstream with these members.
func parse(t *testing.T, members string) *config.Config {
	t.Helper()
	c, _, err := config.Parse("testdata/known.yaml", []byte("upstreams: {a: {"+members+"}}"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every place that may hold a credential, and what each value there is taken for.
func TestKnown(t *testing.T) {
	t.Setenv("KNOWN_TEST_TOKEN", "planted-env-1")
	t.Setenv("KNOWN_TEST_KIND", "ghp_0123456789abcdefghij")
	t.Setenv("KNOWN_TEST_WORD", "ordinary-word-of-1")
	for members, want := range map[string][]string{
		// Variables: by name, but not where the name or the value says where something is; by shape; the rest for records.
		`command: a, env: {GITHUB_TOKEN: abc-1, API_KEYS: k2, PGPASSWORD: postgres, TOKEN2: x}`: {
			"credential API_KEYS = k2", "credential GITHUB_TOKEN = abc-1", "credential PGPASSWORD = postgres", "credential TOKEN2 = x"},
		`command: a, env: {KEY_FILE: key-1, AUTH_URL: u, PWD: /a, API_KEY: /etc/key, A_TOKEN: "https://h.example/x", LOG: debug, B_KEY: /Ab3Ab3Ab3Ab3Ab3Ab3}`: {
			"credential B_KEY = /Ab3Ab3Ab3Ab3Ab3Ab3", "record API_KEY = /etc/key", "record AUTH_URL = u", "record A_TOKEN = https://h.example/x",
			"record KEY_FILE = key-1", "record LOG = debug", "record PWD = /a"},
		`command: a, env: {SETTING: Ab3Ab3Ab3Ab3Ab3A, OPTIONS: --max-old-space-size=4096, HOST: ip-10-0-0-1.ec2.internal, NAME: my-own-server-name-of-2026, CASE: 01234567-89ab-cdef-0123-456789abcdef, OTHER: ghp_short0000000000000}`: {
			"credential = ghp_short0000000000000", "credential = Ab3Ab3Ab3Ab3Ab3A",
			"record CASE = 01234567-89ab-cdef-0123-456789abcdef", "record HOST = ip-10-0-0-1.ec2.internal", "record NAME = my-own-server-name-of-2026",
			"record OPTIONS = --max-old-space-size=4096", "record OTHER = ghp_short0000000000000", "record SETTING = Ab3Ab3Ab3Ab3Ab3A"},
		`command: a, env: {MODEL: gpt-4o-mini-2024-07-18, COMMIT: 0123456789abcdef0123456789abcdef01234567, DB: analytics2024prod}, args: [0f23456789abcdef0123456789abcdef01234567, --run, team2024payments1]`: {
			"record = 0123456789abcdef0123456789abcdef01234567", "record = 0f23456789abcdef0123456789abcdef01234567", "record = analytics2024prod",
			"record = gpt-4o-mini-2024-07-18", "record = team2024payments1", "record COMMIT = 0123456789abcdef0123456789abcdef01234567", "record DB = analytics2024prod",
			"record MODEL = gpt-4o-mini-2024-07-18", "record run = team2024payments1"},
		// A switch says nothing, whatever its name.
		`command: a, env: {USE_AUTH: "true", REPO_PRIVATE: "False", KEY: "on"}`: {"record KEY = on", "record REPO_PRIVATE = False", "record USE_AUTH = true"},
		`command: a, env: {REFERENCED: "${env:KNOWN_TEST_KIND}"}`:               {"credential = ghp_0123456789abcdefghij", "record REFERENCED = ghp_0123456789abcdefghij"},
		// Connection strings: of libpq, of ADO, of JDBC, of Redis, and several pairs in an argument.
		`command: a, env: {DSN: "host=h user=u password='p 1\\'2' dbname=d"}`: {"credential password = p 1'2", `record DSN = host=h user=u password='p 1\'2' dbname=d`},
		`command: a, env: {DSN: "Server=h;User Id=sa;Password = my pass-1;Access Token=\"t;1\"\"\""}`: {
			"credential Password = my", "credential Password = my pass-1", `credential Token = t;1"`, `record DSN = Server=h;User Id=sa;Password = my pass-1;Access Token="t;1"""`},
		`command: a, env: {DSN: "jdbc:sqlserver://h.example:1433;user=u;pwd=abc-1;KeyFile=/k;token="}`: {
			"credential pwd = abc-1", "record DSN = jdbc:sqlserver://h.example:1433;user=u;pwd=abc-1;KeyFile=/k;token="},
		`command: a, env: {DSN: "h.example:6379,password=abc=1=,ssl=True,key=true", PLAIN: "a=b key"}`: {
			"credential password = abc=1=", "credential password = abc=1=,ssl=True,key=true", "record DSN = h.example:6379,password=abc=1=,ssl=True,key=true", "record PLAIN = a=b key"},
		`command: a, env: {FORM: "a=1&api_key=k-1&b=2"}`: {"credential api_key = k-1", "credential api_key = k-1&b=2", "record FORM = a=1&api_key=k-1&b=2"},
		`command: a, args: ["password=pw-1 host=h", "-Dsecret=s-1 -Dx=y"]`: {
			"credential password = pw-1", "credential password = pw-1 host=h", "credential Dsecret = s-1", "credential Dsecret = s-1 -Dx=y"},
		// JSON in a value.
		`command: a, env: {ACCOUNT: '{"type": "x", "private_key": "a\nb1", "n": {"tokens": ["t-1", {"pin_key": 1234}], "key_id": "i", "secret": true, "db": "password=p-1", "url": "ftp:\/\/u:pw-2@h"}}'}`: {
			"credential private_key = a\nb1", "credential tokens = t-1", "credential pin_key = 1234", "credential password = p-1", "credential = pw-2", "userinfo = u:pw-2",
			`record ACCOUNT = {"type": "x", "private_key": "a\nb1", "n": {"tokens": ["t-1", {"pin_key": 1234}], "key_id": "i", "secret": true, "db": "password=p-1", "url": "ftp:\/\/u:pw-2@h"}}`},
		`command: a, env: {LIST: '{"key": "a-1"'}`: {`record LIST = {"key": "a-1"`},
		// The path of a web address may be a credential, the name of a database is none.
		`command: a, env: {DB: "mysql://h.example/analytics2024prod", HOOK: "https://h.example/Ab3Ab3Ab3Ab3Ab3A"}`: {
			"credential = Ab3Ab3Ab3Ab3Ab3A", "record = analytics2024prod", "record DB = mysql://h.example/analytics2024prod", "record HOOK = https://h.example/Ab3Ab3Ab3Ab3Ab3A"},
		// Urls in values.
		`command: a, env: {DATABASE_URL: "postgres://u:p%40ss-1@h.example/db?sslmode=on&password=pw%2B1&pwd=pw-2"}`: {
			"credential = p%40ss-1", "credential = p@ss-1", "credential password = pw%2B1", "credential password = pw+1",
			"record DATABASE_URL = postgres://u:p%40ss-1@h.example/db?sslmode=on&password=pw%2B1&pwd=pw-2", "credential pwd = pw-2", "record sslmode = on",
			"userinfo = u:p%40ss-1", "userinfo = u:p@ss-1"},
		`command: a, env: {DB: "jdbc:postgresql://u:planted@h.example/db", LIST: "mongodb://m:pl/an?ted@h1:1,h2:2/db"}`: {
			"credential = pl/an?ted", "credential = planted", "record DB = jdbc:postgresql://u:planted@h.example/db",
			"record LIST = mongodb://m:pl/an?ted@h1:1,h2:2/db", "userinfo = m:pl%2Fan%3Fted", "userinfo = m:pl/an?ted", "userinfo = u:planted"},
		// Arguments.
		`command: a, args: [--token, abc-1, --api-key=abc-2, "-v", "X_SECRET=abc-3", "LOG=debug", "Authorization: Bearer abc-4", "redis://:abc-5@h.example see ftp://abc-6:@h.example", word]`: {
			"credential = abc-5", "credential X_SECRET = abc-3", "credential api-key = abc-2", "credential token = abc-1", "credential Authorization = abc-4",
			"credential header Authorization = Bearer abc-4", "record LOG = debug", "userinfo = :abc-5", "userinfo = abc-6:"},
		// Headers: by name, by shape, the rest for records.
		`url: "https://h.example/", headers: {X-Api-Key: abc-1, X-Team: blue, X-Other: Ab3Ab3Ab3Ab3Ab3A, X-Case: my-own-server-name-of-2026, Authorization: "Basic dTpwYXNz"}`: {
			"credential = pass", "credential Authorization = dTpwYXNz", "credential header Authorization = Basic dTpwYXNz", "credential header X-Api-Key = abc-1",
			"credential header X-Other = Ab3Ab3Ab3Ab3Ab3A", "record header X-Case = my-own-server-name-of-2026", "record header X-Team = blue", "userinfo = u:pass"},
		// A url as it is configured and as it is sent.
		`url: "wss://us er:pa~ss+1@h.example/Ab3Ab3Ab3Ab3Ab3A/my-own-server-name-of-2026?api_key=k%20-1&team=blue&Cd4Cd4Cd4Cd4Cd4C&x=Ef5Ef5Ef5Ef5Ef5Ef5%2F"`: nil,
		`url: "wss://user:pa~ss+1@h.example/Ab3Ab3Ab3Ab3Ab3A/my-own-server-name-of-2026?api_key=k%20-1&team=blue&Cd4Cd4Cd4Cd4Cd4C&x=Ef5Ef5Ef5Ef5Ef5Ef5%2F"`: {
			"credential = Ab3Ab3Ab3Ab3Ab3A", "credential = Cd4Cd4Cd4Cd4Cd4C", "credential = Ef5Ef5Ef5Ef5Ef5Ef5%2F", "credential = Ef5Ef5Ef5Ef5Ef5Ef5/",
			"credential = pa~ss+1", "credential api_key = k -1", "credential api_key = k%20-1", "record = my-own-server-name-of-2026", "record team = blue",
			"userinfo = user:pa~ss+1"},
		// Files count from 16 characters or by their name, variables by theirs.
		`command: a, env: {X: "${env:KNOWN_TEST_TOKEN}", Y: "${env:KNOWN_TEST_WORD}"}`: {
			"credential = planted-env-1", "record X = planted-env-1", "record Y = ordinary-word-of-1"},
	} {
		if want == nil {
			if _, _, err := config.Parse("f", []byte("upstreams: {a: {"+members+"}}")); err == nil {
				t.Errorf("%s is taken", members)
			}
			continue
		}
		slices.Sort(want)
		if got := learned(parse(t, members)); !slices.Equal(got, want) {
			t.Errorf("%s\n got %q\nwant %q", members, got, want)
		}
	}
}

func TestKnownOfTheEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy:planted-proxy-1@proxy.example:3128")
	t.Setenv("http_proxy", "proxy:planted-proxy-2@proxy.example:3128")
	t.Setenv("PLANTED_TOKEN", "planted-inherited-1")
	t.Setenv("PLANTED_DSN", "mysql://u:planted-inherited-2@h.example/")
	t.Setenv("PLANTED_LIBPQ", "host=h password=planted-inherited-3")
	t.Setenv("PLANTED_KIND", "glpat-planted-inherited-4")
	inherited := []string{"credential password = planted-inherited-3", "credential = glpat-planted-inherited-4",
		"credential PLANTED_TOKEN = planted-inherited-1", "credential = planted-inherited-2", "userinfo = u:planted-inherited-2"}
	for members, want := range map[string]bool{"command: a, inherit_env: true": true, "command: a": false} {
		got := learned(parse(t, members))
		for _, line := range []string{"credential = planted-proxy-1", "userinfo = proxy:planted-proxy-1", "credential = planted-proxy-2"} {
			if !slices.Contains(got, line) {
				t.Errorf("%s: %q is not known", members, line)
			}
		}
		for _, line := range inherited {
			if slices.Contains(got, line) != want {
				t.Errorf("%s: %q is known: %t", members, line, !want)
			}
		}
	}
}

func TestKnownOfSealKeys(t *testing.T) {
	key := strings.Repeat("k", 32)
	c, _, err := config.Parse("f", fmt.Appendf(nil, "upstreams: {a: {command: a}}\nseal: {keys: [%s]}", base64.StdEncoding.EncodeToString([]byte(key))))
	if err != nil {
		t.Fatal(err)
	}
	got := learned(c)
	for _, want := range []string{"credential = " + key, "credential = " + base64.StdEncoding.EncodeToString([]byte(key))} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not known: %q", want, got)
		}
	}
}

// A public name is never redacted: one that holds a credential is refused, and one that only looks like something else keeps
// records readable.
func TestPublicNames(t *testing.T) {
	const text = "upstreams: {%s: {command: a, env: {%s: %s}}}"
	if _, _, err := config.Parse("f", fmt.Appendf(nil, text, "postgres", "DB_PASSWORD", "postgres")); err == nil {
		t.Error("an id that is a password is taken")
	}
	if _, _, err := config.Parse("f", fmt.Appendf(nil, text, "debug", "LOG_LEVEL", "debug")); err != nil {
		t.Error(err)
	}
	c, _, err := config.Parse("f", []byte(`upstreams: {my-own-server-of-2026: {url: "https://h.example/my-own-server-of-2026/and-one-more-of-2026"}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := redact.NewScrubber()
	s.Learn(c.Secrets()...)
	if got := s.String("my-own-server-of-2026 and-one-more-of-2026"); got != "my-own-server-of-2026 "+redact.Mask {
		t.Error(got)
	}
}
