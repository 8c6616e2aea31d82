// Package alerttest has a Store in memory and what every alert.Store must pass.
//
// It is for tests alone and keeps nothing.
//
// Invariant: the Store in memory passes StoreContract, so that a test on it says what one on the real Store would.
package alerttest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
)

// Store is an alert.Store in memory. The zero value is not ready: use NewStore.
type Store struct {
	mu         sync.Mutex
	begun      bool
	rules      []alert.Rule
	channels   map[string]alert.Channel
	alerts     map[string]alert.Alert
	deliveries map[string]alert.Delivery
	fail       error
	puts       int
}

var _ alert.Store = (*Store)(nil)

// NewStore makes an empty one.
func NewStore() *Store {
	return &Store{channels: map[string]alert.Channel{}, alerts: map[string]alert.Alert{}, deliveries: map[string]alert.Delivery{}}
}

// Fail makes every call fail with err from now on; nil ends that.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// Puts counts the calls of PutAlerts that were kept.
func (s *Store) Puts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.puts
}

// Queued gives all deliveries, those that were queued first first.
func (s *Store) Queued() []alert.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted(func(alert.Delivery) bool { return true }, func(a, b alert.Delivery) int { return a.Created.Compare(b.Created) })
}

func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	s.mu.Lock()
	if err := cmp.Or(ctx.Err(), s.fail); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	return s.mu.Unlock, nil
}

// Begin implements alert.Store.
func (s *Store) Begin(ctx context.Context, first []alert.Rule) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if !s.begun && !slices.ContainsFunc(s.rules, func(r alert.Rule) bool { return r.Owner == "" }) {
		s.rules = append(s.rules, first...)
	}
	s.begun = true
	return nil
}

// Rules implements alert.Store.
func (s *Store) Rules(ctx context.Context) ([]alert.Rule, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	out := slices.Clone(s.rules)
	for i := range out {
		out[i].Channels = slices.Clone(out[i].Channels)
	}
	slices.SortStableFunc(out, func(a, b alert.Rule) int { return strings.Compare(a.Owner, b.Owner) })
	return out, nil
}

// SetRules implements alert.Store.
func (s *Store) SetRules(ctx context.Context, owner string, rules []alert.Rule) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s.rules = slices.DeleteFunc(s.rules, func(r alert.Rule) bool { return r.Owner == owner })
	for _, r := range rules {
		r.Owner, r.Channels = owner, slices.Clone(r.Channels)
		s.rules = append(s.rules, r)
	}
	return nil
}

// Channels implements alert.Store.
func (s *Store) Channels(ctx context.Context) ([]alert.Channel, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var out []alert.Channel
	for _, c := range s.channels {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b alert.Channel) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return out, nil
}

// PutChannel implements alert.Store.
func (s *Store) PutChannel(ctx context.Context, c alert.Channel) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s.channels[c.ID] = c
	return nil
}

// DeleteChannel implements alert.Store.
func (s *Store) DeleteChannel(ctx context.Context, id string) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	delete(s.channels, id)
	for k, d := range s.deliveries {
		if d.Channel == id {
			delete(s.deliveries, k)
		}
	}
	return nil
}

// Open implements alert.Store.
func (s *Store) Open(ctx context.Context) ([]alert.Alert, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return s.find(func(a alert.Alert) bool { return a.State != alert.Resolved }), nil
}

// find gives alerts in the order of Find.
func (s *Store) find(want func(alert.Alert) bool) []alert.Alert {
	var out []alert.Alert
	for _, a := range s.alerts {
		if want(a) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, order)
	return out
}

// order puts those that fire first, the newest first.
func order(a, b alert.Alert) int {
	firing := func(a alert.Alert) int {
		if a.State == alert.Firing {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(firing(a), firing(b)), b.Resolved.Compare(a.Resolved), b.Fired.Compare(a.Fired), strings.Compare(b.ID, a.ID))
}

// PutAlerts implements alert.Store.
func (s *Store) PutAlerts(ctx context.Context, alerts []alert.Alert, queue []alert.Delivery) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s.puts++
	for _, a := range alerts {
		s.alerts[a.ID] = a
	}
	for _, d := range queue {
		if _, ok := s.channels[d.Channel]; ok {
			s.deliveries[d.ID] = d
		}
	}
	return nil
}

// Find implements alert.Store.
func (s *Store) Find(ctx context.Context, q alert.Query) ([]alert.Alert, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	last, known := s.alerts[q.Before]
	if q.Before != "" && !known {
		return nil, fault.Field("before", "There is no such alert any more. Begin with the first page.")
	}
	out := s.find(func(a alert.Alert) bool {
		return !a.Fired.IsZero() && q.Scope.Has(a) && (q.State == "" || q.State == a.State) &&
			(q.Sandbox == "" || q.Sandbox == a.Target.SandboxID || q.Sandbox == a.Target.Sandbox) && (q.Before == "" || order(a, last) > 0)
	})
	return out[:min(len(out), cmp.Or(q.Limit, alert.DefaultLimit))], nil
}

// Due implements alert.Store.
func (s *Store) Due(ctx context.Context, limit int) ([]alert.Delivery, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	now := time.Now()
	all := s.sorted(func(d alert.Delivery) bool {
		return !d.Next.IsZero() && (!d.Next.After(now) || d.Next.After(now.Add(2*alert.MaxBackoff)))
	}, func(a, b alert.Delivery) int { return a.Next.Compare(b.Next) })
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(d alert.Delivery) bool {
		again := seen[d.Channel]
		seen[d.Channel] = true
		return again
	})
	return all[:min(len(all), limit)], nil
}

func (s *Store) sorted(want func(alert.Delivery) bool, by func(a, b alert.Delivery) int) (out []alert.Delivery) {
	for _, d := range s.deliveries {
		if want(d) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b alert.Delivery) int { return cmp.Or(by(a, b), strings.Compare(a.ID, b.ID)) })
	return out
}

// PutDelivery implements alert.Store.
func (s *Store) PutDelivery(ctx context.Context, d alert.Delivery) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if _, ok := s.deliveries[d.ID]; ok {
		s.deliveries[d.ID] = d
	}
	return nil
}

// Deliveries implements alert.Store.
func (s *Store) Deliveries(ctx context.Context, channel string, limit int) ([]alert.Delivery, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	all := s.sorted(func(d alert.Delivery) bool { return d.Channel == channel }, func(a, b alert.Delivery) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(b.ID, a.ID))
	})
	return all[:min(len(all), limit)], nil
}

// Sweep implements alert.Store.
func (s *Store) Sweep(ctx context.Context) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	now := time.Now()
	for i, a := range s.find(func(a alert.Alert) bool { return a.State == alert.Resolved }) {
		if i >= alert.MaxAlerts || now.Sub(a.Resolved) > alert.KeepAlerts {
			delete(s.alerts, a.ID)
		}
	}
	counts := map[string]int{}
	for _, d := range s.sorted(func(d alert.Delivery) bool { return d.Next.IsZero() }, func(a, b alert.Delivery) int { return b.Created.Compare(a.Created) }) {
		if counts[d.Channel]++; counts[d.Channel] > alert.MaxDeliveries || now.Sub(d.Created) > alert.KeepDeliveries {
			delete(s.deliveries, d.ID)
		}
	}
	return nil
}
