package tools

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/tools/risk"
)

// snapshotWait bounds how long a call waits for a snapshot; it is made all the same.
const snapshotWait = 5 * time.Minute

func (t *table) takeSnapshot() spec {
	return spec{
		name: "take_snapshot", title: "Take a snapshot", changes: true,
		description: "Take a snapshot of the whole sandbox, its files and its programs' files, to come back to with restore_snapshot. Do this before something that may go wrong.",
		params: []param{
			{name: "name", kind: isText, about: "A short name."},
			{name: "note", kind: isText, about: "What it is good for."},
		},
		preview: func(a args) Preview {
			return Preview{Code: a.text("name"), Language: "text", Risk: risk.Judgement{Level: risk.Changing}}
		},
		run: func(ctx context.Context, a args, _ io.Writer) (Result, error) {
			box, err := t.seat.Handle.Current(ctx)
			if err != nil {
				return ended(ctx, err)
			}
			snap, _, err := t.cfg.Snapshots.Begin(ctx, box, snapshot.Ask{Name: a.text("name"), Note: a.text("note")})
			if err == nil {
				waiting, cancel := context.WithTimeout(ctx, snapshotWait)
				defer cancel()
				snap, err = t.cfg.Snapshots.Wait(waiting, snap.ID)
			}
			if err != nil {
				return ended(ctx, err)
			}
			return Result{Text: fmt.Sprintf("The snapshot is taken. Its id is %s.", snap.ID), Data: Data{Snapshot: snap.ID}}, nil
		},
	}
}

// mostSnapshots bounds a list.
const mostSnapshots = 50

func (t *table) listSnapshots() spec {
	return spec{
		name: "list_snapshots", title: "List snapshots",
		description: "List the snapshots of the sandbox, the newest first, with their ids.",
		run: func(context.Context, args, io.Writer) (Result, error) {
			list := t.own()
			if len(list) == 0 {
				return Result{Text: "[There are none.]"}, nil
			}
			var b strings.Builder
			for i, s := range list {
				if i == mostSnapshots {
					fmt.Fprintf(&b, "[%d more are left out]\n", len(list)-i)
					break
				}
				fmt.Fprintf(&b, "%s  %s  %s, %s  %s\n", s.ID, s.Created.UTC().Format(time.DateTime), s.Kind, s.State, cmp.Or(plain(s.Name), "(no name)"))
			}
			return Result{Text: shorten(b.String(), maxText)}, nil
		},
	}
}

// own gives the snapshots of the seat's sandbox.
func (t *table) own() []snapshot.Snapshot {
	return t.cfg.Snapshots.List(func(s snapshot.Snapshot) bool { return s.SandboxID == t.seat.Handle.ID() })
}

func (t *table) restoreSnapshot() spec {
	return spec{
		name: "restore_snapshot", title: "Restore a snapshot", changes: true,
		description: "Make the sandbox as it was when a snapshot was taken: all files changed since are lost, and all programs are ended. A snapshot of how it is now is taken first, so that this can be undone.",
		params:      []param{{name: "id", kind: isText, required: true, about: "Its id, as list_snapshots gives it."}},
		preview: func(a args) Preview {
			return Preview{Code: a.text("id"), Language: "text", Risk: risk.Judgement{Level: risk.Risky, Reasons: []string{"the sandbox becomes as it was, and its programs are ended"}}}
		},
		run: func(ctx context.Context, a args, _ io.Writer) (Result, error) {
			box, err := t.seat.Handle.Current(ctx)
			if err != nil {
				return ended(ctx, err)
			}
			known := false
			for _, s := range t.own() {
				known = known || s.ID == a.text("id")
			}
			if !known {
				return ended(ctx, snapshot.NotFound(a.text("id")))
			}
			safety, err := t.cfg.Snapshots.Restore(ctx, box, a.text("id"))
			if fault.Is(err, fault.Timeout) && ctx.Err() == nil {
				return Result{Text: "It is still being restored. Look at list_snapshots later."}, nil
			}
			if err != nil {
				return ended(ctx, err)
			}
			return Result{Text: fmt.Sprintf("Restored. Snapshot %s is how it was before, to undo this.", safety.ID), Data: Data{Snapshot: safety.ID}}, nil
		},
	}
}
