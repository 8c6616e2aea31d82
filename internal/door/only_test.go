package door

import (
	"context"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// every way through a door that does not come back with the sandbox itself.
func (h *house) ways() map[string]func(ctx context.Context) (*Entry, error) {
	return map[string]func(ctx context.Context) (*Entry, error){
		"open":   func(ctx context.Context) (*Entry, error) { return h.doors.Open(ctx, "lab", command) },
		"stream": func(ctx context.Context) (*Entry, error) { return h.doors.OpenStream(ctx, "lab", terminal) },
		"join":   func(ctx context.Context) (*Entry, error) { return h.doors.JoinStream(ctx, "lab", comeback) },
		"look":   func(ctx context.Context) (*Entry, error) { return h.doors.Look(ctx, "lab") },
	}
}

func TestOnly_AnotherSandboxOfTheNameIsNeitherOpenedNorWoken(t *testing.T) {
	h := newHouse(sandbox.Running)
	ctx := sandbox.Only(t.Context(), "first")
	for way, open := range h.ways() {
		e, err := open(ctx)
		if err != nil {
			t.Fatalf("%s, of the one that is meant: %v", way, err)
		}
		e.Release()
	}
	h.id = "second" // deleted, and made anew under the same name by somebody else
	h.becomes(sandbox.Asleep)
	for way, open := range h.ways() {
		if _, err := open(ctx); !fault.Is(err, fault.Gone) {
			t.Errorf("%s: %v", way, err)
		}
	}
	if h.woken != 0 || h.kinds() != "" {
		t.Errorf("woken %d times, in use by %q", h.woken, h.kinds())
	}
}

// changing is a house in which the sandbox is another one once it has been woken.
type changing struct{ *house }

func (c changing) Awake(ctx context.Context, name string) (sandbox.Sandbox, error) {
	c.id = "second"
	return c.house.Awake(ctx, name)
}

func TestOnly_ANameThatChangesHandsWhileItIsOpenedIsNotOpened(t *testing.T) {
	h := newHouse(sandbox.Asleep)
	h.doors = New(changing{h}, h, h.uses)
	if _, err := h.doors.Open(sandbox.Only(t.Context(), "first"), "lab", command); !fault.Is(err, fault.Gone) {
		t.Errorf("got %v", err)
	}
}
