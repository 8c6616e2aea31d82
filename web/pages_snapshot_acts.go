package web

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
	"sandboxd/views"
)

// revertTime is how long a form waits for a restore that it has begun, so that what is refused at once can be said beside the form.
const revertTime = time.Second

// pageNewSnapshot is the form that takes a snapshot; a script gets it as a sheet.
func (s *snapshotFormHandlers) pageNewSnapshot(ctx context.Context, r *request) (templ.Component, error) {
	return s.newForm(ctx, r, views.NewSnapshot{})
}

func (s *snapshotFormHandlers) newForm(ctx context.Context, r *request, v views.NewSnapshot) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	v.Box, v.URL, v.Next = box.Name, sameURL(box, snapshotsPart), r.origin(snapshotsURL(box.Name))
	runs, can := box.State == sandbox.Running || box.State == sandbox.Frozen, s.cfg.Snapshots.MemorySupport(ctx) == ""
	v.OffersMemory = runs && can || v.Memory.Fault != ""
	if v.Means = paused(box, v.OffersMemory); can && !runs {
		v.Means += " Start it first to keep memory, too."
	}
	if r.byScript() {
		return views.NewSnapshotSheet(v), nil
	}
	v.Frame = s.frame(r, "Take a snapshot of "+box.Name, "sandboxes")
	return views.NewSnapshotPage(v), nil
}

// paused says what taking a snapshot does to a sandbox in its present state.
func paused(box sandbox.Sandbox, memory bool) string {
	kept := "Files in its home and installed programs are kept; what running programs hold in memory is not."
	if memory {
		kept = "Files in its home and installed programs are kept."
	}
	switch box.State {
	case sandbox.Running:
		return "The sandbox is paused for as long as the copy takes. " + kept
	case sandbox.Frozen, sandbox.Asleep, sandbox.Sleeping:
		return "The sandbox is not woken. " + kept
	}
	return kept
}

// submitSnapshot begins a snapshot. The page's live connection shows how far it is.
func (s *snapshotFormHandlers) submitSnapshot(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	n, _, err := s.cfg.Snapshots.Begin(ctx, h.Sandbox(), snapshot.Ask{Name: r.field("name"), Note: r.field("note"), Kind: snapshot.Manual, Memory: r.field("memory") != ""})
	r.object = cmp.Or(n.Name, n.ID)
	return r.back(snapshotsURL(h.Name())), err
}

func (s *snapshotFormHandlers) againSnapshot(ctx context.Context, r *request, cause error) (templ.Component, error) {
	v := views.NewSnapshot{}
	v.Fault = r.fill(map[string]*views.Field{"name": &v.Name, "note": &v.Note, "memory": &v.Memory}, cause)
	return s.newForm(ctx, r, v)
}

