package web

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/catalog"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// snapshotsPart is the page of a sandbox's snapshots, below that of the sandbox.
const snapshotsPart = "/snapshots"

// clonePart is the form that clones a sandbox.
const clonePart = "/clone"

// snapshotsURL is the page of a sandbox's snapshots.
func snapshotsURL(name string) string { return sandboxURL(name) + snapshotsPart }

// pageSnapshots shows the snapshots of a sandbox. It wakes nothing.
func (s *snapshotHandlers) pageSnapshots(ctx context.Context, r *request) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	v := views.SandboxSnapshots{
		Frame: s.frame(r, "Snapshots of "+boxTitle(box), "sandboxes"), Name: box.Name, Title: boxTitle(box), ClonedFrom: box.ClonedFrom,
		State: s.workspace.state(box, s.cfg.Sandboxes.Progress(box.ID)), Take: s.take(box), Restored: s.restored(box),
		Failed: s.cfg.Snapshots.Problem(box.ID), List: s.list(box, r.isAdmin()),
	}
	v.Frame.Live = views.Live{Topic: sameURL(box, snapshotsPart), Seen: "seen=" + printOf(v.List)}
	return views.SandboxSnapshotsPage(v), nil
}

// offNow says why nothing can be done with a sandbox now that takes or uses a snapshot; or "".
func (s *snapshotHandlers) offNow(box sandbox.Sandbox) string {
	switch {
	case s.cfg.Snapshots.Restoring(box.ID):
		return "The sandbox is being restored or updated."
	case !box.State.Settled():
		return "The sandbox is " + strings.ToLower(s.workspace.state(box, sandbox.Progress{}).Text) + "."
	}
	return ""
}

// take are the buttons for a sandbox as it is now.
func (s *snapshotHandlers) take(box sandbox.Sandbox) views.TakeSnapshot {
	v := views.TakeSnapshot{URL: sameURL(box, snapshotsPart+"/new"), Clone: sameURL(box, clonePart), Off: s.offNow(box)}
	for _, n := range s.of(box.ID) {
		if n.State == snapshot.Making && v.Off == "" {
			v.Off = "A snapshot is being taken."
		}
	}
	return v
}

// undoShown is how long a page offers to undo a restore at its top.
const undoShown = 24 * time.Hour

// undoing gives the snapshot that undoes the last restore or update of a sandbox, and the one that it is based on since: until another
// snapshot is taken of it.
func (s *snapshotHandlers) undoing(sandboxID string) (undo, to snapshot.Snapshot, ok bool) {
	undo, ok = s.cfg.Snapshots.Undo(sandboxID)
	to, err := s.cfg.Snapshots.Snapshot(s.cfg.Snapshots.Head(sandboxID))
	return undo, to, ok && err == nil && !to.Created.After(undo.Created)
}

// restored says what a sandbox was restored to, and how that is undone.
func (s *snapshotHandlers) restored(box sandbox.Sandbox) views.Restored {
	undo, to, ok := s.undoing(box.ID)
	now := s.cfg.Now()
	if !ok || now.Sub(undo.Created) > undoShown {
		return views.Restored{}
	}
	v := views.Restored{
		Updated: to.ID == undo.ID, To: nameText(to), Made: timeOf(to.Created, now), Undo: actURL(box, undo, "/undo"), Off: s.offNow(box), Next: snapshotsURL(box.Name),
	}
	if to.Memory > 0 && box.State == sandbox.Running {
		v.Warn = box.Problem
	}
	return v
}

// list is what the page shows of snapshots now, to an admin or another.
func (s *snapshotHandlers) list(box sandbox.Sandbox, admin bool) views.SnapshotList {
	list, head := s.of(box.ID), s.cfg.Snapshots.Head(box.ID)
	v := views.SnapshotList{}
	off := s.offNow(box) != ""
	for _, n := range snapshot.Tree(list, head) {
		item := s.item(box, n)
		item.Templates = admin
		item.Current, item.Restores = n.ID == head, n.State == snapshot.Ready && !off
		v.Items = append(v.Items, item)
	}
	v.Foot = s.foot(list)
	return v
}

// foot says how many snapshots there are, and which ones are deleted by themselves.
func (s *snapshotHandlers) foot(list []snapshot.Snapshot) string {
	c := s.cfg.Snapshots.Config
	said := "Automatic ones are deleted after " + afterText(catalog.After(c.Keep)) + ", and when there are more than " + grouped(int64(c.Automatic)) +
		". Those taken before a restore or an update are deleted when there are more than " + strconv.Itoa(snapshot.KeptSafety) + "."
	if len(list) > 0 {
		said = amount(int64(len(list)), "snapshot") + ". " + said
	}
	return said
}

// kindNames are what pages call the kinds that a person did not ask for.
var kindNames = map[snapshot.Kind]string{snapshot.Automatic: "automatic", snapshot.Safety: "before a restore or update"}

// item makes a snapshot ready to show.
func (s *snapshotHandlers) item(box sandbox.Sandbox, n snapshot.Placed) views.Snapshot {
	now := s.cfg.Now()
	v := views.Snapshot{
		ID: n.ID, Clone: sameURL(box, clonePart) + "&snapshot=" + n.ID, URL: snapshotsURL(box.Name) + "/" + n.ID, Box: strings.TrimPrefix(sameURL(box, ""), sandboxURL(box.Name)), Name: nameText(n.Snapshot), Note: noteText(n.Note),
		Made: timeOf(n.Created, now), Kind: kindNames[n.Kind], Rail: views.Rail{Lane: n.Lane, Above: n.Above, Below: n.Below, Joins: n.From != nil}, State: s.snapshotState(n.Snapshot), Problem: n.Problem,
		Making: n.State == snapshot.Making, Ready: n.State == snapshot.Ready, Next: snapshotsURL(box.Name), About: called(n.Snapshot),
	}
	if n.From != nil {
		v.Rail.From = called(*n.From)
	}
	if v.Ready {
		v.Memory = memoryText(n.Snapshot)
		v.Size, v.Files = contentText(n.Snapshot)
		v.Losses, v.Lost = lossesOf(lossShapes(n.Stats.Lost), n.Stats.MoreLost)
		if v.Running = !n.Still; n.Still && n.Took > 0 {
			v.Paused = pauseText(n.Took)
		}
	}
	return v
}

