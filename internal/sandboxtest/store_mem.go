package sandboxtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// MemStore is a sandbox.Store in memory, which can be told to fail. It passes RunStore. Make it with NewMemStore.
type MemStore struct {
	mu         sync.Mutex
	rows       map[string]sandbox.Sandbox   // by id
	tombstones map[string]sandbox.Tombstone // by name
	holds      map[string]sandbox.Hold      // by id
	ports      memPorts
	fails      map[string][]error // by method; "" for any
}

// NewMemStore makes an empty store.
func NewMemStore() *MemStore {
	return &MemStore{
		rows: map[string]sandbox.Sandbox{}, tombstones: map[string]sandbox.Tombstone{}, holds: map[string]sandbox.Hold{},
		ports: newMemPorts(), fails: map[string][]error{},
	}
}

// FailNext makes the next call of any method give err and do nothing else. Several are given one after the other.
func (m *MemStore) FailNext(err error) { m.FailNextOf("", err) }

// FailNextOf makes the next call of that method ("Insert", "Update", "Delete", "Tombstone", "ByName", "List", and those
// of MemHolds and MemPorts) give err and do nothing else. Several are given one after the other.
func (m *MemStore) FailNextOf(method string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails[method] = append(m.fails[method], err)
}

// enter is the beginning of every method; the caller holds mu.
func (m *MemStore) enter(ctx context.Context, method string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, key := range []string{method, ""} {
		if queue := m.fails[key]; len(queue) > 0 {
			m.fails[key] = queue[1:]
			return queue[0]
		}
	}
	return nil
}

// Insert implements sandbox.Store.
func (m *MemStore) Insert(ctx context.Context, s sandbox.Sandbox) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(ctx, "Insert"); err != nil {
		return err
	}
	if _, ok := m.rows[s.ID]; ok {
		return fault.New(fault.Conflict, "There is a sandbox with the id %s already.", s.ID)
	}
	return m.put(s)
}

// Update implements sandbox.Store.
func (m *MemStore) Update(ctx context.Context, s sandbox.Sandbox) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(ctx, "Update"); err != nil {
		return err
	}
	if _, ok := m.rows[s.ID]; !ok {
		return noSandbox(s.Name)
	}
	return m.put(s)
}

func (m *MemStore) put(s sandbox.Sandbox) error {
	for _, other := range m.rows {
		if other.Name == s.Name && other.ID != s.ID {
			return &fault.Error{Kind: fault.Conflict, Field: "name",
				Message: fmt.Sprintf("There is a sandbox %q already. Choose another name.", s.Name)}
		}
	}
	if err := keepable(s.Created, s.Changed); err != nil {
		return err
	}
	s.Created, s.Changed = kept(s.Created), kept(s.Changed)
	m.rows[s.ID] = copied(s)
	return nil
}

// Delete implements sandbox.Store.
func (m *MemStore) Delete(ctx context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(ctx, "Delete"); err != nil {
		return err
	}
	if s, ok := m.rows[id]; ok && !s.Pooled {
		m.tombstones[s.Name] = sandbox.Tombstone{ID: s.ID, Name: s.Name, Owner: s.Owner, Deleted: kept(time.Now())}
	}
	delete(m.rows, id)
	maps.DeleteFunc(m.holds, func(_ string, h sandbox.Hold) bool { return h.SandboxID == id })
	m.ports.deleteOf(id)
	return nil
}

// Tombstone implements sandbox.Store.
func (m *MemStore) Tombstone(ctx context.Context, name string) (sandbox.Tombstone, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(ctx, "Tombstone"); err != nil {
		return sandbox.Tombstone{}, err
	}
	g, ok := m.tombstones[name]
	if !ok || time.Since(g.Deleted) > tombstoneLife {
		return sandbox.Tombstone{}, fault.New(fault.NotFound, "No sandbox %q was deleted lately.", name)
	}
	return g, nil
}

// tombstoneLife is how long a store remembers a deleted sandbox.
const tombstoneLife = 30 * 24 * time.Hour

// ByName implements sandbox.Store.
func (m *MemStore) ByName(ctx context.Context, name string) (sandbox.Sandbox, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(ctx, "ByName"); err != nil {
		return sandbox.Sandbox{}, err
	}
	for _, s := range m.rows {
		if s.Name == name {
			return copied(s), nil
		}
	}
	return sandbox.Sandbox{}, noSandbox(name)
}

// List implements sandbox.Store.
func (m *MemStore) List(ctx context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(ctx, "List"); err != nil {
		return nil, 0, err
	}
	var all []sandbox.Sandbox
	for _, s := range m.rows {
		if matches(f, s) {
			all = append(all, copied(s))
		}
	}
	slices.SortFunc(all, func(a, b sandbox.Sandbox) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Name, b.Name))
	})
	total := len(all)
	all = all[min(max(f.Offset, 0), total):]
	if f.Limit > 0 {
		all = all[:min(f.Limit, len(all))]
	}
	return all, total, nil
}

func matches(f sandbox.Filter, s sandbox.Sandbox) bool {
	text := strings.ToLower(strings.Join([]string{s.Name, s.Label, s.Spec.Template, s.Spec.Image}, "\n"))
	return (f.Owner == "" || f.Owner == s.Owner) && (f.State == "" || f.State == s.State) &&
		f.Pooled == s.Pooled && (!f.Up || s.State == sandbox.Running || s.State == sandbox.Frozen) &&
		strings.Contains(text, strings.ToLower(f.Query))
}

func noSandbox(name string) error { return fault.New(fault.NotFound, "There is no sandbox %q.", name) }

// copied gives s with a map of its own, nil when empty.
func copied(s sandbox.Sandbox) sandbox.Sandbox {
	s.Spec.Env = maps.Clone(s.Spec.Env)
	if len(s.Spec.Env) == 0 {
		s.Spec.Env = nil
	}
	s.Overrides, s.Revert.Overrides = copiedOverrides(s.Overrides), copiedOverrides(s.Revert.Overrides)
	return s
}

func copiedOverrides(o sandbox.Overrides) sandbox.Overrides {
	if o.IDE != nil {
		on := *o.IDE
		o.IDE = &on
	}
	if len(o.Services) == 0 {
		o.Services = nil
	}
	o.Services = slices.Clone(o.Services)
	for i := range o.Services {
		s := &o.Services[i]
		s.Command, s.Env = slices.Clone(s.Command), maps.Clone(s.Env)
		if s.Health != nil {
			h := *s.Health
			s.Health = &h
		}
	}
	return o
}

// kept is how a store gives a time back.
func kept(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}

// keepable refuses what no store keeps as a time.
func keepable(times ...time.Time) error {
	for _, t := range times {
		if t.UnixMicro() <= 0 || t.Year() > 9999 {
			return fmt.Errorf("time %s cannot be kept", t)
		}
	}
	return nil
}
