package client

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"syscall"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// Bounds of an error answer, in bytes.
const (
	maxProblem = 64 << 10
	maxDetail  = 1000
)

// awayError marks that the server was not there, so that nothing has been asked of it.
type awayError struct{ error }

func (e *awayError) Unwrap() error { return e.error }

// unreachable says in a sentence why there is no answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.Is(context.Cause(ctx), errSilent):
		return fault.Wrap(err, fault.Timeout, "The server at %s did not answer in time.", c.base)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &invalid):
		return fault.Wrap(err, fault.Forbidden, "The certificate of %s is not trusted: %v.", c.base, errors.Unwrap(err))
	case errors.Is(err, syscall.ECONNREFUSED):
		return &awayError{fault.Wrap(err, fault.Unavailable, "Nothing answers at %s: the connection was refused.", c.base)}
	}
	return fault.Wrap(err, fault.Unavailable, "The server at %s cannot be reached: %v.", c.base, short(err))
}

// short leaves the request, which is known, out of an error.
func short(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}

var statusKind = map[int]fault.Kind{
	http.StatusBadRequest: fault.Invalid, http.StatusUnauthorized: fault.Unauthenticated, http.StatusForbidden: fault.Forbidden,
	http.StatusNotFound: fault.NotFound, http.StatusConflict: fault.Conflict, http.StatusGone: fault.Gone,
	http.StatusRequestEntityTooLarge: fault.TooLarge, http.StatusTooManyRequests: fault.Limited,
	http.StatusGatewayTimeout: fault.Timeout, http.StatusInsufficientStorage: fault.Conflict,
}

// kindOf maps a status to a kind; the rest is Unavailable.
func kindOf(status int) fault.Kind {
	if kind, ok := statusKind[status]; ok {
		return kind
	}
	return fault.Unavailable
}

// problem is what an API error says.
type problem struct {
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field"` // of the input, that it is about
}

// refusal reads an answer that is an error, and closes it.
func (c *Client) refusal(res *http.Response) error {
	defer res.Body.Close()
	kind := kindOf(res.StatusCode)
	if media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err == nil && media == "application/problem+json" {
		var p problem
		if err := json.NewDecoder(io.LimitReader(res.Body, maxProblem)).Decode(&p); err == nil && p.Detail != "" {
			return c.refused(kind, p.Detail)
		}
	}
	if to := res.Header.Get("Location"); res.StatusCode/100 == 3 {
		return fault.New(fault.Unavailable, "The server at %s leads elsewhere, to %s. If that is your sandboxd, give its address.", c.base, text.OneLine(to, maxDetail))
	}
	return fault.New(kind, "What answers at %s is no sandboxd, or one that does not know this: it says %q.", c.base, text.OneLine(res.Status, maxDetail))
}

func (c *Client) refused(kind fault.Kind, detail string) error {
	detail = text.OneLine(detail, maxDetail)
	if kind == fault.Unauthenticated {
		return fault.New(kind, "%s rejected the token: %s", c.base, detail)
	}
	return fault.New(kind, "%s", detail)
}
