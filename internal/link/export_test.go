package link

import "time"

// TakeNothing has the session take over no connections.
func (s *Session) TakeNothing() {
	s.descriptors.mu.Lock()
	defer s.descriptors.mu.Unlock()
	s.descriptors.pause = time.Now().Add(time.Hour)
}

// AllowCalls has the hub take connections for models as fast as they come, of sandboxes that it expects from then on.
func (h *Hub) AllowCalls() { h.pace.calls, h.pace.callMax = 1e6, 1e6 }
