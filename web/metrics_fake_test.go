package web

import (
	"context"
	"sync"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/metrics"
)

// fakeMetrics gives what a test puts in.
type fakeMetrics struct {
	mu     sync.Mutex
	series map[string]metrics.Series // by id
	asked  []metrics.Range
	recent map[string][]metrics.Point
	host   metrics.Host
	sizes  map[string]metrics.Sized
	err    error
	ticks  *event.Bus[metrics.Tick]
}

func newFakeMetrics() *fakeMetrics {
	return &fakeMetrics{series: map[string]metrics.Series{}, recent: map[string][]metrics.Point{}, ticks: event.NewBus[metrics.Tick](16)}
}

// Series implements Metrics.
func (f *fakeMetrics) Series(_ context.Context, id string, r metrics.Range) (metrics.Series, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r)
	return f.series[id], f.err
}

// Recent implements Metrics.
func (f *fakeMetrics) Recent(id string) []metrics.Point {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.recent[id]
}

// Latest implements Metrics.
func (f *fakeMetrics) Latest(id string) (metrics.Point, bool) {
	points := f.Recent(id)
	if len(points) == 0 {
		return metrics.Point{}, false
	}
	return points[len(points)-1], true
}

// Size implements Metrics.
func (f *fakeMetrics) Size(id string) (metrics.Size, time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.sizes[id]
	return s.Size, s.Time, ok
}

// Host implements Metrics.
func (f *fakeMetrics) Host(context.Context) (metrics.Host, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.host, f.err
}

// Subscribe implements Metrics.
func (f *fakeMetrics) Subscribe() *event.Subscription[metrics.Tick] { return f.ticks.Subscribe() }