// called names a snapshot in a sentence.
func called(n snapshot.Snapshot) string {
	if n.Name != "" {
		return "“" + nameText(n) + "”"
	}
	return "the snapshot of " + n.Created.UTC().Format("2 January 2006, 15:04 MST")
}

// pauseText writes how long a sandbox was paused: "35 ms", "1.4 s", "2 min".
func pauseText(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return lasted(d)
}

// nameText is the name of a snapshot on a page.
func nameText(n snapshot.Snapshot) string { return text.OneLine(n.Name, maxPath) }

// noteText is a note on a page, line by line.
func noteText(note string) string {
	lines := strings.Split(strings.TrimSpace(note), "\n")
	for i, line := range lines {
		lines[i] = text.OneLine(line, maxPath)
	}
	return strings.Join(lines, "\n")
}

// snapshotState says how far a snapshot is.
func (s *snapshotHandlers) snapshotState(n snapshot.Snapshot) views.State {
	switch n.State {
	case snapshot.Ready:
		return views.State{Tone: "good", Icon: "check", Text: "Ready", Bar: views.BarNone}
	case snapshot.Failed:
		return views.State{Tone: "bad", Icon: "state-failed", Text: "Failed", Bar: views.BarNone}
	}
	v := views.State{Tone: "busy", Icon: "state-busy", Text: "Being taken", Bar: views.BarUnknown}
	if detail := s.cfg.Sandboxes.Progress(n.SandboxID).Detail; detail != "" {
		v.Why = detail + " copied"
	}
	return v
}

// about says in a few words which snapshot a sheet is about.
func (s *snapshotHandlers) about(n snapshot.Snapshot) views.AboutSnapshot {
	size, files := contentText(n)
	return views.AboutSnapshot{Name: nameText(n), Made: timeOf(n.Created, s.cfg.Now()), Size: size, Files: files, Memory: memoryText(n)}
}

// memoryText says how much memory a snapshot has; "" for none.
func memoryText(n snapshot.Snapshot) string {
	if n.Memory == 0 {
		return ""
	}
	return text.Size(n.Memory)
}

// contentText says what a copy of a home has; nothing for one that the storage pool has made, which counts nothing.
func contentText(n snapshot.Snapshot) (size, files string) {
	if n.Stats.Files == 0 && n.Stats.Bytes == 0 && n.Stats.Folders == 0 {
		return "", ""
	}
	return text.Size(n.Stats.Bytes), amount(n.Stats.Files, "file")
}

// lostSnapshots says how many snapshots go with a sandbox; "" for none.
func (s *snapshotHandlers) lostSnapshots(box sandbox.Sandbox) string {
	switch n := len(s.of(box.ID)); n {
	case 0:
		return ""
	case 1:
		return "Its snapshot."
	default:
		return "Its " + grouped(int64(n)) + " snapshots."
	}
}

// captured tells of a sandbox whose home is being read, for a backup or for a snapshot.
func (s *snapshotHandlers) captured(w *views.Work, box sandbox.Sandbox, p sandbox.Progress) {
	if s.backups.making(box.ID) {
		w.Title, w.Text, w.Detail = backedUp, "Its programs are paused while its home is read, and resume afterwards.", detailed(p, " read")
		w.Phases = phases(p, sandbox.PhaseBackup)
		w.Acts = []views.Action{{Icon: "archive", Text: "Backups", URL: sameURL(box, backupsPath)}}
		return
	}
	w.Title, w.Text, w.Detail = stateLooks[box.State].Text, "Its programs are paused while it is copied, and resume afterwards.", detailed(p, " copied")
	if s.updates.under(box) {
		w.Title, w.Text = beingUpdated, "A snapshot of it is taken first, so that it can be put back."
	}
	if w.Phases = phases(p, sandbox.PhaseSnapshot); p.Phase == sandbox.PhaseMemory {
		w.Phases = phases(p, sandbox.PhaseSnapshot, sandbox.PhaseMemory)
	}
	w.Acts = []views.Action{{Icon: "camera", Text: "Snapshots", URL: sameURL(box, snapshotsPart)}}
}

// snapshotted tells of a sandbox whose home is being made from a snapshot, if it is.
func (s *snapshotHandlers) snapshotted(w *views.Work, box sandbox.Sandbox) {
	switch {
	case s.newClone(box):
		w.Text = "The files of " + box.ClonedFrom + " are copied to it, and then it starts. You can leave this page; this continues."
	case !box.Revert.Empty():
		w.Title, w.Text = "Being restored", "It becomes what it was when the snapshot was taken, and is started again if it was running."
		w.Acts = []views.Action{{Icon: "camera", Text: "Snapshots", URL: sameURL(box, snapshotsPart)}}
	}
}

// newClone reports whether a sandbox in Restoring is a clone that is being made. One that is started with the memory of its original has
// a Revert, as one has that is being restored.
func (s *snapshotHandlers) newClone(box sandbox.Sandbox) bool {
	return box.ClonedFrom != "" && box.State == sandbox.Restoring && (box.CutOff == sandbox.Deleting || box.Revert.Memory && !s.cfg.Snapshots.Restoring(box.ID))
}
