package proxy

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/visibility"
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
	oneToken:  {User: auth.User{ID: "u-ann", Name: "ann", Role: auth.Member}, Token: "t4", Sandbox: "other", SandboxID: "2"},
}

// fakeAccounts keeps what auth promises: codes work once, for their host and nonce; sessions for their host.
type fakeAccounts struct {
	mu       sync.Mutex
	asked    int
	err      error                     // instead of any answer
	sessions map[string]auth.Principal // host + " " + secret
	codes    map[string]auth.Principal // code + " " + host + " " + nonce
	revoked  map[string]bool           // user id
	gone     map[string]bool           // user id
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

func (a *fakeAccounts) User(_ context.Context, id string) (auth.User, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone[id] {
		return auth.User{}, fault.New(fault.NotFound, "There is no such user.")
	}
	return auth.User{ID: id, Disabled: a.revoked[id]}, a.err
}

func (a *fakeAccounts) remove(user string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone = map[string]bool{user: true}
}

func (a *fakeAccounts) IssueCode(_ context.Context, session string, at auth.Place, nonce string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, ok := people[session]
	if !ok {
		return "", unauthenticated()
	}
	code := random()
	p.SandboxID = at.SandboxID
	a.codes[code+" "+at.Host+" "+nonce] = p
	return code, nil
}

func (a *fakeAccounts) RedeemCode(_ context.Context, code, host string, nonces ...string) (secret, sandboxID string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, nonce := range nonces {
		key := code + " " + host + " " + nonce
		if p, ok := a.codes[key]; ok {
			delete(a.codes, key)
			secret = random()
			a.sessions[host+" "+secret] = auth.Principal{User: p.User, SandboxID: p.SandboxID}
			return secret, p.SandboxID, nil
		}
	}
	return "", "", unauthenticated()
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

// world is a proxy with one running sandbox "ml" of Ann's, and another one "other".
type world struct {
	t        testing.TB
	hosts    hostname.Hosts
	accounts *fakeAccounts
	boxes    *fakeBoxes
	ports    *visibility.Ports
	access   *access.Control
	session  *fakeSession
	proxy    *Proxy
	front    *httptest.Server // nil in fake time
	client   *http.Client
	listen   func(http.Handler) func(context.Context) (net.Conn, error) // starts a server and gives how to dial it
}

func newWorld(t testing.TB) *world { return newWorldAt(t, "http://localhost:8080") }

// newWorldAt makes a world on real sockets.
func newWorldAt(t testing.TB, public string) *world {
	t.Helper()
	w := makeWorld(t, public)
	w.listen = func(h http.Handler) func(context.Context) (net.Conn, error) {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return dialTCP(s.Listener.Addr().String())
	}
	w.front = httptest.NewServer(w.proxy)
	t.Cleanup(w.front.Close)
	w.open(dialTCP(w.front.Listener.Addr().String()))
	return w
}

// newStillWorld makes a world without sockets, for tests in fake time; it must be made inside of that.
func newStillWorld(t testing.TB) *world {
	t.Helper()
	w := makeWorld(t, "http://localhost:8080")
	w.listen = func(h http.Handler) func(context.Context) (net.Conn, error) { return servePipes(t, h) }
	w.open(w.listen(w.proxy))
	return w
}

func makeWorld(t testing.TB, public string) *world {
	t.Helper()
	hosts, err := hostname.New(public)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, hosts: hosts, accounts: newAccounts(), session: newSession()}
	w.boxes = newBoxes(w.session)
	w.ports = newPorts(t)
	w.access = access.New(w.boxes, w.boxes.link, w.boxes)
	w.proxy = New(Config{Hosts: hosts, Sandboxes: w.boxes, Accounts: w.accounts, Ports: w.ports, Access: w.access, Tracker: w.boxes.uses,
		Assets: Assets{Files: http.HandlerFunc(echoPath), Scripts: []string{"/static/solo.js"}, Styles: []string{"/static/solo.css"}, Icon: "/static/icon.svg"},
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil))})
	return w
}

// accessTo is the access to the sandboxes, whose guest is g.
func (w *world) accessTo(g access.Guest) *access.Control {
	return access.New(w.boxes, func(context.Context, string) (access.Guest, error) { return g, nil }, w.boxes)
}

// newPorts makes the visibilities of the ports of what newBoxes makes.
func newPorts(t testing.TB) *visibility.Ports {
	t.Helper()
	store := sandboxtest.NewMemStore()
	for id, name := range map[string]string{"1": "ml", "2": "other"} {
		if err := store.Insert(t.Context(), sandbox.Sandbox{ID: id, Name: name, Owner: "u-ann", Created: time.Now(), Changed: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	return visibility.New(store.Ports(), slog.New(slog.DiscardHandler))
}

// open makes the client, whose every request goes to the front.
func (w *world) open(dial func(context.Context) (net.Conn, error)) {
	w.client = &http.Client{
		Transport:     &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	w.t.Cleanup(func() {
		w.client.CloseIdleConnections()
		for _, p := range w.proxy.pools.byID {
			p.close()
		}
	})
}

func dialTCP(address string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}
}

// pipeListener is a listener without sockets.
type pipeListener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "203.0.113.1:5000" }

// pipeConn is a pipe's end that seems to be called from somewhere.
type pipeConn struct{ net.Conn }

func (pipeConn) RemoteAddr() net.Addr { return pipeAddr{} }

func servePipes(t testing.TB, h http.Handler) func(context.Context) (net.Conn, error) {
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	s := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { _ = s.Close(); serving.Wait() })
	return func(ctx context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		select {
		case l.conns <- pipeConn{far}:
			return near, nil
		case <-l.done:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func echoPath(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "asset "+r.URL.Path) }

// serve starts a server inside the sandbox at a port or tab.
func (w *world) serve(host string, h http.HandlerFunc) {
	w.t.Helper()
	w.session.lead(host, w.listen(h))
}

// lie answers every connection to a port with raw bytes, after the request's head has come, and hangs up.
func (w *world) lie(host, answer string) {
	w.t.Helper()
	listener := listen(w.t)
	w.session.lead(host, dialTCP(listener.Addr().String()))
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
	id := "1"
	if strings.HasSuffix(strings.Split(host, ".")[0], "other") {
		id = "2"
	}
	w.accounts.sessions[host+" "+secret] = auth.Principal{User: people[annToken].User, SandboxID: id}
	return w.cookie(hostCookie) + "=" + secret
}

// cookie is the full name of one of our cookies.
func (w *world) cookie(name string) string { return cookieName(w.proxy.cfg.Hosts, name) }

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
