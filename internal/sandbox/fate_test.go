package sandbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// errFate is what a call gives that fate has struck: it changes nothing.
var errFate = errors.New("struck by the test")

// fate counts what a Manager does outside of itself, every write and every order to the engine, and strikes when the
// test has said so: one call, or that and all after it, as if sandboxd had been killed before it.
type fate struct {
	mu     sync.Mutex
	armed  bool
	left   int // calls before it strikes
	lethal bool
	err    error
	struck string // what it has struck first; "" when nothing
	after  map[string]func()
}

// between runs f once, between the next read of that kind ("list" of the engine, "row" of the store) and its caller.
func (f *fate) between(read string, do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after = map[string]func(){read: do}
}

func (f *fate) wasRead(what string) {
	f.mu.Lock()
	do := f.after[what]
	delete(f.after, what)
	f.mu.Unlock()
	if do != nil {
		do()
	}
}

// arm makes it strike after so many calls.
func (f *fate) arm(after int, lethal bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.left, f.lethal, f.err, f.struck = true, after, lethal, err, ""
}

// rest ends it, and tells what it has struck first.
func (f *fate) rest() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = false
	return f.struck
}

// strikes has a Manager do something again and again, each time killed before another thing that it does outside, until it comes to its end.
// begin gives a Manager, what ends it, and what it does; check looks at one that was started after that.
func strikes(t *testing.T, most int, begin func(t *testing.T, w *world) (end, do func()), check func(t *testing.T, w *world, m *sandbox.Manager, struck string)) {
	t.Helper()
	for n, struck := 0, "first"; struck != ""; n++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			end, do := begin(t, w)
			w.fate.arm(n, true, errFate)
			do()
			pass(10 * time.Second)
			end()
			struck = w.fate.rest()
			m, end := w.run(t)
			defer end()
			pass(10 * time.Minute)
			check(t, w, m, struck)
		})
		if n > most {
			t.Fatal("it does not come to an end")
		}
	}
}

func (f *fate) strike(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.armed {
		return nil
	}
	if f.left > 0 {
		f.left--
		return nil
	}
	if f.struck == "" {
		f.struck = what
	}
	f.armed = f.lethal
	return f.err
}

// fatedStore is a store whose writes fate may strike.
type fatedStore struct {
	*sandboxtest.MemStore
	fate *fate
}

func (s fatedStore) Insert(ctx context.Context, b sandbox.Sandbox) error {
	if err := s.fate.strike("insert"); err != nil {
		return err
	}
	return s.MemStore.Insert(ctx, b)
}

func (s fatedStore) Update(ctx context.Context, b sandbox.Sandbox) error {
	if err := s.fate.strike("update to " + string(b.State)); err != nil {
		return err
	}
	return s.MemStore.Update(ctx, b)
}

func (s fatedStore) Delete(ctx context.Context, id string) error {
	if err := s.fate.strike("delete of the row"); err != nil {
		return err
	}
	return s.MemStore.Delete(ctx, id)
}

func (s fatedStore) ByName(ctx context.Context, name string) (sandbox.Sandbox, error) {
	got, err := s.MemStore.ByName(ctx, name)
	s.fate.wasRead("row")
	return got, err
}
