package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"syscall"

	"mcp-gateway/gateway/config"
	"mcp-gateway/upstream"
)

// fix is what a person does about a phase that has failed, "" where the error has said it.
func (w *watched) fix(phase string, err error) string {
	switch phase {
	case phaseProxy:
		return "check HTTPS_PROXY and HTTP_PROXY, or name the server's host in NO_PROXY to reach it without the proxy"
	case phaseResolve:
		return fixResolve(err)
	case phaseConnect:
		return fixConnect(err)
	case phaseTLS:
		return fixTLS(err)
	case phaseCredential:
		return w.fixCredential(err)
	case phaseUpgrade, phaseEndpoint, phaseHandshake:
		return w.fixHandshake(err)
	case phaseList:
		if errors.Is(err, errSlow) {
			return "raise start_timeout if the server is only slow"
		}
	}
	return ""
}

func fixResolve(err error) string {
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return "correct the host in `url`: nobody knows it by that name"
	}
	return "the name service did not answer: check the network and the machine's resolver"
}

func fixConnect(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: start the server, or correct host and port in `url`"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no way to that network: correct the host in `url`, or check the route"
	}
	return "the server does not answer: check that it runs and that no firewall is in between, or correct host and port in `url`"
}

func fixTLS(err error) string {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	invalid, bad := errors.AsType[x509.CertificateInvalidError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case unknown:
		return "nobody that this machine trusts has signed the server's certificate: name the file of its authority in SSL_CERT_FILE"
	case name:
		return "write the host in `url` as the server's certificate has it, or give the server another certificate"
	case bad && invalid.Reason == x509.Expired:
		return "renew the server's certificate, or set this machine's clock"
	case plain:
		return "the server speaks no TLS at this port: write http:// (ws:// for WebSocket) in `url`, or correct the port"
	}
	return "check what answers at this port, and the server's certificate"
}

// fixCredential says where the credential comes from.
func (w *watched) fixCredential(err error) string {
	c := w.u.Credential
	e, _ := errors.AsType[*upstream.Error](err)
	switch {
	case c == nil && hasAuthorization(w.u):
		return "the server does not take what `headers` shows it: correct Authorization there"
	case c == nil:
		return "the server wants to know who asks: add `credential: {bearer: \"${env:NAME}\"}` to this upstream, and set NAME to the token"
	case e != nil && e.Cause == upstream.NoCredential:
		return "see to `credential." + sourceOf(c) + "`: no token could be had from it"
	}
	return "the server does not take the token: correct `credential." + sourceOf(c) + "`"
}

func hasAuthorization(u config.Upstream) bool {
	for _, h := range u.Headers {
		if strings.EqualFold(h.Name, "Authorization") {
			return true
		}
	}
	return false
}

func sourceOf(c *config.Credential) string {
	switch {
	case c.OAuth2 != nil:
		return "oauth2"
	case len(c.Command) > 0:
		return "command"
	}
	return "bearer"
}

func (w *watched) fixHandshake(err error) string {
	if w.verdict || errors.Is(err, context.Canceled) {
		return ""
	}
	if !w.u.Engine.Stdio() {
		return "see which settings fit: mcp-gateway inspect " + address(w.u)
	}
	text := "start it by hand to see what it needs"
	if w.u.Engine == config.ModernStdio {
		text = "take `protocol: modern` out if the server is of an earlier revision, else " + text
	}
	if !w.u.InheritEnv {
		text += "; a child sees only PATH, HOME, LANG, TMPDIR, TZ, USER and what `env` lists"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		text += "; one that is only slow wants a longer `start_timeout`"
	}
	return text
}
