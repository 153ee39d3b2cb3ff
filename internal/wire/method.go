package wire

// method decodes a method's name; the common ones cost no allocation.
func method(raw []byte) (string, bool) {
	switch string(raw) {
	case `"tools/call"`:
		return "tools/call", true
	case `"tools/list"`:
		return "tools/list", true
	case `"notifications/progress"`:
		return "notifications/progress", true
	}
	return Unquote(raw)
}
