// Package tracetest is a collector of traces for tests: it takes OTLP over HTTP and decodes it as real ones do.
//
// It is no part of sandboxd, and takes whatever is sent to it.
//
// Invariant: what it gives out was decoded with the protocol's own types, not with ours.
package tracetest

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Span is one that a Collector got. Ids are in hex; Parent is "" for the first of a trace.
type Span struct {
	Trace, ID, Parent string
	Name              string
	Failed            bool
	Attributes        map[string]string
	Begin, End        time.Time
}

// Collector takes traces. Safe for concurrent use.
type Collector struct {
	URL string // to be given to sandboxd

	mu      sync.Mutex
	spans   []Span
	service string
	text    string
	problem string
}

// New starts a Collector, which ends with the test.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var in otlp.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &in)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.problem = r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type")
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.text += protojson.Format(&in)
	for _, of := range in.GetResourceSpans() {
		c.service = texts(of.GetResource().GetAttributes())["service.name"]
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, Span{
					Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
					Name: s.GetName(), Failed: s.GetStatus().GetCode() == 2, Attributes: texts(s.GetAttributes()),
					Begin: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())),
				})
			}
		}
	}
	answer, err := proto.Marshal(&otlp.ExportTraceServiceResponse{})
	if err != nil {
		c.problem = err.Error()
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

func texts(all []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range all {
		text := a.GetValue().GetStringValue()
		if _, is := a.GetValue().GetValue().(*common.AnyValue_IntValue); is {
			text = protojson.Format(a.GetValue())
		}
		out[a.GetKey()] = text
	}
	return out
}

// Spans gives those that have come so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Service is the name of the program that sent the last ones.
func (c *Collector) Service() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.service
}

// Text is all that has come, as JSON, to look for what must not be in it.
func (c *Collector) Text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text
}

// Problem says what came that was no OTLP, if anything.
func (c *Collector) Problem() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.problem
}
