package sandbox_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// service is one with a port, if that is not 0.
func service(name string, port int) catalog.Service {
	return catalog.Service{Name: name, Command: []string{"run", name}, Port: port, Autostart: true}
}

// to changes any list of services to list.
func to(list []catalog.Service) func([]catalog.Service) ([]catalog.Service, error) {
	return func([]catalog.Service) ([]catalog.Service, error) { return list, nil }
}

func setServices(t *testing.T, m *sandbox.Manager, name string, list ...catalog.Service) sandbox.Sandbox {
	t.Helper()
	s, err := m.ChangeServices(t.Context(), ref(t, m, name), to(list))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestChangeServices_ARunningGuestIsToldAtOnceAndAnotherManagerKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m, end := w.run(t)
		s := create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		if got := w.guests.told(s.ID); got != "web " || names(m.Services(s)) != "web " {
			t.Fatalf("before: told %q, counts %q", got, names(m.Services(s)))
		}
		own := service("api", 8000)
		own.Env, own.Health = map[string]string{"A": "b"}, &catalog.Health{Path: "/healthz"}
		got := setServices(t, m, "lab", own, service("worker", 0))
		if diff := cmp.Diff([]catalog.Service{own, service("worker", 0)}, m.Services(got)); diff != "" || !got.Overrides.HasServices {
			t.Errorf("services that count differ:\n%s", diff)
		}
		if told := w.guests.told(s.ID); told != "api worker " || w.engine.Starts(s.ID) != 1 {
			t.Errorf("told %q, started %d times", told, w.engine.Starts(s.ID))
		}
		end()
		m, end = w.run(t)
		defer end()
		synctest.Wait()
		kept, err := m.Sandbox(t.Context(), "lab")
		if err != nil || names(m.Services(kept)) != "api worker " {
			t.Errorf("kept %+v, %v", kept.Overrides, err)
		}
		if setup, _ := w.guests.setup(s.ID); names(setup.Services) != "api worker " {
			t.Errorf("expected with %+v", setup)
		}
	})
}

func TestChangeServices_OneAtRestHearsItWhenItWakes(t *testing.T) {
	for _, state := range []sandbox.State{sandbox.Frozen, sandbox.Asleep} {
		t.Run(string(state), func(t *testing.T) {
			play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
				s := brought(t, m, state)
				began := time.Now()
				if got := setServices(t, m, "lab", service("api", 8000)); got.State != state {
					t.Errorf("it is %s", got.State)
				}
				if took := time.Since(began); took > time.Second || w.guests.told(s.ID) != "web " {
					t.Errorf("took %s; told %q", took, w.guests.told(s.ID))
				}
				if _, err := m.Awake(t.Context(), ref(t, m, "lab")); err != nil || w.guests.told(s.ID) != "api " {
					t.Errorf("awake it was told %q, %v", w.guests.told(s.ID), err)
				}
				restarted(t, m)
				if w.guests.told(s.ID) != "api " {
					t.Errorf("restarted it was told %q", w.guests.told(s.ID))
				}
			})
		})
	}
}

func restarted(t *testing.T, m *sandbox.Manager) {
	t.Helper()
	mustDo(t, func() (sandbox.Sandbox, error) { return m.Restart(t.Context(), ref(t, m, "lab")) })
	settled(t, m, "lab", sandbox.Running)
}

func TestChangeServices_NilIsTheTemplatesAgainAndNoneIsAList(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := brought(t, m, sandbox.Running)
		got, err := m.ChangeServices(t.Context(), ref(t, m, "lab"), to([]catalog.Service{}))
		if err != nil || !got.Overrides.HasServices || len(m.Services(got)) != 0 || w.guests.told(s.ID) != "" {
			t.Errorf("none: %+v, told %q, %v", got.Overrides, w.guests.told(s.ID), err)
		}
		got, err = m.ChangeServices(t.Context(), ref(t, m, "lab"), to(nil))
		if err != nil || got.Overrides.HasServices || names(m.Services(got)) != "web " || w.guests.told(s.ID) != "web " {
			t.Errorf("nil: %+v, told %q, %v", got.Overrides, w.guests.told(s.ID), err)
		}
	})
}

