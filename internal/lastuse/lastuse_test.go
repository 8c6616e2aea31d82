package lastuse

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// shelf is a store that may fail.
type shelf struct {
	mu     sync.Mutex
	uses   map[string]time.Time
	writes int
	err    error
}

func (s *shelf) LastUses(context.Context) (map[string]time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.uses), nil
}

func (s *shelf) PutLastUses(_ context.Context, uses map[string]time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.err != nil {
		return s.err
	}
	maps.Copy(s.uses, uses)
	return nil
}

func (s *shelf) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// running has a Record that runs until the test ends.
func running(t *testing.T) (*Record, *shelf) {
	t.Helper()
	s := &shelf{uses: map[string]time.Time{}}
	r := New(s, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { _ = r.Run(ctx) })
	t.Cleanup(func() { cancel(); group.Wait() })
	return r, s
}

func TestNote_IsKnownAtOnceAndStoredWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := running(t)
		if _, used := r.Last("a"); used {
			t.Error("used before any use")
		}
		r.Note("a")
		r.Note("b")
		if at, used := r.Last("a"); !used || !at.Equal(time.Now()) {
			t.Errorf("%s, %v", at, used)
		}
		time.Sleep(writeEvery)
		synctest.Wait()
		if kept, _ := s.LastUses(t.Context()); len(kept) != 2 {
			t.Errorf("kept %v", kept)
		}
	})
}

func TestNote_IsWrittenOnceAMinuteHoweverOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := running(t)
		for range 3 * 60 * 10 {
			r.Note("a")
			time.Sleep(time.Second / 10)
		}
		synctest.Wait()
		if s.writes != 3 {
			t.Errorf("%d writes in three minutes", s.writes)
		}
	})
}

func TestWrite_IsRepeatedAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := running(t)
		s.fail(errors.New("full"))
		r.Note("a")
		time.Sleep(2 * writeEvery)
		s.fail(nil)
		time.Sleep(retryEvery) // by itself
		synctest.Wait()
		if kept, _ := s.LastUses(t.Context()); len(kept) != 1 {
			t.Errorf("kept %v", kept)
		}
	})
}

func TestRun_WritesTheRestAtTheEndAndForgetsWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{uses: map[string]time.Time{}}
		r := New(s, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { _ = r.Run(ctx) })
		r.Note("a")
		time.Sleep(pruneEvery)
		s.mu.Lock()
		delete(s.uses, "a") // with its sandbox
		s.mu.Unlock()
		time.Sleep(pruneEvery)
		synctest.Wait()
		if _, used := r.Last("a"); used {
			t.Error("one that is gone is remembered")
		}
		r.Note("b")
		r.Note("c") // within the second after a write
		cancel()
		group.Wait()
		if len(s.uses) != 2 {
			t.Errorf("kept %v", s.uses)
		}
	})
}
