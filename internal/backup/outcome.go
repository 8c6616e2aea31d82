package backup

import "sandboxd/internal/fault"

// Restoring reports whether something is being restored to the sandbox with that id, or its home is being backed up first.
func (s *Service) Restoring(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restores[id] != nil
}

// Problem says why the last restore to the sandbox with that id has failed; "" when it has not, or is forgotten.
func (s *Service) Problem(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problems[id]
}

// ForgetProblem forgets why the last restore to the sandbox with that id has failed.
func (s *Service) ForgetProblem(id string) {
	s.mu.Lock()
	delete(s.problems, id)
	s.mu.Unlock()
	s.bus.Publish(Change{Restore: id})
}

// restored notes how a restore has ended.
func (s *Service) restored(id string, err error) {
	if id == "" {
		return
	}
	s.mu.Lock()
	delete(s.restores, id)
	delete(s.problems, id)
	if err != nil {
		if len(s.problems) >= keptFailed {
			clear(s.problems)
		}
		s.problems[id] = fault.Message(err)
	}
	s.mu.Unlock()
	s.bus.Publish(Change{Restore: id})
}
