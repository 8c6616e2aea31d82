package scripted_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/scripted"
)

func TestModel_PlaysStepsInOrderAtTheirPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := scripted.New(scripted.Step{Thinking: "a b", Text: "c d", Calls: []scripted.Call{scripted.Use("look", map[string]int{"x": 1})}, Pace: time.Second, Usage: agent.Usage{Input: 3}})
		start := time.Now()
		var got []string
		finish, err := model.Stream(t.Context(), agent.Request{System: "one"}, func(c agent.Chunk) error {
			got = append(got, c.Name+c.Text)
			return nil
		})
		if all := strings.Join(got, "|"); all != `a |b|c |d|look|{"x":1}` || err != nil || finish.Usage.Input != 3 || time.Since(start) != 6*time.Second {
			t.Errorf("%s after %v: %+v, %v", all, time.Since(start), finish, err)
		}
		if _, err := model.Stream(t.Context(), agent.Request{System: "two"}, func(agent.Chunk) error { return nil }); err != nil {
			t.Error(err)
		}
		if r := model.Requests(); len(r) != 2 || r[1].System != "two" {
			t.Errorf("requests %+v", r)
		}
	})
}

func TestModel_EndsWithItsContextAndItsReader(t *testing.T) {
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	model := scripted.Playing(func(agent.Request) scripted.Step { return scripted.Step{Text: "a b", Gate: make(chan struct{})} })
	if _, err := model.Stream(t.Context(), agent.Request{}, func(agent.Chunk) error { return stop }); err != stop {
		t.Errorf("its reader ended it with %v", err)
	}
	chunks := 0
	if _, err := model.Stream(ctx, agent.Request{}, func(agent.Chunk) error {
		if chunks++; chunks == 2 {
			cancel(stop)
		}
		return nil
	}); err != stop || chunks != 2 {
		t.Errorf("its context ended it with %v after %d chunks", err, chunks)
	}
}
