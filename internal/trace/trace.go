// Package trace sends OpenTelemetry traces to a collector over OTLP/HTTP: one for each request to a sandbox's host, from its
// arrival through the wake to the first byte of the answer.
//
// It decides nothing and stores nothing: a Tracer is told of steps, and sends them in the background. It takes over no trace
// id from a request, and gives none to a sandbox.
//
// Invariant: a span has no path, query, header or text of an error, so that no secret can be in one. A collector that is slow
// or away costs spans and a line in the log, never time of a request.
package trace

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"sandboxd/internal/fault"
)

// Bounds on what waits to be sent, and on sending. What finds no room is dropped.
const (
	maxWaiting = 8192 // spans; some MiB
	sendEvery  = 2 * time.Second
	sendLimit  = 5 * time.Second
	endLimit   = time.Second // for what is left at the end
)

// Config is what a Tracer works with. All of it is needed.
type Config struct {
	Endpoint string // as ParseEndpoint gives it
	Version  string // of sandboxd
	Log      *slog.Logger
}

// Tracer makes traces. Safe for concurrent use; none of its methods but Run blocks.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// tracesPath is where a collector takes traces, below an address that names no path.
const tracesPath = "/v1/traces"

// ParseEndpoint gives the address to which traces are sent: text itself when it has a path, else the usual one below it.
// Invalid when it is no address of a collector.
func ParseEndpoint(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fault.New(fault.Invalid, "It must be the address of a collector for OTLP over HTTP, such as http://127.0.0.1:4318.")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = tracesPath
	}
	return u.String(), nil
}

// New makes a Tracer, which sends nothing before there are spans. The caller must have it Run.
func New(c Config) *Tracer {
	to := &sender{client: otlptrace.NewUnstarted(&collector{endpoint: c.Endpoint, http: newClient()}), endpoint: c.Endpoint, log: c.Log}
	provider := sdk.NewTracerProvider(
		sdk.WithSampler(sdk.AlwaysSample()),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "sandboxd"), attribute.String("service.version", c.Version))),
		sdk.WithBatcher(to, sdk.WithMaxQueueSize(maxWaiting), sdk.WithBatchTimeout(sendEvery), sdk.WithExportTimeout(sendLimit)),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer("sandboxd")}
}

// Run waits until ctx ends, and then sends what is left, for a second at most.
func (t *Tracer) Run(ctx context.Context) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// Request is a request to a sandbox's host.
type Request struct {
	Method  string
	To      string // what the host leads to, such as "port"
	Sandbox string // its name, as the host has it; there may be none
}

// Request begins the trace of a request. answered ends it, with the status of the answer, or 0 when there is none; all
// calls but the first do nothing.
func (t *Tracer) Request(ctx context.Context, r Request) (traced context.Context, answered func(status int)) {
	traced, span := t.tracer.Start(ctx, "request", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", method(r.Method)),
		attribute.String("sandboxd.to", r.To),
		attribute.String("sandboxd.sandbox", r.Sandbox),
	))
	return traced, func(status int) {
		if status != 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", status))
		}
		if status == 0 || status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// method is a request's, or _OTHER for one that HTTP does not know: a client may send any word.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return m
	}
	return "_OTHER"
}

// Step begins a step of the trace that ctx belongs to; without one it does nothing. done ends it; of an error, only the kind is
// told. All calls of done but the first do nothing.
func (t *Tracer) Step(ctx context.Context, name string) (within context.Context, done func(error)) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, func(error) {}
	}
	within, span := t.tracer.Start(ctx, name)
	return within, func(err error) {
		if err != nil {
			kind := fault.KindOf(err).String()
			span.SetAttributes(attribute.String("error.type", kind))
			span.SetStatus(codes.Error, kind)
		}
		span.End()
	}
}
