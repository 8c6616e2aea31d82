package sandbox_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// play runs f with a Manager in a world under fake time.
func play(t *testing.T, f func(t *testing.T, w *world, m *sandbox.Manager)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m, end := w.run(t)
		defer end()
		synctest.Wait()
		f(t, w, m)
	})
}

func create(t *testing.T, m *sandbox.Manager, r sandbox.Request) sandbox.Sandbox {
	t.Helper()
	if r.Template == "" && r.Image == "" {
		r.Template = "base"
	}
	s, _, err := m.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ref names the sandbox that has a name now; one that there is not when none has it.
func ref(t *testing.T, m *sandbox.Manager, name string) sandbox.Ref {
	t.Helper()
	s, err := m.Sandbox(t.Context(), name)
	if err != nil {
		s = sandbox.Sandbox{ID: "none", Name: name}
	}
	return s.Ref()
}

// settled waits for name and wants it in a state.
func settled(t *testing.T, m *sandbox.Manager, name string, want sandbox.State) sandbox.Sandbox {
	t.Helper()
	s, err := m.Wait(t.Context(), ref(t, m, name))
	if err != nil {
		t.Fatal(err)
	}
	if s.State != want {
		t.Fatalf("%s is %s (%s), want %s", name, s.State, s.Problem, want)
	}
	return s
}

func TestCreate_IsAcceptedAtOnceAndRunsWhenTheGuestSaysSo(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		w.images.set(time.Minute, nil)
		start := time.Now()
		s := create(t, m, sandbox.Request{Name: "lab", Label: "ML Experiments", Owner: "ann", Env: map[string]string{"BOTH": "mine"}})
		if s.State != sandbox.Creating || time.Since(start) > 100*time.Millisecond {
			t.Errorf("accepted as %s after %s", s.State, time.Since(start))
		}
		synctest.Wait()
		if p := m.Progress(s.ID); p.Phase != sandbox.PhaseImage || p.Fraction != 0.25 || p.Detail != "Get:1 [31mpackages" {
			t.Errorf("progress %+v", p)
		}
		s = settled(t, m, "lab", sandbox.Running)
		if i, _ := w.engine.instance(t, s.ID); !i.Running || i.Image != "image-of-base" {
			t.Errorf("the engine has %+v", i)
		}
		setup, _ := w.guests.setup(s.ID)
		if setup.Env["BOTH"] != "mine" || setup.Env["FROM"] != "template" || len(setup.Services) != 1 {
			t.Errorf("the guest is told %+v", setup)
		}
		if p := m.Progress(s.ID); p != (sandbox.Progress{}) {
			t.Errorf("progress is left over: %+v", p)
		}
	})
}

func TestCreate_TheLastLineOfABurstIsReported(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		w.images.set(time.Minute, nil)
		w.images.said = []string{"Step 3/4 : COPY . .", " ---> 1234", "Step 4/4 : RUN sleep 60", " ---> Running in 5678"}
		s := create(t, m, sandbox.Request{Name: "lab"})
		changes := m.Subscribe()
		defer changes.Close()
		pass(time.Second) // the build says nothing more
		if p := m.Progress(s.ID); p.Fraction != 0.5 || p.Detail != "Step 4/4 : RUN sleep 60" {
			t.Errorf("progress %+v", p)
		}
		if n := len(changes.C); n == 0 || n > 3 {
			t.Errorf("%d changes are told of a burst", n)
		}
		settled(t, m, "lab", sandbox.Running)
	})
}

