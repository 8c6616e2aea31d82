package proxy

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// Who and what there is in every test.
const (
	annToken  = "sbx_ann"
	bobToken  = "sbx_bob"
	rootToken = "sbx_root"
	oneToken  = "sbx_one" // Ann's, for another sandbox only
)

var people = map[string]auth.Principal{
	annToken:  {User: auth.User{ID: "u-ann", Name: "ann", Role: auth.Member}, Token: "t1"},
	bobToken:  {User: auth.User{ID: "u-bob", Name: "bob", Role: auth.Member}, Token: "t2"},
	rootToken: {User: auth.User{ID: "u-root", Name: "root", Role: auth.Admin}, Token: "t3"},
	oneToken:  {User: auth.User{ID: "u-ann", Name: "ann", Role: auth.Member}, Token: "t4", Sandbox: "other"},
}

// fakeAccounts keeps what auth promises: codes work once, for their host and nonce; sessions for their host.
type fakeAccounts struct {
	mu       sync.Mutex
	asked    int
	err      error                     // instead of any answer
	sessions map[string]auth.Principal // host + " " + secret
	codes    map[string]auth.Principal // code + " " + host + " " + nonce
	revoked  map[string]bool           // user id
}

func newAccounts() *fakeAccounts {
	return &fakeAccounts{sessions: map[string]auth.Principal{}, codes: map[string]auth.Principal{}, revoked: map[string]bool{}}
}

func unauthenticated() error { return fault.New(fault.Unauthenticated, "This is not valid any more.") }

func (a *fakeAccounts) answer(p auth.Principal, ok bool) (auth.Principal, error) {
	a.asked++
	if a.err != nil {
		return auth.Principal{}, a.err
	}
	if !ok || a.revoked[p.User.ID] {
		return auth.Principal{}, unauthenticated()
	}
	return p, nil
}

func (a *fakeAccounts) Authenticate(_ context.Context, token string) (auth.Principal, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, ok := people[token]
	return a.answer(p, ok)
}

func (a *fakeAccounts) HostSession(_ context.Context, secret, host string) (auth.Principal, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, ok := a.sessions[host+" "+secret]
	return a.answer(p, ok)
}

func (a *fakeAccounts) IssueCode(_ context.Context, session, host, nonce string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, ok := people[session]
	if !ok {
		return "", unauthenticated()
	}
	code := random()
	a.codes[code+" "+host+" "+nonce] = p
	return code, nil
}

func (a *fakeAccounts) RedeemCode(_ context.Context, code, host, nonce string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := code + " " + host + " " + nonce
	p, ok := a.codes[key]
	if !ok {
		return "", unauthenticated()
	}
	delete(a.codes, key)
	secret := random()
	a.sessions[host+" "+secret] = auth.Principal{User: p.User}
	return secret, nil
}

func (a *fakeAccounts) revoke(user string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revoked[user] = true
}

// failWith makes every question end in err; nil answers again.
func (a *fakeAccounts) failWith(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func random() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// fakeBoxes is Manager and door at once.
type fakeBoxes struct {
	mu      sync.Mutex
	boxes   map[string]sandbox.Sandbox
	session *fakeSession
	openErr error
	opened  int
	inside  int
}

func (b *fakeBoxes) Sandbox(_ context.Context, name string) (sandbox.Sandbox, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sb, ok := b.boxes[name]
	if !ok {
		return sb, fault.New(fault.NotFound, "There is no sandbox called %q.", name)
	}
	return sb, nil
}

func (b *fakeBoxes) Open(_ context.Context, name, _ string) (Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.openErr != nil {
		return Entry{}, b.openErr
	}
	b.opened++
	b.inside++
	return Entry{Sandbox: b.boxes[name], Session: b.session, TTYD: b.session.ttyd, Release: func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.inside--
	}}, nil
}

func (b *fakeBoxes) uses() (opened, inside int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened, b.inside
}

func (b *fakeBoxes) set(name string, state sandbox.State, problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sb := b.boxes[name]
	sb.State, sb.Problem = state, problem
	b.boxes[name] = sb
}

// put replaces a sandbox; the zero one is not there.
func (b *fakeBoxes) put(name string, sb sandbox.Sandbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.boxes[name] = sb
	if sb.ID == "" {
		delete(b.boxes, name)
	}
}

// fakeSession leads ports and tabs to real servers on the test's loopback.
type fakeSession struct {
	mu      sync.Mutex
	ttyd    bool
	address map[string]string // portHost or tabHost to address
	err     error
	dials   int
}

