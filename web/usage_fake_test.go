package web

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// plainSealer keeps keys as they are.
type plainSealer struct{}

func (plainSealer) Seal(_ string, text []byte) ([]byte, error)   { return text, nil }
func (plainSealer) Open(_ string, sealed []byte) ([]byte, error) { return sealed, nil }

// openModels makes a gateway on a store that a test has filled.
func openModels(t *testing.T, store gateway.Store, now func() time.Time) *gateway.Service {
	t.Helper()
	s, err := gateway.Open(t.Context(), gateway.Config{Store: store, Sealer: plainSealer{}, Log: slog.New(slog.DiscardHandler), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// someCalls are calls of a user's sandbox, a minute apart back from a time: of a model with a price, of one without, and one that failed.
func someCalls(of, user, sandbox, label string, at time.Time) []gateway.Call {
	calls := []gateway.Call{
		{
			Model: "gpt-5", Asked: "best", Provider: "cloud", Protocol: "chat", Stream: true, Status: 200, FirstByte: 320 * time.Millisecond, Took: 2 * time.Second,
			Tokens: gateway.Tokens{Input: 1000, Output: 200, CacheRead: 50}, Cost: 3250, Priced: true,
			Request: `{"messages":["` + of + ` asks"]}`, Answer: "<b>" + of + "\u202e is told</b>",
		},
		{Model: "home-made", Asked: "home-made", Provider: "local", Protocol: "ollama", Status: 200, Took: time.Minute, Tokens: gateway.Tokens{Input: 7, Output: 3}},
		{Asked: "gpt-9", Protocol: "responses", Status: 404, Problem: "No provider offers the model gpt-9."},
	}
	for i := range calls {
		c := &calls[i]
		c.ID, c.Time = fmt.Sprintf("%s-%d", of, 9-i), at.Add(-time.Duration(i)*time.Minute)
		c.User, c.Sandbox, c.Label = user, sandbox, label
	}
	return calls
}

// fillCalls puts calls into a store.
func fillCalls(t *testing.T, store gateway.Store, calls ...gateway.Call) {
	t.Helper()
	if err := store.AddCalls(t.Context(), calls); err != nil {
		t.Fatal(err)
	}
}

// usedModels gives a world whose users ada and bob have asked models, in the sandboxes lab and attic.
func usedModels(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.box("ada", "lab")
	w.box("bob", "attic")
	store, at := gatewaytest.NewStore(), time.Now().UTC().Truncate(time.Hour).Add(30*time.Minute).Add(-time.Hour)
	fillCalls(t, store, someCalls("ada", w.ids["ada"], w.ref("lab").ID(), "lab", at)...)
	fillCalls(t, store, someCalls("bob", w.ids["bob"], w.ref("attic").ID(), "attic", at)...)
	w.server.cfg.Models = openModels(t, store, nil)
	return w
}
