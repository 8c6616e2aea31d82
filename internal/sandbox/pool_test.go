package sandbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// pooling runs f with a Manager that keeps so many sandboxes of the template ready.
func pooling(t *testing.T, size int, f func(t *testing.T, w *world, m *sandbox.Manager)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.templates.change(func(c *templates) { c.pool = size })
		m, end := w.pools(t)
		defer end()
		pass(time.Minute)
		f(t, w, m)
	})
}

// pools starts a Manager that keeps its pools.
func (w *world) pools(t *testing.T) (m *sandbox.Manager, end func()) {
	t.Helper()
	m, endManager := w.run(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.RunPools(ctx, w.templates.list) }()
	return m, sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("RunPools: %v", err)
		}
		endManager()
	})
}

// pooled gives the sandboxes of the pool.
func pooled(t *testing.T, m *sandbox.Manager) []sandbox.Sandbox {
	t.Helper()
	list, _, err := m.List(t.Context(), sandbox.Filter{Pooled: true})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// ready wants so many in the pool, all frozen, and gives them.
func ready(t *testing.T, w *world, m *sandbox.Manager, want int, when string) []sandbox.Sandbox {
	t.Helper()
	list := pooled(t, m)
	if len(list) != want {
		t.Errorf("%s: %d in the pool, want %d", when, len(list), want)
	}
	for _, s := range list {
		if s.State != sandbox.Frozen || !w.engine.Frozen(s.ID) || s.Owner != "" {
			t.Errorf("%s: %s of %q is %s; frozen %v", when, s.Name, s.Owner, s.State, w.engine.Frozen(s.ID))
		}
	}
	return list
}

// isOf reports whether s was made in advance.
func isOf(list []sandbox.Sandbox, s sandbox.Sandbox) bool {
	for _, one := range list {
		if one.ID == s.ID {
			return true
		}
	}
	return false
}

// oneClick asks for a sandbox as a click does.
func oneClick(t *testing.T, m *sandbox.Manager, owner string) sandbox.Sandbox {
	t.Helper()
	s, created, err := m.Create(t.Context(), sandbox.Request{Template: "base", Owner: owner})
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	return s
}

func TestPool_IsMadeFrozenAndHidden(t *testing.T) {
	pooling(t, 2, func(t *testing.T, w *world, m *sandbox.Manager) {
		list := ready(t, w, m, 2, "at first")
		if _, n, err := m.List(t.Context(), sandbox.Filter{}); n != 0 || err != nil {
			t.Errorf("%d are listed, %v", n, err)
		}
		name := list[0].Name
		if s, err := m.Sandbox(t.Context(), name); !fault.Is(err, fault.NotFound) || s.ID != "" {
			t.Errorf("it is found: %+v, %v", s, err)
		}
		for what, do := range map[string]func() (sandbox.Sandbox, error){
			"wait":    func() (sandbox.Sandbox, error) { return m.Wait(t.Context(), list[0].Ref()) },
			"awake":   func() (sandbox.Sandbox, error) { return m.Awake(t.Context(), list[0].Ref()) },
			"start":   func() (sandbox.Sandbox, error) { return m.Start(t.Context(), list[0].Ref()) },
			"stop":    func() (sandbox.Sandbox, error) { return m.Stop(t.Context(), list[0].Ref()) },
			"restart": func() (sandbox.Sandbox, error) { return m.Restart(t.Context(), list[0].Ref()) },
			"delete":  func() (sandbox.Sandbox, error) { return m.Delete(t.Context(), list[0].Ref()) },
			"rename":  func() (sandbox.Sandbox, error) { return m.Rename(t.Context(), list[0].Ref(), "mine") },
			"rest": func() (sandbox.Sandbox, error) {
				return m.SetRest(t.Context(), list[0].Ref(), restOf(catalog.Rest{}))
			},
			"freeze": func() (sandbox.Sandbox, error) { return m.Freeze(t.Context(), list[0].Ref(), nil) },
			"sleep":  func() (sandbox.Sandbox, error) { return m.Sleep(t.Context(), list[0].Ref(), nil) },
		} {
			if s, err := do(); !fault.Is(err, fault.Gone) || s.ID != "" {
				t.Errorf("%s: %+v, %v", what, s, err)
			}
		}
		for _, owner := range []string{"", "ann"} {
			_, _, err := m.Create(t.Context(), sandbox.Request{Name: name, Template: "base", Owner: owner})
			if !fault.Is(err, fault.Conflict) || fault.FieldOf(err) != "name" {
				t.Errorf("create of that name: %v", err)
			}
		}
		ready(t, w, m, 2, "after all that")
	})
}

func TestPool_TellsNobodyOfWhatIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.templates.change(func(c *templates) { c.pool = 2 })
		m, end := w.pools(t)
		defer end()
		events := m.Subscribe()
		pass(time.Minute)
		s := oneClick(t, m, "ann")
		synctest.Wait()
		events.Close()
		var told []sandbox.Event
		for e := range events.C {
			told = append(told, *e)
		}
		if len(told) != 1 || told[0].Sandbox.ID != s.ID || told[0].Sandbox.State != sandbox.Running || told[0].Sandbox.Pooled {
			t.Errorf("told %+v", told)
		}
	})
}

