package sshd

// Held is how much memory of files on their way all connections hold.
func (s *Server) Held() (n int) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	for _, m := range s.memory.all {
		n += m
	}
	return n
}

// MostHeld is how much one connection may hold.
const MostHeld = int(purposes) * connectionMemory
