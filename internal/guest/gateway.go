package guest

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sandboxd/internal/guest/thaw"
	"sandboxd/internal/scrub"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// Bounds of the gateway. Whoever finds its port on the sandboxes' network may connect; only a pass gets further.
const (
	gatewayConns      = 512
	gatewayHeader     = 64 << 10 // of a request, as sandboxd's own proxy takes
	gatewayHeaderTime = 10 * time.Second
	// gatewayIdle is longer than Traefik keeps a connection that it does not use (90 s): closing one at the moment of its
	// next use would cost a request.
	gatewayIdle = 3 * time.Minute
	// answerHeader bounds the header of a program's answer.
	answerHeader = 256 << 10
	// programIdle is shorter than programs commonly keep an idle connection (Node: 5 s), for the same reason.
	programIdle     = 2 * time.Second
	programIdleMost = 16 // per port
	// The gateway's port may be taken by a program of the sandbox. Then there is no direct route: who takes it has no key,
	// and the passes that it sees open only the gateway that is not there.
	firstRetry   = 250 * time.Millisecond
	longestRetry = 15 * time.Second
)

// gateway leads requests that come straight from Traefik to the ports of the sandbox, by Host. Safe for concurrent use.
type gateway struct {
	address string
	worked  func()
	key     atomic.Pointer[[]byte] // nil lets nobody in
	keyed   chan struct{}          // closed with the first key
	once    sync.Once
	proxy   *httputil.ReverseProxy
	serving sync.WaitGroup // requests
	flow    *flow
	outside time.Duration // how long a request of an outsider may last
}

func newGateway(address string, worked func()) *gateway {
	g := &gateway{address: address, worked: worked, keyed: make(chan struct{}), flow: newFlow(), outside: wire.OutsiderLife}
	g.proxy = &httputil.ReverseProxy{
		Rewrite: g.rewrite, ModifyResponse: check, ErrorHandler: refuse, FlushInterval: -1, BufferPool: lender{},
		ErrorLog: log.New(io.Discard, "", 0),
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				_, port, err := net.SplitHostPort(address)
				if err != nil {
					return nil, err
				}
				return dialPort(ctx, port)
			},
			DisableCompression: true, MaxIdleConnsPerHost: programIdleMost, IdleConnTimeout: programIdle,
			ExpectContinueTimeout: time.Second, MaxResponseHeaderBytes: answerHeader,
		},
	}
	return g
}

// take makes passes of that key the only ones that are valid from now on.
func (g *gateway) take(key []byte) {
	if len(key) == 0 {
		g.key.Store(nil)
		return
	}
	g.key.Store(&key)
	g.once.Do(func() { close(g.keyed) })
}

// run listens once there is a key, until ctx ends, and returns when all requests have ended.
func (g *gateway) run(ctx context.Context) {
	defer g.serving.Wait()
	select {
	case <-ctx.Done():
		return
	case <-g.keyed:
	}
	if g.address == "" {
		return
	}
	for pause := firstRetry; ctx.Err() == nil; pause = min(2*pause, longestRetry) {
		var listen net.ListenConfig
		l, err := listen.Listen(ctx, "tcp", g.address)
		if err == nil {
			g.serve(ctx, l)
			pause = firstRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// serve serves l until ctx ends or l fails.
func (g *gateway) serve(ctx context.Context, l net.Listener) {
	var only http.Protocols
	only.SetHTTP1(true)
	server := &http.Server{Handler: g, Protocols: &only, MaxHeaderBytes: gatewayHeader,
		ReadHeaderTimeout: gatewayHeaderTime, IdleTimeout: gatewayIdle, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx }}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { server.Close() })()
	server.Serve(&doorway{Listener: l, room: make(chan struct{}, gatewayConns), over: ctx.Done()})
}

// doorway accepts as many connections as there is room for; the others wait in the kernel's queue. Their deadlines
// survive a freeze: Traefik's first request after a thaw comes over a connection that has been idle all the while.
type doorway struct {
	net.Listener
	room chan struct{}
	over <-chan struct{}
}

// Accept gives the next connection.
func (d *doorway) Accept() (net.Conn, error) {
	select {
	case d.room <- struct{}{}:
	case <-d.over:
		return nil, net.ErrClosed
	}
	c, err := d.Listener.Accept()
	if err != nil {
		<-d.room
		return nil, err
	}
	return &guarded{Conn: thaw.NewConn(c), leave: sync.OnceFunc(func() { <-d.room })}, nil
}

// guarded is a connection that takes room until it is closed.
type guarded struct {
	*thaw.Conn
	leave func()
}

// Close closes the connection.
func (c *guarded) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// ServeHTTP lets a request with a pass for its host through to the port that the host names.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.serving.Add(1)
	defer g.serving.Done()
	if !g.opens(r) {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(gatewayHeaderTime)) // for a body that never comes
		w.WriteHeader(http.StatusForbidden)
		return
	}
	g.worked()
	defer g.worked()
	port, name := target(r.Host)
	switch {
	case port == 0 || r.Method == http.MethodConnect:
		answerText(w, http.StatusNotFound, "No port of a sandbox has this address.")
		return
	case len(r.Header.Values("Upgrade")) > 0:
		answerText(w, http.StatusUpgradeRequired, "This way leads no connections that switch protocols.")
		return
	}
	c := g.flow.begin(r)
	defer c.end()
	ctx, over := c.bound(r.Context())
	defer over()
	_ = http.NewResponseController(w).EnableFullDuplex() // a program may answer while it is still being sent to
	if wire.IsOutsiderPass(r.Header.Get(wire.PassHeader)) {
		var leave func()
		ctx, leave = g.limit(ctx, w)
		defer leave()
	}
	r.Body = &flowing{ReadCloser: r.Body, call: c}
	g.proxy.ServeHTTP(&scrubbed{w}, r.WithContext(context.WithValue(ctx, visitKey{}, visit{port, name, c})))
}

