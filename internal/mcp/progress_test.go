package mcp

import (
	"testing"

	"mcp-gateway/internal/wire"
)

func TestProgressTokens(t *testing.T) {
	for _, test := range []struct{ params, swapped, callers string }{
		{`{"_meta":{"progressToken":"a\u0062c"},"x":1.0}`, `{"_meta":{"progressToken":7},"x":1.0}`, `"a\u0062c"`},
		{`{"_meta":{"a":1,"progressToken":12345678901234567890}}`, `{"_meta":{"a":1,"progressToken":7}}`, `12345678901234567890`},
		{`{"_meta":{"progress\u0054oken":-0}}`, `{"_meta":{"progress\u0054oken":7}}`, `-0`},
		{`{"_meta":{"progressToken":"1","progressToken":2}}`, `{"_meta":{"progressToken":7,"progressToken":7}}`, `"1"`},
		{`{"_meta":{"progressToken":""}}`, `{"_meta":{"progressToken":7}}`, `""`},
		{`{"_meta":{"progressToken":null}}`, `{"_meta":{}}`, ``},
		{`{"_meta":{"a":1,"progressToken":{}}}`, `{"_meta":{"a":1}}`, ``},
		{`{"_meta":{"progressToken":true},"n":[]}`, `{"_meta":{},"n":[]}`, ``},
		{`{"_meta":{"progresstoken":1}}`, `{"_meta":{"progresstoken":1}}`, ``},
		{`{"_meta":[{"progressToken":1}]}`, `{"_meta":[{"progressToken":1}]}`, ``},
		{`{"progressToken":1}`, `{"progressToken":1}`, ``},
		{`{}`, `{}`, ``},
	} {
		params, err := wire.ParseObject([]byte(test.params))
		if err != nil {
			t.Fatal(err)
		}
		swapped, callers := SwapProgressToken(params, 7)
		if string(swapped.Raw()) != test.swapped || string(callers) != test.callers {
			t.Errorf("%s becomes %s with %q, want %s with %q", test.params, swapped.Raw(), callers, test.swapped, test.callers)
		}
		if meta, ok := DropProgressToken(params).Object("_meta"); ok && meta.Has(MetaProgressToken) {
			t.Errorf("%s keeps its token", test.params)
		}
		if test.callers != "" && !MayHoldProgressToken([]byte(test.params)) {
			t.Errorf("%s is said to hold no token", test.params)
		}
	}
	if params, callers := SwapProgressToken(wire.Object{}, 7); !params.IsZero() || callers != nil {
		t.Errorf("no params became %s", params.Raw())
	}
	if MayHoldProgressToken([]byte(`{"name":"x","_meta":{"a":"é"}}`)) {
		t.Error("every text is said to hold a token")
	}
}

func TestProgressOfTheServer(t *testing.T) {
	for _, test := range []struct {
		params string
		token  int64
		ok     bool
	}{
		{`{"progressToken":7,"progress":1}`, 7, true},
		{`{"progressToken":"7"}`, 0, false},
		{`{"progressToken":7.0}`, 0, false},
		{`{"progressToken":7,"progressToken":8}`, 0, false},
		{`{"progress":1}`, 0, false},
	} {
		params, err := wire.ParseObject([]byte(test.params))
		if err != nil {
			t.Fatal(err)
		}
		if token, ok := ProgressToken(params); token != test.token || ok != test.ok {
			t.Errorf("%s bears %d, %v, want %d, %v", test.params, token, ok, test.token, test.ok)
		}
		if !test.ok {
			continue
		}
		if got := string(RestoreProgressToken(params, []byte(`"t\u0031"`)).Raw()); got != `{"progressToken":"t\u0031","progress":1}` {
			t.Errorf("restored: %s", got)
		}
	}
	if _, ok := ProgressToken(wire.Object{}); ok {
		t.Error("no params bear a token")
	}
}
