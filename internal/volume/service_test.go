package volume_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/volume"
	"sandboxd/internal/volume/volumetest"
)

// world is an engine for volumes, and their guests.
type world struct {
	mu       sync.Mutex
	made     map[string]bool
	used     map[string]bool   // a container has it
	serving  map[string]string // target by id
	starts   int
	measured int
}

func (w *world) MakeVolume(_ context.Context, id string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made[id] = true
	return "/engine/" + id, nil
}

func (w *world) RemoveVolume(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.used[id] {
		return fault.New(fault.Conflict, "in use")
	}
	delete(w.made, id)
	return nil
}

func (w *world) ServeVolume(_ context.Context, id, target, _ string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serving[id] = target
	w.starts++
	return nil
}

func (w *world) EndVolume(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.serving, id)
	return nil
}

func (w *world) SweepVolumes(context.Context) error           { return nil }
func (w *world) Expect(string, sandbox.Setup) (string, error) { return "/link", nil }
func (w *world) Ready(context.Context, string) error          { return nil }
func (w *world) Forget(string) error                          { return nil }
func (w *world) state(f func())                               { w.mu.Lock(); defer w.mu.Unlock(); f() }

func (w *world) Connected(id string) (is bool) {
	w.state(func() {
		for one := range w.serving {
			is = is || volume.LinkID(one) == id
		}
	})
	return is
}

func open(t *testing.T, store volume.Store) (*volume.Service, *world) {
	t.Helper()
	w := &world{made: map[string]bool{}, used: map[string]bool{}, serving: map[string]string{}}
	s, err := volume.Open(t.Context(), volume.Config{
		Store: store, Engine: w, Guests: w, Template: func(name string) bool { return name == "base" },
		Sizes: func() map[string]int64 { return nil }, Measure: func() { w.state(func() { w.measured++ }) }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

// live runs a Service until the test ends, within a bubble.
func live(t *testing.T, s *volume.Service) {
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() { end(); <-ended })
	synctest.Wait()
}

func create(t *testing.T, s *volume.Service, v volume.Volume) volume.Volume {
	t.Helper()
	v, err := s.Create(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestShared_IsThereFromTheFirstStartAndStaysAsItIs(t *testing.T) {
	store := &volumetest.Store{}
	first, _ := open(t, store)
	again, _ := open(t, store)
	a, err := first.Volume(volume.Shared)
	b, err2 := again.Volume(volume.Shared)
	if err := errors.Join(err, err2); err != nil || a.ID != b.ID || a.Target() != "/shared" || !a.Grants.All || a.Mode != volume.ReadOnly {
		t.Fatalf("%+v, %+v, %v", a, b, err)
	}
	for what, change := range map[string]func(*volume.Volume){
		"mode": func(v *volume.Volume) { v.Mode = volume.ReadWrite }, "name": func(v *volume.Volume) { v.Name = "other" },
		"grants": func(v *volume.Volume) { v.Grants = volume.Grants{} },
	} {
		if _, err := again.Change(t.Context(), volume.Shared, change); !fault.Is(err, fault.Conflict) {
			t.Errorf("another %s gives %v", what, err)
		}
	}
	if _, err := again.Delete(t.Context(), volume.Shared); !fault.Is(err, fault.Conflict) {
		t.Errorf("deleting it gives %v", err)
	}
}

func TestMounts_AreThoseOfAllOfTheTemplateAndOfTheSandboxItself(t *testing.T) {
	s, _ := open(t, &volumetest.Store{})
	create(t, s, volume.Volume{Name: "zoo", Mode: volume.ReadWrite, Grants: volume.Grants{All: true}})
	create(t, s, volume.Volume{Name: "tpl", Mode: volume.ReadOnly, Grants: volume.Grants{Templates: []string{"base"}}})
	create(t, s, volume.Volume{Name: "own", Mode: volume.ReadOnly, Grants: volume.Grants{Sandboxes: []string{"1"}}})
	for want, box := range map[string]sandbox.Sandbox{
		"/shared=:ro,/volumes/own=:ro,/volumes/tpl=:ro,/volumes/zoo=:rw": {ID: "1", Spec: sandbox.Spec{Template: "base"}},
		"/shared=:ro,/volumes/zoo=:rw":                                   {ID: "2", Name: "1"},
	} {
		list := s.Mounts(box)
		for i := range list {
			list[i].Volume = ""
		}
		if got := sandbox.MountText(list); got != want {
			t.Errorf("%+v gets %s, want %s", box, got, want)
		}
	}
	for _, v := range []volume.Volume{{Name: "x", Mode: volume.ReadOnly, Grants: volume.Grants{Templates: []string{"none"}}}, {Name: "own", Mode: volume.ReadOnly},
		{Name: "../etc", Mode: volume.ReadOnly}, {Name: "x"}, {Name: "new", Mode: volume.ReadOnly}} {
		if _, err := s.Create(t.Context(), v); !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Conflict) {
			t.Errorf("%+v gives %v", v, err)
		}
	}
}

func TestDelete_TheContentGoesWhenNoContainerHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &volumetest.Store{}
		s, w := open(t, store)
		v := create(t, s, volume.Volume{Name: "data", Mode: volume.ReadWrite})
		w.state(func() { w.used[v.ID] = true })
		live(t, s)
		if _, err := s.Delete(t.Context(), "data"); err != nil {
			t.Fatal(err)
		}
		next := create(t, s, volume.Volume{Name: "data", Mode: volume.ReadOnly}) // its name is free at once
		time.Sleep(time.Hour)
		w.state(func() {
			if !w.made[v.ID] || !w.made[next.ID] {
				t.Error("content that is used was removed")
			}
			w.used[v.ID] = false
		})
		again, _ := open(t, store) // also by a later process
		live(t, again)
		time.Sleep(time.Hour)
		rows, err := store.Volumes(t.Context())
		w.state(func() {
			if w.made[v.ID] || !w.made[next.ID] || len(rows) != 2 || err != nil {
				t.Errorf("made %v, rows %+v, %v", w.made, rows, err)
			}
		})
	})
}

