package schedule_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/backup"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/schedule"
	"sandboxd/internal/schedule/scheduletest"
)

const boss = "00000000000000u2" // an admin

// world is all around a Service, in memory. It outlives it, as the real one outlives a crash.
type world struct {
	t     *testing.T
	store *scheduletest.Store
	news  *event.Bus[sandbox.Event]
	*schedule.Service
	end func() // as the end of the process would

	mu      sync.Mutex
	boxes   map[string]sandbox.Sandbox // by name
	backups map[string]backup.Backup
	takes   time.Duration      // a backup
	fails   map[string]string  // why, by the sandbox's name
	once    bool               // each fails once only
	broken  string             // what a test of a restore says
	tests   []string           // names of sandboxes that were made for tests
	deleted []string           // names of sandboxes
	hang    bool               // a test of a restore waits for its end
	kept    func(schedule.Run) // called when a run's row was written; nil for nothing
	n       int
}

// within runs a test in a world whose time is the test's, at noon of 21 November 2026, with a sandbox "lab" of the member's.
func within(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		<-time.After(time.Until(noon))
		w := &world{t: t, news: event.NewBus[sandbox.Event](8), store: scheduletest.NewStore(scheduletest.Owner, boss), boxes: map[string]sandbox.Sandbox{}, backups: map[string]backup.Backup{}, fails: map[string]string{}}
		w.box("lab", scheduletest.Owner)
		w.start()
		defer func() { w.end() }()
		test(w)
	})
}

// rows is the store of a world.
type rows struct {
	*scheduletest.Store
	w *world
}

func (s rows) PutRun(ctx context.Context, r schedule.Run) error {
	err := s.Store.PutRun(ctx, r)
	if s.w.kept != nil {
		s.w.kept(r)
	}
	return err
}