func TestCreate_TheSameSpecGivesTheSameSandboxAnotherIsAConflict(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		r := sandbox.Request{Name: "lab", Template: "base", Owner: "ann"}
		first := create(t, m, r)
		settled(t, m, "lab", sandbox.Running)
		again, created, err := m.Create(t.Context(), r)
		if err != nil || created || again.ID != first.ID || again.State != sandbox.Running {
			t.Errorf("again: %+v created %v, %v", again, created, err)
		}
		for what, other := range map[string]sandbox.Request{
			"image": {Name: "lab", Image: "debian", Owner: "ann"},
			"owner": {Name: "lab", Template: "base", Owner: "bob"},
			"size":  {Name: "lab", Template: "base", Owner: "ann", Limits: sandbox.Limits{CPUs: 1}},
			"env":   {Name: "lab", Template: "base", Owner: "ann", Env: map[string]string{"A": "1"}},
		} {
			if _, _, err := m.Create(t.Context(), other); !fault.Is(err, fault.Conflict) || fault.FieldOf(err) != "name" {
				t.Errorf("another %s: %v", what, err)
			}
		}
	})
}

func TestCreate_OfANameUnderWayOrOnItsWayOutIsNeitherLostNorMixedUp(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		w.images.set(time.Hour, nil)
		first := create(t, m, sandbox.Request{Name: "lab"})
		start := time.Now()
		again, created, err := m.Create(t.Context(), sandbox.Request{Name: "lab", Template: "base"})
		if err != nil || created || again.ID != first.ID || time.Since(start) > time.Second {
			t.Errorf("while the first is under way: %+v created %v, %v after %s", again, created, err, time.Since(start))
		}
		if _, _, err := m.Create(t.Context(), sandbox.Request{Name: "lab", Image: "debian"}); !fault.Is(err, fault.Conflict) {
			t.Errorf("another spec while the first is under way: %v", err)
		}
		w.images.set(0, nil)
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Delete(t.Context(), ref(t, m, "lab")) })
		fresh, created, err := m.Create(t.Context(), sandbox.Request{Name: "lab", Image: "debian"})
		if err != nil || !created || fresh.ID == first.ID || fresh.State != sandbox.Creating {
			t.Errorf("right after the delete: %+v created %v, %v", fresh, created, err)
		}
		settled(t, m, "lab", sandbox.Running)
	})
}

func TestCreate_BadInputNamesTheField(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		for field, r := range map[string]sandbox.Request{
			"name":     {Name: "..", Template: "base"},
			"label":    {Name: "a", Template: "base", Label: strings.Repeat("é", 61)},
			"template": {Name: "a"},
			"env":      {Name: "a", Template: "base", Env: map[string]string{"1A": ""}},
			"cpus":     {Name: "a", Template: "base", Limits: sandbox.Limits{CPUs: 5}},
			"memory":   {Name: "a", Template: "base", Limits: sandbox.Limits{Memory: 1}},
			"pids":     {Name: "a", Template: "base", Limits: sandbox.Limits{Pids: 1 << 40}},
		} {
			if _, _, err := m.Create(t.Context(), r); !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != field {
				t.Errorf("%s: %v (field %q)", field, err, fault.FieldOf(err))
			}
		}
		if _, _, err := m.Create(t.Context(), sandbox.Request{Template: "nope"}); !fault.Is(err, fault.NotFound) {
			t.Errorf("unknown template: %v", err)
		}
		if _, n, _ := m.List(t.Context(), sandbox.Filter{}); n != 0 {
			t.Errorf("%d rows were kept", n)
		}
	})
}

func TestCreate_AutomaticNamesDiffer(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		seen := map[string]bool{}
		for range 50 {
			s := create(t, m, sandbox.Request{})
			if seen[s.Name] {
				t.Fatalf("%s twice", s.Name)
			}
			seen[s.Name] = true
		}
	})
}

func TestCreate_FailureIsUndoneAndSaysWhy(t *testing.T) {
	cause := fault.New(fault.Invalid, "Step 4 failed: no such package.")
	for what, bend := range map[string]func(w *world){
		"image":  func(w *world) { w.images.set(0, cause) },
		"create": func(w *world) { w.engine.refuse(sandboxtest.OpCreate, cause) },
		"start":  func(w *world) { w.engine.refuse(sandboxtest.OpStart, cause) },
	} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			bend(w)
			s := create(t, m, sandbox.Request{Name: "lab"})
			s = settled(t, m, "lab", sandbox.Failed)
			if s.Problem != fault.Message(cause) {
				t.Errorf("%s: problem %q", what, s.Problem)
			}
			if _, ok := w.engine.instance(t, s.ID); ok {
				t.Errorf("%s: the engine keeps something", what)
			}
			if _, ok := w.guests.setup(s.ID); ok {
				t.Errorf("%s: the link is left over", what)
			}
			w.images.set(0, nil)
			w.engine.refuse(sandboxtest.OpCreate, nil)
			w.engine.refuse(sandboxtest.OpStart, nil)
			if _, err := m.Start(t.Context(), ref(t, m, "lab")); err != nil {
				t.Error(err)
			}
			settled(t, m, "lab", sandbox.Running)
		})
	}
}

