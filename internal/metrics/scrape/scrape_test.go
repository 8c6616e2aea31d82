package scrape_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
	"sandboxd/internal/metrics/scrape"
	"sandboxd/internal/sandbox"
)

// host has sandboxes and figures of them.
type host struct {
	events *event.Bus[sandbox.Event]
	ticks  *event.Bus[metrics.Tick]

	mu     sync.Mutex
	rows   []sandbox.Sandbox
	latest map[string]metrics.Point
	sizes  map[string]metrics.Size
	broken bool // the list cannot be read
}

func newHost() *host {
	return &host{events: event.NewBus[sandbox.Event](8), ticks: event.NewBus[metrics.Tick](8), latest: map[string]metrics.Point{}}
}

// List implements scrape.Sandboxes.
func (h *host) List(context.Context, sandbox.Filter) ([]sandbox.Sandbox, int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken {
		return nil, 0, errors.New("no answer")
	}
	return h.rows, len(h.rows), nil
}

// Subscribe implements scrape.Sandboxes.
func (h *host) Subscribe() *event.Subscription[sandbox.Event] { return h.events.Subscribe() }

// Latest implements scrape.Figures.
func (h *host) Latest(id string) (metrics.Point, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, ok := h.latest[id]
	return p, ok
}

// Size implements scrape.Figures.
func (h *host) Size(id string) (metrics.Size, time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.sizes[id]
	return s, time.Time{}, ok
}

// figures is the host as scrape.Figures.
type figures struct{ *host }

// Subscribe implements scrape.Figures.
func (f figures) Subscribe() *event.Subscription[metrics.Tick] { return f.ticks.Subscribe() }

// measure gives a sandbox a new point, and says so.
func (h *host) measure(id string, p metrics.Point) {
	h.mu.Lock()
	h.latest[id] = p
	h.mu.Unlock()
	h.ticks.Publish(metrics.Tick{Time: p.Time})
	synctest.Wait()
}

func newRegistry() *scrape.Registry {
	return scrape.New(scrape.Build{Version: "v1", Commit: "abc", Go: "go1.26"})
}

// run runs the registry until the test ends. It must be called in a bubble.
func (h *host) run(t *testing.T) *scrape.Registry {
	t.Helper()
	return h.runWith(t, figures{h})
}

func (h *host) runWith(t *testing.T, f scrape.Figures) *scrape.Registry {
	t.Helper()
	r := newRegistry()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, h, f) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return r
}

// families are what a scrape gives, as Prometheus reads it.
type families map[string]*dto.MetricFamily

func read(t *testing.T, h http.Handler) families {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// value gives the value of the series with these labels, which are name, value, name, value …; NaN when there is none.
// Of a histogram it is the number of observations.
func (f families) value(name string, labels ...string) float64 {
	for _, m := range f[name].GetMetric() {
		have := map[string]string{}
		for _, l := range m.GetLabel() {
			have[l.GetName()] = l.GetValue()
		}
		same := len(have) == len(labels)/2
		for i := 0; i < len(labels); i += 2 {
			same = same && have[labels[i]] == labels[i+1]
		}
		switch {
		case !same:
		case m.GetHistogram() != nil:
			return float64(m.GetHistogram().GetSampleCount())
		default:
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return math.NaN()
}

func (f families) has(t *testing.T, want float64, name string, labels ...string) {
	t.Helper()
	if got := f.value(name, labels...); got != want && !(math.IsNaN(want) && math.IsNaN(got)) {
		t.Errorf("%s%v is %v, want %v", name, labels, got, want)
	}
}

func row(id, name string, s sandbox.State) sandbox.Sandbox {
	return sandbox.Sandbox{ID: id, Name: name, State: s}
}

func TestScrape_NamesAreAsPrometheusWantsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.rows = []sandbox.Sandbox{row("1", "otter", sandbox.Running)}
		r := h.run(t)
		h.sizes = map[string]metrics.Size{"1": {Home: 1}}
		h.measure("1", metrics.Point{Time: time.Now(), Measured: time.Second})
		use(r)
		var families []*dto.MetricFamily
		for _, f := range read(t, r.Handler()) {
			families = append(families, f)
		}
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	})
}

