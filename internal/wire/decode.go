package wire

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// MaxRequestDepth bounds how deep arrays and objects may nest in a request; a reply may reach 10,000 levels.
const MaxRequestDepth = 512

// Kind is what a JSON-RPC message is.
type Kind uint8

// The kinds of messages.
const (
	Request Kind = iota + 1
	Notification
	Result
	Failure
)

// ErrBatch says that a text is a JSON array, which only some revisions allow.
var ErrBatch = errors.New("the message is an array")

// A Message is one JSON-RPC message. Its parts share the bytes that it was read from.
type Message struct {
	Kind   Kind
	ID     []byte // as written; nil where there is none
	Method string
	Params Object // zero where there is none
	Result Object // zero where it is absent or no object
	Error  *Error

	params, result, failure bool // the member is present
	version                 bool // jsonrpc is "2.0"
	alike                   bool // a careless reader could take a member for a known one
	// Room for the members of params or result, so that a small message costs no further allocation.
	room [12]member
}

// ParseRequest reads one message of a client. Names must not repeat at any depth, all text must be UTF-8, and
// nothing may follow. An error is ErrBatch or a *SyntaxError with the JSON-RPC code to answer with; m.ID is then set
// if the id could be read.
func ParseRequest(data []byte) (*Message, error) {
	if !utf8.Valid(data) {
		return nil, &SyntaxError{Code: CodeParse, Reason: "the message is not valid UTF-8", Offset: -1}
	}
	m := new(Message)
	if err := m.parse(data, MaxRequestDepth, true); err != nil {
		return nil, err
	}
	return m, m.checkRequest()
}

// ParseReply reads one message of a server: a response, or a notification or request of its own. Bytes that are
// not UTF-8 become U+FFFD. Names may repeat, but not those that decide what the message is.
func ParseReply(data []byte) (*Message, error) {
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
	}
	m := new(Message)
	if err := m.parse(data, maxReplyDepth, false); err != nil {
		return nil, err
	}
	return m, m.checkReply()
}

// ParseObject reads the text of one JSON object. Names may repeat.
func ParseObject(data []byte) (Object, error) {
	s := borrow(data, maxReplyDepth, false)
	defer s.free()
	o, err := s.object(make([]member, 0, 8))
	if err != nil {
		return Object{}, err
	}
	return o, s.end()
}

// Batch are the texts of the messages in a JSON array, between 1 and max of them. Nothing may follow the array. An error
// is a *SyntaxError.
func Batch(data []byte, max int) ([][]byte, error) {
	s := borrow(data, maxReplyDepth, false)
	defer s.free()
	if _, err := s.value(); err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	elements, ok := Elements(data, max)
	if !ok || len(elements) == 0 {
		return nil, &SyntaxError{Code: CodeInvalidRequest, Reason: "the batch is empty, too long or not an array", Offset: -1}
	}
	return elements, nil
}

func (m *Message) parse(data []byte, depth uint, unique bool) error {
	s := borrow(data, depth, unique)
	defer s.free()
	switch s.peek() {
	case '{':
	case '[':
		return ErrBatch
	default:
		if _, err := s.value(); err != nil {
			return err
		}
		return &SyntaxError{Code: CodeInvalidRequest, Reason: "the message is not an object", Offset: 0}
	}
	seen := 0
	o, _ := s.open()
	for s.moved(s.next(&o, s.at)) && !o.closed {
		bit, err := m.readMember(s, &o)
		if err != nil {
			return m.syntax(err)
		}
		if seen&bit != 0 {
			return m.syntax(&SyntaxError{Code: CodeInvalidRequest, Reason: "a member of the message is repeated", Offset: int64(s.at)})
		}
		seen |= bit
	}
	if !o.closed {
		return m.syntax(s.fail())
	}
	return m.syntax(s.end())
}

// envelope are the members of a message that decide what it is.
var envelope = [...][]byte{[]byte("jsonrpc"), []byte("id"), []byte("method"), []byte("params"), []byte("result"), []byte("error")}

