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

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/metrics/scrape"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/trace"
)

// watch is told of what the server does. What is off is nil, and its parts then cost nothing.
type watch struct {
	figures *scrape.Registry
	tracer  *trace.Tracer
}

// collector gives the address that traces are sent to; "" for none.
func (c *Config) collector() (string, error) {
	if c.OTLPEndpoint == "" {
		return "", nil
	}
	endpoint, err := trace.ParseEndpoint(c.OTLPEndpoint)
	if err != nil {
		return "", fault.Field("otlp-endpoint", "--otlp-endpoint: %s", fault.Message(err))
	}
	return endpoint, nil
}

// newWatch makes what the configuration asks for.
func (a *app) newWatch() error {
	endpoint, err := a.config.collector()
	if err != nil {
		return err
	}
	if endpoint != "" {
		a.tracer = trace.New(trace.Config{Endpoint: endpoint, Version: version, Log: a.log})
	}
	if a.config.MetricsListen != "" {
		a.figures = scrape.New(scrape.Build{Version: version, Commit: commit(), Go: runtime.Version()})
	}
	return nil
}

// observe is for sandbox.Config's Observe.
func (a *app) observe(ctx context.Context, act sandbox.Action, was sandbox.State, s sandbox.Sandbox) func(error) {
	counted, traced := func(error) {}, func(error) {}
	if a.figures != nil {
		counted = a.figures.Action(ctx, act, was)
	}
	if a.tracer != nil && act == sandbox.ActionWake { // the step of a request that waits for it
		_, traced = a.tracer.Step(ctx, wakeStep(was))
	}
	recorded := a.record(ctx, act, s)
	return func(err error) { counted(err); traced(err); recorded(err) }
}

// wakeStep is what a wake from a state does.
func wakeStep(was sandbox.State) string {
	if was == sandbox.Frozen {
		return "thaw"
	}
	return "start"
}

// step is for proxy.Config's Step.
func (w watch) step() func(ctx context.Context, name string) (context.Context, func(error)) {
	if w.tracer == nil {
		return nil
	}
	return w.tracer.Step
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

// requests gives next, whose requests are counted and traced.
func (w watch) requests(hosts hostname.Hosts, next http.Handler) http.Handler {
	if w.figures == nil && w.tracer == nil {
		return next
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		to, name := purpose(hosts, r)
		answered := func(int) {}
		if w.tracer != nil && name != "" {
			var traced context.Context
			traced, answered = w.tracer.Request(r.Context(), trace.Request{Method: r.Method, To: string(to), Sandbox: name})
			r = r.WithContext(traced)
		}
		defer answered(0) // of one that is not answered
		if w.figures != nil {
			defer w.figures.Opened(to)()
		}
		a := &answer{ResponseWriter: rw, head: func(status int) {
			answered(status)
			if w.figures != nil {
				w.figures.Answered(to, status, time.Since(begun))
			}
		}}
		next.ServeHTTP(a, r)
		a.begin(http.StatusOK) // nothing was written, unless it panicked
	})
}

// purpose says what a request is for, and the sandbox that its host names; "" when it names none.
func purpose(hosts hostname.Hosts, r *http.Request) (to scrape.To, name string) {
	target, err := hosts.Parse(r.Host)
	if err != nil {
		return scrape.Unknown, ""
	}
	switch target.Kind {
	case hostname.Terminal:
		return scrape.Terminal, target.Name
	case hostname.Port:
		return scrape.Port, target.Name
	case hostname.Service:
		return scrape.Service, target.Name
	case hostname.IDE:
		return scrape.IDE, target.Name
	case hostname.Dashboard:
		return onDashboard(r.URL.Path), ""
	}
	return scrape.Unknown, ""
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
