// Package semaphore limits concurrency by key. A caller over the limit waits in a bounded queue.
//
// It does not know what it limits, and has no message for people: its users word the refusal.
//
// Invariant: a key takes memory only while it is in use.
package semaphore

import (
	"context"
	"errors"
	"sync"
)

// ErrFull says that too many wait already.
var ErrFull = errors.New("too many wait already")

// Keyed is a semaphore for each key. The zero value is ready; safe for concurrent use.
type Keyed struct {
	mu     sync.Mutex
	places map[string]*place
}

// place is a key's semaphore.
type place struct {
	room  chan struct{}
	users int // in it and before it; guarded by Keyed.mu
}

// Acquire takes one of most places at key, and waits for it until ctx ends, whose error it gives then, if no more than queue wait
// before (a negative queue has no end), else ErrFull. All who use a key at one time name the same most. The caller calls release,
// which may be called again.
func (k *Keyed) Acquire(ctx context.Context, key string, most, queue int) (release func(), err error) {
	p := k.approach(key, most, queue)
	if p == nil {
		return nil, ErrFull
	}
	select {
	case p.room <- struct{}{}:
		return sync.OnceFunc(func() { <-p.room; k.depart(key, p) }), nil
	case <-ctx.Done():
		k.depart(key, p)
		return nil, ctx.Err()
	}
}

// Try takes one of most places at key, as Acquire does, if one is free now.
func (k *Keyed) Try(key string, most int) (release func(), ok bool) {
	release, err := k.Acquire(context.Background(), key, most, 0)
	return release, err == nil
}

// Len is how many keys are in use.
func (k *Keyed) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.places)
}

func (k *Keyed) approach(key string, most, queue int) *place {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.places[key]
	if p == nil {
		p = &place{room: make(chan struct{}, most)}
		if k.places == nil {
			k.places = map[string]*place{}
		}
		k.places[key] = p
	}
	if queue >= 0 && p.users >= most+queue {
		return nil
	}
	p.users++
	return p
}

func (k *Keyed) depart(key string, p *place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(k.places, key)
	}
}
