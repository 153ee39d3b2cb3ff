package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"mcp-gateway/redact"
)

func TestJSON(t *testing.T) {
	for _, row := range []struct {
		name    string
		secrets []string
		in, out string
	}{
		{"nothing", []string{"abcdefg8"}, `{"a":[1,"b",null]}`, `{"a":[1,"b",null]}`},
		{"string", []string{"abcdefg8"}, `{"a": ["x abcdefg8", "abcdefg8 y"]}`, `{"a": ["x [redacted]", "[redacted] y"]}`},
		{"scalar", []string{"abcdefg8"}, `"abcdefg8"`, `"[redacted]"`},
		{"number", []string{"1234567890123456"}, `{"a":1234567890123456,"b":[1234567890123456]}`, `{"a":"[redacted]","b":["[redacted]"]}`},
		{"number in a number", []string{"1234567890123456"}, `[91234567890123456,12345678901234567,-1234567890123456,0.1234567890123456]`,
			`[91234567890123456,12345678901234567,-1234567890123456,0.1234567890123456]`},
		{"number in a string", []string{"1234567890123456"}, `["91234567890123456"]`, `["9[redacted]"]`},
		{"literal", []string{"[true,false,null]"}, `[true,false,null]`, `[true,false,null]`},
		{"name", []string{"abcdefg8"}, `{"abcdefg8":1}`, `{"[redacted]":1}`},
		{"names", []string{"abcdefg8", "bcdefg8i"}, `{"abcdefg8":1,"x":{"abcdefg8":2},"bcdefg8i":3,"y-abcdefg8":4}`,
			`{"[redacted]":1,"x":{"[redacted]":2},"[redacted] 2":3,"y-[redacted] 3":4}`},
		{"names after a gateway's", []string{"abcdefg8"}, `{"[redacted]":1,"[redacted] 2":2,"abcdefg8":3}`, `{"[redacted]":1,"[redacted] 2":2,"[redacted] 3":3}`},
		{"names in Base64", []string{"abcdefg8i", "jklmnop8r"}, `{"YWJjZGVmZzhp":1,"amtsbW5vcDhy":2}`, `{"XXXXXXXXXXXX":1,"XXXXXXXXXXXX 2":2}`},
		{"over tokens", []string{`ab","cdefgh`}, `["ab","cdefgh"]`, `["[redacted]","[redacted]"]`},
		{"over numbers", []string{`12345678,9012345`}, `[12345678,9012345]`, `["[redacted]","[redacted]"]`},
		{"over a part of a number", []string{`12345678,9012345`}, `[12345678,90123456]`, `["[redacted]",90123456]`},
		{"escapes", []string{"abcdefg8"}, `{"a":"\n\u0061bcdefg8\n","b":"\/"}`, `{"a":"\n[redacted]\n","b":"\/"}`},
		{"after a newline", []string{"abcdefg8"}, `["x\nabcdefg8"]`, `["x\n[redacted]"]`},
		{"escape split", []string{"nabcdef8"}, `["x\nabcdef8"]`, `["x[redacted]"]`},
		{"two in an escape", []string{`abcdefg\`, `ud83d\ude`}, `"abcdefg\ud83d\ude00x"`, `"[redacted]x"`},
		{"Base64 that is known", []string{"1234abcd8", "MTIzNGFiY2Q4"}, `["eGF4MTIzNGFiY2Q4","MTIzNGFiY2Q4"]`, `["eGF4XXXXXXXXXXXX","XXXXXXXXXXXX"]`},
		{"quotes in it", []string{`ab"cd\ef`}, `["ab\"cd\\ef","{\"k\":\"ab\\\"cd\\\\ef\"}"]`, `["[redacted]","{\"k\":\"[redacted]\"}"]`},
		{"in JSON in it", []string{"abcdefg8"}, `["{\"k\":\"abcdefg8\"}"]`, `["{\"k\":\"[redacted]\"}"]`},
		{"in JSON three deep", []string{`ab"cd\ef8`}, `["` + nest(3, `x ab"cd\ef8 y`) + `"]`, `["x [redacted] y"]`},
		{"Base64", []string{"abcdefg8i"}, `{"blob":"YWJjZGVmZzhp"}`, `{"blob":"XXXXXXXXXXXX"}`},
		{"white space", []string{"abcdefg8"}, " {\t\"a\" :\r\n\"abcdefg8\" } ", " {\t\"a\" :\r\n\"[redacted]\" } "},
		{"weak", []string{"postgres", "12345678"}, `{"postgres":"postgres 12345678","a":12345678}`, `{"postgres":"postgres 12345678","a":12345678}`},
		{"weak behind Bearer", []string{"postgres"}, `["Bearer postgres","Bearer postgresql"]`, `["Bearer [redacted]","Bearer postgresql"]`},
		{"strong letters", []string{"abcdefghijklmnop"}, `["abcdefghijklmnop"]`, `["[redacted]"]`},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := []byte(row.in)
			got, err := scrubber(row.secrets...).JSON(in)
			if err != nil || string(got) != row.out || string(in) != row.in {
				t.Errorf("%s, %v, want %s; the input is %s", got, err, row.out, in)
			}
			if row.in == row.out && &got[0] != &in[0] {
				t.Error("a copy was made")
			}
			if !json.Valid(got) {
				t.Errorf("%s is no JSON", got)
			}
		})
	}
}

func TestJSONKeepsMembers(t *testing.T) {
	s := scrubber("1234567890123456", "abcdefg8")
	for in, want := range map[string]string{
		`{"progressToken":"abcdefg8","a":"abcdefg8"}`:                        `{"progressToken":"abcdefg8","a":"[redacted]"}`,
		`{"a":"abcdefg8","progressToken":{"x":["abcdefg8"]},"b":"abcdefg8"}`: `{"a":"[redacted]","progressToken":{"x":["abcdefg8"]},"b":"[redacted]"}`,
		`{"code":1234567890123456,"message":"1234567890123456"}`:             `{"code":1234567890123456,"message":"[redacted]"}`,
		`{"data":{"code":1234567890123456}}`:                                 `{"data":{"code":"[redacted]"}}`,
		`{"c\u006fde":1234567890123456}`:                                     `{"c\u006fde":1234567890123456}`,
		`[{"code":1234567890123456}]`:                                        `[{"code":"[redacted]"}]`,
	} {
		got, err := s.JSON([]byte(in), "code", "progressToken")
		if err != nil || string(got) != want {
			t.Errorf("%s became %s, %v, want %s", in, got, err, want)
		}
	}
}

// What is not JSON can not be kept JSON, and does not go out.
func TestJSONWithholdsWhatIsNone(t *testing.T) {
	for _, in := range []string{`{"a":"abcdefg8`, `]"abcdefg8"`, `}"abcdefg8"`, `"abcdefg8\"`} {
		if got, err := scrubber("abcdefg8").JSON([]byte(in)); err != redact.ErrWithheld || got != nil {
			t.Errorf("%s became %s, %v", in, got, err)
		}
	}
}

func TestDefinition(t *testing.T) {
	s := scrubber("abcdefg8")
	for in, want := range map[string]string{
		`{"name":"a","description":"b"}`:                                           `{"name":"a","description":"b"}`,
		`{"name":"a","description":"abcdefg8"}`:                                    `{"name":"a","description":"[redacted]"}`,
		`{"name":"a","inputSchema":{"properties":{"name":{"enum":["abcdefg8"]}}}}`: `{"name":"a","inputSchema":{"properties":{"name":{"enum":["[redacted]"]}}}}`,
		`{"name":"x-abcdefg8"}`:                                                    "",
		`{"name":"\u0061bcdefg8"}`:                                                 "",
		`{"n\u0061me":"abcdefg8"}`:                                                 "",
		`{"uri":"file:///abcdefg8","name":"a"}`:                                    "",
		`{"uriTemplate":"file:///{a}/abcdefg8","name":"a"}`:                        "",
		`{"name":"a","inputSchema":{"properties":{"abcdefg8":{}}}}`:                "",
		`{"name":"a","description":"abcdefg8`:                                      "",
	} {
		got, ok := s.Definition([]byte(in))
		if ok != (want != "") || string(got) != want {
			t.Errorf("%s became %s, %t, want %s", in, got, ok, want)
		}
	}
	in := []byte(`{"name":"a"}`)
	if got, _ := s.Definition(in); &got[0] != &in[0] {
		t.Error("a copy was made")
	}
}

func TestDeepJSON(t *testing.T) {
	const depth = 10_000
	in := strings.Repeat(`{"abcdefg8":[`, depth) + strings.Repeat("]}", depth)
	got, err := scrubber("abcdefg8").JSON([]byte(in))
	if err != nil || string(got) != strings.ReplaceAll(in, "abcdefg8", redact.Mask) {
		t.Errorf("%.100s, %v", got, err)
	}
}