func (w *world) start() {
	w.Service = schedule.New(schedule.Config{
		Store: rows{w.store, w}, Backups: maker{w}, Tester: maker{w}, Sandboxes: boxes{w}, Keep: 7 * 24 * time.Hour, Log: slog.New(slog.DiscardHandler),
		Admin:    func(_ context.Context, user string) (bool, error) { return user == boss, nil },
		Template: func(name string) bool { return name == "base" }, Repository: func(name string) bool { return name == "nas" },
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	w.end = func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	}
	synctest.Wait()
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (w *world) box(name, owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.boxes[name] = sandbox.Sandbox{ID: name + "-id", Name: name, Owner: owner, State: sandbox.Running, Spec: sandbox.Spec{Template: "base"}}
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// nightly is a schedule of lab at 3:30 in UTC.
func nightly(change func(*schedule.Schedule)) schedule.Schedule {
	s := schedule.Schedule{Name: "nightly", Owner: scheduletest.Owner, Cron: "30 3 * * *", Target: schedule.Target{Kind: schedule.One, SandboxID: "lab-id"},
		Keep: schedule.Keep{Last: 3}, Enabled: true}
	if change != nil {
		change(&s)
	}
	return s
}

func (w *world) create(s schedule.Schedule) schedule.Schedule {
	w.t.Helper()
	made, err := w.Create(w.t.Context(), s)
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
	return made
}

// wantRuns checks the runs of a schedule, the newest first: "done backup 22 03:30 +1 lab: ok".
func (w *world) wantRuns(what, id string, want ...string) {
	w.t.Helper()
	runs, err := w.Runs(w.t.Context(), id, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, r := range runs {
		line := string(r.State) + " " + string(r.Work)
		if !r.Due.IsZero() {
			line += r.Due.Format(" 02 15:04")
		}
		if r.Missed > 0 {
			line += fmt.Sprint(" +", r.Missed)
		}
		if r.Problem != "" {
			line += " " + r.Problem
		}
		for _, i := range r.Items {
			switch {
			case i.Problem != "":
				line += fmt.Sprintf(" %s: %s (%d)", i.Sandbox, i.Problem, i.Tries)
			case !i.Ended.IsZero():
				line += " " + i.Sandbox + ": ok"
			}
		}
		got = append(got, line)
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// wantTroubles checks what is told to be wrong: "failing lab-id The disk is full.".
func (w *world) wantTroubles(what string, want ...string) {
	w.t.Helper()
	var got []string
	for _, t := range w.Troubles() {
		got = append(got, strings.TrimSpace(string(t.Sort)+" "+t.SandboxID+" "+t.Text))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: troubles %q, want %q", what, got, want)
	}
}

// count counts the backups that are ready.
func (w *world) count() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.backups {
		if b.State == backup.Ready {
			n++
		}
	}
	return n
}

// boxes stand for the Manager.
type boxes struct{ *world }

func (b boxes) List(_ context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := slices.Collect(maps.Values(b.boxes))
	list = slices.DeleteFunc(list, func(box sandbox.Sandbox) bool {
		return f.Owner != "" && box.Owner != f.Owner || !strings.Contains(box.Name, f.Query)
	})
	return list, len(list), nil
}

func (b boxes) Delete(_ context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deleted = append(b.deleted, ref.Name())
	delete(b.boxes, ref.Name())
	b.news.Publish(sandbox.Event{Deleted: true})
	return sandbox.Sandbox{}, nil
}

func (b boxes) Subscribe() *event.Subscription[sandbox.Event] { return b.news.Subscribe() }

// maker is backup.Service for tests.
type maker struct{ *world }

func (m maker) Begin(box sandbox.Sandbox, o backup.Options) (backup.Backup, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.backups {
		if b.SandboxID == box.ID && b.State == backup.Making {
			return b, false, nil
		}
	}
	m.n++
	b := backup.Backup{ID: fmt.Sprintf("%016x", m.n), SandboxID: box.ID, Sandbox: box.Name, Schedule: o.Schedule, Repository: o.Repository, Root: o.Root, Created: time.Now().UTC(), State: backup.Making}
	m.backups[b.ID] = b
	return b, true, nil
}

func (m maker) Wait(ctx context.Context, id string) (backup.Backup, error) {
	select {
	case <-time.After(m.takes):
	case <-ctx.Done():
		return backup.Backup{}, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.backups[id]
	if _, there := m.boxes[b.Sandbox]; !there {
		delete(m.backups, id)
		return b, fault.New(fault.Gone, "It was deleted.")
	}
	if problem := m.fails[b.Sandbox]; problem != "" {
		if m.once {
			delete(m.fails, b.Sandbox)
		}
		b.State = backup.Failed
		m.backups[id] = b
		return b, fault.New(fault.Unavailable, "%s", problem)
	}
	b.State = backup.Ready
	m.backups[id] = b
	return b, nil
}

func (m maker) List(wanted func(backup.Backup) bool) []backup.Backup {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []backup.Backup
	for _, b := range m.backups {
		if wanted(b) {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b backup.Backup) int { return b.Created.Compare(a.Created) })
	return list
}

func (m maker) Delete(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.backups, id)
	return nil
}

func (m maker) SetExpires(id string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.backups[id]
	b.Expires = at
	m.backups[id] = b
}

func (m maker) TestRestore(ctx context.Context, id, name string) error {
	m.box(name, m.boxes["lab"].Owner)
	m.mu.Lock()
	box := m.boxes[name]
	box.Spec.Env = map[string]string{"SANDBOXD_RESTORE_TEST": name} // as backup.Tester does
	m.boxes[name] = box
	m.tests = append(m.tests, name)
	broken, hang := m.broken, m.hang
	m.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err() // and the sandbox is left, as after a crash
	}
	m.mu.Lock()
	delete(m.boxes, name)
	m.mu.Unlock()
	if broken != "" {
		return fault.New(fault.Internal, "%s", broken)
	}
	return nil
}
