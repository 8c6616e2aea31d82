package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"
)

const (
	reloadEvery = 10 * time.Second // so that providers and budgets of users and sandboxes that are deleted end
	sweepEvery  = time.Hour
	storeLimit  = 15 * time.Second // for one change of the Store
)

// Config says what a Service works on.
type Config struct {
	Store   Store
	Sealer  Sealer
	Private bool                                  // users' own providers may have private and local addresses, such as those of this host
	Prices  string                                // file with prices that take precedence over the built-in ones; it need not exist
	Hold    func(sandbox string) (release func()) // keeps a sandbox awake while it waits for a model; nil for none
	Dial    Dial                                  // leads to providers in sandboxes; nil when there can be none
	Log     *slog.Logger
	Now     func() time.Time // nil means time.Now
}

// Service is the gateway. Safe for concurrent use.
type Service struct {
	c Config
	current
	turn   chan struct{} // held by the one that changes what is configured, or reads it anew
	prices priceFile     // with the turn
	counts counters
	queue  *queue
}

// Open reads what is configured, and what was used in the current month. It asks no provider. Kinds: those of the Store. Run must be
// called to keep what is used.
func Open(ctx context.Context, c Config) (*Service, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Service{c: c, turn: make(chan struct{}, 1), prices: priceFile{path: c.Prices, log: c.Log}, queue: newQueue()}
	if err := s.change(ctx, func(context.Context) error { return nil }); err != nil {
		return nil, fmt.Errorf("read the gateway's configuration: %w", err)
	}
	if err := s.counts.load(ctx, c.Store, c.Now()); err != nil {
		return nil, fmt.Errorf("read what was used of models: %w", err)
	}
	return s, nil
}

// Run keeps the log of calls, and notices what is changed by others, until ctx ends. Then it writes the calls that wait to be kept; those
// that are recorded later are lost, so what serves Handler should have ended before.
func (s *Service) Run(ctx context.Context) error {
	var writing sync.WaitGroup
	writing.Go(func() { s.queue.run(ctx, s.c.Store, s.c.Log) })
	defer writing.Wait()
	reload, sweep := time.NewTicker(reloadEvery), time.NewTicker(sweepEvery)
	defer reload.Stop()
	defer sweep.Stop()
	s.sweep(ctx)
	for {
		select {
		case <-reload.C:
			if err := s.change(ctx, func(context.Context) error { return nil }); err != nil && ctx.Err() == nil {
				s.c.Log.Warn("cannot read the gateway's configuration", "error", err)
			}
			s.recount(ctx)
		case <-sweep.C:
			s.sweep(ctx)
		case <-s.queue.heavy:
			s.sweep(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// recount reads what was used in the current month, once the clock was set back.
func (s *Service) recount(ctx context.Context) {
	if !s.counts.isStale() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	if err := s.counts.load(ctx, s.c.Store, s.c.Now()); err != nil && ctx.Err() == nil {
		s.c.Log.Warn("cannot read what was used of models", "error", err)
	}
}

// sweep deletes what is over.
func (s *Service) sweep(ctx context.Context) {
	now := s.c.Now()
	if err := s.c.Store.SweepCalls(ctx, now.Add(-KeepCalls), now); err != nil && ctx.Err() == nil {
		s.c.Log.Warn("cannot delete old calls of models", "error", err)
	}
}

// change runs f, alone among all changes, and has each request from then on see what it did.
func (s *Service) change(ctx context.Context, f func(context.Context) error) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	if err := f(ctx); err != nil {
		return err
	}
	return s.reload(ctx)
}

// reload reads what is configured. It is called with the turn.
func (s *Service) reload(ctx context.Context) error {
	had := s.table()
	t, err := s.read(ctx, had)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(t, had) {
		s.at.Store(t)
	}
	return nil
}

// read gives what is configured. Keys of providers that are as they were are those of had.
func (s *Service) read(ctx context.Context, had *table) (*table, error) {
	var t table
	providers, err := s.c.Store.Providers(ctx)
	if err != nil {
		return nil, err
	}
	known := make(map[string]configured, len(had.providers))
	for _, p := range had.providers {
		known[p.ID] = p
	}
	for _, p := range providers {
		c, err := s.configure(ctx, p, known[p.ID])
		if err != nil {
			return nil, err
		}
		if c.ID != "" {
			t.providers = append(t.providers, c)
		}
	}
	if t.aliases, err = s.c.Store.Aliases(ctx); err != nil {
		return nil, err
	}
	if t.budgets, err = s.c.Store.Budgets(ctx); err != nil {
		return nil, err
	}
	if t.settings, err = s.c.Store.Settings(ctx); err != nil {
		return nil, err
	}
	own := s.prices.read()
	t.prices, t.ownPrices = slices.Concat(own, builtIn), len(own)
	return &t, nil
}
