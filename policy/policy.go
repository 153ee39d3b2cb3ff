// Package policy decides who may see and use what.
//
// Policy.Allows is the one decision: the same answer filters a list and gates a call, so that no list shows what a
// call refuses. What is not known is refused. Start reading at New.
package policy

import "slices"

// Tools says which of an upstream's own tool names pass. A name passes if it matches Allow and does not match Deny.
// The zero Tools lets all pass.
type Tools struct {
	Allow []string // globs; nil lets all pass, empty lets none pass
	Deny  []string // globs; they win over Allow
}

// A Policy answers for one set of upstreams. It is immutable and safe for concurrent use.
type Policy struct {
	upstreams map[string]rules
}

type rules struct {
	all         bool // no allow list
	allow, deny []glob
}

// New compiles the tools of each upstream id. Every string is a valid glob.
func New(upstreams map[string]Tools) *Policy {
	p := &Policy{upstreams: make(map[string]rules, len(upstreams))}
	for id, tools := range upstreams {
		p.upstreams[id] = rules{all: tools.Allow == nil, allow: compile(tools.Allow), deny: compile(tools.Deny)}
	}
	return p
}

// Allows reports whether caller may see and use tool, named in the upstream's own words. It allocates nothing.
// The rules know no callers yet: every caller gets the same answer.
func (p *Policy) Allows(caller, upstream, tool string) bool {
	r, known := p.upstreams[upstream]
	if !known || matchAny(r.deny, tool) {
		return false
	}
	return r.all || matchAny(r.allow, tool)
}

// AllowsSome reports whether caller could be allowed anything of upstream. An upstream of which it could not is never
// named to it. It is false only where that is so; of several denials that leave nothing but together, it says true.
func (p *Policy) AllowsSome(caller, upstream string) bool {
	r, known := p.upstreams[upstream]
	if !known {
		return false
	}
	if r.all {
		return !r.denies("*")
	}
	return slices.ContainsFunc(r.allow, func(g glob) bool { return !r.denies(g) })
}

// denies reports whether one denial takes everything that g allows.
func (r rules) denies(g glob) bool {
	return slices.ContainsFunc(r.deny, func(deny glob) bool { return deny.covers(g) })
}
