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
	Hash string  // tells one text of the file from another: 12 hexadecimal digits
	Read Reading // of the file, and of those that it refers to but for the ones that are sources of their own

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
	StreamAfter     time.Duration // how long an answer may stay silent before it becomes a stream
	Keepalive       time.Duration // between comments on a silent stream

	Watch    bool   // reload when what was Read has changed
	LogLevel string // debug, info, warn or error

	Admin    string       // host:port of the listener for whoever runs the gateway; "" is none
	AdminKey auth.Callers // let in to all of it; none where not set
	Pprof    bool         // it serves profiles

	SealKeys []redact.Secret // each the Base64 of 32 bytes; the first seals, all open; nil where not set
	StateDir string          // absolute or relative to the working directory; "" where no place is known

	secrets []redact.Known
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

	URL            redact.Secret // valid, with scheme and host; redact.URL shows it
	Headers        []Header
	ForwardHeaders []ForwardHeader // of the caller's request, those that go on to the server; over HTTP only
	Credential     *Credential     // nil shows none

	Revision     string        // the one legacy revision it must answer with; "" takes any
	Timeout      time.Duration // of a whole call
	ToolTimeouts []ToolTimeout // in file order, the first that matches counts in place of Timeout
	InputTimeout time.Duration // of a round that waits for a person
	Rounds       int           // of one call, at least 1
	StartTimeout time.Duration // of one connect
	Reconnect    Reconnect
	Concurrency  int           // calls in flight; 0 is no limit
	Queue        int           // calls that may wait for one in flight to end
	Poll         time.Duration // between listings where the server announces no changes; 0 is never

	Tools           policy.Tools
	Required        bool // not ready before it was live once
	ResultsVerbatim bool // the server's own answers pass as they are; records are redacted all the same
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

// A ForwardHeader is a header that goes from a caller's request to an upstream.
type ForwardHeader struct {
	Name     string // as configured; of no header that is the gateway's own or may hold the caller's credential for it
	Required bool   // without it a call is refused
}

// A ToolTimeout is the timeout of the tools whose own name matches.
type ToolTimeout struct {
	Pattern string // a glob of policy
	Timeout time.Duration
}

// Reconnect bounds the pause between attempts to connect.
type Reconnect struct {
	Min, Max time.Duration
}

// A Credential is what the gateway shows an upstream. Of Bearer, BearerFile, Command and OAuth2 exactly one is set.
type Credential struct {
	Bearer     redact.Secret   // without white space, control and non-ASCII characters
	BearerFile string          // a file that holds such a token and its one newline at most; it did at load
	Command    []redact.Secret // a program that prints a token, and its arguments
	OAuth2     *OAuth2

	Query string // over WebSocket: the query parameter that holds the token in place of Authorization; "" is none
}

// OAuth2 is a grant of RFC 6749: that of RefreshToken where there is one, else client credentials.
type OAuth2 struct {
	TokenURL     redact.Secret // valid, http or https, with a host and without userinfo and fragment
	ClientID     string        // never "" beside a ClientSecret
	ClientSecret redact.Secret
	RefreshToken redact.Secret
	Scopes       []string
	Resource     string // RFC 8707; "" names none
}

// Secrets returns what a redact.Scrubber has to know. Credentials are bearers, client secrets, seal keys, values of
// credential-named or credential-shaped variables, arguments and headers, userinfo and credential-like parts of urls, and
// what was inherited from the gateway's own environment. What else is configured under a name is for records.
func (c *Config) Secrets() []redact.Known { return slices.Clone(c.secrets) }
