package docker

import (
	"context"
	"sync"
)

// keyed is a set of locks by name that can be waited for with a context.
type keyed struct {
	mu    sync.Mutex
	locks map[string]*keyedLock
}

type keyedLock struct {
	turn  chan struct{} // holds one token while locked
	users int           // holders and waiters
}

func newKeyed() keyed { return keyed{locks: map[string]*keyedLock{}} }

// lock waits for its turn at key until ctx ends. The caller calls unlock once.
func (k *keyed) lock(ctx context.Context, key string) (unlock func(), err error) {
	l := k.join(key)
	select {
	case l.turn <- struct{}{}:
		return func() { <-l.turn; k.leave(key, l) }, nil
	case <-ctx.Done():
		k.leave(key, l)
		return nil, ctx.Err()
	}
}

func (k *keyed) join(key string) *keyedLock {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.locks[key]
	if l == nil {
		l = &keyedLock{turn: make(chan struct{}, 1)}
		k.locks[key] = l
	}
	l.users++
	return l
}

func (k *keyed) leave(key string, l *keyedLock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(k.locks, key)
	}
}
