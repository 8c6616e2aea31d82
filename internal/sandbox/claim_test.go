package sandbox_test

import (
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

func TestCreate_ClaimsAPooledOneAsIfItWasMadeForThis(t *testing.T) {
	pooling(t, 1, func(t *testing.T, w *world, m *sandbox.Manager) {
		list := ready(t, w, m, 1, "at first")
		pass(time.Hour + 30*time.Second) // between two looks at everything
		w.engine.Delay(sandboxtest.OpThaw, 10*time.Millisecond)
		calls := func() int {
			return w.engine.Calls(sandboxtest.OpCreate) + w.engine.Calls(sandboxtest.OpList) + w.engine.Calls(sandboxtest.OpStart)
		}
		before, begun := calls(), time.Now()
		rest := catalog.Rest{StopAfter: catalog.Never}
		s, created, err := m.Create(t.Context(), sandbox.Request{Template: "base", Owner: "ann", Label: "Mine", Rest: rest})
		if err != nil || !created || !isOf(list, s) || s.Name != list[0].Name || s.State != sandbox.Running {
			t.Fatalf("%+v, created %v, %v", s, created, err)
		}
		if s.Owner != "ann" || s.Label != "Mine" || s.Rest != rest || s.Pooled || !s.Created.Equal(begun.UTC().Truncate(time.Microsecond)) {
			t.Errorf("it is %+v", s)
		}
		if n := calls() - before; n != 0 || time.Since(begun) > 10*time.Millisecond {
			t.Errorf("%d engine calls more than the thaw, %s", n, time.Since(begun))
		}
		if got, err := m.Awake(t.Context(), ref(t, m, s.Name)); err != nil || got.ID != s.ID || w.engine.Frozen(s.ID) {
			t.Errorf("used: %+v, %v", got, err)
		}
		pass(time.Minute)
		if again := ready(t, w, m, 1, "refilled"); isOf(again, s) {
			t.Error("it is in the pool again")
		}
		w.templates.change(func(c *templates) { c.pool = 0 })
		pass(5 * time.Minute)
		ready(t, w, m, 0, "without a pool")
		settled(t, m, s.Name, sandbox.Running)
	})
}

func TestCreate_ThatAsksForMoreIsMadeForIt(t *testing.T) {
	pooling(t, 2, func(t *testing.T, w *world, m *sandbox.Manager) {
		list := ready(t, w, m, 2, "at first")
		for what, r := range map[string]sandbox.Request{
			"name":   {Template: "base", Name: "mine"},
			"limits": {Template: "base", Limits: sandbox.Limits{CPUs: 1}},
			"env":    {Template: "base", Env: map[string]string{"A": "1"}},
			"image":  {Image: "debian"},
		} {
			s, created, err := m.Create(t.Context(), r)
			if err != nil || !created || isOf(list, s) {
				t.Errorf("%s: %+v, created %v, %v", what, s, created, err)
			}
			settled(t, m, s.Name, sandbox.Running)
		}
		ready(t, w, m, 2, "afterwards")
	})
}

func TestCreate_TwoAtOnceNeverClaimTheSame(t *testing.T) {
	pooling(t, 5, func(t *testing.T, w *world, m *sandbox.Manager) {
		list := ready(t, w, m, 5, "at first")
		got := make([]sandbox.Sandbox, 12)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() { got[i] = oneClick(t, m, "ann") })
		}
		all.Wait()
		seen, claimed := map[string]bool{}, 0
		for _, s := range got {
			if seen[s.ID] || seen[s.Name] {
				t.Errorf("%s was given twice", s.Name)
			}
			seen[s.ID], seen[s.Name] = true, true
			if isOf(list, s) {
				claimed++
			}
			settled(t, m, s.Name, sandbox.Running)
		}
		if claimed != 5 {
			t.Errorf("%d were claimed", claimed)
		}
		pass(time.Minute)
		ready(t, w, m, 5, "refilled")
		if _, n, _ := m.List(t.Context(), sandbox.Filter{Owner: "ann"}); n != 12 {
			t.Errorf("ann has %d", n)
		}
	})
}

