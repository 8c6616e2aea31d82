package metrics

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/sandbox"
)

// memStore is a Store in memory.
type memStore struct {
	mu      sync.Mutex
	seq     int64
	rows    map[string]map[Tier][]Row
	changes map[string][]Change
	full    bool // Add fails
}

func newMemStore() *memStore {
	return &memStore{rows: map[string]map[Tier][]Row{}, changes: map[string][]Change{}}
}

// Last implements Store.
func (m *memStore) Last(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seq, nil
}

// Add implements Store.
func (m *memStore) Add(_ context.Context, b Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return errors.New("disk full")
	}
	if b.Seq <= m.seq {
		return nil
	}
	m.seq = b.Seq
	for _, r := range b.Rows {
		if m.rows[r.ID] == nil {
			m.rows[r.ID] = map[Tier][]Row{}
		}
		m.rows[r.ID][r.Tier] = append(m.rows[r.ID][r.Tier], r.Row)
	}
	for _, c := range b.Changes {
		m.changes[c.ID] = append(m.changes[c.ID], c.Change)
	}
	return nil
}

// Rows implements Store.
func (m *memStore) Rows(_ context.Context, id string, t Tier, since, until time.Time) (out []Row, _ int64, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rows[id][t] {
		if !r.Time.Before(since) && r.Time.Before(until) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Row) int { return a.Time.Compare(b.Time) })
	return out, m.seq, nil
}

// Changes implements Store.
func (m *memStore) Changes(_ context.Context, id string, _, until time.Time) (out []Change, _ int64, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.changes[id] {
		if c.Time.Before(until) {
			out = append(out, c)
		}
	}
	return out, m.seq, nil
}

// Sweep implements Store.
func (m *memStore) Sweep(context.Context, time.Time) error { return nil }

// measured is a running sandbox that uses half a core and sends 100 bytes a second.
type measured struct {
	began time.Time
	kills int64
}

// lab is a Recorder in fake time, with a source of its own.
type lab struct {
	t        *testing.T
	recorder *Recorder
	store    *memStore
	bus      *event.Bus[sandbox.Event]
	end      func()

	mu    sync.Mutex
	boxes map[string]*measured
	rows  map[string]sandbox.Sandbox
	fail  error
	asked map[string]int
}

// List implements Sandboxes.
func (l *lab) List(context.Context, sandbox.Filter) (out []sandbox.Sandbox, _ int, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.rows {
		out = append(out, s)
	}
	return out, len(out), nil
}

// Subscribe implements Sandboxes.
func (l *lab) Subscribe() *event.Subscription[sandbox.Event] { return l.bus.Subscribe() }

// Read implements Source.
func (l *lab) Read(_ context.Context, ids []string) (map[string]Reading, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]Reading{}
	for _, id := range ids {
		l.asked[id]++
		if b := l.boxes[id]; b != nil {
			up := time.Since(b.began)
			out[id] = Reading{Time: time.Now(), Usage: Usage{CPU: up / 2, Memory: 100 << 20, MemoryLimit: 1 << 30, NetworkTx: int64(up/time.Second) * 100, OOMKills: b.kills}}
		}
	}
	return out, l.fail
}

// set puts a sandbox into a state.
func (l *lab) set(id string, state sandbox.State) {
	l.mu.Lock()
	s := sandbox.Sandbox{ID: id, Name: id, State: state}
	l.rows[id] = s
	if state == sandbox.Starting {
		l.boxes[id] = &measured{began: time.Now()}
	}
	l.mu.Unlock()
	l.bus.Publish(sandbox.Event{Sandbox: s})
	synctest.Wait()
}

func (l *lab) start(id string) {
	l.set(id, sandbox.Starting)
	l.set(id, sandbox.Running)
}

// newLab runs a Recorder.
func newLab(t *testing.T) *lab {
	l := &lab{t: t, store: newMemStore(), bus: event.NewBus[sandbox.Event](64), boxes: map[string]*measured{}, rows: map[string]sandbox.Sandbox{}, asked: map[string]int{}}
	l.run()
	t.Cleanup(func() { l.end() })
	return l
}

func (l *lab) run() {
	l.recorder = New(Config{Source: l, Every: FineStep, Sandboxes: l, Store: l.store})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := l.recorder.Run(ctx); err != nil {
			l.t.Errorf("run: %v", err)
		}
	})
	l.end = func() { cancel(); running.Wait() }
	synctest.Wait()
}

func (l *lab) series(id string, r Range) Series {
	l.t.Helper()
	s, err := l.recorder.Series(context.Background(), id, r)
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// total sums the CPU time and the sent bytes of a series.
func total(s Series) (cpu time.Duration, tx int64) {
	for _, p := range s.Points {
		cpu += time.Duration(p.CPU * float64(p.Measured))
		tx += p.NetworkTx
	}
	return cpu, tx
}
