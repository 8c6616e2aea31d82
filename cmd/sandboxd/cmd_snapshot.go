package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// snapping is a snapshot that is being taken.
type snapping struct {
	client.NewSnapshot
	cmd       *cobra.Command
	snapshots client.Snapshots
	progress  *progress
	begun     bool // by this command, and not ready yet
}

func newSnapshotCmd() *cobra.Command {
	o := &snapping{}
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "snapshot NAME",
		Short: "Take a snapshot of a sandbox, to go back to",
		Long: `snapshot has the server keep the home of a sandbox, all that was changed outside of it (such as installed packages) and its services, and waits
until that is done. It prints the id alone on standard output. 'sandboxd snapshots restore' goes back to it, and 'sandboxd clone' makes
sandboxes of it. It is on the server's disk and is deleted with its sandbox: 'sandboxd backup' makes what stays.

A running sandbox is frozen while its files are copied. One that is asleep is not woken. Ctrl-C cancels the snapshot.

With --automatic the server deletes it by itself when it is old, or when there are many of them: for a program that takes one before each
step. With --memory it has the memory of running programs, too, if the server offers that (experimental): they continue from there.`,
		Example: "  sandboxd snapshot lab\n  sandboxd snapshot lab --name 'before the upgrade'\n  id=$(sandboxd snapshot lab --automatic --quiet)",
		Args:    wantArgs(1),
	})
	f := cmd.Flags()
	f.StringVar(&o.Name, "name", "", "what it is called, for people; commands take it in place of the id")
	f.StringVar(&o.Note, "note", "", "what it is for")
	f.BoolVar(&o.Automatic, "automatic", false, "let the server delete it when it is old")
	f.BoolVar(&o.Memory, "memory", false, "keep the memory of running programs, too (experimental)")
	quiet := f.BoolP("quiet", "q", false, "print nothing but the id")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if o.snapshots, err = snapshotsOf(r, args[0]); err != nil {
			return err
		}
		o.cmd, o.progress = cmd, newProgress(*quiet)
		snap, err := o.take(cmd.Context(), *quiet)
		if err != nil {
			return o.cancel(cmd.Context(), snap, err)
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), snap.ID); err != nil || *quiet {
			return err
		}
		return o.tell(snap)
	}
	return cmd
}

// snapshotsOf reaches the server, to ask for the snapshots of a sandbox.
func snapshotsOf(r *remote, box string) (client.Snapshots, error) {
	if err := checkBox(box); err != nil {
		return client.Snapshots{}, err
	}
	c, err := r.dial()
	return client.Snapshots{Client: c, Sandbox: box}, err
}

// take has one taken, and waits for it.
func (o *snapping) take(ctx context.Context, quiet bool) (snap client.Snapshot, err error) {
	if snap, o.begun, err = o.snapshots.Begin(ctx, o.NewSnapshot); err != nil {
		return snap, err
	}
	if !o.begun && !quiet {
		if err := say(o.cmd, "The same snapshot of %s is being taken already. Waiting for that one.", o.snapshots.Sandbox); err != nil {
			return snap, err
		}
	}
	err = o.progress.during("Taking a snapshot of "+o.snapshots.Sandbox, func() (err error) {
		snap, err = o.snapshots.Follow(ctx, snap)
		return err
	})
	return snap, err
}

// cancel has the server give up a snapshot that nobody waits for any more, and gives what to say.
func (o *snapping) cancel(ctx context.Context, snap client.Snapshot, err error) error {
	switch {
	case snap.State == client.SnapshotFailed:
		return err
	case ctx.Err() == nil && fault.Is(err, fault.Unavailable) && snap.ID != "":
		return fault.Wrap(err, fault.Unavailable, "%s The server may still be taking the snapshot %s: see 'sandboxd snapshots %s'.", fault.Message(err), snap.ID, o.snapshots.Sandbox)
	case ctx.Err() == nil:
		return err
	case !o.begun || snap.ID == "":
		return fault.Wrap(err, fault.Gone, "Interrupted.")
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer end()
	if failed := o.snapshots.Delete(ctx, snap.ID); failed != nil {
		return fault.Wrap(failed, fault.KindOf(failed), "The server may still be taking the snapshot %s: %s", snap.ID, fault.Message(failed))
	}
	return fault.Wrap(err, fault.Gone, "The snapshot was cancelled.")
}

// tell says what the snapshot has.
func (o *snapping) tell(snap client.Snapshot) error {
	line := "Took the snapshot"
	if has := snapshotSize(snap); has != "-" {
		line += ": " + has
	}
	if snap.PausedMS > 0 {
		line += fmt.Sprintf(". %s was frozen for %.1f s", o.snapshots.Sandbox, float64(snap.PausedMS)/1000)
	}
	lines := []string{line + "."}
	if !snap.Consistent {
		lines = append(lines, "Programs ran meanwhile: files that they were writing may be incomplete.")
	}
	for _, line := range append(lines, lostLines(snap.Lost, snap.MoreLost)...) {
		if err := say(o.cmd, "%s", line); err != nil {
			return err
		}
	}
	return nil
}

// snapshotSize says what a snapshot has, as far as the server counts that: "12 MiB in 40 files".
func snapshotSize(snap client.Snapshot) string {
	size := ""
	if snap.Files+snap.Folders+snap.Bytes > 0 {
		size = fmt.Sprintf("%s in %d files", text.Size(snap.Bytes), snap.Files)
	}
	if snap.Memory > 0 {
		if size != "" {
			size += ", "
		}
		size += text.Size(snap.Memory) + " of memory"
	}
	return orDash(size)
}
