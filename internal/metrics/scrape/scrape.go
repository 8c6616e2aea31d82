// Package scrape gives the figures of a server to Prometheus: what was done, how long it took and how it ended, which
// sandboxes there are, and what each of them uses.
//
// It keeps no history, which Prometheus does, and measures nothing itself: it is told of operations through small functions,
// follows the Manager's events, and reads use where metrics.Recorder has it. It does not decide who may read it.
//
// Invariant: no label has a value that a user or a sandbox chooses, but for the names of at most maxNamed sandboxes, which are
// DNS labels. So the number of series is bounded, whatever anybody does.
package scrape

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Build says which program this is.
type Build struct {
	Version, Commit, Go string
}

// Registry has all figures. Its methods are safe for concurrent use, and none but Run blocks. Those of sandboxes are there while
// Run runs.
type Registry struct {
	*work
	*requests
	*boxes
	registry *prometheus.Registry
}

// New makes a Registry. It does no I/O.
func New(b Build) *Registry {
	all := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sandboxd_build_info", Help: "Which sandboxd this is. The value is always 1.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "go_version": b.Go},
	})
	build.Set(1)
	r := &Registry{registry: all, boxes: newBoxes()}
	failures := counter("errors_total", "Operations and requests that failed, by the part of sandboxd and the kind of error.", "part", "kind")
	r.work, r.requests = newWork(failures), newRequests(failures)
	all.MustRegister(build, failures, r.boxes, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	all.MustRegister(r.work.collectors()...)
	all.MustRegister(r.requests.collectors()...)
	return r
}

// maxScrapes bounds the scrapes that are under way at the same time.
const maxScrapes = 4

// Handler answers scrapes at any path, to anyone.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, ErrorHandling: promhttp.ContinueOnError})
}

const namespace = "sandboxd"

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}
