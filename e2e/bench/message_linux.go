package main

import "bytes"

// A message is what a backend reads of a JSON-RPC request; each part is as written, nil where absent.
type message struct {
	id, method, name, arguments, token, revision []byte
}

// readMessage finds the parts of a request that choose its answer. It trusts the sender: what it is given is valid JSON.
func readMessage(body []byte) message {
	m := message{id: member(body, "id"), method: text(member(body, "method"))}
	params := member(body, "params")
	switch string(m.method) {
	case "tools/call":
		m.name, m.arguments = text(member(params, "name")), member(params, "arguments")
		m.token = member(member(params, "_meta"), "progressToken")
	case "initialize":
		m.revision = member(params, "protocolVersion")
	}
	return m
}

// text is what stands between the quotes of a string, with its escapes.
func text(value []byte) []byte {
	if len(value) < 2 {
		return nil
	}
	return value[1 : len(value)-1]
}

// member is the value of an object's member as written, nil without one. The name is compared as written.
func member(object []byte, name string) []byte {
	at := skipSpace(object, 0)
	if at >= len(object) || object[at] != '{' {
		return nil
	}
	for at++; ; at++ {
		at = skipSpace(object, at)
		if at >= len(object) || object[at] != '"' {
			return nil
		}
		end := skipString(object, at)
		key := object[at+1 : end-1]
		at = skipSpace(object, end) + 1 // the colon
		at = skipSpace(object, at)
		end = skipValue(object, at)
		if string(key) == name {
			return object[at:end]
		}
		if at = skipSpace(object, end); at >= len(object) || object[at] != ',' {
			return nil
		}
	}
}

func skipSpace(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\n' || b[at] == '\r' || b[at] == '\t') {
		at++
	}
	return at
}

// skipString is where the string that begins at at ends.
func skipString(b []byte, at int) int {
	for at++; at < len(b); at++ {
		quote := bytes.IndexByte(b[at:], '"')
		if quote < 0 {
			return len(b)
		}
		at += quote
		escapes := 0
		for b[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at + 1
		}
	}
	return len(b)
}

// skipValue is where the value that begins at at ends.
func skipValue(b []byte, at int) int {
	for depth := 0; at < len(b); {
		switch b[at] {
		case '"':
			at = skipString(b, at)
		case '{', '[':
			depth++
			at++
			continue
		case '}', ']':
			if depth == 0 {
				return at // the end of what the value is in
			}
			depth--
			at++
		case ',', ':', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return at
			}
			at++
			continue
		default:
			for at < len(b) && !bytes.ContainsRune([]byte(",:]} \n\r\t"), rune(b[at])) {
				at++
			}
		}
		if depth == 0 {
			return at
		}
	}
	return at
}