func TestChangeServices_OfManyEditsAtOnceNoneIsLost(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		brought(t, m, sandbox.Running)
		setServices(t, m, "lab", service("first", 0))
		var edits sync.WaitGroup
		for i := range 10 {
			edits.Go(func() {
				_, err := m.ChangeServices(t.Context(), ref(t, m, "lab"), func(l []catalog.Service) ([]catalog.Service, error) {
					return append(l, service(fmt.Sprintf("more-%d", i), 0)), nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		edits.Wait()
		s, err := m.Sandbox(t.Context(), "lab")
		if err != nil || len(m.Services(s)) != 11 {
			t.Errorf("%d are left, %v", len(m.Services(s)), err)
		}
		no := errors.New("no")
		_, err = m.ChangeServices(t.Context(), ref(t, m, "lab"), func(l []catalog.Service) ([]catalog.Service, error) { return nil, no })
		if now, _ := m.Sandbox(t.Context(), "lab"); !errors.Is(err, no) || len(m.Services(now)) != 11 {
			t.Errorf("after a refusal: %+v, %v", now.Overrides, err)
		}
	})
}

func TestChangeServices_MistakesNameTheServiceAndTheField(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		brought(t, m, sandbox.Running)
		before, _ := m.Sandbox(t.Context(), "lab")
		bad := service("api", 70000)
		_, err := m.ChangeServices(t.Context(), ref(t, m, "lab"), to([]catalog.Service{service("fine", 1), bad}))
		if !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != "port" || fault.Message(err) != "Service api: Port 70000 does not exist. It is between 1 and 65535." {
			t.Errorf("got %v", err)
		}
		if after, _ := m.Sandbox(t.Context(), "lab"); !cmp.Equal(before, after) {
			t.Errorf("it was changed: %+v", after)
		}
		if _, err := m.ChangeServices(t.Context(), ref(t, m, "nobody"), to(nil)); !fault.Is(err, fault.Gone) {
			t.Errorf("got %v", err)
		}
	})
}

func TestChangeServices_AGuestThatDoesNotAnswerIsToldLater(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := brought(t, m, sandbox.Running)
		w.guests.silence("lab", true)
		began := time.Now()
		setServices(t, m, "lab", service("api", 0))
		if took := time.Since(began); took > 10*time.Second || w.guests.told(s.ID) != "web " {
			t.Errorf("took %s; told %q", took, w.guests.told(s.ID))
		}
		pass(2 * time.Minute)
		if now, _ := m.Sandbox(t.Context(), "lab"); now.State != sandbox.Running || w.guests.told(s.ID) != "web " {
			t.Errorf("it is %s; told %q", now.State, w.guests.told(s.ID))
		}
		w.guests.silence("lab", false)
		pass(2 * time.Minute)
		if w.guests.told(s.ID) != "api " {
			t.Errorf("told %q", w.guests.told(s.ID))
		}
	})
}

func TestSetIDE_TheSandboxsWordCountsBeforeItsTemplates(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := brought(t, m, sandbox.Running)
		check := func(want bool) {
			t.Helper()
			now, err := m.Sandbox(t.Context(), "lab")
			setup, _ := w.guests.setup(s.ID)
			if err != nil || m.OffersIDE(now) != want || setup.IDE != want || names(m.Services(now)) != "web " {
				t.Errorf("offers %v, told %v, %v", m.OffersIDE(now), setup.IDE, err)
			}
		}
		check(false)
		for _, on := range []bool{true, false} {
			mustDo(t, func() (sandbox.Sandbox, error) { return m.SetIDE(t.Context(), ref(t, m, "lab"), on) })
			check(on)
		}
		mustDo(t, func() (sandbox.Sandbox, error) { return m.SetIDE(t.Context(), ref(t, m, "lab"), true) })
		setServices(t, m, "lab", service("api", 0))
		if now, _ := m.Sandbox(t.Context(), "lab"); !m.OffersIDE(now) {
			t.Error("another change has taken it back")
		}
	})
}

func TestServices_OfATemplateThatIsGoneAreNone(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := brought(t, m, sandbox.Running)
		w.templates.change(func(c *templates) { c.broken = true })
		pass(2 * time.Second)
		if got := m.Services(s); len(got) != 0 {
			t.Errorf("got %+v", got)
		}
		setServices(t, m, "lab", service("api", 0))
		if w.guests.told(s.ID) != "api " {
			t.Errorf("told %q", w.guests.told(s.ID))
		}
	})
}

// The overrides of a pooled sandbox would come with it to its new owner.
func TestPool_NothingWithServicesOfItsOwnIsClaimed(t *testing.T) {
	pooling(t, 1, func(t *testing.T, w *world, m *sandbox.Manager) {
		warmSandbox := ready(t, w, m, 1, "at first")[0]
		if _, err := m.ChangeServices(t.Context(), warmSandbox.Ref(), to(nil)); !fault.Is(err, fault.Gone) {
			t.Errorf("a pooled one can be changed: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.templates.change(func(c *templates) { c.pool = 1 })
		_, end := w.pools(t)
		pass(time.Minute)
		list, _, err := w.store.List(t.Context(), sandbox.Filter{Pooled: true})
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		end()
		odd := list[0]
		odd.Overrides = sandbox.Overrides{HasServices: true}
		if err := w.store.Update(t.Context(), odd); err != nil {
			t.Fatal(err)
		}
		m, end := w.pools(t)
		defer end()
		pass(time.Minute)
		got, _, err := m.Create(t.Context(), sandbox.Request{Template: "base"})
		if err != nil || got.ID == odd.ID || got.Overrides.HasServices {
			t.Errorf("claimed %+v, %v", got, err)
		}
	})
}
