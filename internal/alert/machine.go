package alert

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

const (
	maxOpen   = 1000             // alerts of one rule that are pending or firing
	quiet     = 10 * time.Minute // after which something that happens once is over
	collect   = 30 * time.Second // alerts of a rule that change within it are in one message
	perHour   = 30               // messages of one channel, or to one address
	perOwner  = 100              // messages of all channels of one user, who could add channels without end
	hour      = time.Hour
	textLimit = 300 // bytes of what a sandbox or the engine says
)

// key tells alerts that are open apart.
type key struct{ sandbox, template, part string }

func keyOf(t Target) key {
	if t.SandboxID != "" {
		return key{sandbox: t.SandboxID, part: t.Part}
	}
	return key{template: t.Template, part: t.Part}
}

// entry is an alert that is open. Its own times are of a clock that cannot be set.
type entry struct {
	Alert
	seen   time.Time     // when it was last found to be so
	sure   bool          // that was with the last look
	lasted time.Duration // for how long it was found to be so, without the times between two looks of which one could not say
	told   time.Time     // when the last message about it was queued, else when it fired
}

// machine is what the Service knows between two looks.
type machine struct {
	rules  []Rule
	open   map[string]map[key]*entry // by rule
	groups map[string]*group         // by rule; those that are still added to
	quotas map[string]*quota         // by channel, and by quotaOwner and quotaTo
}

func newMachine() *machine {
	return &machine{open: map[string]map[key]*entry{}, groups: map[string]*group{}, quotas: map[string]*quota{}}
}

// byID finds an alert that is open, or nil.
func (m *machine) byID(id string) *entry {
	for _, of := range m.open {
		for _, e := range of {
			if e.ID == id {
				return e
			}
		}
	}
	return nil
}

// adopt takes an alert that fired before a restart.
func (m *machine) adopt(a Alert, now, clock time.Time) {
	told := a.Reminded
	if told.IsZero() {
		told = a.Fired
	}
	age := max(clock.Sub(told), 0)
	of := m.open[a.RuleID]
	if of == nil {
		of = map[key]*entry{}
		m.open[a.RuleID] = of
	}
	of[keyOf(a.Target)] = &entry{Alert: a, seen: now, told: now.Add(-age)}
}

// admitTest counts a message that a user has asked for, if there is room for it.
func (m *machine) admitTest(c Channel, now time.Time) error {
	tests, to, of := m.quotas[quotaTests(c)].at(now), m.quotas[quotaTo(c)].at(now), m.quotas[c.ID].at(now)
	if wait := tests.free(perHour, now); wait > 0 {
		return fault.Later(fault.Limited, wait, "You sent %d test messages within the last hour. Try again later.", perHour)
	}
	if wait := max(to.free(perHour, now), of.free(perHour, now)); wait > 0 {
		return fault.Later(fault.Limited, wait, "%d messages went to this channel or its address within the last hour. Try again later.", perHour)
	}
	for key, q := range map[string]*quota{quotaTests(c): tests, quotaTo(c): to, c.ID: of} {
		q.queued = append(q.queued, now)
		m.quotas[key] = q
	}
	return nil
}

// forget lets go of quotas that bound nothing any more.
func (m *machine) forget(now time.Time) {
	maps.DeleteFunc(m.quotas, func(_ string, q *quota) bool {
		q = q.at(now)
		return len(q.queued) == 0 && q.held == nil && q.quiet(now)
	})
}

// change is what one look changes. Nothing of it is in the machine before it is kept.
type change struct {
	m     *machine
	now   time.Time // of a clock that cannot be set
	clock time.Time
	link  string
	find  func(channel string) (Channel, bool)

	edited map[string]map[key]*entry // by rule
	groups map[string]*group
	quotas map[string]*quota
	fired  []*entry // by this change
	ended  []*entry // resolved by it
	dirty  map[*entry]bool
	queue  map[string]Delivery
	begun  map[string]int // alerts that are pending by this change, by rule
	over   map[string]int // and those that are left out because there are too many
}

// change begins one. now is for how long something takes, clock is what people read: it may have been set meanwhile.
func (m *machine) change(now, clock time.Time) *change {
	return &change{m: m, now: now, clock: clock.Round(0).UTC(), edited: map[string]map[key]*entry{}, groups: map[string]*group{},
		quotas: map[string]*quota{}, dirty: map[*entry]bool{}, queue: map[string]Delivery{}, begun: map[string]int{}, over: map[string]int{}}
}

// entry gives an alert that is open as it is after the change so far; nil when there is none.
func (c *change) entry(rule string, k key) *entry {
	if e, ok := c.edited[rule][k]; ok {
		return e
	}
	return c.m.open[rule][k]
}

