package web

import (
	"context"

	"sandboxd/internal/snapshot"
)

// diffPart is what has changed since a snapshot, below that.
const diffPart = "/diff"

// differenceShape is something that has changed since a snapshot, as programs see it.
type differenceShape struct {
	Path   string `json:"path"`
	Change string `json:"change"`
	Kind   string `json:"kind"`
	Size   int64  `json:"size"` // bytes
}

type diffShape struct {
	Changes []differenceShape `json:"changes"`
	More    bool              `json:"more"`
}

// fileDiffShape is what has changed in one file.
type fileDiffShape struct {
	Path   string `json:"path"`
	Change string `json:"change"` // "" when it is the same
	Binary bool   `json:"binary"`
	Cut    bool   `json:"cut"`
	Diff   string `json:"diff"`
}

// apiDiff tells what has changed in the home since a snapshot.
func (s *snapshotHandlers) apiDiff(ctx context.Context, r *request, _ none) (reply, error) {
	h, n, err := s.snapshot(ctx, r)
	if err != nil {
		return reply{}, err
	}
	c, err := s.cfg.Snapshots.Compare(ctx, h.Sandbox(), n.ID)
	if err != nil {
		return reply{}, err
	}
	return reply{body: diffShape{Changes: differenceShapes(c.Found), More: c.More}}, nil
}

func differenceShapes(list []snapshot.Difference) []differenceShape {
	out := make([]differenceShape, 0, len(list))
	for _, d := range list {
		out = append(out, differenceShape(d))
	}
	return out
}

// apiFileDiff tells which lines of a file have changed since a snapshot.
func (s *snapshotHandlers) apiFileDiff(ctx context.Context, r *request, _ none) (reply, error) {
	h, n, err := s.snapshot(ctx, r)
	if err != nil {
		return reply{}, err
	}
	path := r.query("path")
	c, err := s.cfg.Snapshots.CompareFile(ctx, h.Sandbox(), n.ID, path)
	if err != nil {
		return reply{}, err
	}
	return reply{body: fileDiffShape{Path: path, Change: c.Change, Binary: c.Binary, Cut: c.Cut, Diff: c.Diff}}, nil
}
