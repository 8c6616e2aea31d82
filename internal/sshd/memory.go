package sshd

import (
	"context"
	"sync"
	"time"
)

// Bounds on what is held of files on their way, in bytes, of each purpose. Nobody's sandboxes together can take it all.
const (
	connectionMemory = 32 << 20
	boxMemory        = 64 << 20
	ownerMemory      = 96 << 20
	allMemory        = 192 << 20
)

// purpose is what memory is for. Each has bounds of its own, as what waits for its turn must not keep out what flows: that ends
// the wait.
type purpose int

// The purposes.
const (
	early   purpose = iota // pieces of uploads whose turn has not come
	flowing                // pieces on their way into a sandbox, which takes them or is given up
	kept                   // what has been read of files
	purposes
)

// memoryLimit is how long what flows may keep others waiting.
const memoryLimit = 2 * time.Minute

const errMemory = refusal("too much is written at once: write less at a time")

// memory counts what is held of files. Safe for concurrent use.
type memory struct {
	mu     sync.Mutex
	all    [purposes]int
	boxes  holdings
	owners holdings
	freed  chan struct{} // closed when something is given back; nil while nobody waits
}

func newMemory() memory { return memory{boxes: holdings{}, owners: holdings{}} }

// holdings are who holds how much.
type holdings map[string][purposes]int

// add adds n bytes to what somebody holds, and forgets who holds nothing.
func (h holdings) add(who string, p purpose, n int) {
	held := h[who]
	held[p] += n
	if held == [purposes]int{} {
		delete(h, who)
		return
	}
	h[who] = held
}

// share is what one connection holds.
type share struct {
	of         *memory
	box, owner string        // ids
	held       [purposes]int // guarded by of.mu
}

// take takes n bytes, if they are there.
func (s *share) take(p purpose, n int) bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.grab(p, n)
}

// grab is take for who has the lock.
func (s *share) grab(p purpose, n int) bool {
	m := s.of
	if s.held[p]+n > connectionMemory || m.boxes[s.box][p]+n > boxMemory || m.owners[s.owner][p]+n > ownerMemory || m.all[p]+n > allMemory {
		return false
	}
	s.add(p, n)
	return true
}

// add counts n bytes more, for who has the lock.
func (s *share) add(p purpose, n int) {
	s.held[p] += n
	s.of.all[p] += n
	s.of.boxes.add(s.box, p, n)
	s.of.owners.add(s.owner, p, n)
}

// await takes n bytes of what flows, as soon as they are there.
func (s *share) await(ctx context.Context, n int) error {
	if s.take(flowing, n) {
		return nil
	}
	late := time.NewTimer(memoryLimit)
	defer late.Stop()
	for {
		ok, freed := s.orFreed(n)
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-late.C:
			return errMemory
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// orFreed takes n bytes of what flows, or says when to try again.
func (s *share) orFreed(n int) (ok bool, freed <-chan struct{}) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.grab(flowing, n) {
		return true, nil
	}
	if s.of.freed == nil {
		s.of.freed = make(chan struct{})
	}
	return false, s.of.freed
}

// give gives n bytes back.
func (s *share) give(p purpose, n int) {
	if n == 0 {
		return
	}
	m := s.of
	m.mu.Lock()
	defer m.mu.Unlock()
	s.add(p, -n)
	if m.freed != nil {
		close(m.freed)
		m.freed = nil
	}
}
