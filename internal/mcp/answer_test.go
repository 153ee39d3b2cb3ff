package mcp

import (
	"strings"
	"testing"

	"mcp-gateway/internal/wire"
)

func TestAnswer(t *testing.T) {
	for _, test := range []struct{ name, id, method, want string }{
		{"ping", `"é\u0031"`, "ping", `{"jsonrpc":"2.0","id":"é\u0031","result":{}}`},
		{"elicitation", `12345678901234567890`, "elicitation/create", `{"jsonrpc":"2.0","id":12345678901234567890,"error":{"code":-32602,"message":"elicitation is not supported by this client"}}`},
		{"sampling", `-1`, "sampling/createMessage", `{"jsonrpc":"2.0","id":-1,"error":{"code":-1,"message":"sampling is not supported by this client"}}`},
		{"roots", `0`, "roots/list", `{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"the method is not supported by this client"}}`},
		{"an id that is no id", `[1]`, "ping", ""},
		{"null", `null`, "ping", ""},
		{"a long id", `"` + strings.Repeat("x", maxID) + `"`, "ping", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Answer(&wire.Message{Kind: wire.Request, ID: []byte(test.id), Method: test.method})
			if string(got) != test.want || (err == nil) != (test.want != "") {
				t.Errorf("answer is %s (%v), want %s", got, err, test.want)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	const want = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"its \"end\""}}`
	if got := string(Cancel(7, `its "end"`)); got != want {
		t.Errorf("cancel is %s, want %s", got, want)
	}
}