func TestPool_WhatIsNotAsItWouldBeMadeNowIsNotClaimedAndReplaced(t *testing.T) {
	for what, change := range map[string]func(w *world){
		"image":       func(w *world) { w.images.retag(":new") },
		"environment": func(w *world) { w.templates.change(func(c *templates) { c.env = "new" }) },
	} {
		pooling(t, 2, func(t *testing.T, w *world, m *sandbox.Manager) {
			old := ready(t, w, m, 2, "at first")
			change(w)
			s := oneClick(t, m, "ann")
			if isOf(old, s) {
				t.Errorf("%s: the old one was given", what)
			}
			settled(t, m, s.Name, sandbox.Running)
			pass(3 * time.Minute)
			for _, s := range ready(t, w, m, 2, what) {
				if isOf(old, s) {
					t.Errorf("%s: %s is still there", what, s.Name)
				}
			}
			for _, s := range old {
				if _, ok := w.engine.instance(t, s.ID); ok {
					t.Errorf("%s: the engine keeps %s", what, s.Name)
				}
			}
		})
	}
}

func TestPool_ShrinksAndGoesWithItsTemplate(t *testing.T) {
	pooling(t, 3, func(t *testing.T, w *world, m *sandbox.Manager) {
		ready(t, w, m, 3, "at first")
		w.templates.change(func(c *templates) { c.pool = 1 })
		pass(2 * time.Minute)
		ready(t, w, m, 1, "smaller")
		w.templates.change(func(c *templates) { c.broken = true })
		pass(2 * time.Minute)
		ready(t, w, m, 0, "without its template")
		if all, _ := w.engine.Runtime.List(t.Context()); len(all) != 0 {
			t.Errorf("the engine keeps %+v", all)
		}
		if _, err := m.Tombstone(t.Context(), "nobody"); !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
	})
}

func TestPool_OutlivesARestartAsFarAsItFits(t *testing.T) {
	for what, c := range map[string]struct {
		meanwhile func(w *world, id string)
		kept      bool
	}{
		"nothing":        {func(*world, string) {}, true},
		"another image":  {func(w *world, _ string) { w.images.retag(":new") }, false},
		"another setup":  {func(w *world, _ string) { w.templates.change(func(c *templates) { c.env = "new" }) }, false},
		"it ended":       {func(w *world, id string) { w.engine.Exit(id, 137, false) }, false},
		"it was removed": {func(w *world, id string) { w.engine.Destroy(id) }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.templates.change(func(c *templates) { c.pool = 1 })
			m, end := w.pools(t)
			pass(time.Minute)
			old := ready(t, w, m, 1, what)
			end()
			c.meanwhile(w, old[0].ID)
			m, end = w.pools(t)
			defer end()
			pass(5 * time.Minute)
			if now := ready(t, w, m, 1, what); isOf(now, old[0]) != c.kept {
				t.Errorf("after a restart and %s it is kept: %v", what, !c.kept)
			}
			if s := oneClick(t, m, "ann"); isOf(old, s) != c.kept || s.State != sandbox.Running {
				t.Errorf("after a restart and %s, claimed %+v", what, s)
			}
		})
	}
}

func TestPool_WithoutAFreezerItsSandboxesRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.stiff = true
		w.templates.change(func(c *templates) { c.pool = 1 })
		m, end := w.pools(t)
		defer end()
		pass(time.Minute)
		list := pooled(t, m)
		if len(list) != 1 || list[0].State != sandbox.Running {
			t.Fatalf("the pool has %+v", list)
		}
		if s := oneClick(t, m, "ann"); s.ID != list[0].ID {
			t.Errorf("given %+v", s)
		}
	})
}

func TestPool_NothingThatHasEndedIsGivenToAnybody(t *testing.T) {
	for _, stiff := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.stiff = stiff
			w.templates.change(func(c *templates) { c.pool = 1 })
			m, end := w.pools(t)
			defer end()
			pass(90 * time.Second)
			old := pooled(t, m)
			w.engine.restart(old[0].ID)
			pass(3 * time.Minute)
			if now := pooled(t, m); len(now) != 1 || isOf(now, old[0]) {
				t.Errorf("stiff %v: the pool has %+v", stiff, now)
			}
			if _, ok := w.engine.instance(t, old[0].ID); ok {
				t.Errorf("stiff %v: the engine keeps it", stiff)
			}
		})
	}
}

