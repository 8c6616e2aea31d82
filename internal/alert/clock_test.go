package alert

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// clocks are one that cannot be set and one that is.
type clocks struct {
	t          *testing.T
	m          *machine
	now, clock time.Time
	told       []string // subjects
}

// after lets time pass, looks, and keeps what the look changes.
func (c *clocks) after(d time.Duration, r Rule, f findings) {
	c.now, c.clock = c.now.Add(d), c.clock.Add(d)
	x := c.m.change(c.now, c.clock)
	x.find = func(id string) (Channel, bool) { return Channel{ID: id}, true }
	x.judge(&r, f)
	x.tell(&r, x.fired, x.ended)
	x.remind(&r)
	for _, d := range x.deliveries() {
		c.told = append(c.told, d.Message.Subject)
	}
	x.install()
}

func (c *clocks) want(when string, state State, told ...string) *entry {
	c.t.Helper()
	e := c.m.open["r"][key{sandbox: "s"}]
	got := State("")
	if e != nil {
		got = e.State
	}
	if got != state || fmt.Sprint(c.told) != fmt.Sprint(told) {
		c.t.Errorf("%s: %q, told %q; want %q, %q", when, got, c.told, state, told)
	}
	c.told = nil
	return e
}

func TestMachine_ClockThatIsSetFiresResolvesAndRemindsNothing(t *testing.T) {
	for _, jump := range []time.Duration{48 * time.Hour, -48 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			start := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
			c := &clocks{t: t, m: newMachine(), now: start, clock: start}
			r := Rule{ID: "r", Kind: OOMKill, For: 5 * time.Minute, Remind: 2 * time.Hour, Channels: []string{"c"}}
			wrong := findings{known: true, told: []reading{{Target{SandboxID: "s", Sandbox: "lab"}, bad, "bad"}}}
			well := findings{known: true}
			c.after(0, r, wrong)
			c.clock = c.clock.Add(jump)
			c.after(4*time.Minute, r, wrong)
			c.want("pending", Pending)
			c.after(time.Minute, r, wrong)
			c.want("after five minutes", Firing, "lab: out of memory")
			c.clock = c.clock.Add(jump)
			c.after(time.Hour, r, wrong)
			c.want("after an hour", Firing)
			c.after(9*time.Minute, r, well)
			c.want("after nine quiet minutes", Firing)
			c.after(51*time.Minute, r, wrong)
			if got := c.told; len(got) != 1 {
				t.Errorf("after two hours: %q", got)
			}
			e := c.m.open["r"][key{sandbox: "s"}]
			c.told = nil
			c.clock = c.clock.Add(jump)
			c.after(11*time.Minute, r, well)
			c.want("resolved", "", "Resolved: lab: out of memory")
			if e.Fired.IsZero() {
				t.Error("it has not fired")
			}
		})
	}
}

func TestMachine_TimesOfAResolvedAlertAreInOrder(t *testing.T) {
	start := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	c := &clocks{t: t, m: newMachine(), now: start, clock: start}
	r := Rule{ID: "r", Kind: Memory}
	c.after(0, r, findings{known: true, told: []reading{{Target{SandboxID: "s"}, bad, "bad"}}})
	x := c.m.change(c.now.Add(time.Minute), c.clock.Add(-time.Hour))
	x.judge(&r, findings{known: true})
	if got := x.put(); len(got) != 1 || got[0].Resolved.Before(got[0].Fired) {
		t.Errorf("%+v", got)
	}
}

func TestMachine_AdoptsWhatWasToldInTheFuture(t *testing.T) {
	m, now := newMachine(), time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	m.adopt(Alert{ID: "a", RuleID: "r", State: Firing, Fired: now.Add(time.Hour), Reminded: now.Add(2 * time.Hour)}, now, now)
	if e := m.byID("a"); !e.told.Equal(now) {
		t.Errorf("told at %s", e.told)
	}
}

// nowhere is a Store that keeps what rules there are.
type nowhere struct {
	Store
	rules []Rule
}

func (n nowhere) Rules(context.Context) ([]Rule, error)                       { return slices.Clone(n.rules), nil }
func (n nowhere) Channels(context.Context) ([]Channel, error)                 { return nil, nil }
func (n nowhere) Open(context.Context) ([]Alert, error)                       { return nil, nil }
func (n nowhere) PutAlerts(context.Context, []Alert, []Delivery) error        { return nil }
func (n nowhere) Deliveries(context.Context, string, int) ([]Delivery, error) { return nil, nil }
func (n nowhere) SetRules(_ context.Context, _ string, _ []Rule) error        { return nil }

// BenchmarkLook looks at a thousand sandboxes of a hundred users, by the first rules of an installation and one of each user. Every
// tenth sandbox has its memory nearly full.
func BenchmarkLook(b *testing.B) {
	const boxes, users = 1000, 100
	rules := Defaults()
	for i := range rules {
		rules[i].ID, rules[i].For = fmt.Sprint("r", i), 0
	}
	for i := range users {
		rules = append(rules, Rule{ID: fmt.Sprint("m", i), Owner: fmt.Sprint("user", i), Name: "mine", Kind: Memory, Threshold: 80})
	}
	all := make([]sandbox.Sandbox, boxes)
	up := map[string][]wire.ServiceStatus{}
	used := map[string]int64{}
	for i := range all {
		id := fmt.Sprintf("%016d", i)
		all[i] = sandbox.Sandbox{ID: id, Name: fmt.Sprint("box-", i), Owner: fmt.Sprint("user", i%users), State: sandbox.Running}
		up[id] = []wire.ServiceStatus{{Name: "web", Health: wire.HealthHealthy}, {Name: "db"}}
		if used[id] = 10; i%10 == 0 {
			used[id] = 95
		}
	}
	s := New(Config{Store: nowhere{rules: rules}, Log: slog.New(slog.DiscardHandler), Sources: Sources{
		Sandboxes: func(context.Context) ([]sandbox.Sandbox, error) { return all, nil },
		Services:  func(context.Context, []sandbox.Sandbox) (map[string][]wire.ServiceStatus, error) { return up, nil },
		Usage: func(id string) (metrics.Point, bool) {
			return metrics.Point{Time: time.Now(), Memory: used[id], MemoryLimit: 100}, true
		},
		OOMKills: func(string) int64 { return 0 },
		HomeSize: func(string) (int64, time.Time, bool) { return 1 << 30, time.Now(), true },
		Host:     func(context.Context) (metrics.Host, error) { return metrics.Host{MemoryTotal: 100, DiskFree: 100}, nil },
	}})
	b.ReportAllocs()
	for b.Loop() {
		s.looks.services.next = time.Time{} // all of them each time
		s.look(b.Context())
	}
	if n := s.Firing(Scope{All: true}); n != 100+100 {
		b.Errorf("%d fire", n)
	}
}
