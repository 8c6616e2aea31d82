package web

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"sandboxd/internal/chat"
	"sandboxd/internal/chat/chattest"
	"sandboxd/internal/fault"
)

// keepChat makes conversations with an agent that repeats what it is told, asks when it is told "ask", and takes
// a checkpoint when it is told "change".
func keepChat(t *testing.T, log *slog.Logger) *chat.Service {
	t.Helper()
	s := chat.New(chat.Config{Store: chattest.NewStore(), Checkpoints: noPoints{}, Log: log, Drivers: func(agent string) (chat.Driver, error) {
		if agent != chat.OwnAgent {
			return nil, fault.New(fault.NotFound, "There is no agent %q here.", agent)
		}
		return echoAgent{}, nil
	}})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) }) // nil always
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

type echoAgent struct{}

// Turn implements chat.Driver.
func (echoAgent) Turn(ctx context.Context, t *chat.Turn) error {
	if t.Message().Text == "ask" {
		answer, err := t.Ask(ctx, chat.Ask{ID: "q1", Title: "May I?", Text: "rm -rf build", Choices: []chat.Choice{{ID: "yes", Label: "Allow"}}})
		if err != nil {
			return err
		}
		t.Text(answer)
	}
	if t.Message().Text == "change" {
		if err := t.Checkpoint(ctx); err != nil {
			return err
		}
	}
	t.Keep("not shown")
	t.Text("You said " + t.Message().Text)
	return nil
}

type noPoints struct{}

// Take implements chat.Checkpoints.
func (noPoints) Take(context.Context, string, string) (string, error) { return "snap", nil }

// Restore implements chat.Checkpoints.
func (noPoints) Restore(context.Context, string, string) error { return nil }