// edit gives an entry that may be changed.
func (c *change) edit(rule string, k key) *entry {
	of := c.edited[rule]
	if of == nil {
		of = map[key]*entry{}
		c.edited[rule] = of
	}
	if e := of[k]; e != nil {
		return e
	}
	e := *c.m.open[rule][k]
	of[k] = &e
	return &e
}

// drop lets go of a pending alert.
func (c *change) drop(rule string, k key) {
	c.edit(rule, k)
	c.edited[rule][k] = nil
}

// judge brings the alerts of a rule in step with what was found.
func (c *change) judge(r *Rule, f findings) {
	if !f.known {
		return
	}
	told := make(map[key]bool, len(f.told))
	for _, t := range f.told {
		k := keyOf(t.target)
		told[k] = true
		c.take(r, k, t)
	}
	for k, e := range c.m.open[r.ID] {
		switch {
		case told[k]:
		case f.unsure[k.sandbox]:
			c.edit(r.ID, k).sure = false
		case e.State == Firing && f.cured != nil && f.cured(k.sandbox):
			c.resolve(c.edit(r.ID, k))
		default:
			c.well(r, k, e)
		}
	}
}

// take brings one alert in step with one reading.
func (c *change) take(r *Rule, k key, t reading) {
	e := c.entry(r.ID, k)
	if t.verdict == bad {
		c.bad(r, k, e, t)
		return
	}
	switch {
	case e == nil:
	case t.verdict == unsure || t.verdict == near && e.State == Firing:
		c.edit(r.ID, k).sure = false
	case e.State == Pending:
		c.drop(r.ID, k)
	}
}

// bad is for what is wrong now.
func (c *change) bad(r *Rule, k key, e *entry, t reading) {
	if e == nil {
		if !c.begin(r, k, t.target) {
			return
		}
	}
	e = c.edit(r.ID, k)
	if e.sure {
		e.lasted += c.now.Sub(e.seen)
	}
	e.seen, e.sure, e.Text, e.Target = c.now, true, t.text, t.target
	if e.State == Pending && e.lasted >= r.For {
		e.State, e.Fired, e.told, e.Rule = Firing, c.clock, c.now, r.Name
		c.fired = append(c.fired, e)
		c.dirty[e] = true
	}
}

// begin makes a pending alert, unless there are too many.
func (c *change) begin(r *Rule, k key, t Target) bool {
	of := c.edited[r.ID]
	if of == nil {
		of = map[key]*entry{}
		c.edited[r.ID] = of
	}
	if len(c.m.open[r.ID])+c.begun[r.ID] >= maxOpen {
		c.over[r.ID]++
		return false
	}
	c.begun[r.ID]++
	of[k] = &entry{Alert: Alert{ID: sandbox.NewID(), RuleID: r.ID, Rule: r.Name, Owner: r.Owner, Kind: r.Kind, Target: t, State: Pending, Since: c.clock}, seen: c.now}
	return true
}

// well is for what is not wrong any more.
func (c *change) well(r *Rule, k key, e *entry) {
	switch {
	case e.State == Pending:
		c.drop(r.ID, k)
	case c.now.Sub(e.seen) >= linger(r.Kind):
		c.resolve(c.edit(r.ID, k))
	}
}

// linger is how long it must be well before an alert is resolved.
func linger(k Kind) time.Duration {
	if k == OOMKill || k == Broken || k == LogLine {
		return quiet
	}
	return 0
}

func (c *change) resolve(e *entry) {
	e.State, e.Resolved = Resolved, c.clock
	if e.Resolved.Before(e.Fired) { // the clock was put back
		e.Resolved = e.Fired
	}
	c.ended = append(c.ended, e)
	c.dirty[e] = true
}

// put gives the alerts that must be kept.
func (c *change) put() []Alert {
	var out []Alert
	for e := range c.dirty {
		out = append(out, e.Alert)
	}
	slices.SortFunc(out, func(a, b Alert) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// deliveries gives those that must be kept.
func (c *change) deliveries() []Delivery {
	return slices.SortedFunc(maps.Values(c.queue), func(a, b Delivery) int { return cmp.Compare(a.ID, b.ID) })
}

// install puts the change into the machine, once it is kept.
func (c *change) install() {
	for rule, edited := range c.edited {
		of := c.m.open[rule]
		if of == nil {
			of = map[key]*entry{}
			c.m.open[rule] = of
		}
		for k, e := range edited {
			if e == nil || e.State == Resolved {
				delete(of, k)
			} else {
				of[k] = e
			}
		}
		if len(of) == 0 {
			delete(c.m.open, rule)
		}
	}
	maps.Copy(c.m.groups, c.groups)
	maps.Copy(c.m.quotas, c.quotas)
}
