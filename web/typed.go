package web

import (
	"net/url"
	"sync"
	"time"

	"sandboxd/internal/sandbox"
)

const (
	maxTyped  = 200       // forms that are remembered
	typedTime = time.Hour // longer than any creation takes
)

// typedForms remembers what people have typed for sandboxes that are being created, so that a person who cancels is back with it. It is in
// memory alone: there may be secrets among it.
type typedForms struct {
	mu   sync.Mutex
	list []typedForm // the oldest first
}

type typedForm struct {
	box, owner string // ids
	at         time.Time
	fields     url.Values
}

// keep remembers the form that a sandbox is created for.
func (f *typedForms) keep(box sandbox.Sandbox, fields url.Values, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	drop := 0
	for drop < len(f.list) && (len(f.list)-drop >= maxTyped || now.Sub(f.list[drop].at) > typedTime) {
		drop++
	}
	f.list = append(f.list[drop:len(f.list):len(f.list)], typedForm{box.ID, box.Owner, now, fields})
}

// of gives the form of a sandbox to its owner, or nil.
func (f *typedForms) of(box, owner string) url.Values {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.list {
		if t.box == box && t.owner == owner {
			return t.fields
		}
	}
	return nil
}
