package logs

import (
	"context"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
)

// Follower reads lines as they come. It is for one goroutine at a time.
type Follower struct {
	m   *matcher
	sub *event.Subscription[[]Line]
}

// Follow begins a live tail of the lines in scope that match, from now on. The caller must Close it. Kind: Invalid.
func (k *Keeper) Follow(scope Scope, f Filter) (*Follower, error) {
	m, err := newMatcher(Query{Scope: scope, Filter: f})
	if err != nil {
		return nil, err
	}
	return &Follower{m, k.bus.Subscribe()}, nil
}

// Rescope changes of which sandboxes lines are given. No line of one that was in scope before and still is gets lost by that.
func (f *Follower) Rescope(scope Scope) { f.m.q.Scope = scope }

var errTooSlow = fault.New(fault.Limited, "The lines came faster than they were read. Some are missing here; the search has them.")

var errEnded = fault.New(fault.Gone, "The live log has ended.")

// Next waits for lines that match, and gives them, oldest first. Kinds: Limited when the reader was too slow, which ends the tail;
// Gone after Close; else the error is that of ctx.
func (f *Follower) Next(ctx context.Context) ([]Line, error) {
	for {
		select {
		case lines, ok := <-f.sub.C:
			if !ok && f.sub.Dropped() {
				return nil, errTooSlow
			}
			if !ok {
				return nil, errEnded
			}
			if found := f.matching(*lines); len(found) > 0 {
				return found, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// matching gives a copy of those that match: others share the lines.
func (f *Follower) matching(lines []Line) (out []Line) {
	for i := range lines {
		if f.m.match(&lines[i]) {
			out = append(out, lines[i])
		}
	}
	return out
}

// Close ends the tail. It may be called more than once.
func (f *Follower) Close() { f.sub.Close() }

// publish hands lines to followers, at most once each followEvery, until ctx ends.
func (k *Keeper) publish(ctx context.Context) {
	for {
		select {
		case <-k.appended:
		case <-ctx.Done():
			return
		}
		for _, lines := range k.unpublished() {
			k.bus.Publish(lines)
		}
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return
		}
	}
}

// unpublished takes the lines that were appended since the last call, in parts of about followBytes.
func (k *Keeper) unpublished() (parts [][]Line) {
	k.mu.Lock()
	lines := k.fresh
	k.fresh = nil
	k.mu.Unlock()
	from, size := 0, 0
	for i, l := range lines {
		if size += len(l.Text) + lineCost; size >= followBytes || i == len(lines)-1 {
			parts = append(parts, lines[from:i+1])
			from, size = i+1, 0
		}
	}
	return parts
}
