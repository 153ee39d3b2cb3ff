package gateway

import (
	"errors"
	"fmt"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

// An inputRequired is a result that asks for another round.
type inputRequired struct {
	requests []inputRequest
	state    []byte // as JSON text; nil where there is none
}

// An inputRequest is one thing that a server wants of the client.
type inputRequest struct {
	method string
	params wire.Object
}

// maxInputRequests bounds what one result may ask for.
const maxInputRequests = 64

var errInputRequired = errors.New("the result asks for input in a form that the revision does not define")

// readInputRequired reads what the result asks for. Each member that decides something must stand once.
func readInputRequired(result wire.Object) (inputRequired, error) {
	var in inputRequired
	if !result.Unique("inputRequests", "requestState") {
		return in, errInputRequired
	}
	state, hasState := result.Value("requestState")
	if hasState {
		if _, ok := wire.Unquote(state); !ok {
			return in, errInputRequired
		}
		if len(state) > maxServerState {
			return in, fmt.Errorf("the result's requestState has %d bytes; at most %d can go to a client and back", len(state), maxServerState)
		}
		in.state = state
	}
	if !result.Has("inputRequests") {
		if !hasState {
			return in, errInputRequired
		}
		return in, nil
	}
	requests, ok := result.Object("inputRequests")
	if !ok || requests.Len() > maxInputRequests {
		return in, errInputRequired
	}
	seen := make(map[string]bool, requests.Len())
	for key, value := range requests.All() {
		r, err := wire.ParseObject(value)
		if err != nil || seen[key] || !r.Unique("method", "params") {
			return in, errInputRequired
		}
		seen[key] = true
		method, ok := r.String("method")
		params, _ := r.Object("params")
		if !ok || !params.Unique("mode", "tools", "toolChoice", "includeContext") {
			return in, errInputRequired
		}
		in.requests = append(in.requests, inputRequest{method, params})
	}
	return in, nil
}

// person reports whether somebody is asked: then the pause before the next round is not the call's.
func (in inputRequired) person() bool {
	for _, r := range in.requests {
		if r.method != mcp.MethodRootsList {
			return true
		}
	}
	return false
}

// missing is the capability that the request needs and that are not declared, or "".
func (r inputRequest) missing(declared wire.Object) string {
	switch r.method {
	case mcp.MethodRootsList:
		if declared.Has("roots") {
			return ""
		}
		return "roots"
	case mcp.MethodSamplingCreateMessage:
		return r.missingSampling(declared)
	case mcp.MethodElicitationCreate:
		return r.missingElicitation(declared)
	}
	return "a request that the revision does not know"
}

func (r inputRequest) missingSampling(declared wire.Object) string {
	sampling, ok := declared.Object("sampling")
	if !ok {
		return "sampling"
	}
	if (r.params.Has("tools") || r.params.Has("toolChoice")) && !sampling.Has("tools") {
		return "sampling.tools"
	}
	if r.params.Has("includeContext") && !r.params.Equals("includeContext", "none") && !sampling.Has("context") {
		return "sampling.context"
	}
	return ""
}

// missingElicitation reads an absent mode as form, and an empty capability as the form mode, which was the only one at first.
func (r inputRequest) missingElicitation(declared wire.Object) string {
	elicitation, ok := declared.Object("elicitation")
	if !ok {
		return "elicitation"
	}
	switch {
	case !r.params.Has("mode"), r.params.Equals("mode", "form"):
		if elicitation.Has("form") || elicitation.Len() == 0 {
			return ""
		}
		return "elicitation.form"
	case r.params.Equals("mode", "url"):
		if elicitation.Has("url") {
			return ""
		}
		return "elicitation.url"
	}
	return "a mode of elicitation that the revision does not know"
}
