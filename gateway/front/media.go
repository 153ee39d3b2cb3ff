package front

import (
	"net/http"
	"strings"
)

// isJSON reports whether the body is said to be one JSON text, as it is.
func isJSON(h http.Header) bool {
	types := h["Content-Type"]
	if len(types) != 1 || h["Content-Encoding"] != nil {
		return false
	}
	media, _, _ := strings.Cut(types[0], ";")
	return strings.EqualFold(strings.TrimSpace(media), "application/json")
}

// accepts is in which forms a client takes an answer.
type accepts struct{ json, events bool }

// readAccept reads the Accept headers (RFC 9110, section 12.5.1). None at all takes everything.
func readAccept(lines []string) accepts {
	if len(lines) == 0 {
		return accepts{json: true, events: true}
	}
	var json, events preference
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			media, params, _ := strings.Cut(item, ";")
			media = strings.TrimSpace(media)
			refused := zeroQuality(params)
			json.consider(media, "application/json", "application/*", refused)
			events.consider(media, "text/event-stream", "text/*", refused)
		}
	}
	return accepts{json: json.taken(), events: events.taken()}
}

// A preference is the most specific range so far that names one media type.
type preference struct {
	specific int // 0 is none
	refused  bool
}

func (p *preference) consider(media, exact, group string, refused bool) {
	specific := 0
	switch {
	case strings.EqualFold(media, exact):
		specific = 3
	case strings.EqualFold(media, group):
		specific = 2
	case media == "*/*":
		specific = 1
	}
	if specific > p.specific {
		p.specific, p.refused = specific, refused
	}
}

func (p preference) taken() bool { return p.specific > 0 && !p.refused }

// zeroQuality reports whether the parameters hold a q of 0, which refuses the media range.
func zeroQuality(params string) bool {
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, ";")
		name, value, _ := strings.Cut(param, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			value = strings.TrimSpace(value)
			return value != "" && strings.Trim(value, "0.") == ""
		}
	}
	return false
}
