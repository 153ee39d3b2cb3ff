package exchange

import "testing"

// A request that is sent again must not have run. What a 404 says is proof of that only where no server that ran it could say it.
func TestWhatProvesThatASessionIsGone(t *testing.T) {
	for text, want := range map[string]bool{
		"":                       true,
		" \r\n":                  true,
		"Session not found":      true,
		"<html>404</html>":       true,
		`{"detail":"Not Found"}`: true,
		`{"error":"no session"}`: true,
		`{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`:           true,
		`{"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"}}`:                     true,
		`{"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"},"id":"server-error"}`: true,
		"\uFEFF{\"error\":{\"code\":1,\"message\":\"x\"},\"id\":null}":                                true,

		`{"jsonrpc":"2.0","id":7,"result":{}}`:                            false,
		`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`:       false,
		`{"jsonrpc":"2.0","id":8,"error":{"code":1,"message":"x"}}`:       false,
		`{"jsonrpc":"2.0","id":"7","error":{"code":1,"message":"x"}}`:     false,
		`{"jsonrpc":"2.0","id":" 7 ","error":{"code":1,"message":"x"}}`:   false,
		`{"jsonrpc":"2.0","id":7.0,"error":{"code":1,"message":"x"}}`:     false,
		`{"jsonrpc":"2.0","id":null,"result":{}}`:                         false,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`: false,
		"\uFEFF" + `{"jsonrpc":"2.0","id":7,"result":{}}`:                 false,
		`{"jsonrpc":"2.0","id":7,"result":{"cont`:                         false,
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}} {}`: false,
		`{"result":{},"result":{},"id":7}`:                                false,
		`[{"jsonrpc":"2.0","id":7,"result":{}}]`:                          false,
		"data: {}\n\n":                                                    false,
		":\n\n":                                                           false,
		"event: message\n":                                                false,
		`{"detail":"Not Fou`:                                              false,
		`{"detail":1,"id":"x"}`:                                           false,
	} {
		if got := refusesSession([]byte(text), []byte("7")); got != want {
			t.Errorf("%q proves that the session is gone: %v, want %v", text, got, want)
		}
	}
}
