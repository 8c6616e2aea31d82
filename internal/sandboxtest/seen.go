package sandboxtest

import "time"

// seen tells a test what an instance's sandboxes do, also while the engine is in trouble.
type seen struct {
	engine   *fakeEngine
	instance string
}

func (s seen) key(id string) boxKey { return boxKey{instance: s.instance, id: id} }

// Awake tells how long the sandbox's processes had time to run since their last start: frozen time does not count.
func (s seen) Awake(id string) time.Duration {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	if f := s.engine.boxes[s.key(id)]; f != nil {
		return f.awake()
	}
	return 0
}

// Runs reports whether its processes run and are not frozen, also while the engine is in trouble.
func (s seen) Runs(id string) bool {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	f := s.engine.boxes[s.key(id)]
	return f != nil && f.running && !f.frozen
}

// Frozen tells whether the sandbox's processes are paused.
func (s seen) Frozen(id string) bool {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	f := s.engine.boxes[s.key(id)]
	return f != nil && f.frozen
}

// Starts tells how often the sandbox's processes have begun.
func (s seen) Starts(id string) int {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	if f := s.engine.boxes[s.key(id)]; f != nil {
		return f.starts
	}
	return 0
}
