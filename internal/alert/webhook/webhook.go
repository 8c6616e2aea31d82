// Package webhook posts messages about alerts to a URL, signed as Standard Webhooks asks for.
//
// It keeps no queue and tries once: what failed is tried again by package alert. It tells a channel's owner nothing of the answer
// but its status.
//
// Invariant: unless private addresses are allowed, no connection is made to an address that is not public, whatever a name resolves
// to at that moment: users choose the URL, and sandboxd's host can reach more than they can.
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
	"sandboxd/internal/publicaddr"
	"sandboxd/internal/text"
)

// Bounds on one call.
const (
	sendLimit   = 10 * time.Second
	answerLimit = 64 << 10 // bytes, of the head and of the body
	urlLimit    = 2048     // bytes
)

// secretPrefix begins a channel's secret; what follows is the key in base64, of minKey to maxKey bytes.
const (
	secretPrefix = "whsec_"
	minKey       = 24
	maxKey       = 64
)

// Config is what a Sender needs.
type Config struct {
	Private bool           // also post to private, loopback and other addresses that are not public
	RootCAs *x509.CertPool // whose certificates are trusted; nil for those of this host
}

// Sender posts to webhooks. It implements alert.Sender.
type Sender struct {
	private bool
	dialer  *net.Dialer
	client  *http.Client
}

// New makes a Sender.
func New(c Config) *Sender {
	dialer := &net.Dialer{}
	if !c.Private {
		dialer.Control = publicaddr.Refuse
	}
	return &Sender{private: c.Private, dialer: dialer, client: &http.Client{
		// No proxy: it would connect in our place, and ask nobody where to. No connection is kept: each is checked.
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: answerLimit,
			TLSClientConfig: &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Check implements alert.Sender. A channel without a secret is good, since it may get one later. Kind: Invalid, with the field
// "address" or "secret".
func (s *Sender) Check(c alert.Channel) error {
	u, err := url.Parse(c.Address)
	port := ""
	if err == nil {
		port = u.Port()
	}
	switch n, portErr := strconv.ParseUint(port, 10, 16); {
	case err != nil || text.Unprintable(c.Address) || u.Opaque != "":
		return fault.Field("address", notURL)
	case len(c.Address) > urlLimit:
		return fault.Field("address", "The URL is too long: it may have %d characters.", urlLimit)
	case u.Scheme != "https" && u.Scheme != "http":
		return fault.Field("address", "The URL must begin with https:// or http://.")
	case u.User != nil:
		return fault.Field("address", "The URL must not contain a user name or password. Messages are signed with the channel's secret.")
	case u.Hostname() == "" || port != "" && (portErr != nil || n == 0):
		return fault.Field("address", "The URL must have a host name, and a port between 1 and 65535 if any.")
	case !s.private && publicaddr.LiterallyPrivate(u.Hostname()):
		return fault.Field("address", privateMessage)
	}
	if _, err := signer(c.Secret); c.Secret != "" && err != nil {
		return err
	}
	return nil
}

// What users are told in more than one place.
const (
	notURL         = "This is not a URL. Enter one such as https://example.com/hooks/alerts."
	privateMessage = "The URL leads to a private or local address. An administrator can allow these with --alert-private-addresses."
)

// signer gives what signs with a channel's secret. The library takes secrets of any length.
func signer(secret string) (*standardwebhooks.Webhook, error) {
	encoded, prefixed := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !prefixed || err != nil || len(key) < minKey || len(key) > maxKey {
		return nil, fault.Field("secret", "The secret must be %q followed by %d to %d bytes in base64.", secretPrefix, minKey, maxKey)
	}
	return standardwebhooks.NewWebhookRaw(key)
}

// Send implements alert.Sender. It takes 10 s at most. Kinds: Invalid (the receiver refuses it for good), Forbidden (the address is
// private), Unavailable, Timeout.
func (s *Sender) Send(ctx context.Context, c alert.Channel, m alert.Message) error {
	if err := s.Check(c); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	request, err := newRequest(ctx, c, m)
	if err != nil {
		return err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return problem(ctx, request.URL.Host, err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, answerLimit)) // for servers that take a hang-up for a failure; the status counts
	return verdict(answer.StatusCode, request.URL.Host)
}

// newRequest makes a signed request.
func newRequest(ctx context.Context, c alert.Channel, m alert.Message) (*http.Request, error) {
	sign, err := signer(c.Secret)
	if err != nil {
		return nil, err
	}
	body, err := encode(m)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	signature, err := sign.Sign(m.ID, now, body)
	if err != nil {
		return nil, fmt.Errorf("sign webhook: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Address, bytes.NewReader(body))
	if err != nil {
		return nil, fault.Field("address", notURL) // without err, which has the URL
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {"sandboxd"}}
	request.Header.Set(standardwebhooks.HeaderWebhookID, m.ID)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return request, nil
}

// problem words why no answer came. The URL stays out of it, since its path may be a secret.
func problem(ctx context.Context, host string, err error) error {
	if outer := new(url.Error); errors.As(err, &outer) {
		err = outer.Err
	}
	var certificate *tls.CertificateVerificationError
	var name *net.DNSError
	var slow net.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fault.Wrap(err, fault.Unavailable, "The message was not sent: sending was interrupted.")
	case errors.Is(err, publicaddr.ErrPrivate):
		return fault.Wrap(err, fault.Forbidden, privateMessage)
	case errors.As(err, &name) && name.IsNotFound:
		return fault.Wrap(err, fault.Unavailable, "%s cannot be found: there is no such name.", host)
	case errors.As(err, &certificate):
		return fault.Wrap(err, fault.Unavailable, "The certificate of %s is not trusted: %v.", host, certificate.Err)
	case ctx.Err() != nil, errors.As(err, &slow) && slow.Timeout():
		return fault.Wrap(err, fault.Timeout, "%s did not answer in time.", host)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fault.Wrap(err, fault.Unavailable, "%s refuses connections.", host)
	}
	return fault.Wrap(err, fault.Unavailable, "The connection to %s failed.", host)
}

// verdict says what a status means for the message.
func verdict(status int, host string) error {
	switch {
	case status/100 == 2:
		return nil
	case status/100 == 3:
		return fault.New(fault.Invalid, "%s answers %d, a redirect, which is not followed. Enter the final URL.", host, status)
	case status == http.StatusGone:
		return fault.New(fault.Invalid, "%s answers 410: this webhook is gone. Change or delete the channel.", host)
	case status/100 == 4 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests:
		return fault.New(fault.Invalid, "%s refuses the message with status %d.", host, status)
	}
	return fault.New(fault.Unavailable, "%s answers %d.", host, status)
}