func TestPool_GivesWayToPeople(t *testing.T) {
	pooling(t, 3, func(t *testing.T, w *world, m *sandbox.Manager) {
		ready(t, w, m, 3, "at first")
		for left := 2; left >= 0; left-- {
			if dropped, err := m.DropPooled(t.Context()); err != nil || !dropped {
				t.Fatalf("dropped %v, %v", dropped, err)
			}
			ready(t, w, m, left, "one less")
		}
		if dropped, err := m.DropPooled(t.Context()); err != nil || dropped {
			t.Errorf("of none: %v, %v", dropped, err)
		}
		if all, _ := w.engine.Runtime.List(t.Context()); len(all) != 0 {
			t.Errorf("the engine keeps %+v", all)
		}
		pass(2 * time.Minute)
		ready(t, w, m, 0, "soon after")
		w.full(fault.New(fault.Unavailable, "The host is full."))
		pass(30 * time.Minute)
		ready(t, w, m, 0, "while the host is full")
		if n := w.engine.Calls(sandboxtest.OpCreate); n != 3 {
			t.Errorf("%d were made", n)
		}
		w.full(nil)
		pass(2 * time.Minute)
		ready(t, w, m, 3, "with room again")
	})
}

func TestPool_WaitsLongerAfterEachFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.templates.change(func(c *templates) { c.pool = 1 })
		w.images.set(0, fault.New(fault.Invalid, "Step 3 failed."))
		m, end := w.pools(t)
		defer end()
		pass(3 * time.Hour)
		if n := w.images.calls(); n < 8 || n > 12 {
			t.Errorf("the image was asked for %d times in three hours", n)
		}
		w.images.set(0, nil)
		w.engine.refuse(sandboxtest.OpStart, errors.New("no device"))
		pass(3 * time.Hour)
		if n := w.engine.Calls(sandboxtest.OpCreate); n < 4 || n > 10 {
			t.Errorf("%d were made in three hours", n)
		}
		if all, _ := w.engine.Runtime.List(t.Context()); len(all) != 0 || len(pooled(t, m)) != 0 {
			t.Errorf("failed ones are left over: %+v", all)
		}
		w.engine.refuse(sandboxtest.OpStart, nil)
		pass(31 * time.Minute)
		ready(t, w, m, 1, "when it can be made")
	})
}

func TestPool_IsMadeAnewWhenItsImageWasRebuilt(t *testing.T) {
	pooling(t, 2, func(t *testing.T, w *world, m *sandbox.Manager) {
		old := ready(t, w, m, 2, "at first")
		if err := m.RenewPool(t.Context(), "base"); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		for _, s := range ready(t, w, m, 2, "anew") {
			if isOf(old, s) {
				t.Errorf("%s is still there", s.Name)
			}
		}
	})
}

func TestPool_ALongBuildKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.templates.change(func(c *templates) { c.pool = 1 })
		w.images.set(30*time.Minute, nil)
		m, end := w.run(t)
		defer end()
		synctest.Wait()
		for range 3 {
			begun := time.Now()
			if err := m.FillPools(t.Context(), w.templates.list()); err != nil || time.Since(begun) > 0 {
				t.Fatalf("%v after %s", err, time.Since(begun))
			}
		}
		synctest.Wait() // the image is being built
		w.templates.change(func(c *templates) { c.pool = 0 })
		if err := m.FillPools(t.Context(), w.templates.list()); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Hour)
		ready(t, w, m, 0, "not wanted any more")
		if n := w.engine.Calls(sandboxtest.OpCreate); n != 0 {
			t.Errorf("%d were made", n)
		}
	})
}

// TestRun_ACrashInAPoolLeavesNothingHalf kills the Manager before each thing that filling a pool or a claim does outside.
func TestRun_ACrashInAPoolLeavesNothingHalf(t *testing.T) {
	for _, what := range []string{"fill", "claim", "drop"} {
		for n, struck := 0, "first"; struck != ""; n++ {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.templates.change(func(c *templates) { c.pool = 1 })
				m, end := w.pools(t)
				if what == "fill" {
					w.fate.arm(n, true, errFate)
				}
				pass(30 * time.Second)
				if what != "fill" {
					w.fate.arm(n, true, errFate)
				}
				switch what {
				case "claim":
					_, _, _ = m.Create(t.Context(), sandbox.Request{Template: "base", Owner: "ann"})
				case "drop":
					_, _ = m.DropPooled(t.Context())
				}
				end()
				struck = w.fate.rest()
				m, end = w.pools(t)
				defer end()
				pass(10 * time.Minute)
				whole(t, w, m, what+" killed before "+struck)
			})
			if n > 30 {
				t.Fatalf("%s does not come to an end", what)
			}
		}
	}
}

// whole wants one sandbox in the pool, and all others to have an owner and to agree with the engine.
func whole(t *testing.T, w *world, m *sandbox.Manager, when string) {
	t.Helper()
	list := ready(t, w, m, 1, when)
	people, _, err := m.List(t.Context(), sandbox.Filter{})
	all, listErr := w.engine.Runtime.List(t.Context())
	if err != nil || listErr != nil || len(all) != len(list)+len(people) {
		t.Errorf("%s: %d instances of %d and %d sandboxes, %v, %v", when, len(all), len(list), len(people), err, listErr)
	}
	for _, s := range people {
		if s.Owner != "ann" || s.Pooled {
			t.Errorf("%s: %+v", when, s)
		}
		truly(t, w, m, s, when)
	}
}
