package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"sandboxd/internal/text"
)

// progress shows on a terminal how much has been moved. Safe for concurrent use.
type progress struct {
	out   io.Writer // nil when nothing is shown
	begun time.Time

	mu    sync.Mutex
	bytes int64
	shown time.Time
}

// showEvery is how often it is shown.
const showEvery = 100 * time.Millisecond

func newProgress(quiet bool) *progress {
	p := &progress{begun: time.Now()}
	if !quiet && term.IsTerminal(int(os.Stderr.Fd())) {
		p.out = os.Stderr
	}
	return p
}

func (p *progress) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += int64(n)
	if now := time.Now(); p.out != nil && now.Sub(p.shown) >= showEvery && now.Sub(p.begun) >= showEvery {
		p.shown = now
		p.show(now)
	}
}

func (p *progress) show(now time.Time) {
	rate := float64(p.bytes) / max(now.Sub(p.begun).Seconds(), showEvery.Seconds())
	fmt.Fprintf(p.out, "\r\x1b[K%s  %s/s", text.Size(p.bytes), text.Size(int64(rate)))
}

// end shows the last figures, if any were shown.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil || p.shown.IsZero() {
		return
	}
	p.show(time.Now())
	fmt.Fprintln(p.out)
}

// watch counts the bytes read from r.
func (p *progress) watch(r io.Reader) io.Reader { return &watched{r, p} }

type watched struct {
	io.Reader
	by *progress
}

// Read implements io.Reader.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	w.by.add(n)
	return n, err
}
