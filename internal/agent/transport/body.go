package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"sandboxd/internal/agent"
)

// watch ends an exchange when nothing comes for too long.
type watch struct {
	times  Timeouts
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
	begun bool
	ended bool
}

func newWatch(times Timeouts, cancel context.CancelCauseFunc) *watch {
	w := &watch{times: times, cancel: cancel}
	w.timer = time.AfterFunc(times.FirstByte, w.expire)
	return w
}

func (w *watch) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun {
		w.cancel(errSilence)
	} else {
		w.cancel(errFirstByte)
	}
}

// heard starts the time of silence anew.
func (w *watch) heard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.begun = true
		w.timer.Reset(w.times.Silence)
	}
}

func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.timer.Stop()
	w.cancel(nil)
}

// body is an answer's body within bounds.
type body struct {
	io.ReadCloser
	call  *Call
	ctx   context.Context // of the exchange
	asked context.Context // the caller's
	watch *watch
	total int
	line  int // bytes since the last line feed
	err   error
}

// Read gives what comes. After an error it gives that again.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watch.heard()
		if large := b.bound(p[:n]); large != nil {
			n, err = 0, large
		}
	}
	if err != nil && err != io.EOF {
		err = b.call.fail(b.call.lost(b.ctx, b.asked, err, agent.Broken, broken))
	}
	b.err = err
	return n, err
}

func (b *body) bound(p []byte) error {
	b.total += len(p)
	if last := bytes.LastIndexByte(p, '\n'); last >= 0 {
		b.line = len(p) - last - 1
	} else {
		b.line += len(p)
	}
	if b.total <= MaxBody && b.line <= MaxLine {
		return nil
	}
	return agent.Failure(agent.TooLarge, nil, fmt.Sprintf("The answer of the provider was refused: it is larger than %d MiB, or has a line of more than %d MiB.", MaxBody>>20, MaxLine>>20))
}

// Close ends the exchange.
func (b *body) Close() error {
	b.watch.end()
	return b.ReadCloser.Close()
}
