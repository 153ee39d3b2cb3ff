package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"mcp-gateway/gateway/config"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
)

// A watched upstream is one whose way to the server is told.
type watched struct {
	*trace
	u       config.Upstream
	path    string              // of the program; "" for a url
	missing error               // why there is no such program
	took    time.Duration       // to look for it
	verdict bool                // the engine has said which setting would work
	shown   func(string) string // makes a text what anybody may read
}

// watch begins to watch the way to u.
func (d *dialer) watch(u config.Upstream) *watched {
	w := &watched{u: u, trace: newTrace(d.proxy), shown: d.shown}
	if u.Engine.Stdio() {
		w.path, w.missing = childOf(u, parts{}).Find()
		w.took = time.Since(w.began)
	}
	return w
}

// phases are those that were seen until the engine stood so: all but the listing, or up to the one that failed.
func (w *watched) phases(ctx context.Context, status upstream.Status) []Phase {
	failed, err := "", error(nil)
	w.verdict = status.State == upstream.Verdict
	if status.State != upstream.Live {
		failed, err = w.failing(w.reason(ctx, status))
	}
	list := []Phase{} // of JSON
	for _, name := range w.order(failed) {
		if name == failed {
			return append(list, w.failure(name, err))
		}
		list = append(list, w.success(name, status))
	}
	return list
}

// reason is why the engine has not connected.
func (w *watched) reason(ctx context.Context, status upstream.Status) error {
	switch {
	case status.Err != nil:
		return status.Err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("the connection is %s", status.State)
}

// order is the phases that this upstream goes through, the failing one among them whatever it is.
func (w *watched) order(failed string) []string {
	if w.u.Engine.Stdio() {
		return []string{phaseFind, phaseStart, phaseHandshake}
	}
	var list []string
	for _, name := range []string{phaseProxy, phaseResolve, phaseConnect, phaseTLS} {
		if name == failed || w.look(name).done() {
			list = append(list, name)
		}
	}
	if w.u.Credential != nil || failed == phaseCredential {
		list = append(list, phaseCredential)
	}
	switch w.u.Engine {
	case config.LegacyWebSocket:
		list = append(list, phaseUpgrade)
	case config.LegacySSE:
		list = append(list, phaseEndpoint)
	}
	return append(list, phaseHandshake)
}

// failing is the phase that err has ended, and what was seen of it there, which says more than err where the engine knows less.
// It follows from what was seen on the way, and from the cause that the engine gives, never from a text.
func (w *watched) failing(err error) (string, error) {
	e, _ := errors.AsType[*upstream.Error](err)
	refused := e != nil && e.Cause == upstream.Refused && (e.HTTPStatus == http.StatusUnauthorized || e.HTTPStatus == http.StatusForbidden)
	if refused || e != nil && e.Cause == upstream.NoCredential {
		return phaseCredential, err
	}
	switch {
	case w.missing != nil:
		return phaseFind, w.missing
	case w.u.Engine.Stdio() && !w.look(phaseStart).done():
		return phaseStart, err
	case w.u.Engine.Stdio():
		return phaseHandshake, err
	}
	if w.u.Credential != nil && !w.look(phaseCredential).done() {
		return phaseCredential, err
	}
	proxy := w.look(phaseProxy)
	if proxy.err != nil {
		return phaseProxy, proxy.err
	}
	for _, name := range []string{phaseResolve, phaseConnect, phaseTLS} {
		s := w.look(name)
		if s.began.IsZero() || s.done() {
			continue
		}
		if s.err != nil {
			err = s.err
		}
		if proxy.done() && name != phaseTLS {
			return phaseProxy, err
		}
		return name, err
	}
	switch {
	case w.u.Engine == config.LegacyWebSocket && !w.look(phaseUpgrade).done():
		return phaseUpgrade, err
	case w.u.Engine == config.LegacySSE && !w.look(phaseEndpoint).done():
		return phaseEndpoint, err
	}
	return phaseHandshake, err
}

func (w *watched) success(name string, status upstream.Status) Phase {
	p := Phase{Name: name, OK: true}
	s := w.look(name)
	switch name {
	case phaseFind:
		p.TookMs, p.Detail = millis(w.took), w.shown(w.path)
		return p
	case phaseStart:
		p.TookMs = millis(s.ended.Sub(w.began.Add(w.took)))
		return p
	case phaseProxy:
		p.Detail = w.shown(w.throughProxy())
	case phaseHandshake:
		s.began, s.ended = w.greeted(), status.Since
		p.Detail = w.shown(status.Revision)
	}
	p.TookMs = millis(s.ended.Sub(s.began))
	return p
}

// throughProxy is the proxy as it may be shown.
func (w *watched) throughProxy() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.proxy == nil {
		return ""
	}
	return "through " + redact.URL(w.proxy.String())
}

// greeted is when the handshake began.
func (w *watched) greeted() time.Time {
	switch w.u.Engine {
	case config.LegacyStdio, config.ModernStdio:
		return w.look(phaseStart).ended
	case config.LegacyWebSocket:
		return w.look(phaseUpgrade).ended
	case config.LegacySSE:
		return w.look(phaseEndpoint).ended
	}
	return w.look(phaseUpgrade).began // when there was a connection
}

// failure is a phase that has ended so.
func (w *watched) failure(name string, err error) Phase {
	p := Phase{Name: name, Error: w.shown(strings.Join(strings.Fields(err.Error()), " ")), Fix: w.shown(w.fix(name, err))}
	began := w.look(name).began
	switch {
	case began.IsZero():
		began = w.began
	case name == phaseHandshake:
		began = w.greeted()
	}
	p.TookMs = millis(time.Since(began))
	if name == phaseFind {
		p.TookMs = millis(w.took)
	}
	return p
}
