package sandbox

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// maxRows bounds the cached rows.
const maxRows = 10_000

// rows is the Store with a cache by name, so that finding a sandbox costs no query. That is right because Manager, the only
// writer, writes through it, and writes a name only in its turn. A row that it gives shares its maps with the cache: they
// must not be changed.
type rows struct {
	store Store

	mu     sync.RWMutex
	byName map[string]Sandbox
	names  map[string]string // by id, of those in byName
	writes uint64            // counts writes that have ended, so that a read that one has overtaken is not cached
}

func newRows(s Store) *rows {
	return &rows{store: s, byName: map[string]Sandbox{}, names: map[string]string{}}
}

// ByName finds one. See Store.
func (r *rows) ByName(ctx context.Context, name string) (Sandbox, error) {
	r.mu.RLock()
	s, ok := r.byName[name]
	mark := r.writes
	r.mu.RUnlock()
	if ok {
		return s, nil
	}
	s, err := r.store.ByName(ctx, name)
	if err != nil {
		return Sandbox{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writes == mark {
		r.put(s)
	}
	return s, nil
}

// nameOf gives the name of the sandbox with that id when it is remembered, else label: one that was adopted under another
// name keeps the old one on its label.
func (r *rows) nameOf(id, label string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return cmp.Or(r.names[id], label)
}

// Insert adds a sandbox. See Store.
func (r *rows) Insert(ctx context.Context, s Sandbox) error {
	s = asStored(s)
	return r.wrote(s, r.store.Insert(ctx, s))
}

// Update replaces the row of s.ID. See Store.
func (r *rows) Update(ctx context.Context, s Sandbox) error {
	s = asStored(s)
	return r.wrote(s, r.store.Update(ctx, s))
}

// Delete removes the row. See Store.
func (r *rows) Delete(ctx context.Context, id string) error {
	err := r.store.Delete(ctx, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	r.drop(r.names[id])
	return err
}

// wrote caches the row of a write. One that failed may have been stored or not: nothing is cached.
func (r *rows) wrote(s Sandbox, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	if err != nil {
		r.drop(s.Name)
		return err
	}
	r.put(s)
	return nil
}

// put caches s, and drops another row when there are too many. It needs mu.
func (r *rows) put(s Sandbox) {
	r.drop(s.Name)
	if len(r.byName) >= maxRows {
		for name := range r.byName {
			r.drop(name)
			break
		}
	}
	r.byName[s.Name], r.names[s.ID] = s, s.Name
}

// drop removes a name from the cache. It needs mu.
func (r *rows) drop(name string) {
	if s, ok := r.byName[name]; ok {
		delete(r.byName, name)
		delete(r.names, s.ID)
	}
}

// asStored gives s as a store gives it back.
func asStored(s Sandbox) Sandbox {
	s.Created, s.Changed = s.Created.UTC().Truncate(time.Microsecond), s.Changed.UTC().Truncate(time.Microsecond)
	if len(s.Spec.Env) == 0 {
		s.Spec.Env = nil
	}
	return s
}

// stamp is the present as a store returns it.
func stamp() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
