package sandbox_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

func TestCreate_ANameThatIsAServicesAddressIsRefused(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		brought(t, m, sandbox.Asleep)
		setServices(t, m, "lab", service("api", 8000), service("big-api", 8001), service("worker", 0))
		for _, name := range []string{"api-lab", "big-api-lab"} {
			_, _, err := m.Create(t.Context(), sandbox.Request{Name: name, Owner: "another", Template: "base"})
			if !fault.Is(err, fault.Conflict) || fault.FieldOf(err) != "name" {
				t.Errorf("%s: %v", name, err)
			}
			if text := fault.Message(err); strings.Contains(strings.Replace(text, name, "", 1), "lab") {
				t.Errorf("whose it is, is told: %s", text)
			}
		}
		for _, name := range []string{"worker-lab", "web-lab", "api-labs", "lab-api"} { // no port, not declared, no sandbox, the wrong way round
			create(t, m, sandbox.Request{Name: name})
		}
	})
}

func TestCreate_NamesOfVSCodesAddressesAreRefused(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		_, _, err := m.Create(t.Context(), sandbox.Request{Name: "code-lab", Template: "base"})
		if !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != "name" {
			t.Errorf("got %v", err)
		}
		create(t, m, sandbox.Request{Name: "codex"})
	})
}

func TestSetServices_AnAddressThatIsASandboxsNameIsRefused(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		create(t, m, sandbox.Request{Name: "api-lab", Owner: "another"})
		brought(t, m, sandbox.Running)
		_, err := m.SetServices(t.Context(), ref(t, m, "lab"), []catalog.Service{service("api", 8000)})
		if !fault.Is(err, fault.Conflict) || fault.FieldOf(err) != "name" || !strings.Contains(fault.Message(err), "service api") {
			t.Errorf("got %v", err)
		}
		setServices(t, m, "lab", service("api", 0)) // without a port it needs no address
		_, err = m.SetServices(t.Context(), ref(t, m, "lab"), []catalog.Service{service("api", 8000)})
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("with a port: %v", err)
		}
		_, err = m.ChangeServices(t.Context(), ref(t, m, "lab"), func(l []catalog.Service) ([]catalog.Service, error) {
			l[0].Port = 8000 // in place
			return l, nil
		})
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("changed in place: %v", err)
		}
		for _, name := range []string{"code", "code-server"} {
			if _, err := m.SetServices(t.Context(), ref(t, m, "lab"), []catalog.Service{service(name, 1)}); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestSetServices_AnAddressOfAnotherSandboxsServiceIsRefused(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		create(t, m, sandbox.Request{Name: "ml", Owner: "mallory"})
		create(t, m, sandbox.Request{Name: "app-ml", Owner: "ann"})
		settled(t, m, "ml", sandbox.Running)
		settled(t, m, "app-ml", sandbox.Running)
		setServices(t, m, "app-ml", service("web", 3000), service("worker", 0))
		_, err := m.SetServices(t.Context(), ref(t, m, "ml"), []catalog.Service{service("web-app", 666)})
		if !fault.Is(err, fault.Conflict) || fault.FieldOf(err) != "name" || strings.Contains(fault.Message(err), "ann") {
			t.Errorf("got %v", err)
		}
		if has, err := m.HasHost(t.Context(), "app-ml", "web"); err != nil || !has {
			t.Errorf("it has lost its address: %v", err)
		}
		setServices(t, m, "ml", service("worker-app", 1))                       // that one has no port, so no address
		setServices(t, m, "app-ml", service("web", 3001), service("api", 8000)) // its own it may keep
		setServices(t, m, "app-ml", service("api", 8000))
		setServices(t, m, "ml", service("web-app", 1)) // nobody's any more
		if _, err := m.SetServices(t.Context(), ref(t, m, "app-ml"), []catalog.Service{service("web", 3000)}); !fault.Is(err, fault.Conflict) {
			t.Errorf("the other way round: %v", err)
		}
	})
}

