package sandboxtest

import (
	"errors"
	"testing"

	"sandboxd/internal/sandbox"
)

func TestMemStore_KeepsTheContract(t *testing.T) {
	RunStore(t, func(*testing.T) sandbox.Store { return NewMemStore() })
}

func TestMemHolds_KeepTheContract(t *testing.T) {
	RunHolds(t, func(*testing.T) HoldStores {
		m := NewMemStore()
		return HoldStores{Holds: m.Holds(), Sandboxes: m}
	})
}

func TestMemPorts_KeepTheContract(t *testing.T) {
	RunPorts(t, func(*testing.T) PortStores {
		m := NewMemStore()
		return PortStores{Ports: m.Ports(), Sandboxes: m}
	})
}

func TestMemStore_FailsWhenTold(t *testing.T) {
	m := NewMemStore()
	any, update := errors.New("any"), errors.New("update")
	m.FailNext(any)
	m.FailNextOf("Update", update)
	b := Sandbox("b", 0)
	for i, want := range []error{any, nil, nil} {
		if err := m.Insert(t.Context(), b); !errors.Is(err, want) {
			t.Fatalf("insert %d gives %v, want %v", i, err, want)
		}
		must(t, m.Delete(t.Context(), b.ID))
	}
	mustInsert(t, m, b)
	for i, want := range []error{update, nil} {
		if err := m.Update(t.Context(), b); !errors.Is(err, want) {
			t.Fatalf("update %d gives %v, want %v", i, err, want)
		}
	}
}
