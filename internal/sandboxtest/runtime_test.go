package sandboxtest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// fakeSubject is the fake as the suite wants it; its programs behave as their box's environment says.
func fakeSubject(*testing.T) RuntimeSubject {
	r := NewRuntime()
	other := r.Beside()
	r.NoImage(MissingImage)
	r.OnStart = func(b sandbox.ContainerSpec) {
		switch Behaviour(b.Env["BEHAVIOUR"]) {
		case Brief:
			r.Exit(b.ID, BriefExit, false)
		case Greedy:
			r.Exit(b.ID, sandbox.ExitKilled, true)
		case Deaf:
			r.Deafen(b.ID)
		}
	}
	var n atomic.Int64
	return RuntimeSubject{
		Listens: func(*testing.T, string) bool { return true },
		Runtime: r, Other: other, Hang: r.Hang, Lose: r.Lose,
		Limits: func(t *testing.T, id string) sandbox.Limits { b, _ := r.Spec(id); return b.Limits },
		Spec: func(b Behaviour) sandbox.ContainerSpec {
			return sandbox.ContainerSpec{
				ID: sandbox.NewID(), Name: fmt.Sprintf("box%d", n.Add(1)), Template: "base", Image: "image:1",
				Limits: sandbox.Limits{CPUs: 1, Memory: 64 << 20, Pids: 64}, Profile: catalog.Dev,
				Env: map[string]string{"BEHAVIOUR": string(b)}, LinkPath: "/nowhere",
			}
		},
		Cut: func(t *testing.T, b sandbox.ContainerSpec) {
			r.CutAfter(AfterVolume)
			if err := r.Create(t.Context(), b); !errors.Is(err, ErrCut) {
				t.Fatalf("cut: %v", err)
			}
		},
		Destroy: func(_ *testing.T, id string) { r.Destroy(id) },
		Image:   func(*testing.T) (string, func()) { return "mine", func() { MoveImage(r, "mine") } },
		Freeze:  func(_ *testing.T, id string) { r.FreezeOutside(id) },
	}
}

func TestRuntime_FakeKeepsTheContract(t *testing.T) {
	RunRuntime(t, fakeSubject)
}

func TestRuntime_FakeFreezes(t *testing.T) {
	RunFreezer(t, func(t *testing.T) FreezerSubject {
		s := fakeSubject(t)
		r, another := s.Runtime.(*Runtime), s.Other.(*Runtime)
		return FreezerSubject{
			RuntimeSubject: s, Freezer: r, Another: another,
			Count: func(_ *testing.T, id string) int { return int(r.Awake(id) / (10 * time.Millisecond)) },
			Work: func(_ *testing.T, id string) {
				r.Use(id, sandbox.Usage{CPU: time.Millisecond, Network: 1, Memory: 1 << 20})
			},
		}
	})
}

func TestRuntime_EveryStepCanBeCutOffAndFinished(t *testing.T) {
	for _, c := range []struct {
		step  Step
		state sandbox.Instance // what the list has after the cut
		do    func(*Runtime, sandbox.ContainerSpec) error
	}{
		{AfterVolume, sandbox.Instance{Partial: true}, func(r *Runtime, b sandbox.ContainerSpec) error { return r.Create(t.Context(), b) }},
		{AfterContainer, sandbox.Instance{}, func(r *Runtime, b sandbox.ContainerSpec) error { return r.Create(t.Context(), b) }},
		{AfterStart, sandbox.Instance{Running: true}, func(r *Runtime, b sandbox.ContainerSpec) error { return r.Start(t.Context(), b.ID) }},
		{AfterStop, sandbox.Instance{}, func(r *Runtime, b sandbox.ContainerSpec) error { return r.Stop(t.Context(), b.ID, time.Second) }},
		{AfterDestroy, sandbox.Instance{Partial: true}, func(r *Runtime, b sandbox.ContainerSpec) error { return r.Remove(t.Context(), b.ID) }},
	} {
		r := NewRuntime()
		b := sandbox.ContainerSpec{ID: "1", Name: "one"}
		if c.step == AfterStart || c.step == AfterStop || c.step == AfterDestroy {
			if err := r.Create(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		r.CutAfter(c.step)
		if err := c.do(r, b); !errors.Is(err, ErrCut) {
			t.Errorf("%s: got %v", c.step, err)
		}
		all, err := r.List(t.Context())
		if err != nil || len(all) != 1 || all[0].Partial != c.state.Partial || all[0].Running != c.state.Running {
			t.Errorf("%s leaves %+v (%v)", c.step, all, err)
		}
		if err := c.do(r, b); err != nil {
			t.Errorf("%s repeated: %v", c.step, err)
		}
	}
}

func TestRuntime_TroubleIsAsOrdered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRuntime()
		r.Delay(OpCreate, time.Hour)
		r.Fail(OpStart, fault.New(fault.Invalid, "no"))
		began := time.Now()
		if err := r.Create(t.Context(), sandbox.ContainerSpec{ID: "1"}); err != nil || time.Since(began) != time.Hour {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
		if err := r.Start(t.Context(), "1"); !fault.Is(err, fault.Invalid) {
			t.Errorf("got %v", err)
		}
		if err := r.Start(t.Context(), "1"); err != nil || r.Starts("1") != 1 || r.Calls(OpStart) != 2 {
			t.Errorf("got %v, %d starts, %d calls", err, r.Starts("1"), r.Calls(OpStart))
		}
		r.Deafen("1")
		began = time.Now()
		if err := r.Stop(t.Context(), "1", time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
		if b, ok := r.Spec("1"); !ok || b.ID != "1" {
			t.Errorf("got %+v", b)
		}
	})
}