var admin = auth.Principal{User: auth.User{Role: auth.Admin}}

// controlOf is the way to the files of s's volumes.
func controlOf(s *volume.Service) *access.Control {
	return access.New(s.Files(), func(context.Context, string) (access.Guest, error) { return nil, nil }, s.Files())
}

func TestFiles_AreForAdmins(t *testing.T) {
	s, _ := open(t, &volumetest.Store{})
	v := create(t, s, volume.Volume{Name: "data", Mode: volume.ReadWrite})
	for _, who := range []auth.Principal{{User: auth.User{Role: auth.Member}}, {User: admin.User, Token: "t", SandboxID: v.ID}} {
		for _, name := range []string{"data", "none"} {
			if _, err := controlOf(s).Resolve(t.Context(), name, volume.By(who)); !fault.Is(err, fault.Forbidden) {
				t.Errorf("%+v gets %v", who, err)
			}
		}
	}
	if _, err := controlOf(s).Resolve(t.Context(), "none", volume.By(admin)); !fault.Is(err, fault.NotFound) {
		t.Errorf("a missing one gives %v", err)
	}
}

func TestFiles_AGuestServesThemWhileTheyAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := open(t, &volumetest.Store{})
		v := create(t, s, volume.Volume{Name: "data", Mode: volume.ReadWrite})
		live(t, s)
		h, err := controlOf(s).Resolve(t.Context(), "data", volume.By(admin))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Look(t.Context()); !errors.Is(err, access.ErrAsleep) {
			t.Errorf("a look gives %v, want that it starts nothing", err)
		}
		var all sync.WaitGroup
		sessions := make(chan *access.Session, 8)
		for range cap(sessions) {
			all.Go(func() {
				one, err := h.Open(t.Context(), idle.Use{Kind: idle.Files})
				if err != nil {
					t.Error(err)
					return
				}
				sessions <- one
			})
		}
		all.Wait()
		time.Sleep(time.Hour)
		w.state(func() {
			if w.starts != 1 || w.serving[v.ID] != "/volumes/data" {
				t.Errorf("%d starts, serving %v", w.starts, w.serving)
			}
		})
		close(sessions)
		for one := range sessions {
			one.Release()
			one.Release()
		}
		time.Sleep(10 * time.Minute)
		w.state(func() {
			if len(w.serving) != 0 || w.measured == 0 {
				t.Errorf("after it was not used any more: serving %v, measured %d times", w.serving, w.measured)
			}
		})
		if one, err := h.Open(t.Context(), idle.Use{Kind: idle.Files}); err != nil {
			t.Error(err)
		} else {
			defer one.Release()
		}
		if _, err := s.Delete(t.Context(), "data"); err != nil {
			t.Fatal(err)
		}
		w.state(func() {
			if len(w.serving) != 0 {
				t.Errorf("a deleted one is served: %v", w.serving)
			}
		})
		if _, err := h.Open(t.Context(), idle.Use{Kind: idle.Files}); !fault.Is(err, fault.Gone) {
			t.Errorf("a deleted one gives %v", err)
		}
	})
}
