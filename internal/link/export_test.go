package link

import "time"

// TakeNothing has the session take over no connections.
func (s *Session) TakeNothing() {
	s.descriptors.mu.Lock()
	defer s.descriptors.mu.Unlock()
	s.descriptors.pause = time.Now().Add(time.Hour)
}
