package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"mcp-gateway/gateway/config"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// InspectOptions are what an inspection is given beside the server.
type InspectOptions struct {
	Timeout time.Duration // of one attempt
	KeyEnv  string        // the environment variable with the token for a url; "" shows none
	Env     []string      // the environment variables that a command gets beside the usual ones
	Log     io.Writer     // of what the server and the engines have to say beside; nil drops it
	Waiting func([]string)
}

// A Try is one way to speak to a server, and whether it does.
type Try struct {
	Engine    string   `json:"engine"`  // in words, such as "legacy over HTTP+SSE"
	Address   string   `json:"address"` // as it may be shown
	OK        bool     `json:"ok"`
	Revisions []string `json:"revisions,omitempty"` // that it speaks so
	Phase     string   `json:"phase,omitempty"`     // that has failed
	Error     string   `json:"error,omitempty"`

	entry entry
	err   error
	fix   string
}

// An Inspection is what a server was found to speak.
type Inspection struct {
	Tries []Try  `json:"tries"`
	Entry string `json:"entry,omitempty"` // the configuration that fits, as YAML; "" where none does
	Note  string `json:"note,omitempty"`  // what is to be done before the entry can be used
	Fix   string `json:"fix,omitempty"`   // what to do where none fits
}

// InspectURL asks the server at target in every way that the gateway knows for a url: all at once, and, where target has no path,
// at the usual ones as well. It returns when nothing runs any more. An error says that target is no url, or that its
// token cannot be had.
func InspectURL(ctx context.Context, target string, opts InspectOptions) (*Inspection, error) {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return nil, errors.New("that is no url: write one such as https://mcp.example.com/mcp, or -- and a command")
	}
	targets := []string{target}
	if u.Path == "" || u.Path == "/" {
		for _, path := range []string{"/mcp", "/sse"} {
			at := *u
			at.Path = path
			targets = append(targets, at.String())
		}
	}
	out := &Inspection{}
	i := &inspector{opts: opts, out: out}
	for _, target := range targets {
		if err := i.all(ctx, urlEntries(target, opts.KeyEnv)); err != nil {
			return nil, err
		}
		if out.found() || out.blocked() || ctx.Err() != nil {
			break
		}
	}
	i.olderRevisions(ctx)
	i.conclude(ctx)
	return out, nil
}

// InspectCommand starts the command twice, one after the other, and asks it as a server of each era.
func InspectCommand(ctx context.Context, command []string, opts InspectOptions) (*Inspection, error) {
	out := &Inspection{}
	i := &inspector{opts: opts, out: out}
	e := commandEntry(command, opts.Env)
	began := time.Now()
	if err := i.all(ctx, []entry{e}); err != nil {
		return nil, err
	}
	if out.found() {
		// It is known how long it takes to answer, and silence is an answer after that.
		i.opts.Timeout = min(opts.Timeout, time.Since(began)+10*time.Second)
	}
	if !out.blocked() && ctx.Err() == nil {
		e.protocol = "modern"
		if err := i.all(ctx, []entry{e}); err != nil {
			return nil, err
		}
	}
	i.conclude(ctx)
	return out, nil
}

// An inspector makes tries.
type inspector struct {
	opts InspectOptions
	out  *Inspection
}

// all makes a try of each entry, all at once.
func (i *inspector) all(ctx context.Context, entries []entry) error {
	dialers := make([]*dialer, len(entries))
	upstreams := make([]config.Upstream, len(entries))
	for n, e := range entries {
		// Its warnings are of what stands in a file.
		cfg, _, err := config.Parse("inspect", e.json(i.opts.Timeout))
		if err != nil {
			return refusedEntry(err)
		}
		dialers[n], upstreams[n] = newDialer(cfg, i.opts.Log), cfg.Upstreams[0]
	}
	tries := make([]Try, len(entries))
	if i.opts.Waiting != nil {
		i.opts.Waiting([]string{dialers[0].shown(address(upstreams[0]))})
		defer i.opts.Waiting(nil)
	}
	var running sync.WaitGroup
	for n, e := range entries {
		running.Go(func() { tries[n] = dialers[n].try(ctx, upstreams[n], e) })
	}
	running.Wait()
	i.out.Tries = append(i.out.Tries, tries...)
	return nil
}

// refusedEntry is a configuration's refusal of what a person has typed. The places in it are nowhere.
func refusedEntry(err error) error {
	problems, ok := errors.AsType[config.Problems](err)
	if !ok || len(problems) == 0 {
		return err
	}
	flag := "it"
	switch p := problems[0].Path; {
	case strings.HasSuffix(p, ".url"):
		flag = "the url"
	case strings.HasSuffix(p, ".bearer"):
		flag = "--key-env"
	case strings.Contains(p, ".env"):
		flag = "--env"
	}
	return errors.New(flag + ": " + problems[0].Text)
}

