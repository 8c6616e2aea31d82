package idle

import (
	"hash/maphash"
	"sync"
	"time"

	"sandboxd/internal/event"
)

// shardCount spreads ids so that sandboxes do not wait for one another.
const shardCount = 64

// changeBuffer is how many changes a subscriber may fall behind.
const changeBuffer = 256

// Tracker keeps what uses which sandbox, by ID, in memory: after a restart of sandboxd everything begins afresh. All
// methods are safe for concurrent use, never block on anything but memory, and take any ID, known or not.
type Tracker struct {
	seed   maphash.Seed
	bus    *event.Bus[Change]
	shards [shardCount]shard
}

type shard struct {
	mu     sync.RWMutex
	clocks map[string]*clock
}

// New makes an empty tracker.
func New() *Tracker {
	t := &Tracker{seed: maphash.MakeSeed(), bus: event.NewBus[Change](changeBuffer)}
	for i := range t.shards {
		t.shards[i].clocks = map[string]*clock{}
	}
	return t
}

// Begin registers a use that lasts until the lease's End, whatever goes through it: a request in flight, a command. An
// unattended one counts only as long as unattended use counts.
func (t *Tracker) Begin(id string, u Use) *Lease { return t.lease(id, u, false) }

// Watch registers a use that counts only when something happens in it: a stream, a WebSocket, a terminal. Opening it is
// its first Touch, unattended or not as u says.
func (t *Tracker) Watch(id string, u Use) *Lease { return t.lease(id, u, true) }

func (t *Tracker) lease(id string, u Use, watch bool) *Lease {
	now := time.Now()
	l := &Lease{t: t, id: id, use: u, bit: u.Kind.bit(), watch: watch, since: now}
	c := t.lock(id, now)
	l.clock = c
	c.push(l)
	counts := c.stamp(now, u.by())
	if counts {
		l.touched = now
	}
	told := counts && c.appears(l.bit, now)
	c.mu.Unlock()
	t.tell(id, told)
	return l
}

// Touch registers a moment of use. Work and models count, but make no page attended.
func (t *Tracker) Touch(id string, u Use) {
	now := time.Now()
	c := t.lock(id, now)
	told := c.moment(u, u.by(), now) && c.appears(u.Kind.bit(), now)
	c.mu.Unlock()
	t.tell(id, told)
}

// Reset starts a sandbox's clock afresh: it was created, started or woken. It ends no use, and is no attended one.
func (t *Tracker) Reset(id string) {
	now := time.Now()
	c := t.lock(id, now)
	defer c.mu.Unlock()
	c.fresh, c.known = now, true
}

// Dismiss notes that a sandbox is put to rest by hand. Until the next attended use no unattended one counts. The end of a use that
// was under way is no new use. again, called once it is at rest, makes up for attended uses that have begun and ended meanwhile:
// what had begun before Dismiss still is no reason to wake it.
func (t *Tracker) Dismiss(id string) (again func()) {
	now := time.Now()
	again = func() {
		c := t.lock(id, now)
		defer c.mu.Unlock()
		for l := c.first; l != nil; l = l.next {
			if !l.watch && !l.use.Unattended && l.since.After(now) {
				return // it is under way, and wakes the sandbox
			}
		}
		c.dismissed, c.known = now, true
	}
	again()
	return again
}

// Forget drops a deleted sandbox with its holds, except leases that have not ended.
func (t *Tracker) Forget(id string) {
	s := t.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clocks[id]
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first != nil {
		c.keepLeases(time.Now())
		return
	}
	c.gone = true
	delete(s.clocks, id)
}

// Heartbeat notes that key (who asks for what) asks, and reports whether that is a timer's doing: it has come at
// four equal pauses. It remembers the 16 keys of a sandbox that asked last.
func (t *Tracker) Heartbeat(id, key string) bool {
	now := time.Now()
	hash := maphash.String(t.seed, key)
	c := t.lock(id, now)
	defer c.mu.Unlock()
	return c.heartbeats.Is(hash, now)
}

// Counts says whether an unattended use would count now.
func (t *Tracker) Counts(id string) bool {
	now := time.Now()
	c := t.lock(id, now)
	defer c.mu.Unlock()
	return !now.After(c.limit())
}

// Status gives what uses a sandbox now, or since when nothing does. One that was never heard of is unused from now.
func (t *Tracker) Status(id string) Status {
	now := time.Now()
	c := t.shard(id).find(id)
	if c == nil {
		return Status{Idle: now, last: now, free: now}
	}
	return c.status(now)
}

// Subscribe gives a Change whenever a kind of use appears (at once) or disappears (with the reaper's next pass) in a
// sandbox, at most once a second for each; and whenever a hold is placed, renewed or revoked. The caller must Close it.
func (t *Tracker) Subscribe() *event.Subscription[Change] { return t.bus.Subscribe() }

func (t *Tracker) tell(id string, changed bool) {
	if changed {
		t.bus.Publish(Change{ID: id})
	}
}

// note makes a sandbox that is up known, from now if it was not, and tells subscribers what time alone has changed.
func (t *Tracker) note(id string) {
	now := time.Now()
	c := t.lock(id, now)
	if !c.known {
		c.fresh, c.known = now, true
	}
	present := c.present(now)
	changed := present != c.told && now.Sub(c.toldAt) >= tellEvery
	if changed {
		c.told, c.toldAt = present, now
	}
	c.mu.Unlock()
	t.tell(id, changed)
}

// setExisting says which sandboxes exist: all others are gone.
func (t *Tracker) setExisting(ids map[string]bool) {
	t.each(func(id string, c *clock) { c.known = c.known && ids[id] })
}

// prune drops what no sandbox is called, once nothing that was done to it counts any more.
func (t *Tracker) prune() {
	now := time.Now()
	t.each(func(id string, c *clock) {
		if c.empty(now) {
			c.gone = true
			delete(t.shard(id).clocks, id)
		}
	})
}

func (t *Tracker) shard(id string) *shard {
	return &t.shards[maphash.String(t.seed, id)%shardCount]
}

// lock gives the clock of that id, made if needed, with its lock held.
func (t *Tracker) lock(id string, now time.Time) *clock {
	s := t.shard(id)
	for {
		c := s.find(id)
		if c == nil {
			c = s.add(id, now)
		}
		c.mu.Lock()
		if !c.gone {
			return c
		}
		c.mu.Unlock()
	}
}

// find gives the clock of that id, or nil.
func (s *shard) find(id string) *clock {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.clocks[id]
}

func (s *shard) add(id string, now time.Time) *clock {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clocks[id]
	if c == nil {
		c = &clock{stamps: stamps{seen: now, fresh: now}}
		s.clocks[id] = c
	}
	return c
}
