package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// keepLog notes whether the log of a sandbox that is about to be deleted is kept. Kind: Unavailable, and then the sandbox must stay.
func keepLog(ctx context.Context, s *Server, box sandbox.Sandbox, keep bool) error {
	if keep {
		return s.cfg.Logs.Keep(ctx, logs.Kept{Sandbox: box.ID, Name: box.Name, Owner: box.Owner, Since: s.cfg.Now()})
	}
	if box.State == sandbox.Deleting { // as an earlier request said
		return nil
	}
	if err := s.cfg.Logs.Unkeep(ctx, box.ID); err != nil { // from an earlier delete that failed; it must not hold up this one
		s.log.Warn("the log of a deleted sandbox may be kept, although nobody asked for it", "sandbox", box.Name, "error", err)
	}
	return nil
}

// keptLogShape is the log of a deleted sandbox as programs see it.
type keptLogShape struct {
	SandboxID string    `json:"sandbox_id"`
	Name      string    `json:"name"` // of the sandbox
	DeletedAt time.Time `json:"deleted_at"`
}

// apiKeptLogs lists the logs of deleted sandboxes, the last deleted first.
func (s *logHandlers) apiKeptLogs(ctx context.Context, r *request, _ none) (reply, error) {
	kept, err := s.deletedLogs(ctx, r)
	if err != nil {
		return reply{}, err
	}
	out := make([]keptLogShape, 0, len(kept))
	for _, k := range kept {
		out = append(out, keptLogShape{k.Sandbox, k.Name, k.Since.UTC()})
	}
	return reply{body: map[string]any{"logs": out}}, nil
}

// deletedLogs are those of keptLogs whose sandboxes are not there any more.
func (s *logHandlers) deletedLogs(ctx context.Context, r *request) ([]logs.Kept, error) {
	kept, err := s.keptLogs(ctx, r)
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{})
	return slices.DeleteFunc(kept, func(k logs.Kept) bool {
		return slices.ContainsFunc(boxes, func(box sandbox.Sandbox) bool { return box.ID == k.Sandbox })
	}), err
}

// dropLog deletes the log of a deleted sandbox. Kinds: NotFound, Unavailable.
func (s *logHandlers) dropLog(ctx context.Context, r *request) error {
	kept, err := s.deletedLogs(ctx, r)
	if err != nil {
		return err
	}
	for _, k := range kept {
		if k.Sandbox == r.param("id") {
			r.object = k.Name
			return s.cfg.Logs.Delete(ctx, k.Sandbox)
		}
	}
	return fault.New(fault.NotFound, "There is no such log of a deleted sandbox. It may be too old, or have been deleted.")
}

func (s *logHandlers) apiDropLog(ctx context.Context, r *request, _ none) (reply, error) {
	return reply{status: http.StatusNoContent}, s.dropLog(ctx, r)
}

func (s *logHandlers) submitDropLog(ctx context.Context, r *request) (string, error) {
	return logsPath, s.dropLog(ctx, r)
}

// keptNotice says of which deleted sandbox the lines are, when they are all of one.
func keptNotice(boxes logBoxes, kept []logs.Kept, now time.Time) views.KeptLog {
	if len(boxes) != 1 {
		return views.KeptLog{}
	}
	for _, k := range kept {
		if boxes[k.Sandbox].deleted {
			return views.KeptLog{ID: k.Sandbox, Name: k.Name, Deleted: timeOf(k.Since, now)}
		}
	}
	return views.KeptLog{}
}

// keptOptions are the logs of deleted sandboxes to choose from.
func keptOptions(kept []logs.Kept, now time.Time) (options []views.Option) {
	for _, k := range kept[:min(len(kept), mostOptions)] {
		options = append(options, views.Option{Value: k.Sandbox, Text: fmt.Sprintf("%s (deleted %s)", k.Name, timeOf(k.Since, now).Relative)})
	}
	return options
}
