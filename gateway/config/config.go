// Package config turns a configuration file into values, or into every problem that it has.
//
// Load reads and checks a file, Parse does the same with bytes. Both start nothing: no process, no connection. A
// file is YAML or JSON. Every problem and warning has its place as file:line:col and never quotes a secret. What can
// hold a secret is a redact.Secret from here on. Start reading at Parse; family.go is the table that picks an engine.
package config

import (
	"slices"
	"time"

	"mcp-gateway/auth"
	"mcp-gateway/policy"
	"mcp-gateway/redact"
)

// A Config is one checked configuration. It is not changed once loaded.
type Config struct {
	Listen   string   // host:port; an empty host is every address
	Path     string   // begins with a slash
	Hosts    []string // Host headers to accept, lower case; nil where not set
	Origins  []string // Origins to accept, lower case; nil where not set
	Insecure bool     // serving off loopback without callers was asked for

	Callers   auth.Callers
	Upstreams []Upstream // in file order

	StartGrace      time.Duration // how long serving waits for the first listings
	ShutdownDelay   time.Duration // how long new calls are still taken after readiness has gone
	ShutdownTimeout time.Duration // how long running calls may take to finish after that
	Keepalive       time.Duration // between comments on a silent stream

	SealKeys []redact.Secret // each the Base64 of 32 bytes; the first seals, all open; nil where not set
	StateDir string          // absolute or relative to the working directory; "" where no place is known

	secrets []redact.Secret
}

// An Upstream is one MCP server. Its Engine says which of Command and URL it has.
type Upstream struct {
	ID     string
	Prefix string // before its tools' public names
	Engine Engine

	Command    redact.Secret
	Args       []redact.Secret
	Env        []EnvVar
	InheritEnv bool   // the child gets the gateway's whole environment
	Cwd        string // "" is the gateway's own

	URL     redact.Secret // valid, with scheme and host; redact.URL shows it
	Headers []Header

	Revision     string        // the one legacy revision it must answer with; "" takes any
	Timeout      time.Duration // of a whole call
	StartTimeout time.Duration // of one connect
	Reconnect    Reconnect
	Tools        policy.Tools
	Credential   *Credential // nil shows none
}

// An EnvVar is one variable of a child's environment.
type EnvVar struct {
	Name  string
	Value redact.Secret
}

// A Header is one fixed header of every request to an upstream.
type Header struct {
	Name  string // as configured
	Value redact.Secret
}

// Reconnect bounds the pause between attempts to connect.
type Reconnect struct {
	Min, Max time.Duration
}

// A Credential is what the gateway shows an upstream.
type Credential struct {
	Bearer redact.Secret // never zero, without control characters
}

// Secrets returns all that must never appear in a record: bearers, header values, values of credential-named
// variables and arguments, userinfo and credential-like parts of urls, seal keys, and what was inherited from the
// gateway's own environment.
func (c *Config) Secrets() []redact.Secret { return slices.Clone(c.secrets) }
