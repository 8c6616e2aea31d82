package snapshot

import (
	"context"

	"sandboxd/internal/sandbox"
)

// Lend has do make something of a snapshot, which stays meanwhile, and returns when that is done or ctx ends; then it continues, and what
// goes wrong is the Problem of the sandbox. The ctx of do ends with the Service. NotFound when it is no snapshot of this sandbox or parts of it
// are gone, Conflict when it is not ready; other kinds are those of do.
func (s *Service) Lend(ctx context.Context, box sandbox.Sandbox, id string, do func(ctx context.Context, snap Snapshot) error) error {
	var from Snapshot
	begin := func() (err error) {
		if from, err = s.use(id, box.ID); err == nil {
			s.setProblem(box.ID, nil)
		}
		return err
	}
	_, err := detached(ctx, s, begin, func(life context.Context) (none struct{}, err error) {
		defer s.release(from.ID)
		if err = s.whole(life, from); err == nil {
			err = do(life, from)
		}
		s.unheard(ctx, box, causeOf(life, err))
		return none, err
	})
	return err
}

// Hold keeps a snapshot of a sandbox while something is made of it, until release is called. Kinds are those of Lend.
func (s *Service) Hold(box sandbox.Sandbox, id string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.use(id, box.ID); err != nil {
		return nil, err
	}
	return func() { s.release(id) }, nil
}