// pageEditSnapshot is the form for a snapshot's name and note; a script gets it as a sheet.
func (s *snapshotFormHandlers) pageEditSnapshot(ctx context.Context, r *request) (templ.Component, error) {
	_, n, err := s.snapshots.snapshot(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.editForm(ctx, r, views.EditSnapshot{Name: views.Field{Value: n.Name}, Note: views.Field{Value: n.Note}})
}

func (s *snapshotFormHandlers) editForm(ctx context.Context, r *request, v views.EditSnapshot) (templ.Component, error) {
	h, n, err := s.snapshots.snapshot(ctx, r)
	if err != nil {
		return nil, err
	}
	v.About, v.URL, v.Next = s.snapshots.about(n), actURL(h.Sandbox(), n, "/edit"), r.origin(snapshotsURL(h.Name()))
	if r.byScript() {
		return views.EditSnapshotSheet(v), nil
	}
	v.Frame = s.frame(r, "Name and note of a snapshot of "+h.Name(), "sandboxes")
	return views.EditSnapshotPage(v), nil
}

// actURL is where something is done with a snapshot.
func actURL(box sandbox.Sandbox, n snapshot.Snapshot, act string) string {
	return sameURL(box, snapshotsPart+"/"+n.ID+act)
}

// submitEditSnapshot changes a snapshot's name and note.
func (s *snapshotFormHandlers) submitEditSnapshot(ctx context.Context, r *request) (string, error) {
	h, n, err := s.snapshots.snapshot(ctx, r)
	if err == nil {
		_, err = s.cfg.Snapshots.Edit(ctx, n.ID, r.field("name"), r.field("note"))
	}
	return r.back(snapshotsURL(h.Name())), err
}

func (s *snapshotFormHandlers) againEditSnapshot(ctx context.Context, r *request, cause error) (templ.Component, error) {
	v := views.EditSnapshot{}
	v.Fault = r.fill(map[string]*views.Field{"name": &v.Name, "note": &v.Note}, cause)
	return s.editForm(ctx, r, v)
}

// pageRevert asks before a sandbox is restored to a snapshot; a script gets the question as a sheet.
func (s *snapshotFormHandlers) pageRevert(ctx context.Context, r *request) (templ.Component, error) {
	return s.revertForm(ctx, r, "")
}

func (s *snapshotFormHandlers) revertForm(ctx context.Context, r *request, problem string) (templ.Component, error) {
	h, n, err := s.snapshots.snapshot(ctx, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	v := views.RestoreSnapshot{
		About: s.snapshots.about(n), Box: box.Name, URL: actURL(box, n, "/restore"), Means: reverted(box, n), Fault: problem, Next: r.origin(snapshotsURL(box.Name)),
	}
	if r.byScript() {
		return views.RestoreSnapshotSheet(v), nil
	}
	v.Frame = s.frame(r, "Restore "+box.Name+" to a snapshot", "sandboxes")
	return views.RestoreSnapshotPage(v), nil
}

// reverted says what a restore to a snapshot does to a sandbox in its present state.
func reverted(box sandbox.Sandbox, to snapshot.Snapshot) []string {
	means := []string{"The files in its home and the programs installed in it become those of the snapshot, and so do its services."}
	if to.Memory > 0 {
		return append(means, "Its running programs and its terminals end. Those of the snapshot continue from where they were, with closed network connections. If that fails, its programs start anew, and it says why.")
	}
	switch box.State {
	case sandbox.Stopped, sandbox.Asleep, sandbox.Sleeping, sandbox.Failed:
		return means
	case sandbox.Frozen:
		return append(means, "Its running programs and its terminals end. It is asleep afterwards.")
	}
	return append(means, "Its running programs and its terminals end. It is started again afterwards.")
}

// submitRevert begins to restore a sandbox to a snapshot. The page's live connection shows how far it is.
func (s *snapshotFormHandlers) submitRevert(ctx context.Context, r *request) (string, error) {
	h, n, err := s.snapshots.snapshot(ctx, r)
	if err != nil {
		return "", err
	}
	waiting, cancel := context.WithTimeout(ctx, revertTime)
	defer cancel()
	_, err = s.cfg.Snapshots.Restore(waiting, h.Sandbox(), n.ID)
	if err != nil && waiting.Err() != nil && errors.Is(err, waiting.Err()) { // it is under way
		err = nil
	}
	return r.back(snapshotsURL(h.Name())), err
}

func (s *snapshotFormHandlers) againRevert(ctx context.Context, r *request, cause error) (templ.Component, error) {
	return s.revertForm(ctx, r, fault.Message(cause))
}

// pageDeleteSnapshot asks before a snapshot is deleted; a script gets the question as a sheet.
func (s *snapshotFormHandlers) pageDeleteSnapshot(ctx context.Context, r *request) (templ.Component, error) {
	h, n, err := s.snapshots.snapshot(ctx, r)
	if err != nil {
		return nil, err
	}
	v := views.DeleteSnapshot{About: s.snapshots.about(n), URL: actURL(h.Sandbox(), n, "/delete"), Next: r.origin(snapshotsURL(h.Name()))}
	if r.byScript() {
		return views.DeleteSnapshotSheet(v), nil
	}
	v.Frame = s.frame(r, "Delete a snapshot of "+h.Name(), "sandboxes")
	return views.DeleteSnapshotPage(v), nil
}

// submitDeleteSnapshot deletes a snapshot, or cancels one that is being taken.
func (s *snapshotFormHandlers) submitDeleteSnapshot(ctx context.Context, r *request) (string, error) {
	h, n, err := s.snapshots.snapshot(ctx, r)
	if err == nil {
		err = s.cfg.Snapshots.Delete(ctx, n.ID)
	}
	return r.back(snapshotsURL(h.Name())), err
}
