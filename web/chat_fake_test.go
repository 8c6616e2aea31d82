package web

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"sandboxd/internal/chat"
	"sandboxd/internal/chat/chattest"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// keepChat makes conversations with an agent that repeats what it is told, asks when it is told "ask", takes a checkpoint when it is told
// "change", works until it is stopped when it is told "work", and cannot continue when it is told "fail".
func keepChat(t *testing.T, log *slog.Logger) (*chat.Service, *chat.States) {
	t.Helper()
	states := chat.NewStates(chattest.NewStore(), nil)
	s := chat.New(chat.Config{Store: states, Checkpoints: noPoints{}, Log: log, Drivers: func(agent string) (chat.Driver, error) {
		if agent != chat.OwnAgent {
			return nil, fault.New(fault.NotFound, "There is no agent %q here.", agent)
		}
		return echoAgent{}, nil
	}})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) }) // nil always
	t.Cleanup(func() { cancel(); running.Wait() })
	return s, states
}

// withChat gives a server conversations, in the sandboxes that boxes names.
func withChat(t *testing.T, log *slog.Logger, boxes BoxNames, c Config) Config {
	t.Helper()
	c.Chat, c.ChatStates = keepChat(t, log)
	c.Runs, c.ChatLinks, c.ChatBoxes = chat.NewRuns(c.Chat, echoRunner{}), chat.NewLinks(&chattest.Links{}, nil), boxes
	c.ChatModels = func(string) []string { return []string{"best"} }
	return c
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
	switch t.Message().Text {
	case "work":
		<-ctx.Done()
		return context.Cause(ctx)
	case "fail":
		return fault.New(fault.Unavailable, "The model\u202e does not answer.")
	}
	t.Keep("not shown")
	t.Text("You said " + t.Message().Text)
	return nil
}

// echoRunner runs shell code that repeats itself, until it is stopped when it is "wait".
type echoRunner struct{}

// Runs implements chat.Runner.
func (echoRunner) Runs(language string) bool { return language == "sh" }

// Risky implements chat.Runner.
func (echoRunner) Risky(string, string) bool { return false }

// Run implements chat.Runner.
func (echoRunner) Run(ctx context.Context, _ chat.Conversation, r chat.Run, out func(chat.Field, string)) (chat.Ran, error) {
	out(chat.InOutput, r.Code)
	if r.Code == "wait" {
		<-ctx.Done()
	}
	return chat.Ran{}, ctx.Err()
}

type noPoints struct{}

// Take implements chat.Checkpoints.
func (noPoints) Take(context.Context, string, string) (string, error) { return "snap", nil }

// Restore implements chat.Checkpoints.
func (noPoints) Restore(context.Context, string, string) (string, error) { return "kept", nil }

// namesIn finds the sandbox of a conversation in a list.
func namesIn(list func(context.Context, sandbox.Filter) ([]sandbox.Sandbox, int, error)) BoxNames {
	return func(ctx context.Context, id string) (name, owner string, err error) {
		boxes, _, err := list(ctx, sandbox.Filter{})
		for _, box := range boxes {
			if box.ID == id {
				return box.Name, box.Owner, err
			}
		}
		return "", "", errors.Join(err, fault.New(fault.NotFound, "There is no such sandbox."))
	}
}
