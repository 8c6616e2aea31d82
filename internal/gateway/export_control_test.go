package gateway

// Admit is admit.
func (s *Service) Admit(c Caller) error { return s.admit(c) }

// Record is record.
func (s *Service) Record(c Call) { s.record(c) }

// Cost is price.
func (s *Service) Cost(model string, used Tokens) (int64, bool) { return s.Price(model, used) }

// The limits of the queue that tests look at.
const (
	MaxQueued   = maxQueued
	MaxHeld     = maxHeld
	LoggedBurst = loggedBurst
)
