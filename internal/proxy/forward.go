package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
)

// flushAfter is how long a piece of an answer of known length may wait for the next, so that a small answer is one write.
const flushAfter = 5 * time.Millisecond

// observeLimit bounds a probe: the sandbox may be frozen under it, and a probe does not thaw.
const observeLimit = 30 * time.Second

// newReverse makes the reverse proxy for all requests; what belongs to one request is in its proxied.
func newReverse(log *slog.Logger) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        func(pr *httputil.ProxyRequest) { proxiedOf(pr.In.Context()).rewrite(pr) },
		Transport:      sandboxTransport{},
		FlushInterval:  flushAfter, // events and answers of unknown length are flushed at once anyhow
		BufferPool:     &buffers,
		ModifyResponse: func(res *http.Response) error { return proxiedOf(res.Request.Context()).checkResponse(res) },
		ErrorHandler:   func(_ http.ResponseWriter, r *http.Request, err error) { proxiedOf(r.Context()).failed(err) },
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// forward sends the request to the sandbox and its answer back, however long that takes.
func (p *proxied) forward(to upstream) {
	p.to = to
	within, answered := p.proxy.cfg.Step(p.r.Context(), "proxy")
	p.head = answered
	defer answered(nil)
	ctx, cancel := p.bound(context.WithValue(within, proxiedKey{}, p))
	defer p.watch(ctx, cancel)()
	control := http.NewResponseController(p.w)
	_ = control.EnableFullDuplex()           // a program may answer before it has read the whole request
	_ = control.SetReadDeadline(time.Time{}) // streams have no end; a writer without deadlines needs none
	_ = control.SetWriteDeadline(time.Time{})

	r := p.r.WithContext(ctx)
	if isUpgrade(r) && !isWebSocket(r) {
		r.Header = r.Header.Clone()
		r.Header.Del("Upgrade") // anything but WebSocket, such as h2c, would bypass us
	}
	if isWebSocket(r) && p.use.Kind != "" {
		p.stream.Store(p.session)
	}
	if r.ContentLength != 0 {
		p.sending.Store(true)
		p.inwards.set(attended) // until it is asked for
		r.Body = &upload{ReadCloser: r.Body, ctx: ctx, proxied: p, control: control}
	}
	p.out = &final{ResponseWriter: p.w, interim: interimMost, flood: cancel}
	if p.who.outside() {
		p.out.pause = outsiderPause
	}
	p.proxy.reverse.ServeHTTP(p.out, r)
}

func (q *request) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if q.observes() {
		return context.WithTimeout(ctx, observeLimit)
	}
	return context.WithCancel(ctx)
}

// maxStatus is the last status that HTTP knows a class for.
const maxStatus = 599

// checkResponse scrubs a sandbox's answer, or gives an error when it is no valid one.
func (p *proxied) checkResponse(res *http.Response) error {
	switched := res.StatusCode == http.StatusSwitchingProtocols
	switch {
	case p.out.interim < 0:
		return errors.New("too many interim answers")
	case switched && !isWebSocket(p.r):
		return errors.New("the program switched protocols unasked")
	case !switched && (res.StatusCode < http.StatusOK || res.StatusCode > maxStatus):
		return fmt.Errorf("the program answered with the status %d", res.StatusCode)
	}
	scrubResponse(res.Header)
	if p.observes() { // again, since an interim answer clears what is set
		p.w.Header().Del(stateHeader)
		res.Header.Set(stateHeader, string(p.handle.Sandbox().State))
	}
	scrubTrailer(res.Trailer) // the names that were announced
	p.answered.Store(time.Now().UnixNano())
	p.head(nil)
	if !switched {
		res.Body = &download{ReadCloser: res.Body, res: res, proxied: p}
		return nil
	}
	// A switched protocol has no trailers, and its body has to remain writable.
	if end, ok := res.Body.(io.ReadWriteCloser); ok {
		t := &tunnel{ReadWriteCloser: end, ctx: res.Request.Context(), proxied: p}
		if res.Body = t; p.toEditor() {
			res.Body = newKeepAlive(t)
		}
	}
	return nil
}

