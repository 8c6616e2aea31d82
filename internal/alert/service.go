package alert

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

const (
	backlog    = 256 // events that a subscriber may fall behind
	sendLimit  = 30 * time.Second
	shownLast  = 50                   // deliveries of one channel
	mutedLimit = 366 * 24 * time.Hour // from now
)

// Config is what a Service works with.
type Config struct {
	Store   Store
	Senders map[ChannelKind]Sender // a kind without one cannot be used
	Sources Sources
	Link    string // address of the page of alerts
	Log     *slog.Logger
}

// Service is what pages and programs ask: it checks rules and channels, and gives alerts. Run makes it watch and send. Safe for
// concurrent use.
type Service struct {
	c     Config
	bus   *event.Bus[Alert]
	turn  chan struct{} // held by the one that changes rules, channels or alerts
	due   chan struct{} // wakes what sends
	looks looks         // of Run alone

	loaded bool     // what follows is; with the turn
	state  *machine // with the turn

	mu         sync.Mutex
	firing     []Alert              // a copy for readers, as it is kept
	mutedRules map[string]time.Time // by rule, until when
	channels   map[string]Channel   // never changed, only replaced
	rules      []Rule               // as well
	collecting map[string]time.Time // deliveries that may still be added to, until when
}

// New makes a Service. It does no I/O.
func New(c Config) *Service {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{
		c: c, bus: event.NewBus[Alert](backlog), turn: make(chan struct{}, 1), due: make(chan struct{}, 1),
		state: newMachine(), channels: map[string]Channel{}, collecting: map[string]time.Time{},
	}
	s.looks.c = &s.c
	return s
}

// begin takes the turn, and reads what is kept if that was not done yet. The caller must call release, unless it fails.
func (s *Service) begin(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.loaded {
		return nil
	}
	if err := s.load(ctx); err != nil {
		s.release()
		return err
	}
	s.loaded = true
	return nil
}

func (s *Service) release() { <-s.turn }

// Rules gives an owner's rules ("" for those of the installation), in their order.
func (s *Service) Rules(ctx context.Context, owner string) ([]Rule, error) {
	all, err := s.c.Store.Rules(ctx)
	return slices.DeleteFunc(all, func(r Rule) bool { return r.Owner != owner }), err
}

// SetRules puts rules in the place of an owner's. A rule without an ID gets one; one that is changed keeps the alerts that it has,
// those of one that is gone or disabled are resolved without a message. Kind: Invalid, with a field such as "rules[2].threshold".
func (s *Service) SetRules(ctx context.Context, owner string, rules []Rule) ([]Rule, error) {
	return s.ChangeRules(ctx, owner, func([]Rule) ([]Rule, error) { return rules, nil })
}

// ChangeRules is SetRules with what change makes of an owner's rules, which nobody else changes meanwhile. An error of change is
// given back, and then nothing is changed.
func (s *Service) ChangeRules(ctx context.Context, owner string, change func([]Rule) ([]Rule, error)) ([]Rule, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	before, err := s.Rules(ctx, owner)
	if err != nil {
		return nil, err
	}
	rules, err := change(slices.Clone(before))
	if err != nil {
		return nil, err
	}
	checked, err := s.checkRules(ctx, owner, before, rules)
	if err != nil {
		return nil, err
	}
	if err := s.c.Store.SetRules(ctx, owner, checked); err != nil {
		return nil, err
	}
	return checked, s.reload(ctx)
}

// Channels gives an owner's channels ("" for those of the installation), by name.
func (s *Service) Channels(ctx context.Context, owner string) ([]Channel, error) {
	all, err := s.c.Store.Channels(ctx)
	return slices.DeleteFunc(all, func(c Channel) bool { return c.Owner != owner }), err
}

// channel finds an owner's. Kind: NotFound.
func (s *Service) channel(ctx context.Context, owner, id string) (Channel, error) {
	all, err := s.Channels(ctx, owner)
	if err != nil {
		return Channel{}, err
	}
	i := slices.IndexFunc(all, func(c Channel) bool { return c.ID == id })
	if i < 0 {
		return Channel{}, fault.New(fault.NotFound, "There is no such channel. It may have been deleted.")
	}
	return all[i], nil
}

// PutChannel adds a channel of c.Owner, or changes it. A webhook without a secret gets one, or keeps the one that it has. Kinds:
// Invalid (with a field), NotFound.
func (s *Service) PutChannel(ctx context.Context, c Channel) (Channel, error) {
	if err := s.begin(ctx); err != nil {
		return Channel{}, err
	}
	defer s.release()
	c, err := s.checkChannel(ctx, c)
	if err != nil {
		return Channel{}, err
	}
	if err := s.c.Store.PutChannel(ctx, c); err != nil {
		return Channel{}, err
	}
	return c, s.reload(ctx)
}

// DeleteChannel deletes an owner's channel, and takes it out of rules. Kind: NotFound.
func (s *Service) DeleteChannel(ctx context.Context, owner, id string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.release()
	if _, err := s.channel(ctx, owner, id); err != nil {
		return err
	}
	rules, err := s.Rules(ctx, owner)
	if err != nil {
		return err
	}
	named := false
	for i, r := range rules {
		if slices.Contains(r.Channels, id) {
			named = true
			rules[i].Channels = slices.DeleteFunc(slices.Clone(r.Channels), func(c string) bool { return c == id })
		}
	}
	if named {
		err = s.c.Store.SetRules(ctx, owner, rules)
	}
	if err == nil {
		err = s.c.Store.DeleteChannel(ctx, id)
	}
	if err != nil {
		return err
	}
	return s.reload(ctx)
}