func TestCreate_ASilentGuestFailsAfterItsTime(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		w.guests.silent["lab"] = true
		create(t, m, sandbox.Request{Name: "lab"})
		start := time.Now()
		s := settled(t, m, "lab", sandbox.Failed)
		if !strings.Contains(s.Problem, "did not report") || time.Since(start) > 2*time.Minute {
			t.Errorf("%q after %s", s.Problem, time.Since(start))
		}
	})
}

func TestStopStartRestartDelete(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		for _, step := range []struct {
			do     func() (sandbox.Sandbox, error)
			accept sandbox.State
			end    sandbox.State
		}{
			{func() (sandbox.Sandbox, error) { return m.Stop(t.Context(), ref(t, m, "lab")) }, sandbox.Stopping, sandbox.Stopped},
			{func() (sandbox.Sandbox, error) { return m.Stop(t.Context(), ref(t, m, "lab")) }, sandbox.Stopped, sandbox.Stopped},
			{func() (sandbox.Sandbox, error) { return m.Start(t.Context(), ref(t, m, "lab")) }, sandbox.Starting, sandbox.Running},
			{func() (sandbox.Sandbox, error) { return m.Start(t.Context(), ref(t, m, "lab")) }, sandbox.Running, sandbox.Running},
			{func() (sandbox.Sandbox, error) { return m.Restart(t.Context(), ref(t, m, "lab")) }, sandbox.Starting, sandbox.Running},
		} {
			got, err := step.do()
			if err != nil || got.State != step.accept {
				t.Fatalf("accepted as %s, %v; want %s", got.State, err, step.accept)
			}
			settled(t, m, "lab", step.end)
		}
		if got, err := m.Delete(t.Context(), ref(t, m, "lab")); err != nil || got.State != sandbox.Deleting {
			t.Fatalf("delete: %s, %v", got.State, err)
		}
		if _, err := m.Wait(t.Context(), ref(t, m, "lab")); !fault.Is(err, fault.Gone) {
			t.Errorf("after the delete: %v", err)
		}
		if _, ok := w.engine.instance(t, s.ID); ok {
			t.Error("the engine keeps it")
		}
		for what, do := range map[string]func() (sandbox.Sandbox, error){
			"start":  func() (sandbox.Sandbox, error) { return m.Start(t.Context(), ref(t, m, "lab")) },
			"delete": func() (sandbox.Sandbox, error) { return m.Delete(t.Context(), ref(t, m, "lab")) },
			"rename": func() (sandbox.Sandbox, error) { return m.Rename(t.Context(), ref(t, m, "lab"), "x") },
		} {
			if _, err := do(); !fault.Is(err, fault.Gone) {
				t.Errorf("%s of a deleted one: %v", what, err)
			}
		}
	})
}

func TestDelete_InterruptsACreateAndLeavesNothing(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		w.images.set(time.Hour, nil)
		s := create(t, m, sandbox.Request{Name: "lab"})
		start := time.Now()
		if _, err := m.Delete(t.Context(), ref(t, m, "lab")); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Wait(t.Context(), ref(t, m, "lab")); !fault.Is(err, fault.Gone) || time.Since(start) > 5*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if _, ok := w.engine.instance(t, s.ID); ok {
			t.Error("the engine keeps it")
		}
	})
}

