package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
	"sandboxd/internal/sandbox"
)

// talkers are sandboxes whose guests tell their lines.
type talkers struct {
	bus *event.Bus[sandbox.Event]

	mu    sync.Mutex
	rows  map[string]sandbox.Sandbox
	lines map[string][]logs.Line
	asked []string      // "<sandbox> <lines that it had>"
	news  chan struct{} // closed when there are lines or connections are lost
	lost  int           // connections that are to be lost
	old   map[string]bool
}

func newTalkers() *talkers {
	return &talkers{bus: event.NewBus[sandbox.Event](64), rows: map[string]sandbox.Sandbox{}, lines: map[string][]logs.Line{}, news: make(chan struct{}), old: map[string]bool{}}
}

// List implements logs.Sandboxes.
func (f *talkers) List(context.Context, sandbox.Filter) (out []sandbox.Sandbox, _ int, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.rows {
		out = append(out, s)
	}
	return out, len(out), nil
}

// Subscribe implements logs.Sandboxes.
func (f *talkers) Subscribe() *event.Subscription[sandbox.Event] { return f.bus.Subscribe() }

func (f *talkers) set(id string, state sandbox.State, deleted bool) {
	f.mu.Lock()
	s := sandbox.Sandbox{ID: id, Name: id, State: state}
	f.rows[id] = s
	if deleted {
		delete(f.rows, id)
	}
	f.mu.Unlock()
	f.bus.Publish(sandbox.Event{Sandbox: s, Deleted: deleted})
}

// say adds lines of a sandbox.
func (f *talkers) say(id string, texts ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range texts {
		n := len(f.lines[id])
		f.lines[id] = append(f.lines[id], logs.Line{Service: "web", Text: text, Time: noon.Add(time.Duration(n) * time.Millisecond)})
	}
	f.tell()
}

func (f *talkers) tell() {
	close(f.news)
	f.news = make(chan struct{})
}

// lose ends the connections.
func (f *talkers) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost++
	f.tell()
}

// follow is a logs.Follow.
func (f *talkers) follow(ctx context.Context, id string, after time.Time, emit func([]logs.Line) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.old[id] {
		return fault.New(fault.NotFound, "too old")
	}
	next := 0
	for next < len(f.lines[id]) && !f.lines[id][next].Time.After(after) {
		next++
	}
	f.asked = append(f.asked, fmt.Sprint(id, " ", next))
	for lost := f.lost; ctx.Err() == nil; {
		if f.lost != lost {
			return fault.New(fault.Unavailable, "lost")
		}
		lines, news := slices.Clone(f.lines[id][next:]), f.news
		next = len(f.lines[id])
		f.mu.Unlock()
		if len(lines) > 0 {
			if err := emit(lines); err != nil {
				f.mu.Lock()
				return err
			}
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
		f.mu.Lock()
	}
	return ctx.Err()
}

// collected is a Collector that runs over a file.
type collected struct {
	t      *testing.T
	keeper *logs.Keeper
	end    func()
}

func collectFrom(t *testing.T, path string, f *talkers) *collected {
	t.Helper()
	store := OpenLogs(t.Context(), path, slog.New(slog.DiscardHandler))
	c := &collected{t: t, keeper: logs.New(logs.Config{Store: store})}
	ctx, cancel := context.WithCancel(context.Background())
	under, last := context.WithCancel(context.Background())
	var running, keeping sync.WaitGroup
	keeping.Go(func() { _ = c.keeper.Run(under) })
	running.Go(func() { _ = logs.NewCollector(c.keeper, f, f.follow, slog.New(slog.DiscardHandler)).Run(ctx) })
	c.end = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		last()
		keeping.Wait()
		must(t, store.Close())
	})
	t.Cleanup(c.end)
	return c
}

// has waits until the lines of a sandbox are these.
func (c *collected) has(id string, want ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := c.keeper.Search(ctx, logs.Query{Scope: logs.Only(id)})
		must(c.t, err)
		var got []string
		for _, l := range slices.Backward(r.Lines) {
			got = append(got, l.Text)
		}
		diff := cmp.Diff(want, got)
		if diff == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.t.Fatal(diff)
		}
	}
}