func TestCreate_AClaimThatCannotBeThawedIsMadeAnew(t *testing.T) {
	for what, bend := range map[string]func(w *world, one sandbox.Sandbox){
		"refused": func(w *world, _ sandbox.Sandbox) {
			w.engine.Fail(sandboxtest.OpThaw, fault.New(fault.Unavailable, "Away."))
		},
		"hung":   func(w *world, _ sandbox.Sandbox) { w.engine.Delay(sandboxtest.OpThaw, time.Hour) },
		"ended":  func(w *world, one sandbox.Sandbox) { w.engine.deafen(); w.engine.Exit(one.ID, 1, false) },
		"silent": func(w *world, one sandbox.Sandbox) { w.guests.silence(one.Name, true) },
		"store":  func(w *world, _ sandbox.Sandbox) { w.store.FailNextOf("Update", errors.New("full")) },
	} {
		pooling(t, 1, func(t *testing.T, w *world, m *sandbox.Manager) {
			old := ready(t, w, m, 1, what)
			bend(w, old[0])
			begun := time.Now()
			s := oneClick(t, m, "ann")
			if isOf(old, s) || time.Since(begun) > 6*time.Second {
				t.Errorf("%s: claimed %v after %s", what, isOf(old, s), time.Since(begun))
			}
			settled(t, m, s.Name, sandbox.Running)
			w.engine.Delay(sandboxtest.OpThaw, 0)
			pass(5 * time.Minute)
			if isOf(ready(t, w, m, 1, what), old[0]) {
				t.Errorf("%s: it is offered again", what)
			}
			if _, ok := w.engine.instance(t, old[0].ID); ok {
				t.Errorf("%s: the engine keeps it", what)
			}
		})
	}
}

func TestCreate_AClaimThatTheEngineDoesNotAnswerGivesOneSandboxAtMost(t *testing.T) {
	pooling(t, 1, func(t *testing.T, w *world, m *sandbox.Manager) {
		one := ready(t, w, m, 1, "at first")[0]
		w.engine.Delay(sandboxtest.OpList, 30*time.Second) // in its turn after the thaw from outside, which is not the claim's
		w.engine.Delay(sandboxtest.OpPing, time.Hour)
		if err := w.engine.Thaw(t.Context(), one.ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, _, err := m.Create(t.Context(), sandbox.Request{Template: "base", Owner: "ann"}); !errors.Is(err, sandbox.ErrNoAnswer) {
			t.Errorf("heard %v", err)
		}
		pass(5 * time.Minute)
		if list, _, err := m.List(t.Context(), sandbox.Filter{Owner: "ann"}); err != nil || len(list) != 1 || list[0].ID != one.ID {
			t.Errorf("ann has %+v, %v", list, err)
		}
	})
}

func TestPool_NeverTakesBackWhatWasClaimed(t *testing.T) {
	pooling(t, 1, func(t *testing.T, w *world, m *sandbox.Manager) {
		w.engine.Delay(sandboxtest.OpThaw, 2*time.Second)
		var s sandbox.Sandbox
		done := make(chan struct{})
		go func() {
			defer close(done)
			s = oneClick(t, m, "ann")
		}()
		synctest.Wait() // the claim is under way
		w.templates.change(func(c *templates) { c.pool = 0 })
		if err := m.FillPools(t.Context(), w.templates.list()); err != nil {
			t.Fatal(err)
		}
		if dropped, err := m.DropPooled(t.Context()); dropped || err != nil {
			t.Errorf("dropped %v, %v", dropped, err)
		}
		if err := m.RenewPool(t.Context(), "base"); err != nil {
			t.Error(err)
		}
		<-done
		pass(10 * time.Minute)
		if got := settled(t, m, s.Name, sandbox.Running); got.Owner != "ann" {
			t.Errorf("it is %+v", got)
		}
	})
}

func TestCreate_OneThatIsBeingClaimedIsNobodyElses(t *testing.T) {
	pooling(t, 1, func(t *testing.T, w *world, m *sandbox.Manager) {
		list := ready(t, w, m, 1, "at first")
		got := make([]sandbox.Sandbox, 2)
		var both sync.WaitGroup
		both.Go(func() { got[0] = oneClick(t, m, "ann") })
		synctest.Wait() // it thaws, and its row does not tell yet
		if err := m.FillPools(t.Context(), w.templates.list()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		both.Go(func() { got[1] = oneClick(t, m, "bob") })
		both.Wait()
		for i, owner := range []string{"ann", "bob"} {
			s := settled(t, m, got[i].Name, sandbox.Running)
			if s.Owner != owner || isOf(list, s) != (i == 0) {
				t.Errorf("%s was given %+v", owner, s)
			}
		}
	})
}
