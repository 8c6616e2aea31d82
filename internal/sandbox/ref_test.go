package sandbox_test

import (
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// changesTo are what may be done to a sandbox.
func changesTo(t *testing.T, m *sandbox.Manager, ref sandbox.Ref) map[string]func() (sandbox.Sandbox, error) {
	ctx, hour := t.Context(), catalog.After(time.Hour)
	return map[string]func() (sandbox.Sandbox, error){
		"services": func() (sandbox.Sandbox, error) {
			return m.ChangeServices(ctx, ref, func([]catalog.Service) ([]catalog.Service, error) {
				return []catalog.Service{service("theirs", 0)}, nil
			})
		},
		"ide":     func() (sandbox.Sandbox, error) { return m.SetIDE(ctx, ref, true) },
		"label":   func() (sandbox.Sandbox, error) { return m.Rename(ctx, ref, "theirs") },
		"rest":    func() (sandbox.Sandbox, error) { return m.SetRest(ctx, ref, sandbox.RestChange{FreezeAfter: &hour}) },
		"start":   func() (sandbox.Sandbox, error) { return m.Start(ctx, ref) },
		"stop":    func() (sandbox.Sandbox, error) { return m.Stop(ctx, ref) },
		"restart": func() (sandbox.Sandbox, error) { return m.Restart(ctx, ref) },
		"wake":    func() (sandbox.Sandbox, error) { return m.Awake(ctx, ref) },
		"sleep":   func() (sandbox.Sandbox, error) { return m.Sleep(ctx, ref, nil) },
		"freeze":  func() (sandbox.Sandbox, error) { return m.Freeze(ctx, ref, nil) },
		"thaw":    func() (sandbox.Sandbox, error) { return m.Thaw(ctx, ref, func() bool { return true }) },
		"delete":  func() (sandbox.Sandbox, error) { return m.Delete(ctx, ref) },
	}
}

func TestRef_AChangeThatWaitsBehindADeleteDoesNotReachWhoHasTheNameThen(t *testing.T) {
	for _, what := range []string{"services", "ide", "label", "rest", "start", "stop", "restart", "wake", "sleep", "freeze", "thaw", "delete"} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
				old := create(t, m, sandbox.Request{Name: "lab", Owner: "mallory"})
				settled(t, m, "lab", sandbox.Running)
				w.engine.Delay(sandboxtest.OpRemove, 10*time.Second)
				if _, err := m.Delete(t.Context(), old.Ref()); err != nil {
					t.Fatal(err)
				}
				made := make(chan sandbox.Sandbox, 1)
				go func() {
					s, _, err := m.Create(t.Context(), sandbox.Request{Name: "lab", Owner: "ada", Template: "base"})
					if err != nil {
						t.Error(err)
					}
					made <- s
				}()
				synctest.Wait()
				if _, err := changesTo(t, m, old.Ref())[what](); err != nil && !fault.Is(err, fault.Gone) { // some say how the old one stands while they wait
					t.Errorf("the change gave %v", err)
				}
				mine := <-made
				now := settled(t, m, "lab", sandbox.Running)
				if now.ID != mine.ID || now.Overrides.HasServices || now.Overrides.IDE != nil || now.Label != "" || now.Rest != mine.Rest {
					t.Errorf("ada's sandbox is %+v; it was %+v", now, mine)
				}
			})
		})
	}
}

func TestCreate_OneThatWasRefusedIsNotMadeWhenTheNameIsFreeLater(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		create(t, m, sandbox.Request{Name: "lab", Owner: "ada"})
		settled(t, m, "lab", sandbox.Running)
		w.engine.Delay(sandboxtest.OpStop, 10*time.Second)
		if _, err := m.Stop(t.Context(), ref(t, m, "lab")); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Delete(t.Context(), ref(t, m, "lab")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := m.Create(t.Context(), sandbox.Request{Name: "lab", Owner: "bob", Template: "base"}); !fault.Is(err, fault.Conflict) {
			t.Fatalf("while it stops: %v", err)
		}
		if _, err := m.Wait(t.Context(), ref(t, m, "lab")); !fault.Is(err, fault.Gone) {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestDelete_OfAnOldRefDoesNotInterruptTheNextSandboxOfTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m, end := w.run(t)
		old := create(t, m, sandbox.Request{Name: "lab", Owner: "mallory"})
		settled(t, m, "lab", sandbox.Running)
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Sleep(t.Context(), old.Ref(), nil) })
		settled(t, m, "lab", sandbox.Asleep)
		end()
		m, end = w.run(t) // one that has to read the row
		defer end()
		synctest.Wait()
		w.fate.between("row", func() {
			mustDo(t, func() (sandbox.Sandbox, error) { return m.Delete(t.Context(), old.Ref()) })
			if _, err := m.Wait(t.Context(), old.Ref()); !fault.Is(err, fault.Gone) {
				t.Error(err)
			}
			w.images.set(time.Minute, nil)
			create(t, m, sandbox.Request{Name: "lab", Owner: "ada"})
			synctest.Wait()
		})
		if _, err := m.Delete(t.Context(), old.Ref()); !fault.Is(err, fault.Gone) {
			t.Errorf("the second delete gave %v", err)
		}
		settled(t, m, "lab", sandbox.Running)
	})
}