// limit bounds a request of an outsider: ctx ends it, and the deadlines end what waits for its visitor meanwhile, who may
// neither send nor take anything. The caller must call leave.
func (g *gateway) limit(ctx context.Context, w http.ResponseWriter) (bounded context.Context, leave func()) {
	end := time.Now().Add(g.outside)
	ctx, cancel := context.WithDeadline(ctx, end)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(end) // the server itself sets another for the next request
	_ = control.SetWriteDeadline(end)
	return ctx, func() {
		cancel()
		_ = control.SetWriteDeadline(time.Time{})
	}
}

// opens says whether the request has a pass, exactly one, for its host.
func (g *gateway) opens(r *http.Request) bool {
	key, pass := g.key.Load(), r.Header.Values(wire.PassHeader)
	return key != nil && len(pass) == 1 && wire.CheckPass(*key, pass[0], r.Host, time.Now()) == nil
}

// visit is where a request goes.
type visit struct {
	port int
	name string // of the sandbox, as the host has it
	call *call
}

type visitKey struct{}

func visitOf(ctx context.Context) visit {
	v, _ := ctx.Value(visitKey{}).(visit)
	return v
}

// target reads "<port>-<name>[.domain][:port]". The port is 0 when the host names none.
func target(host string) (port int, name string) {
	host, _, _ = strings.Cut(host, ":")
	label, _, _ := strings.Cut(host, ".")
	number, name, _ := strings.Cut(label, "-")
	name = text.OneLine(name, 63)
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || name == "" || number[0] == '0' {
		return 0, ""
	}
	return int(n), name
}

// rewrite makes the request that the program gets: with what Traefik says of the visitor, as sandboxd's own proxy does.
func (g *gateway) rewrite(pr *httputil.ProxyRequest) {
	scrubRequest(pr.Out.Header)
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := pr.In.Header[name]; ok {
			pr.Out.Header[name] = values
		}
	}
	in := pr.In.URL
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(visitOf(pr.In.Context()).port))
	pr.Out.URL = &url.URL{Scheme: "http", Host: address, Path: in.Path, RawPath: in.RawPath, RawQuery: in.RawQuery,
		ForceQuery: in.ForceQuery}
	pr.Out.Host = pr.In.Host
}

// check refuses an answer that is none, and makes the bytes of a good one count.
func check(res *http.Response) error {
	if res.StatusCode < http.StatusOK || res.StatusCode > 599 {
		return errors.New("the program answered with a status that is none")
	}
	scrub.Trailer(res.Trailer) // the names that were announced
	c := visitOf(res.Request.Context()).call
	c.answered.Store(true)
	c.touch()
	res.Body = &flowing{ReadCloser: res.Body, call: c, res: res}
	return nil
}

// refuse answers when the program did not.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	v := visitOf(r.Context())
	if errors.Is(err, syscall.ECONNREFUSED) {
		answerText(w, http.StatusBadGateway, "Nothing listens on port "+strconv.Itoa(v.port)+" in "+v.name+".")
		return
	}
	if errors.Is(context.Cause(r.Context()), errSilent) {
		answerText(w, http.StatusGatewayTimeout, "The program on port "+strconv.Itoa(v.port)+" in "+v.name+" took too long to answer.")
		return
	}
	answerText(w, http.StatusBadGateway, "The program on port "+strconv.Itoa(v.port)+" in "+v.name+" gave no proper answer.")
}

func answerText(w http.ResponseWriter, status int, sentence string) { http.Error(w, sentence, status) }

// lender lends the space through which bodies are copied.
type lender struct{}

// Get implements httputil.BufferPool.
func (lender) Get() []byte { return buffers.Get().(*buffer)[:] }

// Put implements httputil.BufferPool.
func (lender) Put(b []byte) { buffers.Put((*buffer)(b)) }
