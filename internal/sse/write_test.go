package sse

import "testing"

func TestAppendEvent(t *testing.T) {
	for data, want := range map[string]string{
		`{"a":1}`:               "data: {\"a\":1}\n\n",
		"":                      "data: \n\n",
		"{\n\"a\":\r\n1\r}":     "data: {\ndata: \"a\":\ndata: 1\ndata: }\n\n",
		"a\n":                   "data: a\ndata: \n\n",
		"a\n\nevent: x\ndata:b": "data: a\ndata: \ndata: event: x\ndata: data:b\n\n",
	} {
		if got := string(AppendEvent([]byte("before "), []byte(data))); got != "before "+want {
			t.Errorf("%q is written as %q, want %q", data, got, want)
		}
	}
}

func TestAppendEventAllocations(t *testing.T) {
	data := []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	buf := make([]byte, 0, 100)
	if got := testing.AllocsPerRun(100, func() { buf = AppendEvent(buf[:0], data) }); got != 0 {
		t.Errorf("AppendEvent into a buffer of its own: %v allocations, want none", got)
	}
}
