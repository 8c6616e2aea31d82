package web

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"sandboxd/internal/trials"
	"sandboxd/internal/trials/trialstest"
)

// keepTrials runs a Service over the others of a server until the test ends.
func keepTrials(t *testing.T, boxes trials.Sandboxes, of Config, room func(context.Context) error, log *slog.Logger) *trials.Service {
	t.Helper()
	s := trials.New(trials.Config{Store: &trialstest.Store{}, Sandboxes: boxes, Snapshots: of.Snapshots, Chat: of.Chat, Doing: of.ChatStates, Room: room, Log: log, Now: of.Now})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) }) // nil always
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}
