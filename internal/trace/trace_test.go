package trace_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/trace"
	"sandboxd/internal/trace/tracetest"
)

// patience bounds every wait.
const patience = time.Minute

// open makes a Tracer to an address. end ends it, as the end of sandboxd would.
func open(t *testing.T, address string, log io.Writer) (tracer *trace.Tracer, end func()) {
	t.Helper()
	endpoint, err := trace.ParseEndpoint(address)
	if err != nil {
		t.Fatal(err)
	}
	tracer = trace.New(trace.Config{Endpoint: endpoint, Version: "v1", Log: slog.New(slog.NewTextHandler(log, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tracer.Run(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return tracer, end
}

func TestRequest_IsOneTraceWithItsSteps(t *testing.T) {
	c := tracetest.New(t)
	tracer, end := open(t, c.URL, io.Discard)
	ctx, answered := tracer.Request(t.Context(), trace.Request{Method: "GET", To: "port", Sandbox: "otter"})
	waking, woken := tracer.Step(ctx, "wake")
	_, started := tracer.Step(waking, "start")
	started(nil)
	woken(fault.Wrap(errors.New("secret"), fault.Unavailable, "The host is full: secret."))
	answered(503)
	answered(0)
	_, other := tracer.Request(ctx, trace.Request{Method: "GET secret", To: "terminal"}) // within another: a trace of its own
	other(200)
	_, alone := tracer.Step(t.Context(), "thaw") // of no request: nothing
	alone(nil)
	end()
	spans := map[string]tracetest.Span{}
	for _, s := range c.Spans() {
		spans[s.Name+s.Attributes["sandboxd.to"]] = s
	}
	first, second := spans["requestport"], spans["requestterminal"]
	if len(spans) != 4 || len(c.Spans()) != 4 || c.Service() != "sandboxd" {
		t.Fatalf("of %q: %+v", c.Service(), c.Spans())
	}
	if first.Parent != "" || second.Parent != "" || first.Trace == second.Trace {
		t.Errorf("requests are %+v and %+v", first, second)
	}
	wake, start := spans["wake"], spans["start"]
	if wake.Parent != first.ID || start.Parent != wake.ID || start.Trace != first.Trace {
		t.Errorf("steps are %+v and %+v", wake, start)
	}
	if !first.Failed || second.Failed || !wake.Failed || start.Failed || wake.Attributes["error.type"] != "unavailable" {
		t.Errorf("what failed: %+v", c.Spans())
	}
	if first.Attributes["sandboxd.sandbox"] != "otter" || !strings.Contains(first.Attributes["http.response.status_code"], "503") ||
		second.Attributes["http.request.method"] != "_OTHER" {
		t.Errorf("%v, %v", first.Attributes, second.Attributes)
	}
	if text := c.Text(); strings.Contains(text, "secret") || strings.Contains(text, "full") || c.Problem() != "" {
		t.Errorf("%s %s", c.Problem(), text)
	}
}

func TestParseEndpoint_TakesAddressesOfCollectors(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:4318":            "http://127.0.0.1:4318/v1/traces",
		"http://127.0.0.1:4318/":           "http://127.0.0.1:4318/v1/traces",
		"https://otel.example.com/x/trace": "https://otel.example.com/x/trace",
		"http://[::1]:4318":                "http://[::1]:4318/v1/traces",
		"127.0.0.1:4317":                   "", "otel.example.com": "", "grpc://x:1": "", "http://": "", "http://user:pass@x": "", "http://x?token=1": "", "http://x#a": "", "": "", "http://%zz": "",
	} {
		got, err := trace.ParseEndpoint(text)
		if got != want || (want == "") != fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// lines keeps a log, and says when a line has come.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	came chan struct{}
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.came <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *lines) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(strings.Lines(l.text.String()))
}

func TestTracer_ACollectorThatIsAwayCostsALineInTheLog(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	log := &lines{came: make(chan struct{}, 1)}
	tracer, end := open(t, gone.URL, log)
	begun := time.Now()
	for range 20_000 { // more than may wait
		_, answered := tracer.Request(t.Context(), trace.Request{Method: "GET", To: "port", Sandbox: "otter"})
		answered(200)
	}
	if took := time.Since(begun); took > patience/2 {
		t.Errorf("20,000 requests took %s", took)
	}
	select {
	case <-log.came:
	case <-time.After(patience):
		t.Fatal("nothing was logged")
	}
	end()
	if all := log.list(); len(all) != 1 || !strings.Contains(all[0], "traces cannot be sent") {
		t.Errorf("the log has %q", all)
	}
}

func TestTracer_ACollectorThatHangsOrRefusesHoldsUpNobody(t *testing.T) {
	release := make(chan struct{})
	for what, answer := range map[string]http.HandlerFunc{
		"hangs":   func(_ http.ResponseWriter, r *http.Request) { <-release },
		"refuses": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
	} {
		asked := make(chan string, 100)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			asked <- r.URL.Path
			answer(w, r)
		}))
		tracer, end := open(t, server.URL, io.Discard)
		_, answered := tracer.Request(t.Context(), trace.Request{Method: "GET"})
		answered(200)
		begun := time.Now()
		end()
		if took := time.Since(begun); took > patience/2 {
			t.Errorf("one that %s holds up the end for %s", what, took)
		}
		if what == "hangs" {
			close(release)
		}
		server.Close()
		close(asked)
		for path := range asked {
			if path != "/v1/traces" {
				t.Errorf("one that %s was asked for %s", what, path)
			}
		}
	}
}
