package main

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/hostname"
	"sandboxd/internal/metrics/scrape"
	"sandboxd/internal/sandbox"
)

// watch is told of what the server does. What is off is nil, and its parts then cost nothing.
type watch struct {
	figures *scrape.Registry
}

func newWatch(c *Config) watch {
	if c.MetricsListen == "" {
		return watch{}
	}
	return watch{figures: scrape.New(scrape.Build{Version: version, Commit: commit(), Go: runtime.Version()})}
}

// action is for sandbox.Config's Observe.
func (w watch) action() func(ctx context.Context, a sandbox.Action, was sandbox.State) func(error) {
	if w.figures == nil {
		return nil
	}
	return w.figures.Action
}

// command is for exec.Config's Ended.
func (w watch) command() func(took time.Duration, err error) {
	if w.figures == nil {
		return nil
	}
	return w.figures.Command
}

// image is for catalog.ImageOptions' Made.
func (w watch) image() func(pulled bool, took time.Duration, err error) {
	if w.figures == nil {
		return nil
	}
	return w.figures.Image
}

// requests gives next, whose requests are counted.
func (w watch) requests(hosts hostname.Hosts, next http.Handler) http.Handler {
	if w.figures == nil {
		return next
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		begun, to := time.Now(), purpose(hosts, r)
		defer w.figures.Opened(to)()
		a := &answer{ResponseWriter: rw, head: func(status int) { w.figures.Answered(to, status, time.Since(begun)) }}
		next.ServeHTTP(a, r)
		a.begin(http.StatusOK) // nothing was written, unless it panicked
	})
}

// purpose says what a request is for.
func purpose(hosts hostname.Hosts, r *http.Request) scrape.To {
	target, err := hosts.Parse(r.Host)
	if err != nil {
		return scrape.Unknown
	}
	switch target.Kind {
	case hostname.Terminal:
		return scrape.Terminal
	case hostname.Port:
		return scrape.Port
	case hostname.Service:
		return scrape.Service
	case hostname.IDE:
		return scrape.IDE
	case hostname.Dashboard:
		return onDashboard(r.URL.Path)
	}
	return scrape.Unknown
}

func onDashboard(path string) scrape.To {
	switch {
	case strings.HasPrefix(path, "/api/"):
		return scrape.API
	case path == "/healthz" || path == "/readyz":
		return scrape.Health
	}
	return scrape.Dashboard
}

// answer tells when the head of an answer is written, and its status.
type answer struct {
	http.ResponseWriter
	head func(status int) // called once
	once sync.Once        // a proxied answer is written and flushed by two goroutines
}

// begin notes the head.
func (a *answer) begin(status int) {
	a.once.Do(func() { a.head(status) })
}

// WriteHeader implements http.ResponseWriter. An interim answer is no head.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		a.begin(status)
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (a *answer) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	return a.ResponseWriter.Write(p)
}

// FlushError flushes, for http.ResponseController.
func (a *answer) FlushError() error {
	a.begin(http.StatusOK)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker, for WebSockets.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err == nil {
		a.begin(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}

// Unwrap lets http.ResponseController do the rest.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
