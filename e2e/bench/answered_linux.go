package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// An answered is what came back for one call: the notifications, and the result.
type answered struct {
	notifications [][]byte
	result        toolResult
}

type toolResult struct {
	Content           []content       `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"`
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// A failure is the answer of a call that has no result, or one that is an error.
type failure struct{ answer []byte }

func (f *failure) Error() string { return fmt.Sprintf("the call failed: %.500s", f.answer) }

// outcome is what the gateway says became of the call, empty where the failure is the server's own.
func (f *failure) outcome() string {
	const name = "mcp-gateway/outcome"
	for _, object := range [][]byte{member(member(f.answer, "result"), "_meta"), member(member(f.answer, "error"), "data")} {
		if said := text(member(member(object, name), "outcome")); said != nil {
			return string(said)
		}
	}
	return ""
}

// readAnswer reads the body of an answer, JSON or a stream of events, that must have that id.
func readAnswer(i id, body []byte) (*answered, error) {
	messages := [][]byte{body}
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		messages = nil
		for line := range bytes.Lines(body) {
			if data, is := bytes.CutPrefix(line, []byte("data:")); is {
				messages = append(messages, bytes.TrimSpace(data))
			}
		}
	}
	if len(messages) == 0 {
		return nil, errors.New("the answer has no message")
	}
	last := messages[len(messages)-1]
	var response struct {
		ID     json.RawMessage
		Result *toolResult
		Error  json.RawMessage
	}
	if err := json.Unmarshal(last, &response); err != nil {
		return nil, fmt.Errorf("the answer is %.200q: %w", last, err)
	}
	if string(response.ID) != i.String() {
		return nil, fmt.Errorf("the answer has the id %s, not %v", response.ID, i)
	}
	if response.Result == nil || response.Result.IsError {
		return nil, &failure{last}
	}
	return &answered{messages[:len(messages)-1], *response.Result}, nil
}

// says holds the one text of the result against what is due.
func (a *answered) says(want string) error {
	if c := a.result.Content; len(c) != 1 || c[0].Type != "text" || c[0].Text != want {
		return fmt.Errorf("the result says %.200q where %.200q is due", c, want)
	}
	return nil
}

// carries holds the result against a large one, by its values: a typed peer writes them anew.
func (a *answered) carries(large []byte) error {
	var want toolResult
	if err := json.Unmarshal(append([]byte{'{'}, large[:len(large)-1]...), &want); err != nil {
		return err
	}
	if len(want.Content) != len(a.result.Content) || len(want.Content) != 1 || want.Content[0] != a.result.Content[0] {
		return errors.New("the large result has another content")
	}
	var had, due any
	if want.StructuredContent != nil {
		if err := errors.Join(json.Unmarshal(a.result.StructuredContent, &had), json.Unmarshal(want.StructuredContent, &due)); err != nil {
			return err
		}
	}
	if !reflect.DeepEqual(had, due) {
		return errors.New("the large result has another structuredContent")
	}
	return nil
}

// notified holds the notifications against those that the tool notify sends, whose token is the call's id.
func (a *answered) notified(i id) error {
	if len(a.notifications) != notifications {
		return fmt.Errorf("%d notifications came before the result, not %d", len(a.notifications), notifications)
	}
	for n, text := range a.notifications {
		var m struct {
			Method string
			Params struct {
				ProgressToken json.RawMessage
				Progress      int
			}
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return err
		}
		if m.Method != "notifications/progress" || string(m.Params.ProgressToken) != i.String() || m.Params.Progress != n+1 {
			return fmt.Errorf("notification %d is %.300s", n+1, text)
		}
	}
	return nil
}
