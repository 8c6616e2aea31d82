package alert

import (
	"context"
	"reflect"
	"slices"
	"time"

	"sandboxd/internal/sandbox"
)

const (
	lookEvery   = 10 * time.Second
	reloadEvery = lookEvery // so that rules of users who are deleted or disabled end
	sweepEvery  = time.Hour
	storeLimit  = 15 * time.Second // for one change of the Store
)

// Run watches and sends until ctx ends. What is on its way then is sent after the next start.
func (s *Service) Run(ctx context.Context) error {
	sending := make(chan struct{})
	go func() {
		defer close(sending)
		s.deliver(ctx)
	}()
	defer func() { <-sending }()
	defer s.looks.running.Wait()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	reloaded, swept := time.Now(), time.Time{}
	for {
		s.look(ctx)
		if now := time.Now(); now.Sub(reloaded) >= reloadEvery {
			reloaded = now
			s.refresh(ctx)
		}
		if now := time.Now(); now.Sub(swept) >= sweepEvery {
			swept = now
			s.sweep(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// load reads what is kept, and gives the installation its first rules. It is called with the turn.
func (s *Service) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	first := Defaults()
	for i := range first {
		first[i].ID = sandbox.NewID()
	}
	if err := s.c.Store.Begin(ctx, first); err != nil {
		return err
	}
	open, err := s.c.Store.Open(ctx)
	if err != nil {
		return err
	}
	channels, err := s.c.Store.Channels(ctx)
	if err != nil {
		return err
	}
	m, now := newMachine(), time.Now()
	for _, a := range open {
		m.adopt(a, now, now.Round(0))
	}
	for _, c := range channels {
		q, err := s.quotaOf(ctx, c.ID, now)
		if err != nil {
			return err
		}
		m.quotas[c.ID] = q
		for _, key := range []string{quotaTo(c), quotaOwner(c)} {
			of := m.quotas[key].at(now)
			of.queued = append(of.queued, q.queued...)
			slices.SortFunc(of.queued, time.Time.Compare)
			m.quotas[key] = of
		}
	}
	s.state = m
	return s.update(ctx)
}

// quotaOf reads what a channel was sent within the last hour.
func (s *Service) quotaOf(ctx context.Context, channel string, now time.Time) (*quota, error) {
	list, err := s.c.Store.Deliveries(ctx, channel, 2*perHour)
	q := &quota{}
	for _, d := range slices.Backward(list) {
		age := max(now.Round(0).Sub(d.Created), 0)
		if age >= hour {
			continue
		}
		if d.Message.Event != Held {
			q.queued = append(q.queued, now.Add(-age))
		} else if wait := d.Next.Sub(now.Round(0)); wait > 0 && d.Attempts == 0 {
			q.held = adoptHeld(d, now.Add(min(wait, hour)))
		}
	}
	return q, err
}

// reload is update; when it cannot be done now, all is read anew before the next use.
func (s *Service) reload(ctx context.Context) error {
	if err := s.update(ctx); err != nil {
		s.loaded = false
		s.c.Log.Warn("alert rules are read again", "error", err)
	}
	return nil
}

// update reads rules and channels, and resolves the alerts of rules that are gone or disabled, without a message. It is called with
// the turn.
func (s *Service) update(ctx context.Context) error {
	rules, err := s.c.Store.Rules(ctx)
	if err != nil {
		return err
	}
	list, err := s.c.Store.Channels(ctx)
	if err != nil {
		return err
	}
	channels := make(map[string]Channel, len(list))
	for _, c := range list {
		channels[c.ID] = c
	}
	now := time.Now()
	c := s.state.change(now, now)
	for rule, of := range s.state.open {
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == rule })
		for k, e := range of {
			switch {
			case i >= 0 && !rules[i].Disabled && rules[i].Kind == e.Kind:
			case e.State == Pending:
				c.drop(rule, k)
			default:
				c.resolve(c.edit(rule, k))
			}
		}
	}
	same := reflect.DeepEqual(rules, s.state.rules) && reflect.DeepEqual(channels, s.channelsNow())
	if err := s.keep(ctx, c); err != nil {
		return err
	}
	s.state.rules = rules
	s.state.forget(now)
	if !same {
		s.state.groups = map[string]*group{} // they may be for other channels now
	}
	s.mu.Lock()
	s.channels, s.rules = channels, rules
	s.mu.Unlock()
	s.show()
	return nil
}

func (s *Service) channelsNow() map[string]Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channels
}

// ruleList gives the rules.
func (s *Service) ruleList() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rules
}

// refresh notices rules and channels that went with their owner.
func (s *Service) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	if s.begin(ctx) == nil {
		defer s.release()
		_ = s.reload(ctx) // what is known stays until the next look, which tries again
	}
}

func (s *Service) sweep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	if err := s.c.Store.Sweep(ctx); err != nil && ctx.Err() == nil {
		s.c.Log.Warn("old alerts are not deleted", "error", err)
	}
}

// keep puts a change into the Store and then into memory, and tells of it.
func (s *Service) keep(ctx context.Context, c *change) error {
	alerts, queue := c.put(), c.deliveries()
	if len(alerts)+len(queue) > 0 {
		if err := s.c.Store.PutAlerts(ctx, alerts, queue); err != nil {
			return err
		}
	}
	c.install()
	s.show()
	for _, list := range [][]*entry{c.fired, c.ended} {
		for _, e := range list {
			s.bus.Publish(e.Alert)
		}
	}
	if len(queue) > 0 {
		signal(s.due)
	}
	return nil
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// show gives readers how things stand. It is called with the turn.
func (s *Service) show() {
	now := time.Now()
	var firing []Alert
	for _, of := range s.state.open {
		for _, e := range of {
			if e.State == Firing {
				firing = append(firing, e.Alert)
			}
		}
	}
	muted := map[string]time.Time{}
	for _, r := range s.state.rules {
		if r.Muted.After(now) {
			muted[r.ID] = r.Muted
		}
	}
	collecting := map[string]time.Time{}
	for _, g := range s.state.groups {
		for _, d := range g.deliveries {
			collecting[d.ID] = g.until
		}
	}
	for _, q := range s.state.quotas {
		if q.held != nil {
			collecting[q.held.delivery.ID] = q.held.until
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.firing, s.mutedRules, s.collecting = firing, muted, collecting
}
