package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
)

// slowStore is a store of rows by name in memory, whose answers take as long as the test says and whose writes may end
// in an error although they were kept.
type slowStore struct {
	Store
	read, write time.Duration
	lie         atomic.Bool // the next write is kept, and said not to be
	reads       atomic.Int64

	mu   sync.Mutex
	rows map[string]Sandbox
}

func newSlowStore() *slowStore { return &slowStore{rows: map[string]Sandbox{}} }

func (s *slowStore) ByName(_ context.Context, name string) (Sandbox, error) {
	s.reads.Add(1)
	s.mu.Lock()
	b, ok := s.rows[name]
	s.mu.Unlock()
	s.sleep(s.read)
	if !ok {
		return Sandbox{}, fault.New(fault.NotFound, "none")
	}
	return b, nil
}

func (s *slowStore) Insert(ctx context.Context, b Sandbox) error { return s.Update(ctx, b) }

func (s *slowStore) Update(_ context.Context, b Sandbox) error {
	return s.change(func() { s.rows[b.Name] = b })
}

func (s *slowStore) Delete(_ context.Context, id string) error {
	return s.change(func() {
		for name, b := range s.rows {
			if b.ID == id {
				delete(s.rows, name)
			}
		}
	})
}

func (s *slowStore) change(f func()) error {
	s.mu.Lock()
	f()
	s.mu.Unlock()
	s.sleep(s.write)
	if s.lie.Swap(false) {
		return errors.New("kept, but nobody knows")
	}
	return nil
}

func (s *slowStore) sleep(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

func row(label string) Sandbox {
	return Sandbox{ID: "1", Name: "lab", Label: label, Created: stamp(), Changed: stamp()}
}

func labelOf(t *testing.T, r *rows) string {
	t.Helper()
	s, err := r.ByName(t.Context(), "lab")
	if err != nil && !fault.Is(err, fault.NotFound) {
		t.Fatal(err)
	}
	return s.Label
}

func TestRows_AreRememberedAsTheyAreKept(t *testing.T) {
	store := newSlowStore()
	r := newRows(store)
	s := row("a")
	s.Created = time.Now() // with nanoseconds, and not in UTC
	s.Spec.Env = map[string]string{}
	if err := r.Insert(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := r.ByName(t.Context(), "lab")
		if err != nil || !got.Created.Equal(store.rows["lab"].Created) || got.Created.Nanosecond()%1000 != 0 || got.Spec.Env != nil {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if n := store.reads.Load(); n != 0 {
		t.Errorf("the store was asked %d times", n)
	}
	if err := r.Delete(t.Context(), "1"); err != nil || labelOf(t, r) != "" {
		t.Errorf("deleted: %q, %v", labelOf(t, r), err)
	}
}

func TestRows_AWriteThatFailsIsAskedAfter(t *testing.T) {
	for what, write := range map[string]func(r *rows) error{
		"insert": func(r *rows) error { return r.Insert(t.Context(), row("new")) },
		"update": func(r *rows) error { return r.Update(t.Context(), row("new")) },
		"delete": func(r *rows) error { return r.Delete(t.Context(), "1") },
	} {
		store := newSlowStore()
		r := newRows(store)
		if err := r.Insert(t.Context(), row("old")); err != nil {
			t.Fatal(err)
		}
		store.lie.Store(true)
		if err := write(r); err == nil {
			t.Errorf("%s: no error", what)
		}
		if got, want := labelOf(t, r), store.rows["lab"].Label; got != want {
			t.Errorf("%s: %q, and it is %q", what, got, want)
		}
	}
}

// TestRows_AReadThatAWriteHasOvertakenIsNotKept begins a read of two seconds at every moment around a write of one.
func TestRows_AReadThatAWriteHasOvertakenIsNotKept(t *testing.T) {
	for what, write := range map[string]func(t *testing.T, r *rows){
		"update": func(t *testing.T, r *rows) { _ = r.Update(t.Context(), row("new")) },
		"delete": func(t *testing.T, r *rows) { _ = r.Delete(t.Context(), "1") },
	} {
		for at := time.Duration(0); at < 4*time.Second; at += 250 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				store := newSlowStore()
				store.rows["lab"] = row("old")
				store.read, store.write = 2*time.Second, time.Second
				r := newRows(store)
				var both sync.WaitGroup
				both.Go(func() { <-time.After(at); labelOf(t, r) })
				both.Go(func() { <-time.After(2100 * time.Millisecond); write(t, r) })
				both.Wait()
				if got, want := labelOf(t, r), store.rows["lab"].Label; got != want {
					t.Errorf("%s, read at %s: remembered %q, and it is %q", what, at, got, want)
				}
			})
		}
	}
}

// TestRows_NobodyEverReadsBehindAWriteThatHasEnded has one writer, as a sandbox has, whose writes fail now and then, and
// many readers.
func TestRows_NobodyEverReadsBehindAWriteThatHasEnded(t *testing.T) {
	store := newSlowStore()
	r := newRows(store)
	var written atomic.Int64
	if err := r.Insert(t.Context(), row("0")); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				least := written.Load()
				s, err := r.ByName(t.Context(), "lab")
				if n, convErr := strconv.ParseInt(s.Label, 10, 64); err != nil || convErr != nil || n < least {
					t.Errorf("read %q, %v after %d was written", s.Label, err, least)
					return
				}
			}
		})
	}
	for n := range 5000 {
		store.lie.Store(n%7 == 0)
		_ = r.Update(t.Context(), row(strconv.Itoa(n)))
		written.Store(int64(n))
	}
	close(stop)
	readers.Wait()
}

func TestRows_AreBounded(t *testing.T) {
	r := newRows(newSlowStore())
	for n := range maxRows + 100 {
		s := row("")
		s.ID, s.Name = strconv.Itoa(n), fmt.Sprintf("box-%d", n)
		if err := r.Insert(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.byName) != maxRows || len(r.names) != maxRows {
		t.Errorf("%d and %d are remembered", len(r.byName), len(r.names))
	}
	last := fmt.Sprintf("box-%d", maxRows+99)
	if s, err := r.ByName(t.Context(), last); err != nil || s.Name != last {
		t.Errorf("the last one: %+v, %v", s, err)
	}
}

func BenchmarkAwake_OfOneThatRuns(b *testing.B) {
	store := newSlowStore()
	s := row("")
	s.State, s.Spec.Env = Running, map[string]string{"A": "1", "B": "2"}
	store.rows["lab"] = s
	m := New(Config{Store: store})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := m.Awake(b.Context(), s.Ref()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestClean_ForeignOutputIsOneLineWithoutDirectionMarks(t *testing.T) {
	if got := clean("pulling \u202eevil\u2066\x1b[31m\n" + strings.Repeat("x", 300)); !strings.HasPrefix(got, "pulling evil[31m x") || len(got) != longestOutput+len("…") {
		t.Errorf("got %q", got)
	}
}
