package alert

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/sandbox"
)

// group is a message that alerts are still added to. Its deliveries wait meanwhile.
type group struct {
	until      time.Time // of a clock that cannot be set
	message    Message
	deliveries []Delivery
}

// quota counts what a channel is sent, or an address, or by whom.
type quota struct {
	queued []time.Time // within the last hour
	held   *held
	said   time.Time // when the last held one was begun
	left   time.Time // when it was last put on record that a message was left out
}

// The quotas of more than a channel.
func quotaOwner(c Channel) string { return "owner " + c.Owner }
func quotaTests(c Channel) string { return "tests " + c.Owner }
func quotaTo(c Channel) string {
	return "to " + c.Owner + " " + string(c.Kind) + " " + strings.ToLower(c.Address)
} // of each owner: else one could use up that of another

// quiet reports whether what it last said is more than an hour ago.
func (q *quota) quiet(now time.Time) bool {
	return now.Sub(q.said) >= hour && now.Sub(q.left) >= hour
}

// held is the message that says how many were not sent.
type held struct {
	until    time.Time
	n        int
	delivery Delivery
}

// heldWhy is what follows their number in the subject.
var heldWhy = fmt.Sprintf(" not sent: more than %d within an hour. The Alerts page has them.", perHour)

// adoptHeld takes one from before a restart, whose subject has the number.
func adoptHeld(d Delivery, until time.Time) *held {
	number, _, _ := strings.Cut(d.Message.Subject, " ")
	n, _ := strconv.Atoi(number) // another text counts as none, and the next one that is held rewrites it
	return &held{until: until, n: n, delivery: d}
}

// at gives a copy as of now.
func (q *quota) at(now time.Time) *quota {
	out := &quota{}
	if q == nil {
		return out
	}
	out.said, out.left = q.said, q.left
	for _, t := range q.queued {
		if now.Sub(t) < hour {
			out.queued = append(out.queued, t)
		}
	}
	if q.held != nil && now.Before(q.held.until) {
		h := *q.held
		out.held = &h
	}
	return out
}

// free is how long it takes until there is room for one of so many within an hour; 0 when there is.
func (q *quota) free(most int, now time.Time) time.Duration {
	if len(q.queued) < most {
		return 0
	}
	return q.queued[len(q.queued)-most].Add(hour).Sub(now)
}

// silent reports whether nothing is to be told of an alert.
func (c *change) silent(r *Rule, e *entry) bool {
	return r.Muted.After(c.clock) || e.Muted.After(c.clock)
}

// tell puts what this change has begun and ended into messages: one for each rule, or the one that is still open.
func (c *change) tell(r *Rule, fired, ended []*entry) {
	loud := func(list []*entry) []*entry {
		return slices.DeleteFunc(slices.Clone(list), func(e *entry) bool { return c.silent(r, e) })
	}
	fired, ended = loud(fired), loud(ended)
	if len(fired)+len(ended) == 0 {
		return
	}
	g := c.m.groups[r.ID]
	if g != nil && c.now.Before(g.until) {
		g = &group{until: g.until, message: g.message, deliveries: slices.Clone(g.deliveries)}
	} else {
		g = &group{until: c.now.Add(collect), message: c.message(r)}
		g.deliveries = c.deliver(r, g.message, c.clock.Add(collect))
	}
	c.groups[r.ID] = g
	g.message.add(fired, ended)
	c.stamp(g.message, g.deliveries, fired)
}

// stamp gives deliveries their message, queues them, and notes what they tell of.
func (c *change) stamp(m Message, to []Delivery, about []*entry) {
	for i := range to {
		to[i].Message = m
		c.queue[to[i].ID] = to[i]
	}
	if len(to) == 0 {
		return
	}
	for _, e := range about {
		e.Reminded, e.told = c.clock, c.now
		c.dirty[e] = true
	}
}

func (c *change) message(r *Rule) Message {
	return Message{ID: sandbox.NewID(), Time: c.clock, Rule: r.Name, Kind: r.Kind, Link: c.link}
}

// deliver makes deliveries of a message to the channels of a rule that have room for one.
func (c *change) deliver(r *Rule, m Message, next time.Time) (out []Delivery) {
	for _, id := range r.Channels {
		channel, ok := c.find(id)
		if !ok {
			continue
		}
		q, d := c.quota(id), Delivery{ID: sandbox.NewID(), Channel: id, Message: m, Created: c.clock, Next: next}
		switch {
		case q.free(perHour, c.now) > 0:
			c.hold(channel, q)
		case c.admit(channel, perHour):
			q.queued = append(q.queued, c.now)
			out = append(out, d)
		case c.now.Sub(q.left) >= hour:
			q.left = c.now
			d.GivenUp, d.Next, d.Problem = true, time.Time{}, tooMany
			out = append(out, d)
		}
	}
	return out
}

// tooMany is why a message is given up, and others within the next hour without a word.
var tooMany = fmt.Sprintf("Not sent: more than %d messages to this address, or more than %d to all your channels, within an hour.", perHour, perOwner)

