package idle_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"sandboxd/internal/catalog"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// quiet is a manager whose sandboxes are all up.
type quiet struct {
	idle.Sandboxes
	rows []sandbox.Sandbox
}

func (q *quiet) EngineHealth() error { return nil }

func (q *quiet) List(context.Context, sandbox.Filter) ([]sandbox.Sandbox, int, error) {
	return q.rows, len(q.rows), nil
}

func (q *quiet) Resting(sandbox.Sandbox) sandbox.Resting {
	return sandbox.Resting{Rest: catalog.Rest{FreezeAfter: catalog.After(freezeAfter), StopAfter: catalog.After(stopAfter)}}
}

// BenchmarkSweep is one pass over 500 sandboxes that are up and not about to be due.
func BenchmarkSweep(b *testing.B) {
	q := &quiet{}
	for i := range 500 {
		name := fmt.Sprint("box-", i)
		q.rows = append(q.rows, sandbox.Sandbox{ID: "id-of-" + name, Name: name, State: sandbox.Running})
	}
	r := idle.NewReaper(idle.Config{Tracker: idle.New(), Sandboxes: q, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	for b.Loop() {
		if report, err := r.Sweep(context.Background()); err != nil || report.Up != 500 {
			b.Fatal(report, err)
		}
	}
}
