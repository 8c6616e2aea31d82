package web

import (
	"sync"
	"time"
)

// fakeUses says when sandboxes were used last.
type fakeUses struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// Last implements LastUses.
func (f *fakeUses) Last(id string) (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, used := f.last[id]
	return at, used
}

// Note implements LastUses.
func (f *fakeUses) Note(id string) { f.set(id, time.Now()) }

// set says when one was used; never for the zero time.
func (f *fakeUses) set(id string, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last[id] = at; at.IsZero() {
		delete(f.last, id)
	}
}
