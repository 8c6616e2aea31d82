//go:build e2e || bench

package main

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sqlite"
)

// Of a made-up past: its first sandbox sleeps from midnight to morning.
const (
	morning   = 6 // o'clock, UTC
	wakeTime  = time.Second
	batchRows = 2000 // that are written at once
)

// seedHistory makes the history of the sandboxes ids up to now, as if a Recorder had read them for span, and puts it into the file
// that sandboxd, which must not run, opens next. A real Recorder does it, in fake time. The first sandbox sleeps at night.
func seedHistory(t *testing.T, path string, span, every time.Duration, ids ...string) {
	t.Helper()
	until := time.Now()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(until.Add(-span)))
		history := sqlite.OpenHistory(t.Context(), path, slog.New(slog.DiscardHandler))
		store := &gathered{History: history, day: until.Add(-metrics.MediumLife)}
		p := newPast(ids)
		recorder := metrics.New(metrics.Config{Source: p, Every: every, Sandboxes: p, Store: store})
		ctx, end := context.WithTimeout(t.Context(), span)
		defer end()
		var running sync.WaitGroup
		running.Go(func() { _ = recorder.Run(ctx) }) // it ends with ctx
		p.nights(ctx)
		running.Wait()
		if err := errors.Join(store.flush(t.Context()), history.Close()); err != nil {
			t.Error(err)
		}
	})
}

// gathered is a History that gets many batches in one. It leaves out what a sweep would delete at the end.
type gathered struct {
	*sqlite.History
	day  time.Time // the beginning of the last day
	next metrics.Batch
}

// Last implements metrics.Store.
func (g *gathered) Last(ctx context.Context) (int64, error) {
	seq, err := g.History.Last(ctx)
	g.next.Seq = seq
	return seq, err
}

// Add implements metrics.Store. A Recorder adds one batch at a time.
func (g *gathered) Add(ctx context.Context, b metrics.Batch) error {
	g.next.Seq = b.Seq
	g.next.Changes = append(g.next.Changes, b.Changes...)
	for _, r := range b.Rows {
		if r.Tier == metrics.Coarse || r.Row.Time.After(g.day) {
			g.next.Rows = append(g.next.Rows, r)
		}
	}
	if len(g.next.Rows) < batchRows {
		return nil
	}
	return g.flush(ctx)
}

func (g *gathered) flush(ctx context.Context) error {
	err := g.History.Add(ctx, g.next)
	g.next.Rows, g.next.Changes = g.next.Rows[:0], g.next.Changes[:0]
	return err
}

// Sweep implements metrics.Store.
func (g *gathered) Sweep(context.Context, time.Time) error { return nil }

// past is sandboxes that never were, and what they used. It implements metrics.Source and metrics.Sandboxes.
type past struct {
	ids    []string
	events *event.Bus[sandbox.Event]

	mu    sync.Mutex
	state sandbox.State // of the first one
	at    time.Time     // of the last reading
	used  map[string]metrics.Usage
}

func newPast(ids []string) *past {
	p := &past{ids: ids, events: event.NewBus[sandbox.Event](8), state: sandbox.Running, at: time.Now(), used: map[string]metrics.Usage{}}
	if time.Now().UTC().Hour() < morning {
		p.state = sandbox.Asleep
	}
	return p
}

// Subscribe implements metrics.Sandboxes.
func (p *past) Subscribe() *event.Subscription[sandbox.Event] { return p.events.Subscribe() }

// List implements metrics.Sandboxes.
func (p *past) List(context.Context, sandbox.Filter) ([]sandbox.Sandbox, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]sandbox.Sandbox, len(p.ids))
	for i, id := range p.ids {
		out[i] = sandbox.Sandbox{ID: id, State: sandbox.Running}
	}
	out[0].State = p.state
	return out, len(out), nil
}

// nights lets the first sandbox sleep and wake until ctx ends.
func (p *past) nights(ctx context.Context) {
	for ctx.Err() == nil {
		now := time.Now().UTC()
		midnight := now.Truncate(24 * time.Hour)
		next, states := midnight.Add(morning*time.Hour), []sandbox.State{sandbox.Starting, sandbox.Running}
		if !next.After(now) {
			next, states = midnight.Add(24*time.Hour), []sandbox.State{sandbox.Asleep}
		}
		for _, state := range states {
			select {
			case <-time.After(time.Until(next)):
				p.becomes(state)
			case <-ctx.Done():
				return
			}
			next = time.Now().Add(wakeTime)
		}
	}
}

func (p *past) becomes(state sandbox.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = state
	if state == sandbox.Starting {
		delete(p.used, p.ids[0])
	}
	p.events.Publish(sandbox.Event{Sandbox: sandbox.Sandbox{ID: p.ids[0], State: state}})
}

// Read implements metrics.Source: work by day, each with its own hours and a burst now and then.
func (p *past) Read(_ context.Context, ids []string) (map[string]metrics.Reading, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	took := now.Sub(p.at)
	p.at = now
	hours := float64(now.Unix()) / 3600
	out := make(map[string]metrics.Reading, len(ids))
	for _, id := range ids {
		n := float64(slices.Index(p.ids, id))
		load := 0.05 + 0.4*max(0, -math.Cos((hours-n)*math.Pi/12)) + 0.4*max(0, math.Sin(hours*math.Pi*(2.3+n/10))-0.8)
		u, known := p.used[id]
		took := took
		if !known {
			took = min(took, wakeTime) // since its start
		}
		u.CPU += time.Duration(load * float64(took))
		u.NetworkRx += int64(load * took.Seconds() * (200 << 10))
		u.NetworkTx += int64(load * took.Seconds() * (50 << 10))
		u.DiskRead += int64(load * took.Seconds() * (20 << 10))
		u.DiskWrite += int64(load * took.Seconds() * (80 << 10))
		u.Memory, u.Cache, u.MemoryLimit = (200<<20)+int64(load*(600<<20)), 100<<20, 1<<30
		u.Processes = 12 + int64(20*load)
		p.used[id] = u
		out[id] = metrics.Reading{Usage: u, Time: now}
	}
	return out, nil
}