// isWebSocket reports whether the request asks for a WebSocket and nothing else.
func isWebSocket(r *http.Request) bool {
	upgrade := r.Header.Values("Upgrade")
	return r.Method == http.MethodGet && len(upgrade) == 1 && strings.EqualFold(upgrade[0], "websocket")
}

// final drops informational answers (103 Early Hints): they would bypass checkResponse. Flushes and writes of a body may come
// from different goroutines.
type final struct {
	http.ResponseWriter
	pause   time.Duration // how long the client may read nothing; 0 is without limit
	interim int           // how many more informational answers are read
	flood   func()        // called for one more

	mu sync.Mutex
}

// hurry bounds the next write. done ends that, so that no deadline passes while nothing is written.
func (f *final) hurry() (done func()) {
	if f.pause == 0 {
		return func() {}
	}
	control := http.NewResponseController(f.ResponseWriter)
	_ = control.SetWriteDeadline(time.Now().Add(f.pause))
	return func() { _ = control.SetWriteDeadline(time.Time{}) }
}

// WriteHeader implements http.ResponseWriter.
func (f *final) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		f.ResponseWriter.WriteHeader(status)
		return
	}
	if f.interim--; f.interim < 0 {
		f.flood()
	}
}

// Write implements io.Writer.
func (f *final) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.hurry()()
	return f.ResponseWriter.Write(p)
}

// FlushError flushes, for http.ResponseController.
func (f *final) FlushError() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.hurry()()
	return http.NewResponseController(f.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController hijack.
func (f *final) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// failed answers a request that the sandbox did not answer.
func (p *proxied) failed(err error) {
	p.head(err)
	var refused *dialError
	var slow net.Error
	port, isPort := strings.CutPrefix(p.to.host, portPrefix)
	switch {
	case errors.Is(err, errStalled):
		p.refuse(errStalled)
	case p.r.Context().Err() != nil:
		p.refuse(fault.Wrap(err, fault.Unavailable, "The request was given up."))
	case p.out.interim < 0:
		p.show(p.badAnswer())
	case errors.Is(err, errLate):
		p.timedOut(p.session.Sandbox())
	case p.unread.Load():
		p.show(badBody)
	case p.target.Kind == hostname.IDE && errors.As(err, &refused):
		p.show(p.noIDE(err))
	case isRefused(err) && isPort:
		p.show(p.nothingListens(port))
	case isRefused(err):
		p.show(p.noTab(fault.Message(err)))
	case errors.As(err, &refused) && fault.KindOf(err) != fault.Internal, fault.Is(err, fault.Unavailable):
		p.refuse(err)
	case errors.As(err, &refused):
		p.refuse(fault.Wrap(err, fault.Unavailable, "%s cannot be reached now.", p.target.Name))
	case errors.As(err, &slow) && slow.Timeout():
		p.refuse(fault.Wrap(err, fault.Timeout, "The program in %s took too long to answer.", p.target.Name))
	case errors.Is(err, context.Canceled): // the caller has lost access
		p.refuse(fault.Wrap(err, fault.Unavailable, "The request was given up."))
	default:
		p.log.Debug("sandbox gave no proper answer", "sandbox", p.target.Name, "upstream", p.to.host, "err", err)
		p.show(p.badAnswer())
	}
}

// buffers lends the space through which bodies are copied.
var buffers = bufferPool{pool: sync.Pool{New: func() any { return new([bufferSize]byte) }}}

type bufferPool struct{ pool sync.Pool }

func (b *bufferPool) Get() []byte {
	p, ok := b.pool.Get().(*[bufferSize]byte)
	if !ok {
		panic(fmt.Sprintf("proxy: buffer pool holds no %T", p))
	}
	return p[:]
}

func (b *bufferPool) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }
