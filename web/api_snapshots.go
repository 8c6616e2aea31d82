package web

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/snapshot"
)

// boxSnapshotShape is a snapshot as programs see it.
type boxSnapshotShape struct {
	ID         string      `json:"id"`
	Sandbox    string      `json:"sandbox"`
	Name       string      `json:"name"`
	Note       string      `json:"note"`
	Parent     string      `json:"parent"` // id; "" for none
	Kind       string      `json:"kind"`
	State      string      `json:"state"`
	Problem    string      `json:"problem"`
	CreatedAt  time.Time   `json:"created_at"`
	Files      int64       `json:"files"`
	Folders    int64       `json:"folders"`
	Bytes      int64       `json:"bytes"` // of the home
	Consistent bool        `json:"consistent"`
	PausedMS   int64       `json:"paused_ms"`
	Memory     int64       `json:"memory_bytes"`
	Lost       []lossShape `json:"lost"`
	MoreLost   int64       `json:"more_lost"`
	Head       bool        `json:"head"`
}

// shape gives a snapshot of the sandbox called box as programs see it.
func (s *snapshotHandlers) shape(box string, n snapshot.Snapshot) boxSnapshotShape {
	return boxSnapshotShape{
		ID: n.ID, Sandbox: box, Name: n.Name, Note: n.Note, Parent: n.Parent, Kind: string(n.Kind), State: string(n.State), Problem: n.Problem,
		CreatedAt: n.Created.UTC(), Files: n.Stats.Files, Folders: n.Stats.Folders, Bytes: n.Stats.Bytes,
		Consistent: n.Still, PausedMS: n.Took.Milliseconds(), Memory: n.Memory, Lost: lossShapes(n.Stats.Lost), MoreLost: n.Stats.MoreLost, Head: s.cfg.Snapshots.Head(n.SandboxID) == n.ID,
	}
}

type snapshotsShape struct {
	Snapshots []boxSnapshotShape `json:"snapshots"`
	Head      string             `json:"head"` // id of the one that the sandbox is based on; "" for none
	Undo      string             `json:"undo"` // id of the one that undoes the last restore or update; "" for none
}

// of gives the snapshots of a sandbox, the newest first.
func (s *snapshotHandlers) of(sandboxID string) []snapshot.Snapshot {
	return s.cfg.Snapshots.List(func(n snapshot.Snapshot) bool { return n.SandboxID == sandboxID && n.Kind != snapshot.Passing })
}

// snapshot gives the sandbox and the snapshot of it that the path names.
func (s *snapshotHandlers) snapshot(ctx context.Context, r *request) (access.Handle, snapshot.Snapshot, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return h, snapshot.Snapshot{}, err
	}
	n, err := s.ofBox(h, r.param("id"))
	r.object = cmp.Or(n.Name, n.ID)
	return h, n, err
}

// ofBox gives a snapshot of a sandbox. One of another sandbox is one that does not exist.
func (s *snapshotHandlers) ofBox(h access.Handle, id string) (snapshot.Snapshot, error) {
	n, err := s.cfg.Snapshots.Snapshot(id)
	if err == nil && n.SandboxID != h.ID() {
		return snapshot.Snapshot{}, snapshot.NotFound(id)
	}
	return n, err
}

// apiSnapshots lists the snapshots of a sandbox, the newest first.
func (s *snapshotHandlers) apiSnapshots(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	list := s.of(h.ID())
	out := snapshotsShape{Snapshots: make([]boxSnapshotShape, 0, len(list)), Head: s.cfg.Snapshots.Head(h.ID())}
	if undo, _, ok := s.undoing(h.ID()); ok {
		out.Undo = undo.ID
	}
	for _, n := range list {
		out.Snapshots = append(out.Snapshots, s.shape(h.Name(), n))
	}
	return reply{body: out}, nil
}

// apiSnapshot answers with one.
func (s *snapshotHandlers) apiSnapshot(ctx context.Context, r *request, _ none) (reply, error) {
	h, n, err := s.snapshot(ctx, r)
	if err != nil {
		return reply{}, err
	}
	return reply{body: s.shape(h.Name(), n)}, nil
}

// snapshotBody says what a new snapshot is called, whether it is deleted by itself, and whether it has the memory of programs.
type snapshotBody struct {
	Name      string `json:"name"`
	Note      string `json:"note"`
	Automatic bool   `json:"automatic"`
	Memory    bool   `json:"memory"`
}

func (b snapshotBody) ask() snapshot.Ask {
	kind := snapshot.Manual
	if b.Automatic {
		kind = snapshot.Automatic
	}
	return snapshot.Ask{Name: b.Name, Note: b.Note, Kind: kind, Memory: b.Memory}
}

// apiTakeSnapshot begins a snapshot: 202, or with ?wait=ready 201 once it is taken; 200 when one was being taken already.
func (s *snapshotHandlers) apiTakeSnapshot(ctx context.Context, r *request, in snapshotBody) (reply, error) {
	w, err := r.waiting("ready")
	if err != nil {
		return reply{}, err
	}
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	n, begun, err := s.cfg.Snapshots.Begin(ctx, h.Sandbox(), in.ask())
	if err != nil {
		return reply{}, err
	}
	r.object = cmp.Or(n.Name, n.ID)
	out := reply{status: http.StatusOK, location: sandboxPath(h.Name()) + snapshotsPart + "/" + n.ID}
	if begun {
		out.status = http.StatusAccepted
	}
	if w.asked {
		waiting, cancel := context.WithTimeout(ctx, w.limit)
		defer cancel()
		if n, err = s.cfg.Snapshots.Wait(waiting, n.ID); err != nil {
			return out, err
		}
		if begun {
			out.status = http.StatusCreated
		}
	}
	out.body = s.shape(h.Name(), n)
	return out, nil
}

// snapshotChange says what of a snapshot is changed: what is nil stays.
type snapshotChange struct {
	Name *string `json:"name"`
	Note *string `json:"note"`
}

// apiChangeSnapshot changes the name or the note of a snapshot.
func (s *snapshotHandlers) apiChangeSnapshot(ctx context.Context, r *request, in snapshotChange) (reply, error) {
	h, n, err := s.snapshot(ctx, r)
	if err != nil {
		return reply{}, err
	}
	if in.Name != nil {
		n.Name = *in.Name
	}
	if in.Note != nil {
		n.Note = *in.Note
	}
	if n, err = s.cfg.Snapshots.Edit(ctx, n.ID, n.Name, n.Note); err != nil {
		return reply{}, err
	}
	return reply{body: s.shape(h.Name(), n)}, nil
}

// apiDeleteSnapshot deletes a snapshot, or cancels one that is being taken.
func (s *snapshotHandlers) apiDeleteSnapshot(ctx context.Context, r *request, _ none) (reply, error) {
	_, n, err := s.snapshot(ctx, r)
	if err == nil {
		err = s.cfg.Snapshots.Delete(ctx, n.ID)
	}
	return reply{status: http.StatusNoContent}, err
}

// revertedShape tells of a sandbox that was restored to a snapshot.
type revertedShape struct {
	Sandbox sandboxShape `json:"sandbox"`
	Safety  string       `json:"safety"` // id of the snapshot of what it was before
}

// apiRevert restores a sandbox to a snapshot, and answers once that is done. It continues when the caller leaves.
func (s *snapshotHandlers) apiRevert(ctx context.Context, r *request, _ none) (reply, error) {
	h, n, err := s.snapshot(ctx, r)
	if err != nil {
		return reply{}, err
	}
	safety, err := s.cfg.Snapshots.Restore(ctx, h.Sandbox(), n.ID)
	if err != nil {
		return reply{}, err
	}
	box, err := h.Current(ctx)
	if err != nil {
		return reply{}, err
	}
	shape, err := s.sandboxes.shape(ctx, newOwners(s.cfg.Accounts), box)
	return reply{body: revertedShape{Sandbox: shape, Safety: safety.ID}}, err
}
