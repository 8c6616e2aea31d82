package sandbox_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"

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
		_, err := m.SetServices(t.Context(), "lab", []catalog.Service{service("api", 8000)})
		if !fault.Is(err, fault.Conflict) || fault.FieldOf(err) != "name" || !strings.Contains(fault.Message(err), "service api") {
			t.Errorf("got %v", err)
		}
		setServices(t, m, "lab", service("api", 0)) // without a port it needs no address
		_, err = m.SetServices(t.Context(), "lab", []catalog.Service{service("api", 8000)})
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("with a port: %v", err)
		}
		_, err = m.ChangeServices(t.Context(), "lab", func(l []catalog.Service) ([]catalog.Service, error) {
			l[0].Port = 8000 // in place
			return l, nil
		})
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("changed in place: %v", err)
		}
		for _, name := range []string{"code", "code-server"} {
			if _, err := m.SetServices(t.Context(), "lab", []catalog.Service{service(name, 1)}); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
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
			both.Go(func() { _, setErr = m.SetServices(t.Context(), "lab", []catalog.Service{service("api", 8000)}) })
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