// use counts one of everything.
func use(r *scrape.Registry) {
	for _, a := range []sandbox.Action{sandbox.ActionCreate, sandbox.ActionStart, sandbox.ActionWake, sandbox.ActionFreeze, sandbox.ActionSleep, sandbox.ActionStop, sandbox.ActionDelete} {
		r.Action(context.Background(), a, sandbox.Frozen)(nil)
	}
	r.Command(time.Second, nil)
	r.Command(time.Second, fault.New(fault.Unavailable, "The link was lost."))
	r.Image(true, time.Second, nil)
	r.Image(false, time.Second, nil)
	r.Opened(scrape.Port)()
	r.Answered(scrape.Port, 200, time.Second)
}

func TestAction_CountsByOutcomeAndMeasures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		read(t, r.Handler()).has(t, 0, "sandboxd_wakes_total", "from", "frozen", "outcome", "ok")
		done := r.Action(t.Context(), sandbox.ActionWake, sandbox.Frozen)
		time.Sleep(20 * time.Millisecond)
		done(nil)
		r.Action(t.Context(), sandbox.ActionWake, sandbox.Sleeping)(fault.New(fault.Unavailable, "The host is full."))
		r.Action(t.Context(), sandbox.ActionCreate, "")(errors.New("a bug"))
		r.Action(t.Context(), sandbox.ActionFreeze, sandbox.Running)(nil)
		r.Action(t.Context(), sandbox.ActionSleep, sandbox.Frozen)(nil)
		r.Command(time.Second, context.Canceled)
		r.Command(time.Second, fault.Wrap(context.Canceled, fault.Limited, "Too many."))
		f := read(t, r.Handler())
		f.has(t, 1, "sandboxd_wakes_total", "from", "frozen", "outcome", "ok")
		f.has(t, 1, "sandboxd_wake_duration_seconds", "from", "frozen", "outcome", "ok")
		f.has(t, 1, "sandboxd_wakes_total", "from", "asleep", "outcome", "unavailable")
		f.has(t, 1, "sandboxd_creates_total", "outcome", "internal")
		f.has(t, 1, "sandboxd_rests_total", "to", "frozen", "outcome", "ok")
		f.has(t, 1, "sandboxd_rests_total", "to", "asleep", "outcome", "ok")
		f.has(t, 1, "sandboxd_execs_total", "outcome", "canceled")
		f.has(t, 1, "sandboxd_execs_total", "outcome", "rate_limited")
		f.has(t, 1, "sandboxd_errors_total", "part", "sandboxes", "kind", "unavailable")
		f.has(t, 1, "sandboxd_errors_total", "part", "exec", "kind", "rate_limited")
		for _, m := range f["sandboxd_wake_duration_seconds"].GetMetric() {
			if sum := m.GetHistogram().GetSampleSum(); m.GetLabel()[0].GetValue() == "frozen" && math.Abs(sum-.02) > 1e-6 {
				t.Errorf("a wake of 20 ms counts as %v s", sum)
			}
		}
	})
}

