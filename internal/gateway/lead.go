package gateway

import (
	"net/http"

	"sandboxd/internal/fault"
)

// Lead says where a model leads to first, for a user whose client speaks the protocols of some kinds: the kind of the provider, and the
// model's name there. Kinds: NotFound when there is no such model, Invalid when no provider fits; the message says what to do.
func (s *Service) Lead(user, model string, kinds ...Kind) (Kind, string, error) {
	found, p := s.table().find(user, model, route{kinds: kinds})
	if p != nil {
		kind := fault.Invalid
		if p.status == http.StatusNotFound {
			kind = fault.NotFound
		}
		return "", "", &fault.Error{Kind: kind, Message: p.message, Err: p.err}
	}
	return found[0].Kind, found[0].model, nil
}

// ModelsOf gives the names that a user can ask providers of some kinds for.
func (s *Service) ModelsOf(user string, kinds ...Kind) []string { return s.table().names(user, kinds) }
