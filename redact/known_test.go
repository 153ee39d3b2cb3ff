package redact_test

import (
	"fmt"
	"testing"

	"mcp-gateway/redact"
)

const pem = "-----BEGIN PRIVATE KEY-----\r\nMIIEvQ1BADAN\r\n  Kw8eG+1z\r\nordinary\r\na1\r\n-----END PRIVATE KEY-----\r\n"

// What is known and how, what becomes of a text in results, and what of it in records.
func TestKnown(t *testing.T) {
	secret := redact.NewSecret
	pin := redact.Known{Text: secret("1234"), Name: "PIN"}
	for _, row := range []struct {
		name                string
		known               redact.Known
		in, result, records string // as JSON strings' content; "" is in itself
	}{
		{"short alone", redact.Known{Text: secret("abc-1")}, "abc-1", "", ""},
		{"short behind Bearer", redact.Known{Text: secret("abc-1")}, "Bearer abc-1 xBearer abc-1 Bearer abc-12", "Bearer [redacted] xBearer abc-1 Bearer abc-12", "Bearer [redacted] xBearer abc-1 Bearer abc-12"},
		{"long", redact.Known{Text: secret("abcdefgh-1"), Name: "K"}, "K=abcdefgh-1 abcdefgh-1", "K=[redacted] [redacted]", "K=[redacted] [redacted]"},
		{"pair", pin, "PIN=1234", "PIN=[redacted]", "PIN=[redacted]"},
		{"pair with a colon", pin, "PIN: 1234, PIN:1234", "PIN: [redacted], PIN:[redacted]", "PIN: [redacted], PIN:[redacted]"},
		{"pair in quotes", pin, "PIN='1234'", "PIN='[redacted]'", "PIN='[redacted]'"},
		{"pair adjoined", pin, "XPIN=1234 PIN=12345 éPIN=1234 PIN=1234é 1PIN=1234", "", ""},
		{"pair not adjoined", pin, "_PIN=1234.", "_PIN=[redacted].", "_PIN=[redacted]."},
		{"pair after an escape", pin, `x\nPIN=1234\tPIN=1234\u0041PIN=1234\n`, `x\nPIN=[redacted]\tPIN=[redacted]\u0041PIN=[redacted]\n`, `x\nPIN=[redacted]\tPIN=[redacted]\u0041PIN=[redacted]\n`},
		{"pair of another name", pin, "PON=1234 1234", "", ""},
		{"member in a string", pin, `{\"PIN\":\"1234\"}`, `{\"PIN\":\"[redacted]\"}`, `{\"PIN\":\"[redacted]\"}`},
		{"member in a string, spaced", pin, `{\"PIN\": \"1234\"}`, `{\"PIN\": \"[redacted]\"}`, `{\"PIN\": \"[redacted]\"}`},
		{"member in a string of a string", pin, `\"{\\\"PIN\\\": \\\"1234\\\"}`, `\"{\\\"PIN\\\": \\\"[redacted]\\\"}`, `\"{\\\"PIN\\\": \\\"[redacted]\\\"}`},
		{"number in a string", pin, `{\"PIN\":1234}`, `{\"PIN\":\"[redacted]\"}`, `{\"PIN\":\"[redacted]\"}`},
		{"longer number in a string", pin, `{\"PIN\":12345}`, "", ""},
		{"with quotes", redact.Known{Text: secret(`a"b`), Name: "K"}, `K=a\"b {\"K\": \"a\\\"b\"}`, `K=[redacted] {\"K\": \"[redacted]\"}`, `K=[redacted] {\"K\": \"[redacted]\"}`},
		{"percent", redact.Known{Text: secret("a/b"), Name: "k"}, "?k=a%2Fb&k=a%2fb", "?k=[redacted]&k=[redacted]", "?k=[redacted]&k=[redacted]"},
		{"weak", redact.Known{Text: secret("postgres"), Name: "PGPASSWORD"}, "postgres PGPASSWORD=postgres PGPASSWORD=postgresql",
			"postgres PGPASSWORD=[redacted] PGPASSWORD=postgresql", "[redacted] PGPASSWORD=[redacted] PGPASSWORD=[redacted]ql"},
		{"weak in Base64", redact.Known{Text: secret("postgres")}, "cG9zdGdyZXM", "", "XXXXXXXXXXM"},
		{"one byte", redact.Known{Text: secret("2"), Name: "v"}, "v=2 dev=2 v=23", "v=[redacted] dev=2 v=23", "v=[redacted] dev=2 v=23"},
		{"record pair", redact.Known{Text: secret("abcdefgh-1"), Name: "v", Record: true}, "v=abcdefgh-1 abcdefgh-1", "v=abcdefgh-1 abcdefgh-1", "v=[redacted] abcdefgh-1"},
		{"record alone", redact.Known{Text: secret("abcdefgh-1"), Record: true}, "abcdefgh-1", "abcdefgh-1", "[redacted]"},
		{"weak words", redact.Known{Text: secret("customer_id"), Name: "TABLE_KEY"}, "customer_id TABLE_KEY=customer_id", "customer_id TABLE_KEY=[redacted]", "[redacted] TABLE_KEY=[redacted]"},
		{"sent in a form", redact.Known{Text: secret("a+b/c d=12")}, "a%252Bb%252Fc%2Bd%253D12", "[redacted]", "[redacted]"},
		{"sent in a path", redact.Known{Text: secret("a+b/c d=12")}, "a%2Bb%252Fc%2520d%3D12", "[redacted]", "[redacted]"},
		{"sent in a form, in Base64", redact.Known{Text: secret("a+b/c12")}, "YSUyQmIlMkZjMTI=", "XXXXXXXXXXXXXXI=", "XXXXXXXXXXXXXXI="},
		{"sent in a path, in Base64", redact.Known{Text: secret("a+b/c d=12")}, "YStiJTJGYyUyMGQ9MTI=", "XXXXXXXXXXXXXXXXXXI=", "XXXXXXXXXXXXXXXXXXI="},
		{"lines", redact.Known{Text: secret(pem)}, "MIIEvQ1BADAN -----BEGIN PRIVATE KEY----- Kw8eG+1z ordinary a1 -----END PRIVATE KEY-----",
			"[redacted] -----BEGIN PRIVATE KEY----- [redacted] ordinary a1 -----END PRIVATE KEY-----",
			"[redacted] -----BEGIN PRIVATE KEY----- [redacted] ordinary a1 -----END PRIVATE KEY-----"},
		{"header", redact.Known{Text: secret("blue"), Name: "x-TEAM", Header: true, Record: true},
			"x-TEAM: blue x-team: blue X-Team: blue X-TEAM: blue X-Team:[blue]", "",
			"x-TEAM: [redacted] x-team: [redacted] X-Team: [redacted] X-TEAM: [redacted] X-Team:[[redacted]]"},
		{"header of CGI", redact.Known{Text: secret("k-1"), Name: "X-Api-Key", Header: true}, "HTTP_X_API_KEY=k-1 X_API_KEY=k-1", "HTTP_X_API_KEY=[redacted] X_API_KEY=k-1", "HTTP_X_API_KEY=[redacted] X_API_KEY=k-1"},
		{"header in JSON", redact.Known{Text: secret("blue"), Name: "X-Team", Header: true, Record: true},
			`{\"x-team\":\"blue\",\"X-Team\":[\"blue\"]}`, "", `{\"x-team\":\"[redacted]\",\"X-Team\":[\"[redacted]\"]}`},
		{"credential header", redact.Known{Text: secret("k-1"), Name: "X-Key", Header: true}, "x-key: k-1", "x-key: [redacted]", "x-key: [redacted]"},
		{"userinfo", redact.Known{Text: secret("user:pass-1"), Userinfo: true}, "http://user:pass-1@h user:pass-1 dXNlcjpwYXNzLTE= dXNlcjpwYXNzLTE",
			"http://[redacted]@h [redacted] XXXXXXXXXXXXXXX= XXXXXXXXXXXXXXX", "http://[redacted]@h [redacted] XXXXXXXXXXXXXXX= XXXXXXXXXXXXXXX"},
		{"short userinfo", redact.Known{Text: secret("u:p"), Userinfo: true}, `http://u:p@h http:\/\/u:p@h u:p x//u:p/@ Basic dTpw`,
			`http://[redacted]@h http:\/\/[redacted]@h u:p x//u:p/@ Basic [redacted]`, `http://[redacted]@h http:\/\/[redacted]@h u:p x//u:p/@ Basic [redacted]`},
		{"userinfo of a word", redact.Known{Text: secret("postgres"), Userinfo: true}, "http://postgres@h postgres", "http://[redacted]@h postgres", "http://[redacted]@h [redacted]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := redact.NewScrubber()
			forget := s.Learn(row.known)
			if row.result == "" {
				row.result = row.in
			}
			if row.records == "" {
				row.records = row.in
			}
			if got, err := s.JSON([]byte(`["` + row.in + `"]`)); err != nil || string(got) != `["`+row.result+`"]` {
				t.Errorf("in a result %s, %v, want %s", got, err, row.result)
			}
			if got := s.String(row.in); got != row.records {
				t.Errorf("in a record %s, want %s", got, row.records)
			}
			forget()
			if got := s.String(row.in); got != row.in {
				t.Errorf("forgotten %s", got)
			}
		})
	}
}

