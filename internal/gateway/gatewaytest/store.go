package gatewaytest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
)

// Store is a gateway.Store in memory, with the users and sandboxes of the contract. Safe for concurrent use.
type Store struct {
	mu        sync.Mutex
	fail      error
	gone      map[string]bool // users and sandboxes that are deleted
	providers map[string]stored
	aliases   map[ownName]gateway.Alias
	budgets   map[budgetKey]gateway.Budget
	settings  gateway.Settings
	calls     []gateway.Call  // oldest first
	known     map[string]bool // ids of calls
	usage     map[usageKey]gateway.Usage
	rows      map[usageKey]int // of usage, by hour, user and sandbox
}

var _ gateway.Store = (*Store)(nil)

type stored struct {
	gateway.Provider
	sealed []byte
}

type ownName struct{ owner, name string }

type budgetKey struct {
	scope   gateway.Scope
	subject string
	period  gateway.Period
}

type usageKey struct {
	hour                           time.Time
	user, sandbox, provider, model string
}

// NewStore gives an empty one.
func NewStore() *Store {
	return &Store{
		gone: map[string]bool{}, providers: map[string]stored{}, aliases: map[ownName]gateway.Alias{},
		budgets: map[budgetKey]gateway.Budget{}, usage: map[usageKey]gateway.Usage{},
		known: map[string]bool{}, rows: map[usageKey]int{},
	}
}

// Fail makes all calls fail with an error from now on; nil ends that.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// Forget deletes a user or a sandbox, with what belongs to them.
func (s *Store) Forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone[id] = true
	maps.DeleteFunc(s.providers, func(_ string, p stored) bool { return p.Owner == id })
	maps.DeleteFunc(s.aliases, func(k ownName, _ gateway.Alias) bool { return k.owner == id })
	maps.DeleteFunc(s.budgets, func(k budgetKey, _ gateway.Budget) bool { return k.subject == id })
}

// within runs f with the lock, unless calls fail.
func (s *Store) within(ctx context.Context, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(ctx.Err(), s.fail); err != nil {
		return err
	}
	return f()
}

// missing says that a user or sandbox is deleted.
func (s *Store) missing(id string) error {
	if s.gone[id] {
		return fault.New(fault.NotFound, "%s has been deleted.", id)
	}
	return nil
}

// Providers implements gateway.Store.
func (s *Store) Providers(ctx context.Context) (list []gateway.Provider, err error) {
	err = s.within(ctx, func() error {
		for _, p := range s.providers {
			p.Models = slices.Clone(p.Models)
			list = append(list, p.Provider)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b gateway.Provider) int {
		return cmp.Or(strings.Compare(a.Owner, b.Owner), strings.Compare(a.Name, b.Name))
	})
	return list, err
}

// PutProvider implements gateway.Store.
func (s *Store) PutProvider(ctx context.Context, p gateway.Provider, sealed []byte) error {
	return s.within(ctx, func() error {
		for _, o := range s.providers {
			if o.Owner == p.Owner && o.Name == p.Name && o.ID != p.ID {
				return fault.New(fault.Conflict, "There is a provider named %q already.", p.Name)
			}
		}
		if err := s.missing(p.Owner); err != nil {
			return err
		}
		if had, ok := s.providers[p.ID]; ok {
			p.Owner = had.Owner
			if sealed == nil {
				sealed = had.sealed
			}
		}
		p.Models, p.HasKey, p.Problem = slices.Clone(p.Models), len(sealed) > 0, ""
		s.providers[p.ID] = stored{p, slices.Clone(sealed)}
		return nil
	})
}

// ProviderKey implements gateway.Store.
func (s *Store) ProviderKey(ctx context.Context, id string) (sealed []byte, err error) {
	err = s.within(ctx, func() error {
		p, ok := s.providers[id]
		if !ok {
			return fault.New(fault.NotFound, "There is no such provider.")
		}
		if p.HasKey {
			sealed = slices.Clone(p.sealed)
		}
		return nil
	})
	return sealed, err
}

// DeleteProvider implements gateway.Store.
func (s *Store) DeleteProvider(ctx context.Context, id string) error {
	return s.within(ctx, func() error {
		delete(s.providers, id)
		return nil
	})
}

// Aliases implements gateway.Store.
func (s *Store) Aliases(ctx context.Context) (list []gateway.Alias, err error) {
	err = s.within(ctx, func() error {
		for _, a := range s.aliases {
			a.Targets = slices.Clone(a.Targets)
			list = append(list, a)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b gateway.Alias) int {
		return cmp.Or(strings.Compare(a.Owner, b.Owner), strings.Compare(a.Name, b.Name))
	})
	return list, err
}

// PutAlias implements gateway.Store.
func (s *Store) PutAlias(ctx context.Context, a gateway.Alias) error {
	return s.within(ctx, func() error {
		if err := s.missing(a.Owner); err != nil {
			return err
		}
		a.Targets = slices.Clone(a.Targets)
		s.aliases[ownName{a.Owner, a.Name}] = a
		return nil
	})
}

// DeleteAlias implements gateway.Store.
func (s *Store) DeleteAlias(ctx context.Context, owner, name string) error {
	return s.within(ctx, func() error {
		delete(s.aliases, ownName{owner, name})
		return nil
	})
}

// Budgets implements gateway.Store.
func (s *Store) Budgets(ctx context.Context) (list []gateway.Budget, err error) {
	err = s.within(ctx, func() error {
		list = slices.Collect(maps.Values(s.budgets))
		return nil
	})
	slices.SortFunc(list, func(a, b gateway.Budget) int {
		return cmp.Or(strings.Compare(a.Subject, b.Subject), strings.Compare(string(b.Scope), string(a.Scope)), strings.Compare(string(a.Period), string(b.Period)))
	})
	return list, err
}

// PutBudget implements gateway.Store.
func (s *Store) PutBudget(ctx context.Context, b gateway.Budget) error {
	return s.within(ctx, func() error {
		if err := s.missing(b.Subject); err != nil {
			return err
		}
		s.budgets[budgetKey{b.Scope, b.Subject, b.Period}] = b
		return nil
	})
}

// DeleteBudget implements gateway.Store.
func (s *Store) DeleteBudget(ctx context.Context, scope gateway.Scope, subject string, period gateway.Period) error {
	return s.within(ctx, func() error {
		delete(s.budgets, budgetKey{scope, subject, period})
		return nil
	})
}

// Settings implements gateway.Store.
func (s *Store) Settings(ctx context.Context) (to gateway.Settings, err error) {
	err = s.within(ctx, func() error {
		to = s.settings
		return nil
	})
	return to, err
}

// PutSettings implements gateway.Store.
func (s *Store) PutSettings(ctx context.Context, to gateway.Settings) error {
	return s.within(ctx, func() error {
		s.settings = to
		return nil
	})
}
