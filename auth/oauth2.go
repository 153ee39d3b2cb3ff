package auth

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"mcp-gateway/redact"
)

// OAuth2 is a source of tokens at a token endpoint (RFC 6749): with a refresh token by that grant (section 6), else with
// client credentials (section 4.4).
type OAuth2 struct {
	TokenURL     redact.Secret
	ClientID     string
	ClientSecret redact.Secret // zero is a public client
	RefreshToken redact.Secret
	Scopes       []string
	Resource     string // what the token is for (RFC 8707); empty says nothing
}

const (
	// maxAnswer bounds what is read of a token endpoint's answer.
	maxAnswer = 1 << 20
	// lastMoment is how much longer than its credential a refresh that is under way may live: the refresh token that it brings
	// may be the only one from then on.
	lastMoment = 2 * time.Second
)

// A grant asks one token endpoint. It is for one goroutine at a time.
type grant struct {
	c       *Credential
	cfg     OAuth2
	base    http.RoundTripper
	style   oauth2.AuthStyle // how the client shows who it is; the one that worked last
	refresh *refresh         // nil for client credentials
}

func (c *Credential) newGrant(cfg OAuth2) *grant {
	g := &grant{c: c, cfg: cfg, base: c.cfg.Transport, style: oauth2.AuthStyleInHeader}
	if cfg.ClientSecret.IsZero() {
		g.style = oauth2.AuthStyleInParams // there is nothing to show but the name
	}
	if g.base == nil {
		g.base = &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			// Requests are rare, and a kept connection that the server has just closed would cost one.
			DisableKeepAlives:      true,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		}
	}
	if !cfg.RefreshToken.IsZero() {
		g.refresh = newRefresh(c, cfg)
	}
	return g
}

// fetch asks for a token. A refresh token goes out once, but for a server that does not know the client by the way in which it showed
// itself, and so has not looked at it (RFC 6749, section 5.2).
func (g *grant) fetch(ctx context.Context, _ bool) (fetched, error) {
	if g.refresh == nil {
		answer, err := g.ask(ctx, nil)
		if err != nil {
			return fetched{}, err
		}
		return fetched{answer.AccessToken, lifeOf(answer)}, nil
	}
	unlock, err := g.refresh.lock(ctx)
	if err != nil {
		return fetched{}, err
	}
	defer unlock()
	current, err := g.refresh.current()
	if err != nil {
		return fetched{}, err
	}
	longer, cancel := lastingLonger(ctx, lastMoment)
	defer cancel()
	answer, err := g.ask(longer, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {current.Reveal()}})
	if err != nil {
		return fetched{}, err
	}
	g.refresh.rotated(answer.RefreshToken)
	return fetched{answer.AccessToken, lifeOf(answer)}, nil
}

func lifeOf(t *oauth2.Token) time.Duration {
	if t.Expiry.IsZero() {
		return 0
	}
	return time.Until(t.Expiry)
}

// ask makes one grant, with extra beside what every one has.
func (g *grant) ask(ctx context.Context, extra url.Values) (*oauth2.Token, error) {
	answer, trip, err := g.post(ctx, extra)
	if err != nil && trip.unknownClient(err) && !g.cfg.ClientSecret.IsZero() {
		g.style = oauth2.AuthStyleInHeader + oauth2.AuthStyleInParams - g.style // the other of the two
		answer, trip, err = g.post(ctx, extra)
	}
	switch {
	case err != nil:
		return nil, trip.explain(ctx, err)
	case answer.TokenType != "" && !strings.EqualFold(answer.TokenType, "Bearer"):
		return nil, errors.New("getting a token from token_url: the answer has a token of another type than Bearer, which is the only one that the gateway can show")
	}
	return answer, nil
}

