package gateway

import (
	"net/http"
	"slices"

	"sandboxd/internal/fault"
)

// Lead is where a model leads to: the kind of the provider, and the model's name there.
type Lead struct {
	Kind  Kind
	Model string
}

// Leads says where a model leads to for a user whose client speaks the protocols of some kinds: the first target of each kind, in the order
// in which the alias has them. There is one at least. Kinds of errors: NotFound when there is no such model, Invalid when no provider fits; the
// message says what to do.
func (s *Service) Leads(user, model string, kinds ...Kind) (leads []Lead, err error) {
	found, p := s.table().find(user, model, route{kinds: kinds})
	if p != nil {
		kind := fault.Invalid
		if p.status == http.StatusNotFound {
			kind = fault.NotFound
		}
		return nil, &fault.Error{Kind: kind, Message: p.message, Err: p.err}
	}
	for _, c := range found {
		if !slices.ContainsFunc(leads, func(l Lead) bool { return l.Kind == c.Kind }) {
			leads = append(leads, Lead{c.Kind, c.model})
		}
	}
	return leads, nil
}

// ModelsOf gives the names that a user can ask providers of some kinds for.
func (s *Service) ModelsOf(user string, kinds ...Kind) []string { return s.table().names(user, kinds) }