func TestAnswered_OnlyOurOwnErrorsAreErrors(t *testing.T) {
	r := newRegistry()
	ended := r.Opened(scrape.IDE)
	r.Answered(scrape.API, 429, time.Millisecond)
	r.Answered(scrape.API, 418, time.Millisecond)
	r.Answered(scrape.Port, 500, time.Millisecond)
	r.Answered(scrape.Port, 999, time.Millisecond)
	f := read(t, r.Handler())
	f.has(t, 1, "sandboxd_http_requests_open", "to", "ide")
	f.has(t, 2, "sandboxd_http_requests_total", "to", "api", "code", "4xx")
	f.has(t, 1, "sandboxd_http_requests_total", "to", "port", "code", "5xx")
	f.has(t, 1, "sandboxd_http_requests_total", "to", "port", "code", "other")
	f.has(t, 1, "sandboxd_errors_total", "part", "api", "kind", "rate_limited")
	f.has(t, 1, "sandboxd_errors_total", "part", "api", "kind", "invalid")
	f.has(t, math.NaN(), "sandboxd_errors_total", "part", "port", "kind", "internal")
	ended()
	read(t, r.Handler()).has(t, 0, "sandboxd_http_requests_open", "to", "ide")
}

func TestRegistry_IsReadWhileItIsWritten(t *testing.T) {
	r := newRegistry()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				use(r)
			}
		})
		all.Go(func() {
			for range 10 { // more at once than are answered are told so
				r.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil))
			}
		})
	}
	all.Wait()
	read(t, r.Handler()).has(t, 800, "sandboxd_creates_total", "outcome", "ok")
}

func TestRun_FollowsSandboxesAndTheirUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.rows = []sandbox.Sandbox{row("1", "otter", sandbox.Running), row("2", "heron", sandbox.Asleep)}
		h.sizes = map[string]metrics.Size{"2": {Home: 1000, Layer: 30}}
		r := h.run(t)
		at := time.Now()
		h.measure("1", metrics.Point{Time: at, Measured: 2 * time.Second, CPU: .5, Memory: 100, MemoryLimit: 200, NetworkRx: 7, NetworkTx: 8, DiskRead: 9, DiskWrite: 10})
		h.measure("1", metrics.Point{Time: at, Measured: 4 * time.Second, CPU: .5, Memory: 100, MemoryLimit: 200, NetworkRx: 9}) // it grew
		h.measure("1", metrics.Point{Time: at.Add(-time.Minute), Measured: time.Minute, CPU: 9})                                 // old
		h.measure("1", metrics.Point{Time: at.Add(time.Second), CPU: 9, NetworkRx: 5})                                           // not known
		h.measure("1", metrics.Point{Time: at.Add(2 * time.Second), Measured: time.Second, CPU: 1, Memory: 150, MemoryLimit: 200, NetworkRx: 1})
		f := read(t, r.Handler())
		f.has(t, 3, "sandboxd_sandbox_cpu_seconds_total", "sandbox", "otter")
		f.has(t, 10, "sandboxd_sandbox_network_receive_bytes_total", "sandbox", "otter")
		f.has(t, 8, "sandboxd_sandbox_network_transmit_bytes_total", "sandbox", "otter")
		f.has(t, 9, "sandboxd_sandbox_disk_read_bytes_total", "sandbox", "otter")
		f.has(t, 10, "sandboxd_sandbox_disk_written_bytes_total", "sandbox", "otter")
		f.has(t, 150, "sandboxd_sandbox_memory_bytes", "sandbox", "otter")
		f.has(t, 200, "sandboxd_sandbox_memory_limit_bytes", "sandbox", "otter")
		f.has(t, 0, "sandboxd_sandbox_cpu_seconds_total", "sandbox", "heron")
		f.has(t, 1000, "sandboxd_sandbox_home_bytes", "sandbox", "heron")
		f.has(t, 30, "sandboxd_sandbox_layer_bytes", "sandbox", "heron")
		f.has(t, math.NaN(), "sandboxd_sandbox_home_bytes", "sandbox", "otter") // it was not measured yet
		f.has(t, 1, "sandboxd_sandboxes", "state", "running")
		f.has(t, 1, "sandboxd_sandboxes", "state", "asleep")
		f.has(t, 0, "sandboxd_sandboxes", "state", "failed")
		f.has(t, 1, "sandboxd_build_info", "version", "v1", "commit", "abc", "go_version", "go1.26")
		f.has(t, math.NaN(), "sandboxd_sandbox_cpu_seconds_total", "sandbox", "_other")
		if f["go_goroutines"] == nil || f["process_resident_memory_bytes"] == nil {
			t.Error("there are no figures of the process")
		}
		h.events.Publish(sandbox.Event{Sandbox: row("1", "otter", sandbox.Asleep)})
		h.events.Publish(sandbox.Event{Sandbox: row("2", "heron", sandbox.Deleting), Deleted: true})
		synctest.Wait()
		f = read(t, r.Handler())
		f.has(t, math.NaN(), "sandboxd_sandbox_memory_bytes", "sandbox", "otter") // it rests
		f.has(t, 3, "sandboxd_sandbox_cpu_seconds_total", "sandbox", "otter")
		f.has(t, 1, "sandboxd_sandboxes", "state", "asleep")
		f.has(t, math.NaN(), "sandboxd_sandbox_cpu_seconds_total", "sandbox", "heron")
	})
}