// try connects, asks who is there, and ends everything again.
func (d *dialer) try(ctx context.Context, u config.Upstream, e entry) Try {
	t := Try{Engine: u.Engine.String(), Address: d.shown(address(u)), entry: e}
	w, engine, err := d.connect(u)
	if err != nil {
		t.Phase, t.err, t.Error = phaseHandshake, err, d.shown(err.Error())
		return t
	}
	status := settled(ctx, engine)
	if status.State == upstream.Live {
		t.OK, t.Revisions = true, []string{status.Revision}
	} else {
		phases := w.phases(ctx, status)
		failed := phases[len(phases)-1]
		t.Phase, t.fix, t.err = failed.Name, failed.Fix, w.reason(ctx, status)
		t.Error = failed.Error
		if failed.Name == phaseHandshake || failed.Name == phaseUpgrade || failed.Name == phaseEndpoint {
			t.Error = d.shown(plainly(t.err))
		}
	}
	if err := engine.Close(); err != nil {
		t.OK, t.Error = false, d.shown(err.Error())
	}
	return t
}

// plainly is why a server was not understood, without the settings that the engines name: here all of them are tried.
func plainly(err error) string {
	if stated, ok := errors.AsType[*wire.Error](err); ok {
		return stated.Error()
	}
	e, ok := errors.AsType[*upstream.Error](err)
	switch {
	case !ok:
		return err.Error()
	case e.HTTPStatus >= 300:
		return fmt.Sprintf("it answers with HTTP %d", e.HTTPStatus)
	case e.Cause == upstream.Deadline || e.Cause == upstream.DeadlineUnsent:
		return "it does not answer in time (--timeout)"
	case e.Cause == upstream.WriteFailed || e.Cause == upstream.StdinFailed:
		return "the server ended, or closed its input, before it could be asked: " + err.Error() // with its last words
	case e.Err != nil:
		return e.Err.Error()
	}
	return string(e.Cause)
}

// olderRevisions asks, wherever a server shook hands over a url, for each other revision by name.
func (i *inspector) olderRevisions(ctx context.Context) {
	legacy := []string{mcp.Revision20251125, mcp.Revision20250618, mcp.Revision20250326, mcp.Revision20241105}
	tried := len(i.out.Tries)
	var entries []entry
	for n := range tried {
		t := &i.out.Tries[n]
		if !t.OK || !mcp.IsLegacy(t.Revisions[0]) {
			continue
		}
		for _, revision := range legacy {
			if revision != t.Revisions[0] {
				e := t.entry
				e.revision = revision
				entries = append(entries, e)
			}
		}
	}
	if len(entries) == 0 || i.all(ctx, entries) != nil { // they are as good as those that were tried
		return
	}
	for _, older := range i.out.Tries[tried:] {
		for n := range tried {
			t := &i.out.Tries[n]
			if e := older.entry; older.OK && t.OK && e.url == t.entry.url && e.protocol == t.entry.protocol && e.transport == t.entry.transport {
				t.Revisions = append(t.Revisions, older.Revisions...)
			}
		}
	}
	i.out.Tries = i.out.Tries[:tried]
	for n := range i.out.Tries {
		slices.Sort(i.out.Tries[n].Revisions)
		slices.Reverse(i.out.Tries[n].Revisions)
	}
}

// found reports whether there is a way to speak to the server.
func (s *Inspection) found() bool { return s.best() != nil }

// best is the try whose settings are the ones to have: the newest era first, then the newer transport.
func (s *Inspection) best() *Try {
	var best *Try
	for n := range s.Tries {
		if t := &s.Tries[n]; t.OK && (best == nil || t.entry.rank() < best.entry.rank()) {
			best = t
		}
	}
	return best
}

// blocked reports whether all tries have failed before the server could be asked anything, so that no other way is any help.
func (s *Inspection) blocked() bool {
	for n := range s.Tries {
		switch s.Tries[n].Phase {
		case phaseFind, phaseStart, phaseProxy, phaseResolve, phaseConnect, phaseTLS, phaseCredential:
		default:
			return false
		}
	}
	return true
}

// conclude gives the entry that fits, or what to do where none does.
func (i *inspector) conclude(ctx context.Context) {
	out := i.out
	if best := out.best(); best != nil {
		out.Entry, out.Note = best.entry.yaml(i.opts)
		return
	}
	if ctx.Err() != nil {
		out.Fix = "it was interrupted before the server was asked everything"
		return
	}
	for n := range out.Tries {
		t := &out.Tries[n]
		switch t.Phase {
		case phaseCredential:
			out.Fix = "the server wants to know who asks: put a token into an environment variable, and name that with --key-env NAME"
			if i.opts.KeyEnv != "" {
				out.Fix = "the server does not take the token in " + i.opts.KeyEnv
			}
			return
		case phaseFind, phaseStart:
			return // the error has said it
		case phaseProxy, phaseResolve, phaseConnect, phaseTLS:
			out.Fix = cmp.Or(out.Fix, t.fix)
		}
	}
	if out.Fix == "" && out.Tries[0].entry.url != "" {
		out.Fix = "no MCP server answers there: check the path of the url, which its documentation names"
	}
	if out.Fix == "" {
		out.Fix = "it is no MCP server, or it needs more to start: a child sees only PATH, HOME, LANG, TMPDIR, TZ, USER and what --env NAME passes on"
	}
}
