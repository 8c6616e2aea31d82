package main

import (
	"github.com/spf13/cobra"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
)

func newSnapshotsRestoreCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "restore NAME SNAPSHOT",
		Short: "Restore a sandbox to a snapshot",
		Long: `restore makes a sandbox what it was when the snapshot was taken: its home, the programs installed in it, and its services. Its running
programs end; it is started again if it ran. Its name, size, environment and links stay as they are.

A snapshot of what it replaces is taken first, so it does not ask: 'sandboxd snapshots undo' takes it back.`,
		Example: "  sandboxd snapshots restore lab 'before the upgrade'\n  sandboxd snapshots restore lab 9494f39f73f0c93e",
		Args:    wantArgs(2),
	})
	quiet := cmd.Flags().BoolP("quiet", "q", false, "show no progress")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, snap, err := snapshotNamed(cmd.Context(), r, args)
		if err != nil {
			return err
		}
		return restoreTo(cmd, s, snap, newProgress(*quiet))
	}
	return cmd
}

func newSnapshotsUndoCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "undo NAME",
		Short: "Undo the last restore or update of a sandbox",
		Long: `undo restores a sandbox to the snapshot that its last restore or update has taken first. It can be undone as well. When another snapshot was
taken since, restore to the one that you want: 'sandboxd snapshots' lists those that restores and updates have taken as "safety".`,
		Example: "  sandboxd snapshots undo lab",
		Args:    wantArgs(1),
	})
	quiet := cmd.Flags().BoolP("quiet", "q", false, "show no progress")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := snapshotsOf(r, args[0])
		if err != nil {
			return err
		}
		list, err := s.List(cmd.Context())
		if err != nil {
			return err
		}
		for _, snap := range list.Snapshots {
			if snap.ID == list.Undo {
				return restoreTo(cmd, s, snap, newProgress(*quiet))
			}
		}
		return fault.New(fault.Conflict, "%s has no restore or update to undo, or another snapshot was taken since. 'sandboxd snapshots %s' lists what it can be restored to.", args[0], args[0])
	}
	return cmd
}

// restoreTo restores a sandbox to a snapshot, and says what it is then.
func restoreTo(cmd *cobra.Command, s client.Snapshots, snap client.Snapshot, p *progress) error {
	var box client.Sandbox
	err := p.during("Restoring "+s.Sandbox, func() (err error) {
		box, _, err = s.Restore(cmd.Context(), snap.ID)
		return err
	})
	switch {
	case err != nil && cmd.Context().Err() != nil:
		return fault.Wrap(err, fault.Gone, "Interrupted. The server restores %s all the same: 'sandboxd snapshots %s' shows what it is based on.", s.Sandbox, s.Sandbox)
	case err != nil:
		return err
	}
	if box.Problem != "" {
		if err := say(cmd, "%s", box.Problem); err != nil {
			return err
		}
	}
	return say(cmd, "Restored %s to %s. It is %s. 'sandboxd snapshots undo %s' undoes that.", s.Sandbox, snapshotText(snap), box.State, s.Sandbox)
}
