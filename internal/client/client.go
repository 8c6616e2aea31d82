// Package client asks a sandboxd from anywhere, over its API with a token: what the command line's commands for users are made
// of.
//
// It decides nothing about sandboxes, shows nothing to anybody, and knows no flags.
//
// Invariant: a token goes to the server that it was given for and nowhere else: not over plain HTTP beyond this machine, not to
// where a redirect leads, and into no error. A server's answers are hostile input: text for people is cleaned, and files
// are written only below the folder that was named.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"sandboxd/internal/fault"
)

const (
	apiPrefix   = "/api/v1"
	dialLimit   = 10 * time.Second
	headLimit   = 2 * time.Minute // until an answer begins: a sandbox may have to be woken
	callLimit   = 2 * time.Minute // for a whole answer that is no stream
	maxAnswer   = 32 << 20
	patienceFor = time.Minute // a server that says nothing for so long in an open websocket is gone: it pings every 15 s
)

// Options say which server is asked, as whom.
type Options struct {
	URL      string // the dashboard's address
	Token    string
	Insecure bool   // the token may travel in the clear
	Agent    string // how this program calls itself
}

// Client asks one server. Safe for concurrent use.
type Client struct {
	base      *url.URL
	token     string
	agent     string
	transport *http.Transport // also what websockets are dialled by
	http      *http.Client
}

// New makes a client. It does no I/O. Invalid when the address is none, or the token would travel in the clear.
func New(o Options) (*Client, error) {
	base, err := ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if base.Scheme == "http" && !o.Insecure && !isLoopback(base.Hostname()) {
		return nil, fault.Field("url", "%s is not encrypted, so anyone along the way could read the token. Use https, or say --insecure.", base)
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fault.Field("token", "The token has characters that no token has.")
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy, t.DialContext = wayTo(base.Hostname())
	t.DisableCompression = true
	t.WriteBufferSize, t.ReadBufferSize = copyBuffer, copyBuffer
	return &Client{base: base, token: o.Token, agent: o.Agent, transport: t, http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// copyBuffer is how much is moved at once.
const copyBuffer = 256 << 10

// ParseURL reads a server's address: scheme, host and port, and nothing more.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(strings.TrimSpace(text), "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fault.Field("url", "%.100q is not the address of a sandboxd, such as https://box.example.com.", text)
	}
	if u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.Field("url", "The address of a sandboxd is scheme, host and port only, such as https://box.example.com.")
	}
	u.Host = strings.ToLower(u.Host)
	return u, nil
}

func isLoopback(host string) bool {
	at, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && at.IsLoopback()
}

type (
	proxyFunc func(*http.Request) (*url.URL, error)
	dialFunc  func(ctx context.Context, network, addr string) (net.Conn, error)
)

// wayTo gives the way to a host. Names of this machine are dialled directly: a proxy would read a token
// that goes over plain HTTP, and a name server may say anything of box.localhost.
func wayTo(host string) (proxyFunc, dialFunc) {
	d := &net.Dialer{Timeout: dialLimit, KeepAlive: 15 * time.Second}
	if !isLoopback(host) {
		return http.ProxyFromEnvironment, d.DialContext
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil, d.DialContext
	}
	return nil, func(ctx context.Context, network, addr string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		conn, err := d.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return conn, nil
		}
		if conn, six := d.DialContext(ctx, network, net.JoinHostPort("::1", port)); six == nil {
			return conn, nil
		}
		return nil, err
	}
}

// URL is the server's address, without a slash at its end.
func (c *Client) URL() string { return c.base.String() }

// call is one request.
type call struct {
	method string
	path   string // below the API's prefix, already escaped
	query  url.Values
	body   io.Reader // nil for none
	accept string
	head   http.Header
	slow   bool // the answer begins when the body has ended
}

// sandboxPath is the path of something of a sandbox.
func sandboxPath(name string, rest string) string {
	if volume, ok := strings.CutPrefix(name, VolumePrefix); ok {
		return volumePath(volume) + rest
	}
	return "/sandboxes/" + url.PathEscape(name) + rest
}

// at is the address of something, in the scheme that it is spoken with.
func (c *Client) at(scheme, path string, query url.Values) string {
	to := scheme + "://" + c.base.Host + apiPrefix + path
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	return to
}

func (c *Client) header(more http.Header) http.Header {
	h := more.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("Authorization", "Bearer "+c.token)
	h.Set("User-Agent", c.agent)
	return h
}

// do makes a request and gives its good answer, whose body the caller must close. Everything else is an error.
func (c *Client) do(ctx context.Context, ask call) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit := time.AfterFunc(headLimit, func() { cancel(errSilent) })
	if ask.slow {
		limit.Stop()
	}
	req, err := http.NewRequestWithContext(ctx, ask.method, c.at(c.base.Scheme, ask.path, ask.query), ask.body)
	if err != nil {
		cancel(nil)
		return nil, fault.Wrap(err, fault.Invalid, "That cannot be asked.")
	}
	req.Header = c.header(ask.head)
	if ask.accept != "" {
		req.Header.Set("Accept", ask.accept)
	}
	res, err := c.http.Do(req)
	limit.Stop()
	if err != nil {
		defer cancel(nil)
		return nil, c.unreachable(ctx, err)
	}
	if res.StatusCode/100 != 2 {
		defer cancel(nil)
		return nil, c.refusal(res)
	}
	res.Body = &body{res.Body, func() { cancel(nil) }}
	return res, nil
}

var errSilent = errors.New("no answer in time")

// body ends its request when it is closed.
type body struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

// get asks for JSON, and again when the server is away for a moment: asking changes nothing.
func (c *Client) get(ctx context.Context, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return again(ctx, func() error {
		res, err := c.do(ctx, call{method: http.MethodGet, path: path, query: query, accept: "application/json"})
		if err != nil {
			return err
		}
		return decode(res, into)
	})
}

// decode reads an answer of JSON to its end, and closes it.
func decode(res *http.Response, into any) error {
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(text)).Decode(into)
	}
	return fault.Wrap(err, fault.Unavailable, "The server's answer cannot be read. Is it a sandboxd, and as new as this program?")
}

// Pauses between tries.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 2 * time.Second
	maxTries   = 8
)

// again tries what changes nothing until it does not fail for want of a server, or a few times.
func again(ctx context.Context, try func() error) error {
	pause := firstPause
	for i := 1; ; i++ {
		err := try()
		var away *awayError
		if !errors.As(err, &away) || i == maxTries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}
