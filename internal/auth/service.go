package auth

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sandboxd/internal/fault"
)

// Options are what a Service may be given. The zero value is good for use.
type Options struct {
	// Owned counts the sandboxes that a user owns; a user who owns any cannot be deleted. nil counts none.
	Owned func(ctx context.Context, userID string) (int, error)
	// Cost is what hashing a password costs. The zero value is the recommended cost; tests may take less.
	Cost Cost
	// Log gets what no caller can be told. nil is slog.Default.
	Log *slog.Logger
}

// Service identifies users. All methods are safe for concurrent use; several processes may each have a Service
// over the same Store, and what one of them revokes is refused by the others at their next question.
type Service struct {
	store   Store
	owned   func(ctx context.Context, userID string) (int, error)
	log     *slog.Logger
	hash    *hasher
	limits  *limiter
	codes   *codes
	touches *touches
	unknown unknownKeys

	creating sync.Mutex // held while a token is made

	mu    sync.Mutex
	setup string // the setup code of this process, "" until made
}

// New makes a Service over store. It does no I/O: call Bootstrap before anything else.
func New(store Store, o Options) *Service {
	s := &Service{store: store, owned: o.Owned, log: o.Log, hash: newHasher(o.Cost), limits: newLimiter(),
		codes: newCodes(), touches: newTouches()}
	if s.owned == nil {
		s.owned = func(context.Context, string) (int, error) { return 0, nil }
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	return s
}

// Uses are noted rarely and briefly: a full or locked disk must not keep people from working.
const (
	touchEvery    = time.Minute            // at most one write a minute for each session and token
	touchPatience = 250 * time.Millisecond // how long a request waits for such a write
	touchMemory   = 4096                   // ids remembered before all but the fresh ones are forgotten
)

// touches remembers which ids have been written lately, so that a burst of requests writes once.
type touches struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func newTouches() *touches { return &touches{last: map[string]time.Time{}} }

// due reports whether the use of id is to be written now, and notes that it is.
func (t *touches) due(id string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last, ok := t.last[id]; ok && now.Sub(last) < touchEvery {
		return false
	}
	if len(t.last) >= touchMemory {
		t.forget(now)
	}
	t.last[id] = now
	return true
}

func (t *touches) forget(now time.Time) {
	for id, last := range t.last {
		if now.Sub(last) >= touchEvery {
			delete(t.last, id)
		}
	}
	if len(t.last) >= touchMemory {
		clear(t.last)
	}
}

// touch writes a use, if it is due since seen, and only logs when that fails.
func (s *Service) touch(ctx context.Context, id string, seen time.Time, write func(ctx context.Context, now time.Time) error) {
	now := time.Now()
	if now.Sub(seen) < touchEvery || !s.touches.due(id, now) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), touchPatience)
	defer cancel()
	if err := write(ctx, now); err != nil {
		s.log.Warn("note last use", "id", id, "error", err)
	}
}

// enabled gives the fault of a disabled user's credential.
func enabled(u User) error {
	if u.Disabled {
		return fault.New(fault.Unauthenticated, "This account is disabled. Ask an administrator to enable it.")
	}
	return nil
}
