package exchange

import (
	"context"
	"errors"
	"net/http"

	"mcp-gateway/upstream"
)

// Open makes a GET, such as that of an event stream or of a WebSocket's upgrade, and gives the response, which has one of the
// statuses 2xx or is 101, and whose body is the caller's to close. A token that is refused with 401 is refreshed once. ctx bounds the
// body of a 2xx as well. The error is an *upstream.Error. Close does not wait for the body, but ends it.
func (c *Client) Open(ctx context.Context, header http.Header) (*http.Response, error) {
	return c.open(ctx, &Request{Header: header, Resend: new(upstream.Budget), method: http.MethodGet})
}

// Post sends req, whose reply comes elsewhere: any 2xx says that it was taken, and the body says nothing. It sends again as Do
// does, and its error is Do's.
func (c *Client) Post(ctx context.Context, req *Request) error {
	resp, err := c.open(ctx, req)
	if err != nil {
		return err
	}
	drain(resp.Body)
	return nil
}

// open sends req and judges the response by its status.
func (c *Client) open(ctx context.Context, req *Request) (*http.Response, error) {
	if !c.begin() {
		return nil, c.ended(ctx, false, errClosed)
	}
	defer c.running.Done()
	resp, err := c.accepted(ctx, req)
	if err != nil {
		return nil, err
	}
	switch status := resp.StatusCode; {
	case success(resp), status == http.StatusSwitchingProtocols && req.method == http.MethodGet:
		return resp, nil
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return nil, c.refused(resp)
	case status >= 300 && status < 400:
		drain(resp.Body)
		return nil, httpError(resp, errRedirect)
	}
	drain(resp.Body)
	return nil, httpError(resp, errors.New("it did not take the request"))
}
