package link

import "time"

// TakeNothing has the session take over no connections.
func (s *Session) TakeNothing() {
	s.hands.mu.Lock()
	defer s.hands.mu.Unlock()
	s.hands.pause = time.Now().Add(time.Hour)
}
