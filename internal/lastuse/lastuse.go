// Package lastuse keeps when each sandbox was used last, also over restarts of sandboxd. The list sorts by it, and what nobody has
// ever used is deleted with fewer questions.
//
// It is not what keeps a sandbox awake (idle knows that), and no history: there is one time for each sandbox. What counts as a use
// is for its callers to say; access notes each.
//
// Invariant: a sandbox that was used has a time here from then on, and in the store a moment later. A time never moves back.
package lastuse

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"
)

const (
	exact      = time.Minute      // how exact the times are: a busy sandbox is written once in that
	writeEvery = time.Second / 5  // the least time between two writes, for all that was noted meanwhile
	retryEvery = 10 * time.Second // the same after one that did not succeed
	pruneEvery = time.Hour        // how often those that are gone are forgotten
	storeLimit = 5 * time.Second
)

// Store keeps the times. It must be safe for concurrent use. Times of sandboxes that are gone go with them.
type Store interface {
	// LastUses gives all times, by the sandbox's id.
	LastUses(ctx context.Context) (map[string]time.Time, error)
	// PutLastUses keeps times in place of the earlier ones, and leaves those of unknown sandboxes out.
	PutLastUses(ctx context.Context, uses map[string]time.Time) error
}

// Record has the times. It is safe for concurrent use.
type Record struct {
	store Store
	log   *slog.Logger
	noted chan struct{} // holds one while there is something to write

	mu      sync.RWMutex
	last    map[string]time.Time
	pending map[string]time.Time // that the store does not have yet
}

// New makes a Record over store. It does no I/O: Load does.
func New(store Store, log *slog.Logger) *Record {
	return &Record{store: store, log: log, noted: make(chan struct{}, 1), last: map[string]time.Time{}, pending: map[string]time.Time{}}
}

// Load reads the stored times, and forgets what the store does not have.
func (r *Record) Load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	stored, err := r.store.LastUses(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(stored, r.pending)
	r.last = stored
	return nil
}

// Note says that the sandbox with this id is used now. It blocks on nothing but memory.
func (r *Record) Note(id string) {
	now := time.Now()
	if r.recent(id, now) {
		return
	}
	r.mu.Lock()
	r.last[id], r.pending[id] = now, now
	r.mu.Unlock()
	r.wake()
}

// wake has Run write.
func (r *Record) wake() {
	select {
	case r.noted <- struct{}{}:
	default:
	}
}

func (r *Record) recent(id string, now time.Time) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	last, ok := r.last[id]
	return ok && now.Sub(last) < exact
}

// Last says when a sandbox was used last, exact to a minute; used is false for one that never was.
func (r *Record) Last(id string) (at time.Time, used bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	at, used = r.last[id]
	return at, used
}

// Run writes what was noted, until ctx ends; then it writes the rest.
func (r *Record) Run(ctx context.Context) error {
	prune := time.NewTicker(pruneEvery)
	defer prune.Stop()
	defer func() { r.write(context.WithoutCancel(ctx)) }()
	for {
		select {
		case <-r.noted:
			pause := writeEvery
			if !r.write(ctx) {
				pause = retryEvery
				r.wake()
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		case <-prune.C:
			if err := r.Load(ctx); err != nil && ctx.Err() == nil {
				r.log.Warn("read when sandboxes were used last", "error", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// write stores what was noted, and says whether it could. What it could not is written with the next.
func (r *Record) write(ctx context.Context) bool {
	r.mu.Lock()
	uses := r.pending
	r.pending = map[string]time.Time{}
	r.mu.Unlock()
	if len(uses) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	err := r.store.PutLastUses(ctx, uses)
	if err == nil {
		return true
	}
	if !errors.Is(err, context.Canceled) {
		r.log.Warn("keep when sandboxes were used last", "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(uses, r.pending)
	r.pending = uses
	return false
}
