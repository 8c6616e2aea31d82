package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// Aliases gives an owner's own ("" for everyone's), by name.
func (s *Service) Aliases(owner string) []Alias {
	var list []Alias
	for _, a := range s.table().aliases {
		if a.Owner == owner {
			a.Targets = slices.Clone(a.Targets)
			list = append(list, a)
		}
	}
	return list
}

// SetAlias adds an alias, or changes the one of its owner and name. Kinds: Invalid, with a field; NotFound when the owner is gone;
// Conflict when there are too many.
func (s *Service) SetAlias(ctx context.Context, a Alias) (Alias, error) {
	a.Name = strings.TrimSpace(a.Name)
	if err := checkModel("name", a.Name); err != nil {
		return Alias{}, err
	}
	a.Targets = slices.Clone(a.Targets)
	err := s.change(ctx, func(ctx context.Context) error {
		own := s.Aliases(a.Owner)
		if len(own) >= MaxAliases && !slices.ContainsFunc(own, func(o Alias) bool { return o.Name == a.Name }) {
			return fault.New(fault.Conflict, "There are %d aliases already. Remove one first.", MaxAliases)
		}
		if err := s.checkTargets(a); err != nil {
			return err
		}
		a.Changed = s.c.Now().UTC().Truncate(time.Microsecond)
		return s.c.Store.PutAlias(ctx, a)
	})
	if err != nil {
		return Alias{}, fmt.Errorf("keep alias %s: %w", a.Name, err)
	}
	return a, nil
}

// checkTargets makes sure that an alias leads to what there is.
func (s *Service) checkTargets(a Alias) error {
	switch {
	case len(a.Targets) == 0:
		return fault.Field("targets", "Choose at least one model of a provider.")
	case len(a.Targets) > MaxTargets:
		return fault.Field("targets", "An alias has at most %d models.", MaxTargets)
	}
	for i, t := range a.Targets {
		t.Provider, t.Model = strings.TrimSpace(t.Provider), strings.TrimSpace(t.Model)
		if err := checkModel("targets", t.Model); err != nil {
			return err
		}
		p, err := s.table().named(a.Owner, t.Provider)
		if err != nil {
			return fault.Field("targets", "There is no provider named %q.", text.OneLine(t.Provider, maxModel))
		}
		if !p.lists(t.Model) {
			return fault.Field("targets", "The provider %s does not list the model %s.", p.Name, t.Model)
		}
		if slices.Contains(a.Targets[:i], t) {
			return fault.Field("targets", "The model %s of the provider %s is chosen twice.", t.Model, t.Provider)
		}
		a.Targets[i] = t
	}
	return nil
}

// named gives the provider that an owner means by a name: their own, else the server's. Kind: NotFound.
func (t *table) named(owner, name string) (configured, error) {
	p, err := t.provider(owner, name)
	if err != nil && owner != "" {
		return t.provider("", name)
	}
	return p, err
}

// RemoveAlias removes one. Kind: NotFound.
func (s *Service) RemoveAlias(ctx context.Context, owner, name string) error {
	err := s.change(ctx, func(ctx context.Context) error {
		if !slices.ContainsFunc(s.Aliases(owner), func(a Alias) bool { return a.Name == name }) {
			return fault.New(fault.NotFound, "There is no alias named %q.", text.OneLine(name, maxModel))
		}
		return s.c.Store.DeleteAlias(ctx, owner, name)
	})
	if err != nil {
		return fmt.Errorf("remove alias: %w", err)
	}
	return nil
}
