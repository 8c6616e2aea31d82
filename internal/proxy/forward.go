package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/fault"
)

// passage is where a request goes inside a sandbox.
type passage struct {
	entry    Entry
	upstream string // portHost or tabHost
	path     string
	rawPath  string
}

// forward sends the request to the sandbox and its answer back, however long that takes.
func (v visit) forward(who visitor, p passage) {
	ctx, cancel := context.WithCancel(v.r.Context())
	defer cancel()
	defer v.keepAsking(ctx, cancel, who)()
	control := http.NewResponseController(v.w)
	_ = control.EnableFullDuplex()           // a program may answer while it is still being sent to
	_ = control.SetReadDeadline(time.Time{}) // streams have no end; a writer without deadlines needs none
	_ = control.SetWriteDeadline(time.Time{})

	r := v.r.WithContext(ctx)
	r.Header = v.r.Header.Clone()
	if !isWebSocket(r) {
		r.Header.Del("Upgrade") // to anything but WebSocket, such as h2c, would lead past us
	}
	proxy := httputil.ReverseProxy{
		Rewrite:        func(pr *httputil.ProxyRequest) { v.rewrite(pr, p) },
		Transport:      v.pools.of(p.entry.Sandbox.ID, p.entry.Session),
		FlushInterval:  -1,
		BufferPool:     &buffers,
		ModifyResponse: func(res *http.Response) error { return checkResponse(r, res) },
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, err error) { v.failed(ctx, p, err) },
		ErrorLog:       slog.NewLogLogger(v.cfg.Log.Handler(), slog.LevelDebug),
	}
	proxy.ServeHTTP(final{v.w}, r)
}

// maxStatus is the last status that HTTP knows a class for.
const maxStatus = 599

// checkResponse makes a sandbox's answer fit to be seen, or says that it is none.
func checkResponse(r *http.Request, res *http.Response) error {
	switched := res.StatusCode == http.StatusSwitchingProtocols
	switch {
	case switched && !isWebSocket(r):
		return errors.New("the program switched protocols unasked")
	case !switched && (res.StatusCode < http.StatusOK || res.StatusCode > maxStatus):
		return fmt.Errorf("the program answered with the status %d", res.StatusCode)
	}
	scrubResponse(res.Header)
	scrubTrailer(res.Trailer) // the names that were announced
	if !switched {            // what was switched to has no trailers, and has to stay writable
		res.Body = &trailed{ReadCloser: res.Body, res: res}
	}
	return nil
}

// isWebSocket reports whether the request asks for a WebSocket and nothing else.
func isWebSocket(r *http.Request) bool {
	upgrade := r.Header.Values("Upgrade")
	return r.Method == http.MethodGet && len(upgrade) == 1 && strings.EqualFold(upgrade[0], "websocket")
}

// final holds back informational answers (103 Early Hints): they would pass by checkResponse.
type final struct{ http.ResponseWriter }

func (f final) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		f.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap lets http.ResponseController flush and hijack.
func (f final) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// failed answers when the sandbox did not.
func (v visit) failed(ctx context.Context, p passage, err error) {
	var refused *dialError
	var slow net.Error
	port, isPort := strings.CutPrefix(p.upstream, portPrefix)
	switch {
	case ctx.Err() != nil:
		v.refuse(fault.Wrap(err, fault.Unavailable, "The request was given up."))
	case errors.As(err, &refused) && fault.Is(err, fault.NotFound) && isPort:
		v.show(v.nothingListens(port))
	case errors.As(err, &refused) && fault.Is(err, fault.NotFound):
		v.show(v.noTab(fault.Message(err)))
	case fault.Is(err, fault.Unavailable), errors.As(err, &refused) && fault.KindOf(err) != fault.Internal:
		v.refuse(err)
	case errors.As(err, &refused):
		v.refuse(fault.Wrap(err, fault.Unavailable, "%s cannot be reached now.", v.target.Name))
	case errors.As(err, &slow) && slow.Timeout():
		v.refuse(fault.Wrap(err, fault.Timeout, "The program in %s took too long to answer.", v.target.Name))
	default:
		v.cfg.Log.Debug("sandbox gave no proper answer", "sandbox", v.target.Name, "upstream", p.upstream, "err", err)
		v.show(v.badAnswer())
	}
}

// askAgain is how long a stream may go on before its visitor's right to it is looked at again. The question is a few
// indexed reads, so that a thousand streams cost next to nothing.
const askAgain = 2 * time.Second

// keepAsking ends a long request by cancel when its visitor has signed out, has been disabled, or has lost the sandbox.
// The caller must call the returned stop, which waits for a question under way.
func (v visit) keepAsking(ctx context.Context, cancel func(), who visitor) (stop func()) {
	var asking sync.WaitGroup
	timer := time.NewTimer(askAgain)
	ctx, end := context.WithCancel(ctx)
	asking.Go(func() {
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			if !v.stillMay(ctx, who) {
				cancel()
				return
			}
			timer.Reset(askAgain)
		}
	})
	return func() { end(); asking.Wait() }
}

// stillMay is generous when the question cannot be answered: a locked store must not cut people's terminals.
func (v visit) stillMay(ctx context.Context, who visitor) bool {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	now, err := v.identify(ctx)
	if err == nil {
		if now.User.ID != who.User.ID {
			return false
		}
		_, err = v.permitted(ctx, now)
	}
	return !fault.Is(err, fault.Unauthenticated) && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Forbidden)
}

// buffers lends the space through which bodies are copied.
var buffers = bufferPool{pool: sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}}

type bufferPool struct{ pool sync.Pool }

func (b *bufferPool) Get() []byte {
	p, ok := b.pool.Get().(*[]byte)
	if !ok {
		panic(fmt.Sprintf("proxy: buffer pool holds no %T", p))
	}
	return *p
}

func (b *bufferPool) Put(p []byte) { b.pool.Put(&p) }