// Members of the JSON itself, not of JSON in a string.
func TestKnownMembers(t *testing.T) {
	s := redact.NewScrubber()
	s.Learn(redact.Known{Text: redact.NewSecret("1234"), Name: "PIN"}, redact.Known{Text: redact.NewSecret(`a"é`), Name: "KEY"})
	for in, want := range map[string]string{
		`{"PIN":"1234","X":"1234"}`:          `{"PIN":"[redacted]","X":"1234"}`,
		`{"PIN": "1234"}`:                    `{"PIN": "[redacted]"}`,
		`{"PIN": 1234, "X": 1234}`:           `{"PIN": "[redacted]", "X": 1234}`,
		`{"PIN": 12345}`:                     `{"PIN": 12345}`,
		`{"PIN":1234.5}`:                     `{"PIN":1234.5}`,
		`{"PIN":["1234"]}`:                   `{"PIN":["[redacted]"]}`,
		`{"KEY":"a\"é"}`:                     `{"KEY":"[redacted]"}`,
		`{"KEY":"a\u0022\u00e9"}`:            `{"KEY":"[redacted]"}`,
		`{"x":"{\"PIN\":\u00221234\u0022}"}`: `{"x":"{\"PIN\":\u0022[redacted]\u0022}"}`,
		`{"x":"{\u0022PIN\u0022:1234}"}`:     `{"x":"{\u0022PIN\u0022:\"[redacted]\"}"}`,
		`{"x":"\u007b\"PIN\":1234}"}`:        `{"x":"\u007b\"PIN\":\"[redacted]\"}"}`,
	} {
		if got, err := s.JSON([]byte(in)); err != nil || string(got) != want {
			t.Errorf("%s became %s, %v, want %s", in, got, err, want)
		}
	}
}

func TestLearnCountsOwners(t *testing.T) {
	s := redact.NewScrubber()
	k := redact.Known{Text: redact.NewSecret("abcdefgh"), Record: true}
	version := s.Version()
	one, two := s.Learn(k), s.Learn(redact.Known{Text: redact.NewSecret("abcdefgh"), Record: true})
	if s.Version() != version {
		t.Error("a word for records changed what results are cleaned of")
	}
	one()
	one()
	if s.String("abcdefgh") != redact.Mask {
		t.Error("forgotten while another knows it")
	}
	two()
	if s.String("abcdefgh") != "abcdefgh" {
		t.Error("not forgotten")
	}
	forget := s.Learn(redact.Known{Text: redact.NewSecret("abcdefgh-1")})
	if s.Version() == version {
		t.Error("a new credential has no new version")
	}
	version = s.Version()
	if s.Add(redact.NewSecret("abcdefgh-1")); s.Version() != version {
		t.Error("one that was known has a new version")
	}
	s.Learn()
	if forget(); s.Version() != version || s.String("abcdefgh-1") != redact.Mask {
		t.Error("Add is for good")
	}
}

func TestWeak(t *testing.T) {
	for text, want := range map[string]bool{
		"postgres": true, "12345678": true, "abcdefghijklmno": true, "пароль": true, "ééééééééé": true, "": true,
		"customer_id": true, "eu-west.north": true, "12-34.56_78": true, "two_words_of_16c": false, "1234-5678-9012-3": false,
		"customer_id2": false, "customer__id": false, "_customer": false, "-": false,
		"postgres1": false, "abcdefgh-": false, "abcdefghijklmnop": false, "1234567890123456": false, "a b": false,
	} {
		if got := redact.Weak(text); got != want {
			t.Errorf("Weak(%q) = %t", text, got)
		}
	}
}

func TestTokens(t *testing.T) {
	s := scrubber("token-number-0")
	tokens := s.Tokens()
	token := func(i int) string { return fmt.Sprintf("token-number-%d", i) }
	for i := range 37 {
		tokens.Add(redact.NewSecret(token(i)))
		tokens.Add(redact.NewSecret(token(1))) // the oldest but one stays the newest
	}
	tokens.Add(redact.Secret{})
	known := func(i int) bool { return s.String("x "+token(i)) != "x "+token(i) }
	for i := range 37 {
		if want := i == 0 || i == 1 || i >= 4; known(i) != want {
			t.Errorf("token %d is known: %t", i, !want)
		}
	}
	tokens.Close()
	tokens.Close()
	tokens.Add(redact.NewSecret(token(37)))
	for i := 1; i < 38; i++ {
		if known(i) {
			t.Errorf("token %d is known after Close", i)
		}
	}
	if !known(0) {
		t.Error("what another made known is gone with the tokens")
	}
}