func (s *fakeSession) DialPort(ctx context.Context, port int) (net.Conn, error) {
	return s.dial(ctx, portHost(port))
}

func (s *fakeSession) DialTerminal(ctx context.Context, tab string) (net.Conn, error) {
	return s.dial(ctx, tabHost(tab))
}

func (s *fakeSession) dial(ctx context.Context, host string) (net.Conn, error) {
	s.mu.Lock()
	s.dials++
	address, err := s.address[host], s.err
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if address == "" {
		return nil, fault.New(fault.NotFound, "Nothing listens at %s.", host)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// world is a proxy with one running sandbox "ml" of Ann's.
type world struct {
	t        testing.TB
	hosts    hostname.Hosts
	accounts *fakeAccounts
	boxes    *fakeBoxes
	session  *fakeSession
	proxy    *Proxy
	front    *httptest.Server
	client   *http.Client
}

func newWorld(t testing.TB) *world { return newWorldAt(t, "http://localhost:8080") }

func newWorldAt(t testing.TB, public string) *world {
	t.Helper()
	hosts, err := hostname.New(public)
	if err != nil {
		t.Fatal(err)
	}
	session := &fakeSession{ttyd: true, address: map[string]string{}}
	boxes := &fakeBoxes{session: session, boxes: map[string]sandbox.Sandbox{
		"ml":    {ID: "1", Name: "ml", Owner: "u-ann", State: sandbox.Running},
		"other": {ID: "2", Name: "other", Owner: "u-ann", State: sandbox.Running},
	}}
	w := &world{t: t, hosts: hosts, accounts: newAccounts(), boxes: boxes, session: session}
	w.proxy = New(Config{Hosts: hosts, Sandboxes: boxes, Accounts: w.accounts, Doors: boxes,
		Assets: Assets{Files: http.HandlerFunc(echoPath), Scripts: []string{"/static/solo.js"}, Styles: []string{"/static/solo.css"}},
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil))})
	w.front = httptest.NewServer(w.proxy)
	w.client = &http.Client{
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", w.front.Listener.Addr().String())
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(func() {
		w.client.CloseIdleConnections()
		w.front.Close()
		for _, p := range w.proxy.pools.byID {
			p.close()
		}
	})
	return w
}

func echoPath(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "asset "+r.URL.Path) }

// serve starts a server inside the sandbox at a port or tab.
func (w *world) serve(host string, h http.HandlerFunc) *httptest.Server {
	w.t.Helper()
	s := httptest.NewServer(h)
	w.t.Cleanup(s.Close)
	w.lead(host, s.Listener.Addr().String())
	return s
}

// lie answers every connection to a port with raw bytes, after the request's head has come, and hangs up.
func (w *world) lie(host, answer string) {
	w.t.Helper()
	listener := listen(w.t)
	w.lead(host, listener.Addr().String())
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1<<16))
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}()
}

func (w *world) lead(host, address string) {
	w.session.mu.Lock()
	defer w.session.mu.Unlock()
	w.session.address[host] = address
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// signIn gives the cookie of a session of Ann's at a host.
func (w *world) signIn(host string) string {
	w.accounts.mu.Lock()
	defer w.accounts.mu.Unlock()
	secret := random()
	w.accounts.sessions[host+" "+secret] = auth.Principal{User: people[annToken].User}
	return w.proxy.hostCookie() + "=" + secret
}

// header is what a request has beside its URL: pairs of name and value.
type header []string

func (w *world) request(method, address string, body io.Reader, h header) *http.Request {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, address, body)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(h); i += 2 {
		r.Header.Add(h[i], h[i+1])
	}
	return r
}

type answer struct {
	*http.Response
	body string
}

// ask sends a request and reads the whole answer.
func (w *world) ask(method, address string, h header) answer {
	w.t.Helper()
	return w.send(w.request(method, address, nil, h))
}

func (w *world) send(r *http.Request) answer {
	w.t.Helper()
	res, err := w.client.Do(r)
	if err != nil {
		w.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatalf("read answer of %s: %v", r.URL, err)
	}
	return answer{res, string(body)}
}

func (w *world) wantStatus(a answer, status int) {
	w.t.Helper()
	if a.StatusCode != status {
		w.t.Fatalf("%s %s: status %d, want %d\n%s", a.Request.Method, a.Request.URL, a.StatusCode, status, a.body)
	}
}

// bearer is Ann's token as a header.
var bearer = header{"Authorization", "Bearer " + annToken}

func parseURL(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func contains(s string, all ...string) bool {
	for _, part := range all {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}