// quota gives one that may be changed.
func (c *change) quota(key string) *quota {
	q, ok := c.quotas[key]
	if !ok {
		q = c.m.quotas[key].at(c.now)
		c.quotas[key] = q
	}
	return q
}

// admit counts a message to an address, and of a user, to wherever, if both have room. Without it, who deletes channels and adds them
// again could send without end.
func (c *change) admit(channel Channel, most int) bool {
	to, of := c.quota(quotaTo(channel)), c.quota(quotaOwner(channel))
	if to.free(most, c.now) > 0 || channel.Owner != "" && of.free(perOwner, c.now) > 0 {
		return false
	}
	to.queued, of.queued = append(to.queued, c.now), append(of.queued, c.now)
	return true
}

// hold counts a message that is not sent. At most once in an hour another one says how many there were.
func (c *change) hold(channel Channel, q *quota) {
	if q.held == nil {
		wait := max(q.free(perHour, c.now), q.said.Add(hour).Sub(c.now))
		if !c.admit(channel, perHour+1) {
			return
		}
		q.said = c.now
		m := Message{ID: sandbox.NewID(), Time: c.clock, Event: Held, Link: c.link}
		q.held = &held{until: c.now.Add(wait), delivery: Delivery{ID: sandbox.NewID(), Channel: channel.ID, Message: m, Created: c.clock, Next: c.clock.Add(wait)}}
	}
	h := q.held
	h.n++
	h.delivery.Message.Subject = counted(h.n, "message was", "messages were") + heldWhy
	c.queue[h.delivery.ID] = h.delivery
}

// remind queues a reminder of all alerts of a rule that fire, when the last message about one of them was long enough ago.
func (c *change) remind(r *Rule) {
	if r.Remind == 0 {
		return
	}
	var list []key
	due := false
	for k := range c.m.open[r.ID] {
		e := c.entry(r.ID, k)
		if e == nil || e.State != Firing || c.silent(r, e) {
			continue
		}
		list = append(list, k)
		due = due || c.now.Sub(e.told) >= r.Remind
	}
	if !due {
		return
	}
	m := c.message(r)
	entries := make([]*entry, 0, len(list))
	longest := time.Duration(0)
	for _, k := range list {
		e := c.edit(r.ID, k)
		e.told = c.now // also when no channel has room for it
		entries = append(entries, e)
		longest = max(longest, c.clock.Sub(e.Since))
	}
	m.add(entries, nil)
	m.Event, m.Subject = Reminder, fmt.Sprintf("Still after %s: %s", roughly(longest), m.Subject)
	c.stamp(m, c.deliver(r, m, c.clock), entries)
}

// add puts alerts into a message. One that is resolved is not among those that fire any more.
func (m *Message) add(fired, ended []*entry) {
	firing, resolved := slices.Clone(m.Firing), slices.Clone(m.Resolved)
	for _, e := range fired {
		firing = append(firing, e.Alert)
	}
	for _, e := range ended {
		firing = slices.DeleteFunc(firing, func(a Alert) bool { return a.ID == e.ID })
		resolved = append(resolved, e.Alert)
	}
	byName := func(a, b Alert) int {
		return cmp.Or(strings.Compare(a.Target.name(), b.Target.name()), strings.Compare(a.Target.Part, b.Target.Part), strings.Compare(a.ID, b.ID))
	}
	slices.SortFunc(firing, byName)
	slices.SortFunc(resolved, byName)
	m.Firing, m.Resolved = firing, resolved
	m.Event, m.Subject = Fired, m.subject(firing)
	switch {
	case len(firing) == 0:
		m.Event, m.Subject = Ended, "Resolved: "+m.subject(resolved)
	case len(resolved) > 0:
		m.Subject += fmt.Sprintf("; %d resolved", len(resolved))
	}
}

// name is what a target is called.
func (t Target) name() string { return cmp.Or(t.Sandbox, t.SandboxID, t.Template) }

// subject says in a line what is wrong with whom. Of a log line the rule's name says more than its kind.
func (m *Message) subject(list []Alert) string {
	k := m.Kind
	noun, phrase := "sandboxes", kinds[k].phrase
	if k == LogLine {
		phrase = m.Rule
	}
	if k == ServiceDown {
		noun = "services"
	}
	if k == BuildFailed {
		noun = "templates"
	}
	if k == BackupMissed {
		noun = "schedules"
	}
	if len(list) != 1 {
		return fmt.Sprintf("%d %s: %s", len(list), noun, phrase)
	}
	who := list[0].Target.name()
	if k.OfHost() {
		who = "host"
	}
	if part := list[0].Target.Part; who == "" {
		who = part
	} else if part != "" {
		who += ", " + part
	}
	return who + ": " + phrase
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// roughly writes a duration in its largest unit.
func roughly(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", (d+12*time.Hour)/(24*time.Hour))
	case d >= time.Hour-30*time.Second:
		return fmt.Sprintf("%d h", (d+30*time.Minute)/time.Hour)
	}
	return fmt.Sprintf("%d min", (max(d, 0)+30*time.Second)/time.Minute)
}
