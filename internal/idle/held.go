package idle

import (
	"slices"
	"time"
)

// hold adds a hold to those of its sandbox. False when there are too many.
func (t *Tracker) hold(one Hold) bool {
	now := time.Now()
	c := t.lock(one.SandboxID, now)
	c.expire(now)
	if len(c.holds) >= maxHolds {
		c.mu.Unlock()
		return false
	}
	c.holds = append(c.holds, one)
	c.appears(Held.bit(), now)
	c.mu.Unlock()
	t.tell(one.SandboxID, true) // also when there was one: a person who sets it waits to see its end
	return true
}

// rehold puts a hold in the place of that of its id. False when there is none, any more.
func (t *Tracker) rehold(one Hold) bool {
	now := time.Now()
	c := t.lock(one.SandboxID, now)
	c.expire(now)
	at := slices.IndexFunc(c.holds, func(h Hold) bool { return h.ID == one.ID })
	if at >= 0 {
		c.holds[at] = one
	}
	c.mu.Unlock()
	t.tell(one.SandboxID, at >= 0)
	return at >= 0
}

// unhold ends a hold: it was a use until now.
func (t *Tracker) unhold(one Hold) {
	now := time.Now()
	c := t.lock(one.SandboxID, now)
	c.expire(now)
	before := len(c.holds)
	c.holds = slices.DeleteFunc(c.holds, func(h Hold) bool { return h.ID == one.ID })
	ended := len(c.holds) < before
	if ended {
		c.stamp(now, byNone)
	}
	c.mu.Unlock()
	t.tell(one.SandboxID, ended)
}

// holdsOf gives the holds of a sandbox which have not expired, the oldest first.
func (t *Tracker) holdsOf(id string) []Hold {
	now := time.Now()
	c := t.shard(id).find(id)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(now)
	found := slices.Clone(c.holds)
	slices.SortStableFunc(found, func(a, b Hold) int { return a.Created.Compare(b.Created) })
	return found
}

// keepHolds drops the holds that keep does not want, wherever they are.
func (t *Tracker) keepHolds(keep func(Hold) bool) {
	t.each(func(_ string, c *clock) {
		c.holds = slices.DeleteFunc(c.holds, func(h Hold) bool { return !keep(h) })
	})
}

// each calls f for every clock, with its lock held.
func (t *Tracker) each(f func(id string, c *clock)) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for id, c := range s.clocks {
			c.mu.Lock()
			f(id, c)
			c.mu.Unlock()
		}
		s.mu.Unlock()
	}
}
