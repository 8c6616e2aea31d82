package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
)

// Handler gives a round tripper whose requests h answers, in this process and without a connection: a turn's way to the gateway. h is
// served as a server would: its answer is streamed as it writes it, its request's context ends when the client has what it wants, and it
// must return then. The client waits for that when it closes the answer's body.
func Handler(h http.Handler) http.RoundTripper { return handler{h} }

type handler struct{ http.Handler }

// RoundTrip lets the handler answer.
func (h handler) RoundTrip(q *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(context.WithValue(q.Context(), http.ServerContextKey, &http.Server{})) // some handlers look for a server
	r := q.Clone(ctx)
	r.RequestURI = q.URL.RequestURI()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	reader, writer := io.Pipe()
	w := &writing{header: http.Header{}, pipe: writer, began: make(chan struct{}), done: make(chan struct{})}
	unblock := context.AfterFunc(ctx, func() { _ = reader.Close() }) // a pipe's Close has no error
	go w.serve(h.Handler, r)
	body := &handled{PipeReader: reader, end: func() {
		unblock()
		cancel()
		_ = reader.Close() // likewise
		<-w.done
	}}
	select {
	case <-w.began:
	case <-ctx.Done():
		body.end()
		return nil, context.Cause(ctx)
	}
	if w.failed != nil {
		body.end()
		return nil, w.failed
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: body, ContentLength: -1, Request: q,
	}, nil
}

// handled is the body of an answer. Its Close waits for the handler.
type handled struct {
	*io.PipeReader
	end func()
}

// Close ends the exchange.
func (b *handled) Close() error {
	b.end()
	return nil
}

// writing is a handler's http.ResponseWriter. As every one, it is for one goroutine at a time.
type writing struct {
	header http.Header
	pipe   *io.PipeWriter
	once   sync.Once
	began  chan struct{} // closed when status and sent, or failed, are known
	done   chan struct{} // closed when the handler has returned
	status int
	sent   http.Header
	failed error
}

func (w *writing) serve(h http.Handler, r *http.Request) {
	defer close(w.done)
	defer func() { _ = r.Body.Close() }() // it was read, or is not wanted
	defer func() {
		if p := recover(); p != nil { // as net/http does; the client gets to know
			w.abort(p)
			return
		}
		w.WriteHeader(http.StatusOK)
		_ = w.pipe.CloseWithError(r.Context().Err()) // never has an error; an answer that its client did not wait for is not complete
	}()
	h.ServeHTTP(w, r)
}

// abort ends an answer in its middle.
func (w *writing) abort(p any) {
	err := io.ErrUnexpectedEOF
	if p != http.ErrAbortHandler {
		err = fmt.Errorf("the handler panicked: %v\n%s", p, debug.Stack())
	}
	w.once.Do(func() {
		w.failed = err
		close(w.began)
	})
	_ = w.pipe.CloseWithError(err) // never has an error
}

// Header gives the header that WriteHeader sends.
func (w *writing) Header() http.Header { return w.header }

// WriteHeader begins the answer. Informational statuses are dropped.
func (w *writing) WriteHeader(status int) {
	if status < http.StatusOK {
		return
	}
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.began)
	})
}

// Write gives the client more of the body, and waits until it has taken it.
func (w *writing) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(p)
}

// Flush begins the answer; nothing is kept back anyway.
func (w *writing) Flush() { w.WriteHeader(http.StatusOK) }
