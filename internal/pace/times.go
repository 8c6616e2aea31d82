package pace

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"
)

const (
	storeLimit = 10 * time.Second // a call of the store
	saveEvery  = 2 * time.Second  // steps that end close together are kept at once
)

// Store keeps how long steps took. Safe for concurrent use.
type Store interface {
	// StepTimes gives all, by key. The map is the caller's.
	StepTimes(ctx context.Context) (map[string]time.Duration, error)
	// PutStepTimes keeps times in place of earlier ones of their keys. Of too many it forgets those that were put longest ago.
	PutStepTimes(ctx context.Context, times map[string]time.Duration) error
}

// Times knows how long each step took the last time. Safe for concurrent use; nil knows nothing and forgets all.
type Times struct {
	store   Store
	log     *slog.Logger
	changed chan struct{} // wakes Run

	mu    sync.Mutex
	last  map[string]time.Duration
	fresh map[string]time.Duration // not stored yet
}

// Open reads what was kept. What cannot be read is guessed until it is measured again.
func Open(ctx context.Context, s Store, log *slog.Logger) *Times {
	t := &Times{store: s, log: log, changed: make(chan struct{}, 1), fresh: map[string]time.Duration{}}
	var err error
	if t.last, err = s.StepTimes(ctx); err != nil {
		log.Warn("how long steps took cannot be read; it is guessed", "error", err)
		t.last = map[string]time.Duration{}
	}
	return t
}

// Note remembers how long a step took. It does not block.
func (t *Times) Note(key string, took time.Duration) {
	if t == nil || took < 0 {
		return
	}
	t.mu.Lock()
	t.last[key], t.fresh[key] = took, took
	t.mu.Unlock()
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// Length is how long a step takes: as the last time, or a guess when it has never been done here.
func (t *Times) Length(key string, guess time.Duration) Length {
	if t == nil {
		return Length{Time: guess}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if took, ok := t.last[key]; ok {
		return Length{Time: took, Measured: took}
	}
	return Length{Time: guess}
}

// Run stores what is noted until ctx ends.
func (t *Times) Run(ctx context.Context) error {
	for {
		select {
		case <-t.changed:
		case <-ctx.Done():
			t.save(context.WithoutCancel(ctx))
			return nil
		}
		select {
		case <-time.After(saveEvery):
		case <-ctx.Done():
		}
		t.save(context.WithoutCancel(ctx))
	}
}

func (t *Times) save(ctx context.Context) {
	t.mu.Lock()
	fresh := maps.Clone(t.fresh)
	clear(t.fresh)
	t.mu.Unlock()
	if len(fresh) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	if err := t.store.PutStepTimes(ctx, fresh); err != nil {
		t.log.Warn("how long steps took is not kept", "error", err)
	}
}
