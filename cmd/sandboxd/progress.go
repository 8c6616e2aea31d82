package main

import (
	"fmt"
	"io"
	"os"
	"strings"
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
	what  string // what is being done; "" when that is clear
	total int64  // bytes that there will be; 0 when that is not known
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
	far := text.Size(p.bytes)
	if p.total > 0 {
		far = fmt.Sprintf("%s %s of %s", bar(p.bytes, p.total), far, text.Size(p.total))
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s%s  %s/s", p.what, far, text.Size(int64(rate)))
}

// bar draws how much of a whole there is.
func bar(part, whole int64) string {
	const cells = 20
	share := min(float64(part)/float64(whole), 1)
	full := int(share * cells)
	return fmt.Sprintf("[%s%s] %3d %%", strings.Repeat("#", full), strings.Repeat("-", cells-full), int(100*share))
}

// step begins something of so many bytes; 0 when that is not known.
func (p *progress) step(what string, total int64) {
	p.clear()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.total, p.bytes, p.begun = what, total, 0, time.Now()
}

// note shows a line of words in place of figures.
func (p *progress) note(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out != nil {
		p.shown = time.Now()
		fmt.Fprint(p.out, "\r\x1b[K"+line)
	}
}

// clear takes away what is shown.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out != nil && !p.shown.IsZero() {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	p.shown = time.Time{}
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

// during shows a line of words, and how long it has been shown, until f has returned. It gives f's error.
func (p *progress) during(line string, f func() error) error {
	if p.out == nil {
		return f()
	}
	begun, done := time.Now(), make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() {
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for {
			p.note(fmt.Sprintf("%s… %s", line, time.Since(begun).Round(time.Second)))
			select {
			case <-done:
				return
			case <-every.C:
			}
		}
	})
	err := f()
	close(done)
	showing.Wait()
	p.clear()
	return err
}