// readMember reads the value of o's current member and gives the name's own bit, zero for one that is not read.
func (m *Message) readMember(s *scanner, o *opened) (int, error) {
	name := unquoted(s.data[o.nameStart:o.nameEnd])
	switch string(name) {
	case "params":
		m.params = true
		if s.peek() == '{' {
			var err error
			m.Params, err = s.object(m.room[:0])
			return 1, err
		}
	case "result":
		m.result = true
		if s.peek() == '{' {
			var err error
			m.Result, err = s.object(m.room[:0])
			return 2, err
		}
	}
	value, err := s.value()
	if err != nil {
		return 0, err
	}
	switch string(name) {
	case "jsonrpc":
		m.version = string(value) == `"2.0"`
		return 4, nil
	case "id":
		m.ID = value
		return 8, nil
	case "method":
		var ok bool
		if m.Method, ok = method(value); !ok {
			return 16, &SyntaxError{Code: CodeInvalidRequest, Reason: "method is not a string", Offset: int64(s.at)}
		}
		return 16, nil
	case "params":
		if string(value) != "null" {
			return 1, &SyntaxError{Code: CodeInvalidParams, Reason: "params is not an object", Offset: int64(s.at)}
		}
		return 1, nil
	case "result":
		return 2, nil
	case "error":
		m.failure = true
		m.Error = readError(value)
		return 32, nil
	}
	for _, known := range envelope {
		m.alike = m.alike || bytes.EqualFold(name, known)
	}
	m.alike = m.alike || bytes.IndexByte(name, 0) >= 0
	return 0, nil
}

// syntax adds the id, so that the answer can repeat it. Of a text that is not JSON nothing is sure.
func (m *Message) syntax(err error) error {
	if e, ok := errors.AsType[*SyntaxError](err); ok && e.Code != CodeParse && validID(m.ID) {
		e.ID = m.ID
	}
	return err
}

func (m *Message) checkRequest() error {
	bad := func(reason string) error {
		return m.syntax(&SyntaxError{Code: CodeInvalidRequest, Reason: reason, Offset: -1})
	}
	if m.ID != nil && !validID(m.ID) {
		return bad("id is neither a string nor an integer")
	}
	if !m.version {
		return bad(`jsonrpc is not "2.0"`)
	}
	if m.alike {
		return bad("a member of the message could be taken for a known one: it differs in case, or holds a NUL")
	}
	response := m.result || m.failure
	switch {
	case m.Method != "" && response:
		return bad("the message is both a request and a response")
	case m.Method != "" && m.ID != nil:
		m.Kind = Request
	case m.Method != "":
		m.Kind = Notification
	case !response:
		return bad("method is missing")
	default:
		return m.checkResponse(bad)
	}
	return nil
}

func (m *Message) checkReply() error {
	bad := func(reason string) error {
		return m.syntax(&SyntaxError{Code: CodeInvalidRequest, Reason: reason, Offset: -1})
	}
	switch {
	case m.Method == "":
		return m.checkResponse(bad)
	case m.result || m.failure:
		return bad("the message is both a request and a response")
	case m.ID != nil:
		m.Kind = Request
	default:
		m.Kind = Notification
	}
	return nil
}

func (m *Message) checkResponse(bad func(string) error) error {
	switch {
	case m.result && m.failure:
		return bad("the message has a result and an error")
	case m.failure && m.Error == nil:
		return bad("error is not an object with an integer code")
	case m.failure:
		m.Kind = Failure
	case !m.result:
		return bad("the message has neither a method nor a result nor an error")
	case m.Result.IsZero():
		return bad("result is not an object")
	default:
		m.Kind = Result
	}
	return nil
}

// readError gives nil for a value that is no JSON-RPC error.
func readError(value []byte) *Error {
	o, err := ParseObject(value)
	if err != nil || !o.Unique("code", "message", "data") {
		return nil
	}
	code, _ := o.Value("code")
	n, ok := Int(code)
	if !ok {
		return nil
	}
	e := &Error{Code: n, Raw: o}
	e.Message, ok = o.String("message")
	e.BadMessage = !ok || e.Message == ""
	e.Data, _ = o.Value("data")
	return e
}

// validID follows the specification: a string or an integer, never null (basic, requests).
func validID(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	if raw[0] == '"' {
		return true
	}
	digits := bytes.TrimPrefix(raw, []byte("-"))
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(digits) > 0
}
