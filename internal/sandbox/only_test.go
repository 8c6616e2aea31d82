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

// changesBy are what whoever means the sandbox with that id may do to lab.
func changesBy(t *testing.T, m *sandbox.Manager, id string) map[string]func() (sandbox.Sandbox, error) {
	ctx, hour := sandbox.Only(t.Context(), id), catalog.After(time.Hour)
	return map[string]func() (sandbox.Sandbox, error){
		"services": func() (sandbox.Sandbox, error) {
			return m.SetServices(ctx, "lab", []catalog.Service{service("theirs", 0)})
		},
		"ide":   func() (sandbox.Sandbox, error) { return m.SetIDE(ctx, "lab", true) },
		"label": func() (sandbox.Sandbox, error) { return m.Rename(ctx, "lab", "theirs") },
		"rest": func() (sandbox.Sandbox, error) {
			return m.SetRest(ctx, "lab", sandbox.RestChange{FreezeAfter: &hour})
		},
		"stop":   func() (sandbox.Sandbox, error) { return m.Stop(ctx, "lab") },
		"sleep":  func() (sandbox.Sandbox, error) { return m.Sleep(ctx, "lab", nil) },
		"freeze": func() (sandbox.Sandbox, error) { return m.Freeze(ctx, "lab", nil) },
		"delete": func() (sandbox.Sandbox, error) { return m.Delete(ctx, "lab") },
	}
}

func TestOnly_AChangeThatWaitsBehindADeleteDoesNotReachWhoHasTheNameThen(t *testing.T) {
	for _, what := range []string{"services", "ide", "label", "rest", "stop", "sleep", "freeze", "delete"} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
				old := create(t, m, sandbox.Request{Name: "lab", Owner: "mallory"})
				settled(t, m, "lab", sandbox.Running)
				w.engine.Delay(sandboxtest.OpRemove, 10*time.Second)
				if _, err := m.Delete(t.Context(), "lab"); err != nil {
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
				if _, err := changesBy(t, m, old.ID)[what](); err != nil && !fault.Is(err, fault.Gone) { // some say how the old one stands while they wait
					t.Errorf("the change gave %v", err)
				}
				mine := <-made
				now := settled(t, m, "lab", sandbox.Running)
				if now.ID != mine.ID || now.Own.HasServices || now.Own.IDE != nil || now.Label != "" || now.Rest != mine.Rest {
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
		if _, err := m.Stop(t.Context(), "lab"); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Delete(t.Context(), "lab"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := m.Create(t.Context(), sandbox.Request{Name: "lab", Owner: "bob", Template: "base"}); !fault.Is(err, fault.Conflict) {
			t.Fatalf("while it stops: %v", err)
		}
		if _, err := m.Wait(t.Context(), "lab"); !fault.Is(err, fault.NotFound) {
			t.Errorf("afterwards: %v", err)
		}
	})
}