// What a template brings is no reason to refuse anything: its service has an address while nobody else had that first.
func TestHasHost_ATemplatesServiceHasItWhileNobodyHadItFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m, end := w.run(t)
		w.templates.change(func(c *templates) { c.port = 3000 })
		has := func(name, service string, want bool) {
			t.Helper()
			if got, err := m.HasHost(t.Context(), name, service); err != nil || got != want {
				t.Errorf("%s of %s: %v, %v", service, name, got, err)
			}
		}
		create(t, m, sandbox.Request{Name: "ml"})
		settled(t, m, "ml", sandbox.Running)
		setServices(t, m, "ml", service("web-app", 666))
		pass(time.Second)
		create(t, m, sandbox.Request{Name: "app-ml"}) // brings web
		settled(t, m, "app-ml", sandbox.Running)
		has("ml", "web-app", true)
		has("app-ml", "web", false)
		has("ml", "web", false) // it has no such service any more
		if _, err := m.SetServices(t.Context(), ref(t, m, "ml"), nil); err != nil {
			t.Fatal(err)
		}
		has("app-ml", "web", true)
		has("ml", "web", true)

		create(t, m, sandbox.Request{Name: "web-lab"})
		create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		has("lab", "web", false) // a sandbox has that name
		end()
	})
}

// An older sandbox that gets a service later, by whatever way, takes no address that another has had meanwhile, and that is
// known after a restart.
func TestHasHost_CountsFromWhenAServiceWasDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m, end := w.run(t)
		w.templates.change(func(c *templates) { c.service, c.port = "web-app", 666 })
		create(t, m, sandbox.Request{Name: "ml"})
		settled(t, m, "ml", sandbox.Running)
		if _, err := m.SetServices(t.Context(), ref(t, m, "ml"), []catalog.Service{}); err != nil { // gives up its template's
			t.Fatal(err)
		}
		pass(time.Second)
		create(t, m, sandbox.Request{Name: "app-ml"})
		settled(t, m, "app-ml", sandbox.Running)
		setServices(t, m, "app-ml", service("web", 3000))
		pass(time.Second)
		if _, err := m.SetServices(t.Context(), ref(t, m, "ml"), nil); err != nil { // and takes it back
			t.Fatal(err)
		}
		for range 2 {
			for name, want := range map[string]bool{"app-ml": true, "ml": false} {
				got, err := m.HasHost(t.Context(), name, map[bool]string{true: "web", false: "web-app"}[want])
				if err != nil || got != want {
					t.Errorf("%s has it: %v, %v", name, got, err)
				}
			}
			end()
			m, end = w.run(t)
			synctest.Wait()
		}
		setServices(t, m, "app-ml", service("web", 3001), service("more", 1)) // an edit does not make it younger
		s, err := m.Sandbox(t.Context(), "ml")
		if err != nil || len(s.Own.Since) != 1 {
			t.Errorf("%+v, %v", s.Own, err)
		}
		if has, err := m.HasHost(t.Context(), "app-ml", "web"); err != nil || !has {
			t.Errorf("after an edit: %v, %v", has, err)
		}
		end()
	})
}

func TestAddress_TwoDeclareTheSameAtOnceAndNotBothGetIt(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			m, end := w.run(t)
			defer end()
			var both sync.WaitGroup
			errs := make([]error, 2)
			for _, name := range []string{"ml", "app-ml"} {
				create(t, m, sandbox.Request{Name: name})
				settled(t, m, name, sandbox.Running)
			}
			for i, c := range []struct{ name, service string }{{"ml", "web-app"}, {"app-ml", "web"}} {
				both.Go(func() {
					_, errs[i] = m.SetServices(t.Context(), ref(t, m, c.name), []catalog.Service{service(c.service, 1)})
				})
			}
			both.Wait()
			if errs[0] == nil && errs[1] == nil {
				t.Error("both have the address web-app-ml")
			}
			for _, err := range errs {
				if err != nil && !fault.Is(err, fault.Conflict) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// Whichever comes first, never do both get the address.
func TestAddress_ACreateAndAnEditAtOnceDoNotBothGetIt(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			m, end := w.run(t)
			defer end()
			create(t, m, sandbox.Request{Name: "lab"})
			settled(t, m, "lab", sandbox.Running)
			var both sync.WaitGroup
			var createErr, setErr error
			both.Go(func() { _, _, createErr = m.Create(t.Context(), sandbox.Request{Name: "api-lab", Template: "base"}) })
			both.Go(func() {
				_, setErr = m.SetServices(t.Context(), ref(t, m, "lab"), []catalog.Service{service("api", 8000)})
			})
			both.Wait()
			if createErr == nil && setErr == nil {
				t.Error("both have the address api-lab")
			}
			for _, err := range []error{createErr, setErr} {
				if err != nil && !fault.Is(err, fault.Conflict) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}
