package templatetest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"sandboxd/internal/template"
)

// Roots is a template.Roots in memory: what each root was made of, by its id. Safe for concurrent use; set the fields before.
type Roots struct {
	Wrong error         // of each KeepRoot, which leaves its part
	Held  chan struct{} // nil, or KeepRoot waits for it to be closed

	mu   sync.Mutex
	kept map[string]string
}

var _ template.Roots = (*Roots)(nil)

// KeepRoot implements template.Roots.
func (r *Roots) KeepRoot(ctx context.Context, snapshot, id string, home bool) error {
	if home {
		snapshot += " with its home"
	}
	r.mu.Lock()
	if r.kept == nil {
		r.kept = map[string]string{}
	}
	r.kept[id] = snapshot
	r.mu.Unlock()
	if r.Held != nil {
		select {
		case <-r.Held:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return r.Wrong
}

// RemoveRoot implements template.Roots.
func (r *Roots) RemoveRoot(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kept, id)
	return nil
}

// Roots implements template.Roots.
func (r *Roots) Roots(context.Context) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.kept)), nil
}

// Kept gives what the roots were made of, sorted.
func (r *Roots) Kept() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Values(r.kept))
}
