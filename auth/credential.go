package auth

import (
	"context"
	"errors"
	"net/http"

	"mcp-gateway/redact"
)

// ErrNothingNewer is what Refresh returns where the refused token is the only one there is.
var ErrNothingNewer = errors.New("there is no newer credential: the configured bearer was refused, replace it")

// A Credential is what the gateway shows one upstream.
type Credential struct {
	bearer redact.Secret
}

// NewBearer returns a Credential that shows token for as long as it lives.
func NewBearer(token redact.Secret) *Credential { return &Credential{bearer: token} }

// Sign puts the credential on r, in place of any Authorization that is there. The number it returns names the token
// it used; Refresh takes it.
func (c *Credential) Sign(ctx context.Context, r *http.Request) (token uint64, err error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+c.bearer.Reveal())
	return 1, nil
}

// Refresh asks for a token newer than the one an upstream refused. For a fixed bearer it returns ErrNothingNewer.
func (c *Credential) Refresh(ctx context.Context, token uint64) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return ErrNothingNewer
}
