package web

import (
	"context"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// liveMetrics keeps the state on the page of a sandbox's metrics up to date. Its plots follow a topic of their own.
type liveMetrics struct {
	nothingBeside
	server *Server
	box    sandbox.Sandbox
	gone   bool
	drawn  string // print of the state that the page shows
}

func (s *metricsHandlers) openLiveMetrics(ctx context.Context, r *request) (livePage, error) {
	h, err := named(ctx, s.Server, r)
	if showsDeleted(r, err) {
		return &deletedPage{last: func(out *parts) { out.add("metrics-state", views.Replace, views.MetricsState(deletedState)) }}, nil
	}
	if err != nil {
		return nil, err
	}
	return &liveMetrics{server: s.Server, box: h.Sandbox()}, nil
}

func (l *liveMetrics) begin(ctx context.Context, out *parts) error { return l.tell(ctx, true, out) }

func (l *liveMetrics) take(n news) bool {
	switch {
	case n.box != nil && n.box.Sandbox.ID == l.box.ID:
		l.box, l.gone = n.box.Sandbox, l.gone || n.box.Deleted
	case n.uses != nil:
		return n.uses.ID == l.box.ID
	default:
		return false
	}
	return true
}

func (l *liveMetrics) tell(_ context.Context, _ bool, out *parts) error {
	state := deletedState
	if !l.gone {
		state = l.server.workspace.state(l.box, l.server.cfg.Sandboxes.Progress(l.box.ID))
	}
	if now := printOf(state); now != l.drawn {
		l.drawn = now
		out.add("metrics-state", views.Replace, views.MetricsState(state))
	}
	return nil
}

// tickShape tells the plots of a page that time has passed, and what was used meanwhile.
type tickShape struct {
	Now      float64            `json:"now"` // Unix time in seconds, as all times here
	State    string             `json:"state"`
	Time     float64            `json:"time"`     // when what was measured begins
	Measured float64            `json:"measured"` // seconds; 0 when nothing was
	Figures  map[string]float64 `json:"figures,omitempty"`
	OOMKills int64              `json:"oom_kills"`
}

// openPoints follows what a sandbox uses, for the plots of its page: an event "tick" at once and for every reading, and
// "change" when its state changes.
func (s *metricsHandlers) openPoints(ctx context.Context, r *request) (pump, func(), error) {
	boxes, ticks := s.cfg.Sandboxes.Subscribe(), s.cfg.Metrics.Subscribe()
	release := func() { boxes.Close(); ticks.Close() }
	h, err := named(ctx, s.Server, r)
	if err != nil {
		release()
		return nil, nil, err
	}
	f := &pointFeed{metrics: s.cfg.Metrics, id: h.ID(), state: h.Sandbox().State}
	return func(ctx context.Context, out events) error {
		err := eventJSON(out, "tick", f.tick(s.cfg.Now()))
		for err == nil {
			select {
			case <-ctx.Done():
				return nil
			case e, ok := <-boxes.C:
				if !ok {
					return nil // the page was too slow, and asks anew
				}
				err = f.change(out, e)
			case t, ok := <-ticks.C:
				if !ok {
					return nil
				}
				err = eventJSON(out, "tick", f.tick(t.Time))
			}
		}
		return err
	}, release, nil
}

// pointFeed is what a page was told of one sandbox's figures.
type pointFeed struct {
	metrics Metrics
	id      string
	state   sandbox.State
	told    time.Time // of the last point
}

func (f *pointFeed) change(out events, e *sandbox.Event) error {
	switch {
	case e.Sandbox.ID != f.id:
		return nil
	case e.Deleted:
		return fault.New(fault.Gone, "%s has been deleted.", e.Sandbox.Name)
	case e.Sandbox.State == f.state:
		return nil
	}
	f.state = e.Sandbox.State
	return out.event("change", string(f.state))
}

func (f *pointFeed) tick(now time.Time) tickShape {
	v := tickShape{Now: unix(now), State: string(f.state)}
	p, ok := f.metrics.Latest(f.id)
	if !ok || p.Measured <= 0 || !p.Time.After(f.told) {
		return v
	}
	f.told = p.Time
	v.Time, v.Measured, v.OOMKills, v.Figures = unix(p.Time), p.Measured.Seconds(), p.OOMKills, map[string]float64{}
	for name, of := range figuresOf {
		v.Figures[name] = of(p)
	}
	return v
}
