package services

import (
	"context"
	"slices"

	"sandboxd/internal/access"
	"sandboxd/internal/catalog"
)

// Match says whether a change may be made to the list with this ETag; nil allows any. A change that may not be made is
// ErrChanged.
type Match func(etag string) bool

// Put declares the whole list; nil gives the sandbox its template's again. What runs unchanged runs on. Kinds: Gone,
// Invalid (the message names the service, the field is the service's), Conflict (ErrChanged, or an address is taken).
func (s *Service) Put(ctx context.Context, h access.Handle, list []catalog.Service, m Match) (List, error) {
	return s.change(ctx, h, m, func([]catalog.Service) ([]catalog.Service, error) { return list, nil })
}

// Set declares one service, in the place of the one of its name or as the last; created says which. Kinds as for Put.
func (s *Service) Set(ctx context.Context, h access.Handle, one catalog.Service, m Match) (now List, created bool, err error) {
	now, err = s.change(ctx, h, m, func(list []catalog.Service) ([]catalog.Service, error) {
		i := slices.IndexFunc(list, named(one.Name))
		if created = i < 0; created {
			return append(list, one), nil
		}
		list[i] = one
		return list, nil
	})
	return now, created, err
}

// Delete takes a service away; it ends if it runs. NotFound when there is none, ErrChanged.
func (s *Service) Delete(ctx context.Context, h access.Handle, service string, m Match) (List, error) {
	return s.change(ctx, h, m, func(list []catalog.Service) ([]catalog.Service, error) {
		left := slices.DeleteFunc(slices.Clone(list), named(service))
		if len(left) == len(list) {
			return nil, noService(service)
		}
		return left, nil // none left is a list too
	})
}

// change lets revise work on the list that counts, when it is the one that the caller means.
func (s *Service) change(ctx context.Context, h access.Handle, m Match, revise func([]catalog.Service) ([]catalog.Service, error)) (List, error) {
	box, err := s.boxes.ChangeServices(ctx, h.Ref(), func(list []catalog.Service) ([]catalog.Service, error) {
		if m != nil && !m(etag(list)) {
			return nil, ErrChanged
		}
		return revise(list)
	})
	if err != nil {
		return List{}, err
	}
	return s.listOf(ctx, h, box), nil
}

func named(name string) func(catalog.Service) bool {
	return func(s catalog.Service) bool { return s.Name == name }
}