func TestDelete_WithADeadEngineIsFinishedWhenItIsBack(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		w.engine.refuse(sandboxtest.OpRemove, fault.New(fault.Unavailable, "The engine is away."))
		if _, err := m.Delete(t.Context(), ref(t, m, "lab")); err != nil {
			t.Fatal(err)
		}
		if got := settled(t, m, "lab", sandbox.Deleting); !strings.Contains(m.Progress(got.ID).Detail, "The engine is away.") {
			t.Errorf("nobody is told why: %+v", m.Progress(got.ID))
		}
		w.engine.refuse(sandboxtest.OpRemove, nil)
		pass(2 * time.Minute)
		if _, err := m.Sandbox(t.Context(), "lab"); !fault.Is(err, fault.NotFound) {
			t.Errorf("two minutes later: %v", err)
		}
		if _, ok := w.engine.instance(t, s.ID); ok {
			t.Error("the engine keeps it")
		}
	})
}

func TestRename_ChangesTheLabelAndTellsEverybody(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		events := m.Subscribe()
		defer events.Close()
		if s, err := m.Rename(t.Context(), ref(t, m, "lab"), "Über 日本"); err != nil || s.Label != "Über 日本" {
			t.Fatalf("%q, %v", s.Label, err)
		}
		if e := <-events.C; e.Sandbox.Label != "Über 日本" {
			t.Errorf("event %+v", e)
		}
		if _, err := m.Rename(t.Context(), ref(t, m, "lab"), "a\nb"); fault.FieldOf(err) != "label" {
			t.Errorf("a line break: %v", err)
		}
		if s, err := m.Rename(t.Context(), ref(t, m, "lab"), "\u3164 \u2800"); err != nil || s.Label != "" {
			t.Errorf("what shows nothing: %q, %v", s.Label, err)
		}
	})
}

func TestCreate_OnAFullHostIsRefusedAndLeavesNothing(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		first := create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		w.full(fault.New(fault.Unavailable, "The host is full."))
		for _, r := range []sandbox.Request{{Name: "more", Template: "base"}, {Template: "base"}} {
			if _, created, err := m.Create(t.Context(), r); !fault.Is(err, fault.Unavailable) || created {
				t.Errorf("created %v, %v", created, err)
			}
		}
		if _, n, _ := m.List(t.Context(), sandbox.Filter{}); n != 1 {
			t.Errorf("%d rows are kept", n)
		}
		if s, created, err := m.Create(t.Context(), sandbox.Request{Name: "lab", Template: "base"}); err != nil || created || s.ID != first.ID {
			t.Errorf("one that is there: %+v, %v", s, err)
		}
		w.full(nil)
		w.images.set(time.Minute, nil)
		s := create(t, m, sandbox.Request{Name: "more"})
		w.full(fault.New(fault.Unavailable, "The host is full."))
		if s = settled(t, m, "more", sandbox.Failed); s.Problem != "The host is full." {
			t.Errorf("problem %q", s.Problem)
		}
		if _, ok := w.engine.instance(t, s.ID); ok || w.engine.Starts(s.ID) != 0 {
			t.Error("the engine keeps it")
		}
		w.full(nil)
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Start(t.Context(), ref(t, m, "more")) })
		settled(t, m, "more", sandbox.Running)
	})
}

func TestDo_AFullStoreRefusesAndNothingIsLost(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		full := fault.New(fault.Unavailable, "The disk is full.")
		w.store.FailNextOf("Insert", full)
		if _, _, err := m.Create(t.Context(), sandbox.Request{Name: "lab", Template: "base"}); !errors.Is(err, full) {
			t.Errorf("create: %v", err)
		}
		create(t, m, sandbox.Request{Name: "lab"})
		s := settled(t, m, "lab", sandbox.Running)
		w.store.FailNextOf("Update", full)
		if _, err := m.Stop(t.Context(), ref(t, m, "lab")); !errors.Is(err, full) {
			t.Errorf("stop: %v", err)
		}
		if i, _ := w.engine.instance(t, s.ID); !i.Running {
			t.Error("it was stopped although the intent could not be kept")
		}
	})
}