// Test sends a test message to an owner's channel at once, and says how that went. It takes 30 s at most. Kinds: NotFound, Limited,
// and those of Sender.Send.
func (s *Service) Test(ctx context.Context, owner, id string) error {
	c, err := s.channel(ctx, owner, id)
	if err != nil {
		return err
	}
	if err := s.admitTest(ctx, c); err != nil {
		return err
	}
	now := time.Now().Round(0)
	d := Delivery{ID: sandbox.NewID(), Channel: id, Created: now, Attempts: 1,
		Message: Message{ID: sandbox.NewID(), Time: now, Event: Test, Subject: "Test message from sandboxd", Link: s.c.Link}}
	sent := s.send(ctx, c, d.Message)
	if d.Sent = time.Now().Round(0); sent != nil {
		d.Sent, d.GivenUp, d.Problem = time.Time{}, true, problemOf(sent)
	}
	if err := s.c.Store.PutAlerts(ctx, nil, []Delivery{d}); err != nil {
		s.c.Log.Warn("it cannot be kept that a test message was sent", "channel", c.Name, "error", err)
	}
	return sent
}

// admitTest counts a test as one of the messages that a channel takes within an hour, and as one of its owner's, who could add channels
// without end. Kind: Limited.
func (s *Service) admitTest(ctx context.Context, c Channel) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.release()
	return s.state.admitTest(c, time.Now())
}

// Deliveries gives what was sent to an owner's channel lately, newest first. Kind: NotFound.
func (s *Service) Deliveries(ctx context.Context, owner, id string) ([]Delivery, error) {
	if _, err := s.channel(ctx, owner, id); err != nil {
		return nil, err
	}
	return s.c.Store.Deliveries(ctx, id, shownLast)
}

// Limits of a query.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// Find gives alerts that fired. next is the Before that continues; "" when there are no more. Kind: Invalid.
func (s *Service) Find(ctx context.Context, q Query) (alerts []Alert, next string, err error) {
	if q.State != "" && q.State != Firing && q.State != Resolved {
		return nil, "", fault.Field("state", "The state is %s or %s.", Firing, Resolved)
	}
	q.Limit = min(cmp.Or(max(q.Limit, 0), DefaultLimit), MaxLimit)
	alerts, err = s.c.Store.Find(ctx, q)
	if err != nil {
		return nil, "", err
	}
	if len(alerts) == q.Limit {
		next = alerts[len(alerts)-1].ID
	}
	s.freshen(alerts)
	return alerts, next, nil
}

// freshen tells how those that fire stand now, which is kept only when it matters.
func (s *Service) freshen(alerts []Alert) {
	s.mu.Lock()
	defer s.mu.Unlock()
	texts := make(map[string]string, len(s.firing))
	for i := range s.firing {
		texts[s.firing[i].ID] = s.firing[i].Text
	}
	for i := range alerts {
		if now, ok := texts[alerts[i].ID]; ok && alerts[i].State == Firing {
			alerts[i].Text = now
		}
	}
}

// Has reports whether an alert may be seen.
func (c Scope) Has(a Alert) bool {
	return (c.All || c.User != "" && (c.User == a.Target.Owner || c.User == a.Owner)) && (c.SandboxID == "" || c.SandboxID == a.Target.SandboxID)
}

// Firing counts the alerts in scope that fire and are not muted, neither themselves nor by their rule. It is from memory.
func (s *Service) Firing(scope Scope) int {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for i := range s.firing {
		a := &s.firing[i]
		if scope.Has(*a) && !a.Muted.After(now) && !s.mutedRules[a.RuleID].After(now) {
			n++
		}
	}
	return n
}

// Mute keeps an alert that fires from sending messages until a time; a zero one ends that. Only the owner of its rule may do so, and
// an admin. It gives the alert as it is then. Kinds: NotFound, Forbidden, Invalid (field "until").
func (s *Service) Mute(ctx context.Context, scope Scope, id string, until time.Time) (Alert, error) {
	if until.After(time.Now().Add(mutedLimit)) {
		return Alert{}, fault.Field("until", "An alert can be muted for at most a year.")
	}
	if err := s.begin(ctx); err != nil {
		return Alert{}, err
	}
	defer s.release()
	e := s.state.byID(id)
	switch {
	case e == nil || e.State != Firing || !scope.Has(e.Alert):
		return Alert{}, fault.New(fault.NotFound, "There is no such alert that fires. It may have been resolved.")
	case !scope.All && e.Owner != scope.User:
		return Alert{}, fault.New(fault.Forbidden, "This alert is of a rule of the installation. Only admins can mute it.")
	}
	changed := e.Alert
	if changed.Muted = until.Round(0); until.IsZero() {
		changed.Muted = time.Time{}
	}
	if err := s.c.Store.PutAlerts(ctx, []Alert{changed}, nil); err != nil {
		return Alert{}, err
	}
	e.Alert = changed
	s.show()
	s.bus.Publish(changed)
	return changed, nil
}

// Subscribe tells of alerts that begin to fire or are resolved, or whose muting changes. The caller must Close it.
func (s *Service) Subscribe() *event.Subscription[Alert] { return s.bus.Subscribe() }