func TestCollector_ReadsEachLineOnceOverLossesAndRestarts(t *testing.T) {
	path, f := filepath.Join(t.TempDir(), "logs.db"), newTalkers()
	f.set("a", sandbox.Running, false)
	f.set("asleep", sandbox.Asleep, false)
	f.say("a", "1", "2")
	c := collectFrom(t, path, f)
	c.has("a", "1", "2")
	f.say("a", "3")
	c.has("a", "1", "2", "3")
	f.lose()
	f.say("a", "4")
	c.has("a", "1", "2", "3", "4")
	c.end()
	f.say("a", "5") // while nobody reads
	c = collectFrom(t, path, f)
	c.has("a", "1", "2", "3", "4", "5")
	f.set("a", sandbox.Stopping, false)
	f.set("a", sandbox.Starting, false)
	f.say("a", "6")
	f.set("a", sandbox.Running, false)
	c.has("a", "1", "2", "3", "4", "5", "6")
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.asked, func(s string) bool { return s[0] != 'a' || s[:2] == "as" }) {
		t.Errorf("asked for %q", f.asked)
	}
}

// collectTwo collects from two sandboxes with a line each, a and b.
func collectTwo(t *testing.T) (path string, f *talkers, c *collected) {
	t.Helper()
	path, f = filepath.Join(t.TempDir(), "logs.db"), newTalkers()
	for _, id := range []string{"a", "b"} {
		f.set(id, sandbox.Running, false)
		f.say(id, "1")
	}
	c = collectFrom(t, path, f)
	c.has("a", "1")
	c.has("b", "1")
	return path, f, c
}

func TestCollector_DeletesTheLinesOfDeletedSandboxes(t *testing.T) {
	path, f, c := collectTwo(t)
	f.set("a", sandbox.Deleting, true)
	c.has("a")
	c.has("b", "1")
	c.end()
	f.mu.Lock()
	delete(f.rows, "b") // while sandboxd does not run
	f.mu.Unlock()
	c = collectFrom(t, path, f)
	c.has("b")
}

func TestCollector_KeepsTheLinesThatAreToBeKept(t *testing.T) {
	path, f, c := collectTwo(t)
	must(t, c.keeper.Keep(t.Context(), logs.Kept{Sandbox: "a", Name: "lab", Owner: "u", Since: noon}))
	f.set("a", sandbox.Deleting, true)
	f.set("b", sandbox.Deleting, true)
	c.has("b")
	c.end()
	f.mu.Lock()
	clear(f.rows)
	f.mu.Unlock()
	c = collectFrom(t, path, f)
	c.has("a", "1")
	kept, err := c.keeper.Kept(t.Context())
	must(t, err)
	if diff := cmp.Diff([]logs.Kept{{Sandbox: "a", Name: "lab", Owner: "u", Since: noon}}, kept); diff != "" {
		t.Error(diff)
	}
	must(t, c.keeper.Delete(t.Context(), "a"))
	c.has("a")
	if kept, err := c.keeper.Kept(t.Context()); err != nil || len(kept) != 0 {
		t.Errorf("%v %v", kept, err)
	}
}

// TestCollector_ReadsOnAfterNonsense has a guest that tells a time far ahead, and lines of sandboxd's own that are the last ones.
func TestCollector_ReadsOnAfterNonsense(t *testing.T) {
	path, f := filepath.Join(t.TempDir(), "logs.db"), newTalkers()
	f.set("a", sandbox.Running, false)
	f.say("a", "1")
	tell := func(text string, at time.Time) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.lines["a"] = append(f.lines["a"][:1:1], logs.Line{Service: "web", Text: text, Time: at})
		f.tell()
	}
	tell("ahead", time.UnixMicro(math.MaxInt64))
	c := collectFrom(t, path, f)
	c.has("a", "1", "ahead")
	f.lose()
	tell("2", time.Now().Add(time.Hour))
	want := []string{"1", "ahead", "2"}
	c.has("a", want...)
	for range 60 { // more than are looked at together
		c.keeper.Append(logs.Line{Sandbox: "a", Service: logs.Own, Text: "note"})
		want = append(want, "note")
	}
	c.end()
	tell("3", time.Now().Add(2*time.Hour))
	c = collectFrom(t, path, f)
	c.has("a", append(want, "3")...)
}

func TestCollector_LeavesAGuestAloneThatIsTooOld(t *testing.T) {
	path, f := filepath.Join(t.TempDir(), "logs.db"), newTalkers()
	f.old["a"] = true
	f.set("a", sandbox.Running, false)
	f.set("b", sandbox.Running, false)
	f.say("a", "1")
	f.say("b", "1")
	c := collectFrom(t, path, f)
	c.has("b", "1")
	c.has("a")
}
