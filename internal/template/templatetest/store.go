// Package templatetest has a store of templates in memory, for tests, and the contract of all stores.
//
// It is for tests alone.
//
// Invariant: Memory passes StoreContract, as the real store does.
package templatetest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/template"
)

// Memory is a template.Store. The zero value is ready; safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	sources map[string]template.Source
	plans   map[string]template.Plan
	builds  []template.Build // the oldest first
	last    int64
}

var _ template.Store = (*Memory)(nil)

// Sources gives all, by template.
func (m *Memory) Sources(context.Context) ([]template.Source, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Collect(maps.Values(m.sources))
	slices.SortFunc(list, func(a, b template.Source) int { return cmp.Compare(a.Template, b.Template) })
	return list, nil
}

// PutSource adds or replaces one.
func (m *Memory) PutSource(_ context.Context, s template.Source) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sources == nil {
		m.sources = map[string]template.Source{}
	}
	m.sources[s.Template] = s
	return nil
}

// DeleteSource deletes one.
func (m *Memory) DeleteSource(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sources, name)
	return nil
}

// Plans gives all, by template.
func (m *Memory) Plans(context.Context) ([]template.Plan, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Collect(maps.Values(m.plans))
	slices.SortFunc(list, func(a, b template.Plan) int { return cmp.Compare(a.Template, b.Template) })
	return list, nil
}

// PutPlan adds or replaces one.
func (m *Memory) PutPlan(_ context.Context, p template.Plan) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.plans == nil {
		m.plans = map[string]template.Plan{}
	}
	m.plans[p.Template] = p
	return nil
}

// DeletePlan deletes one.
func (m *Memory) DeletePlan(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.plans, name)
	return nil
}

// Begin adds a build.
func (m *Memory) Begin(_ context.Context, b template.Build) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	b.ID = m.last
	m.builds = append(m.builds, b)
	n := 0
	for i := len(m.builds) - 1; i >= 0; i-- {
		if m.builds[i].Template != b.Template {
			continue
		}
		if n++; n > template.KeptBuilds {
			m.builds = slices.Delete(m.builds, i, i+1)
		}
	}
	return b.ID, nil
}

// End keeps how a build has ended.
func (m *Memory) End(_ context.Context, b template.Build) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.builds {
		if old := &m.builds[i]; old.ID == b.ID {
			old.State, old.Problem, old.Ended, old.Log = b.State, b.Problem, b.Ended, b.Log
		}
	}
	return nil
}

// Builds gives the newest builds of a template.
func (m *Memory) Builds(_ context.Context, name string) (list []template.Build, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range slices.Backward(m.builds) {
		if b.Template == name {
			b.Log = ""
			list = append(list, b)
		}
	}
	return list, nil
}

// Build gives one with its log.
func (m *Memory) Build(_ context.Context, name string, id int64) (template.Build, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.builds {
		if b.ID == id && b.Template == name {
			return b, nil
		}
	}
	return template.Build{}, template.NoBuild(name, id)
}

// Cut marks builds without an end.
func (m *Memory) Cut(_ context.Context, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.builds {
		if b := &m.builds[i]; b.State == template.Running {
			b.State, b.Ended = template.CutOff, at
		}
	}
	return nil
}

// DeleteBuilds deletes those of a template.
func (m *Memory) DeleteBuilds(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.builds = slices.DeleteFunc(m.builds, func(b template.Build) bool { return b.Template == name })
	return nil
}