func (g *grant) post(ctx context.Context, extra url.Values) (*oauth2.Token, *trip, error) {
	t := &trip{base: g.base}
	cfg := clientcredentials.Config{
		ClientID: g.cfg.ClientID, ClientSecret: g.cfg.ClientSecret.Reveal(), TokenURL: g.cfg.TokenURL.Reveal(),
		Scopes: g.cfg.Scopes, AuthStyle: g.style, EndpointParams: url.Values{},
	}
	for name, values := range extra {
		cfg.EndpointParams[name] = values
	}
	if g.cfg.Resource != "" {
		cfg.EndpointParams.Set("resource", g.cfg.Resource)
	}
	client := &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := cfg.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
	return answer, t, err
}

// A trip sends one request once, and remembers what may be told of the answer.
type trip struct {
	base     http.RoundTripper
	status   int // of HTTP; 0 is that no answer was read
	length   int // of the answer
	tooLarge bool
}

// RoundTrip reads the whole answer.
func (t *trip) RoundTrip(r *http.Request) (*http.Response, error) {
	once := *r
	once.GetBody = nil // without it, net/http sends nothing a second time
	resp, err := t.base.RoundTrip(&once)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	t.status, t.length, t.tooLarge = resp.StatusCode, len(body), len(body) > maxAnswer
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// unknownClient reports whether the server has not gone further than who asks.
func (t *trip) unknownClient(err error) bool {
	refusal, ok := errors.AsType[*oauth2.RetrieveError](err)
	return t.status == http.StatusUnauthorized || ok && refusal.ErrorCode == "invalid_client"
}

// told are the errors that a token endpoint may name, with what a person does about them where that can be said. What it says
// beside them is not repeated: it may quote what it was sent.
var told = map[string]string{
	"invalid_request":        "",
	"invalid_client":         ": check client_id and client_secret",
	"invalid_grant":          ": the refresh token is not good any more, log in again and configure the new one",
	"unauthorized_client":    ": this client may not use this grant",
	"unsupported_grant_type": ": it does not know this grant",
	"invalid_scope":          ": check scopes",
	"invalid_target":         ": check resource",
	"access_denied":          "",
	"server_error":           "",
	"slow_down":              "",

	"temporarily_unavailable": "",
}

// explain says what happened without a word of the server's.
func (t *trip) explain(ctx context.Context, err error) error {
	const doing = "getting a token from token_url: "
	if t.status == 0 {
		return errors.New(doing + unreached(ctx, err))
	}
	answer := fmt.Sprintf("the answer (HTTP %d, %d bytes) ", t.status, t.length)
	refusal, refused := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case t.tooLarge:
		return fmt.Errorf("%sthe answer (HTTP %d) is over %d MiB", doing, t.status, maxAnswer>>20)
	case t.status >= 300 && t.status < 400:
		return errors.New(doing + answer + "is a redirect, which is not followed: configure the url that it leads to")
	case refused:
		if remedy, ok := told[refusal.ErrorCode]; ok {
			return errors.New(doing + answer + "is the error " + refusal.ErrorCode + remedy)
		}
		return errors.New(doing + answer + "is an error of no known kind")
	}
	return errors.New(doing + answer + "is none of a token endpoint: check token_url")
}

// unreached says why there was no answer. Errors of net/http may quote what they could not read.
func unreached(ctx context.Context, err error) string {
	_, unresolved := errors.AsType[*net.DNSError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	op, dialing := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %v", fetchWait)
	case unresolved:
		return "its host name cannot be resolved"
	case untrusted:
		return "its certificate is not trusted"
	case dialing && slices.Contains([]string{"dial", "proxyconnect"}, op.Op):
		return "it cannot be reached: check token_url, and that the server runs"
	}
	return "the connection broke off before the answer"
}

// lastingLonger gives a context that lasts d longer than ctx where that is canceled. A deadline of ctx ends both.
func lastingLonger(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer := context.WithoutCancel(ctx)
	var cancel context.CancelFunc
	if until, ok := ctx.Deadline(); ok {
		longer, cancel = context.WithDeadline(longer, until)
	} else {
		longer, cancel = context.WithCancel(longer)
	}
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}
