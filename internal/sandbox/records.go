package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/pace"
)

// records stores sandboxes and publishes their changes.
type records struct {
	rows *rows
	bus  *event.Bus[Event]
	log  *slog.Logger

	observe func(ctx context.Context, a Action, was State, s Sandbox) (done func(error)) // may be nil

	times *pace.Times

	mu       sync.Mutex
	progress map[string]Progress // by id
}

// Sandbox finds one by name, from memory when it was asked for before. NotFound if there is none.
func (r *records) Sandbox(ctx context.Context, name string) (Sandbox, error) {
	s, err := r.rows.ByName(ctx, name)
	if err == nil && s.Pooled {
		return Sandbox{}, fault.New(fault.NotFound, "There is no sandbox %q.", name)
	}
	return s, err
}

// Current gives the row of a sandbox, from memory when it was asked for before. Gone once it is deleted, also when another
// one has its name, and of a pooled one, which has no owner.
func (r *records) Current(ctx context.Context, ref Ref) (Sandbox, error) {
	s, err := r.rows.ByName(ctx, ref.name)
	if fault.Is(err, fault.NotFound) || err == nil && (s.ID != ref.id || s.Pooled) {
		return Sandbox{}, r.deleted(ctx, ref)
	}
	return s, err
}

// deleted says that a sandbox was deleted, and when if that is known.
func (r *records) deleted(ctx context.Context, ref Ref) error {
	if t, err := r.Tombstone(ctx, ref.name); err == nil && t.ID == ref.id {
		return t.Gone()
	}
	return fault.New(fault.Gone, "%s was deleted.", ref.name)
}

// Tombstone gives that of the last deleted sandbox of a name. NotFound when there was none lately.
func (r *records) Tombstone(ctx context.Context, name string) (Tombstone, error) {
	return r.rows.store.Tombstone(ctx, name)
}

// List gives the sandboxes that match f, and how many match without f's page.
func (r *records) List(ctx context.Context, f Filter) ([]Sandbox, int, error) {
	return r.rows.store.List(ctx, f)
}

// All gives every row, by id, those of the pools too. The pooled ones are asked for first: one that is claimed in between is then there twice, and
// none is missed.
func (r *records) All(ctx context.Context) (map[string]Sandbox, error) {
	rows := map[string]Sandbox{}
	for _, pooled := range []bool{true, false} {
		list, _, err := r.List(ctx, Filter{Pooled: pooled})
		if err != nil {
			return nil, fmt.Errorf("list rows: %w", err)
		}
		for _, s := range list {
			rows[s.ID] = s
		}
	}
	return rows, nil
}

// Subscribe gives all changes from now on. The caller must Close it.
func (r *records) Subscribe() *event.Subscription[Event] { return r.bus.Subscribe() }

// Progress gives that of the operation on the sandbox with this id.
func (r *records) Progress(id string) Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress[id]
}

// set stores s in a new state and publishes it. It works under its own deadline, so that the state is stored also when
// the operation has run out of time.
func (r *records) set(ctx context.Context, s Sandbox, state State, problem string) (Sandbox, error) {
	was, by := s.State, ctx
	s.State, s.Problem, s.Changed = state, problem, stamp()
	if state != Failed && state != Capturing {
		s.Cause = fault.Internal
	}
	if !state.moves() {
		s.CutOff = ""
	}
	if state != Restoring {
		s.Revert = Revert{}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
	defer cancel()
	if err := r.rows.Update(ctx, s); err != nil {
		return s, err
	}
	if was == Creating && state == Running {
		made := s
		made.State = was
		r.notePhase(made, r.Progress(s.ID), time.Now())
	}
	if state.Settled() {
		r.clearProgress(s.ID)
	}
	r.publish(Event{Sandbox: s})
	if state == Failed && was != Failed && r.observe != nil && !s.Pooled {
		r.observe(by, ActionFail, was, s)(nil)
	}
	return s, nil
}

func (r *records) report(s Sandbox, p Progress) {
	p.Since = time.Now()
	r.mu.Lock()
	before := r.progress[s.ID]
	if before.Phase == p.Phase && !before.Since.IsZero() {
		p.Since = before.Since
	}
	r.progress[s.ID] = p
	r.mu.Unlock()
	if before.Phase != p.Phase {
		r.notePhase(s, before, p.Since)
	}
	r.publish(Event{Sandbox: s, Progress: p})
}

func (r *records) clearProgress(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.progress, id)
}

// publish sends a change to all subscribers. Pooled sandboxes are not shown to anyone.
func (r *records) publish(e Event) {
	if e.Sandbox.Pooled {
		return
	}
	if !e.Deleted && e.Progress == (Progress{}) {
		e.Progress = r.Progress(e.Sandbox.ID)
	}
	r.bus.Publish(e)
}
