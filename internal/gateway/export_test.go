package gateway

import (
	"log/slog"
	"net/http"
	"slices"
	"time"
)

// Setup is what a Service for tests is configured with. Keys are by the names of providers.
type Setup struct {
	Providers []Provider
	Keys      map[string]string
	Aliases   []Alias
	Budgets   []Budget
	Settings  Settings
	Hold      func(sandbox string) func()
	Log       *slog.Logger
	Private   bool
	Dial      Dial
}

// NewTestService gives a Service that keeps nothing.
func NewTestService(s Setup) *Service {
	log := s.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	out := &Service{c: Config{Now: time.Now, Log: log, Hold: s.Hold, Private: s.Private, Dial: s.Dial}, queue: newQueue()}
	t := &table{aliases: s.Aliases, budgets: s.Budgets, settings: s.Settings, prices: []Price{{Model: "priced*", Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}}, ownPrices: 1}
	for _, p := range s.Providers {
		t.providers = append(t.providers, configured{Provider: p, key: s.Keys[p.Name]})
	}
	out.at.Store(t)
	return out
}

// Recorded gives the calls so far.
func (s *Service) Recorded() []Call {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return slices.Clone(s.queue.calls)
}

// CallerInTest is who asks in tests: a sandbox named by a header.
func CallerInTest(r *http.Request) (Caller, error) {
	return Caller{User: "u1", Sandbox: r.Header.Get("Test-Sandbox"), Label: "box"}, nil
}

// The limits that tests look at.
const (
	MaxAtOnce = maxAtOnce
	MaxBurst  = maxBurst

	MaxLargeOfAll = maxLargeOfAll
)

// NewUsersTransport is the way to users' own providers.
var NewUsersTransport = newUsersTransport
