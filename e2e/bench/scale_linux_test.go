package main

import (
	"bufio"
	"errors"
	"strings"
	"testing"
)

func TestScaleAndSoakSayWhatIsWrongWithTheirFlags(t *testing.T) {
	for _, row := range []struct{ args, problem string }{
		{"scale -only calls,nothing", `no "nothing"`}, {"scale -rounds 0", "more than zero"}, {"scale -listeners 0", "more than zero"},
		{"scale calls", "is no flag"}, {"soak -for 0s", "more than zero"}, {"soak -for long", "invalid value"}, {"soak 1h", "is no flag"},
	} {
		if err := dispatch(t.Context(), "", strings.Fields(row.args)); err == nil || !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: %v", row.args, err)
		}
	}
}

func TestAFindingIsHeldAgainstItsTarget(t *testing.T) {
	s := &scaling{}
	s.found("a", 1.2, "×", 1.2)
	s.found("b", 1234.5, "MB", 300)
	s.found("c", 5, "", 0)
	for i, want := range []string{"a: 1.2 × (≤ 1.2: met)", "b: 1234 MB (≤ 300: missed)", "c: 5"} {
		if got := s.findings[i].String(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestAFailureSaysWhatBecameOfTheCall(t *testing.T) {
	i := nextID()
	for _, row := range []struct{ answer, outcome string }{
		{`"result":{"isError":true,"content":[],"_meta":{"mcp-gateway/outcome":{"outcome":"not-sent"}}}`, "not-sent"},
		{`"error":{"code":-32603,"message":"m","data":{"mcp-gateway/outcome":{"outcome":"no-response"}}}`, "no-response"},
		{`"error":{"code":-32602,"message":"\"outcome\":\"not-sent\""}`, ""},
		{`"result":{"isError":true,"content":[{"type":"text","text":"\"mcp-gateway/outcome\""}]}`, ""},
	} {
		_, err := readAnswer(i, []byte(`{"jsonrpc":"2.0","id":`+i.String()+`,`+row.answer+`}`))
		failed, ok := errors.AsType[*failure](err)
		if !ok || failed.outcome() != row.outcome {
			t.Errorf("%s: %v", row.answer, err)
		}
	}
	if _, err := readAnswer(i+1, []byte(`{"jsonrpc":"2.0","id":`+i.String()+`,"error":{}}`)); err == nil || !strings.Contains(err.Error(), "has the id") {
		t.Errorf("the answer of another call: %v", err)
	}
}

func TestAStreamHasEndedInOrderAfterItsResultAlone(t *testing.T) {
	const notice = "30\r\ndata: {\"method\":\"notifications/tools/list_changed\"}\n\n\r\n"
	const result = "20\r\ndata: {\"result\":{\"resultType\":\"complete\"}}\n\n\r\n"
	for _, row := range []struct {
		stream              string
		told, ended, broken int64
	}{
		{notice + notice + result + "0\r\n\r\n", 1, 1, 0}, {result + "0\r\n\r\n", 0, 1, 0}, {notice + "0\r\n\r\n", 1, 0, 1}, {notice + result, 1, 0, 1},
	} {
		var all crowd
		all.follow(bufio.NewReader(strings.NewReader(row.stream)))
		if all.told.Load() != row.told || all.ended.Load() != row.ended || all.broken.Load() != row.broken {
			t.Errorf("%q: %d told, %d ended, %d broken", row.stream, all.told.Load(), all.ended.Load(), all.broken.Load())
		}
	}
}

func TestAHoldingThatHasGrownIsTold(t *testing.T) {
	before := holdings{goroutines: 30, descriptors: 20, children: 1, heap: 10e6, resident: 30e6}
	if err := (&soaking{scaling: &scaling{}}).judge(before, before); err != nil {
		t.Error(err)
	}
	after := holdings{goroutines: 39, descriptors: 29, children: 2, heap: 20e6, resident: 62e6}
	err := (&soaking{scaling: &scaling{}}).judge(before, after)
	for _, what := range []string{"goroutines", "descriptors", "children", "heap", "memory"} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
