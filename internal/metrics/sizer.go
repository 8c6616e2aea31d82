package metrics

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// Size is how much of the engine's disk a sandbox has, as the lengths of its files say: one with holes counts as a whole.
type Size struct {
	Home  int64 // bytes of its home
	Layer int64 // bytes of its writable layer: what was written elsewhere, beside its image
}

// Sized is a Size and when it was measured.
type Sized struct {
	Size
	Time time.Time
}

// When sizes are measured. It reads all files' lengths, so it must not be done often.
const (
	sizeFirst = 10 * time.Second // after the start
	sizeHomes = time.Minute      // of homes of which it is known
	sizeEvery = time.Hour
	sizeAgain = 5 * time.Minute // after failures; after the first ones sooner, as an engine may measure for one program at a time
	sizeRest  = 50              // the pause is at least so many times as long as the measuring: 2 % of the time
	sizeLimit = 10 * time.Minute
)

// Sizer measures the sizes of all sandboxes, also of those that do not run, and keeps the newest in memory. Safe for concurrent
// use.
type Sizer struct {
	measure func(ctx context.Context) (map[string]Size, error)
	homes   func(ctx context.Context) (map[string]int64, error)
	log     *slog.Logger
	nudge   chan struct{} // has something when what is measured has changed

	mu      sync.Mutex
	sizes   map[string]Sized
	problem error // why the last measuring failed
}

// NewSizer makes a Sizer. measure gives the sizes of all sandboxes that there are, by id; those that it cannot tell are left
// out. homes gives the bytes of those homes of which they are known without reading anything; nil for none. Run starts it.
func NewSizer(measure func(ctx context.Context) (map[string]Size, error), homes func(ctx context.Context) (map[string]int64, error), log *slog.Logger) *Sizer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Sizer{measure: measure, homes: homes, log: log, nudge: make(chan struct{}, 1)}
}

// Run measures again and again until ctx ends.
func (s *Sizer) Run(ctx context.Context) error {
	tick := time.NewTicker(sizeHomes)
	defer tick.Stop()
	began := time.Now()
	earliest, again := began.Add(sizeFirst), sizeFirst
	for next := time.After(sizeFirst); ; {
		select {
		case <-next:
		case <-s.nudge:
			next = time.After(time.Until(earliest))
			continue
		case <-tick.C:
			s.lookAtHomes(ctx)
			continue
		case <-ctx.Done():
			return nil
		}
		usual := sizeEvery
		began = time.Now()
		if s.look(ctx) != nil {
			usual, again = again, min(2*again, sizeAgain)
		} else {
			again = sizeFirst
		}
		took := time.Since(began)
		earliest = time.Now().Add(max(sizeFirst, sizeRest*took))
		next = time.After(max(usual, sizeRest*took))
	}
}

// Soon has sizes measured as soon as that may be done again. It does not wait.
func (s *Sizer) Soon() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// lookAtHomes renews what is known at once. The layer of a sandbox that was not measured yet counts as empty.
func (s *Sizer) lookAtHomes(ctx context.Context) {
	if s.homes == nil {
		return
	}
	found, err := s.homes(ctx)
	if err != nil {
		s.log.Debug("the sizes of homes cannot be read", "error", err)
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sizes == nil {
		s.sizes = map[string]Sized{}
	}
	for id, bytes := range found {
		s.sizes[id] = Sized{Size{Home: bytes, Layer: s.sizes[id].Layer}, now}
	}
}

// look measures once. What was measured before stays when that fails.
func (s *Sizer) look(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, sizeLimit)
	defer cancel()
	found, err := s.measure(within)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && s.problem == nil:
		s.log.Warn("the sizes of sandboxes cannot be measured", "error", err)
	case err == nil && s.problem != nil:
		s.log.Info("the sizes of sandboxes are measured again")
	}
	if s.problem = err; err != nil {
		return err
	}
	s.sizes = make(map[string]Sized, len(found))
	for id, size := range found {
		s.sizes[id] = Sized{size, now}
	}
	return nil
}

// Size gives the size of a sandbox and when it was measured; ok is false when it was not yet. It answers from memory.
func (s *Sizer) Size(id string) (size Size, at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.sizes[id]
	return one.Size, one.Time, ok
}

// Sizes gives the sizes of all sandboxes that were measured, by id. It answers from memory.
func (s *Sizer) Sizes() map[string]Sized {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.sizes)
}
