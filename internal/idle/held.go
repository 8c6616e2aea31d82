package idle

import (
	"slices"
	"time"
)

// hold adds a hold to those of name. False when there are too many.
func (t *Tracker) hold(name string, one Hold) bool {
	now := time.Now()
	c := t.lock(name, now)
	c.expire(now)
	if len(c.holds) >= maxHolds {
		c.mu.Unlock()
		return false
	}
	c.holds = append(c.holds, one)
	told := c.appears(Held.bit(), now)
	c.mu.Unlock()
	t.tell(name, told)
	return true
}

// rehold puts a hold in the place of that of its id. False when there is none, any more.
func (t *Tracker) rehold(name string, one Hold) bool {
	now := time.Now()
	c := t.lock(name, now)
	defer c.mu.Unlock()
	c.expire(now)
	at := slices.IndexFunc(c.holds, func(h Hold) bool { return h.ID == one.ID })
	if at >= 0 {
		c.holds[at] = one
	}
	return at >= 0
}

// unhold ends a hold: it was a use until now.
func (t *Tracker) unhold(name string, one Hold) {
	now := time.Now()
	c := t.lock(name, now)
	defer c.mu.Unlock()
	c.expire(now)
	before := len(c.holds)
	c.holds = slices.DeleteFunc(c.holds, func(h Hold) bool { return h.ID == one.ID })
	if len(c.holds) < before {
		c.stamp(now, byNobody)
	}
}

// holdsOf gives the holds of the sandbox of that name and id which have not expired, the oldest first.
func (t *Tracker) holdsOf(name, id string) []Hold {
	now := time.Now()
	c := t.shard(name).find(name)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(now)
	var found []Hold
	for _, h := range c.holds {
		if h.SandboxID == id {
			found = append(found, h)
		}
	}
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
func (t *Tracker) each(f func(name string, c *clock)) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for name, c := range s.clocks {
			c.mu.Lock()
			f(name, c)
			c.mu.Unlock()
		}
		s.mu.Unlock()
	}
}