func TestRun_OnlySoManySandboxesHaveSeriesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.sizes = map[string]metrics.Size{}
		for i := range 700 {
			id := fmt.Sprint(i)
			h.sizes[id] = metrics.Size{Home: 3, Layer: 2}
			h.rows = append(h.rows, row(id, "box-"+id, sandbox.Running))
			h.latest[id] = metrics.Point{Time: time.Now(), Measured: time.Second, CPU: 1, Memory: 10}
		}
		r := h.run(t)
		h.measure("0", h.latest["0"])
		f := read(t, r.Handler())
		if n := len(f["sandboxd_sandbox_cpu_seconds_total"].GetMetric()); n != 501 {
			t.Errorf("%d series", n)
		}
		f.has(t, 200, "sandboxd_sandbox_cpu_seconds_total", "sandbox", "_other")
		f.has(t, 2000, "sandboxd_sandbox_memory_bytes", "sandbox", "_other")
		f.has(t, 600, "sandboxd_sandbox_home_bytes", "sandbox", "_other")
		f.has(t, 400, "sandboxd_sandbox_layer_bytes", "sandbox", "_other")
		f.has(t, 700, "sandboxd_sandboxes", "state", "running")
		for i := range 700 { // more events than fit: they are listed again
			h.events.Publish(sandbox.Event{Sandbox: row(fmt.Sprint(i), "", sandbox.Deleting), Deleted: true})
		}
		h.mu.Lock()
		h.rows = nil
		h.mu.Unlock()
		h.events.Publish(sandbox.Event{Sandbox: row("0", "box-0", sandbox.Deleting), Deleted: true})
		for range 20 {
			h.events.Publish(sandbox.Event{Sandbox: row("0", "box-0", sandbox.Deleting), Deleted: true})
		}
		synctest.Wait()
		f = read(t, r.Handler())
		f.has(t, 0, "sandboxd_sandboxes", "state", "running")
		f.has(t, 200, "sandboxd_sandbox_cpu_seconds_total", "sandbox", "_other") // a counter does not fall
	})
}

func TestRun_AListThatCannotBeReadIsReadLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.broken = true
		h.rows = []sandbox.Sandbox{row("1", "otter", sandbox.Running)}
		r := h.run(t)
		read(t, r.Handler()).has(t, 0, "sandboxd_sandboxes", "state", "running")
		h.mu.Lock()
		h.broken = false
		h.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		read(t, r.Handler()).has(t, 1, "sandboxd_sandboxes", "state", "running")
	})
}

func TestRun_WithoutFiguresThereIsNoUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.rows = []sandbox.Sandbox{row("1", "otter", sandbox.Running)}
		f := read(t, h.runWith(t, nil).Handler())
		f.has(t, 1, "sandboxd_sandboxes", "state", "running")
		f.has(t, math.NaN(), "sandboxd_sandbox_cpu_seconds_total", "sandbox", "otter")
	})
}
