package wire

// AppendResult appends a response with the given id and result. A nil id is left out.
func AppendResult(dst, id, result []byte) []byte {
	dst = appendHead(dst, id)
	dst = append(dst, `,"result":`...)
	dst = append(dst, result...)
	return append(dst, '}')
}

// AppendError appends an error response. A nil id is left out, as where the request's could not be read.
func AppendError(dst, id []byte, e *Error) []byte {
	dst = appendHead(dst, id)
	dst = append(dst, `,"error":`...)
	dst = e.AppendJSON(dst)
	return append(dst, '}')
}

// AppendRequest appends a request, or with a nil id a notification. Nil params are left out.
func AppendRequest(dst, id []byte, method string, params []byte) []byte {
	dst = appendHead(dst, id)
	dst = append(dst, `,"method":`...)
	dst = AppendString(dst, method)
	if params != nil {
		dst = append(append(dst, `,"params":`...), params...)
	}
	return append(dst, '}')
}

// AppendEditedRequest appends a request whose params are those with the edits carried out; the zero Object stays out where there are no
// edits.
func AppendEditedRequest(dst, id []byte, method string, params Object, edits ...Edit) []byte {
	dst = AppendRequest(dst, id, method, nil)
	if params.IsZero() && len(edits) == 0 {
		return dst
	}
	dst = append(dst[:len(dst)-1], `,"params":`...)
	return append(params.AppendEdited(dst, edits...), '}')
}

func appendHead(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if id != nil {
		dst = append(append(dst, `,"id":`...), id...)
	}
	return dst
}
