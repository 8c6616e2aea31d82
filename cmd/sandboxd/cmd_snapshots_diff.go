package main

import (
	"io"

	"github.com/spf13/cobra"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

func newSnapshotsDiffCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "diff NAME SNAPSHOT [PATH]",
		Short: "Show what has changed in the home of a sandbox since a snapshot",
		Long: `diff lists what has been added, changed or deleted in the home since a snapshot; changes outside of the home are not told. With the PATH of a
text file, as in the list, it prints its lines that have changed, as a unified diff. It wakes nothing.`,
		Example: "  sandboxd snapshots diff lab 'before the upgrade'\n  sandboxd snapshots diff lab 9494f39f73f0c93e src/main.py",
		Args:    cobra.RangeArgs(2, 3),
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, snap, err := snapshotNamed(cmd.Context(), r, args)
		if err != nil {
			return err
		}
		if len(args) == 3 {
			return printFileDiff(cmd, s, snap, args[2])
		}
		list, more, err := s.Diff(cmd.Context(), snap.ID)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return say(cmd, "Nothing has changed in the home.")
		}
		rows := [][]string{{"CHANGE", "KIND", "SIZE", "PATH"}}
		for _, d := range list {
			size := "-"
			if d.Kind == "file" {
				size = text.Size(d.Size)
			}
			rows = append(rows, []string{d.Change, d.Kind, size, d.Path})
		}
		if err := printTable(cmd, rows); err != nil || !more {
			return err
		}
		return say(cmd, "There are more changes than these %d.", len(list))
	}
	return cmd
}

// printFileDiff prints what has changed in a file.
func printFileDiff(cmd *cobra.Command, s client.Snapshots, snap client.Snapshot, path string) error {
	d, err := s.FileDiff(cmd.Context(), snap.ID, path)
	switch {
	case err != nil:
		return err
	case d.Binary:
		return fault.New(fault.Conflict, "%.200q is a binary file, so there are no lines to compare.", path)
	case d.Diff == "" && !d.Cut:
		return say(cmd, "%.200q has not changed.", path)
	}
	out, rest := forScreen(cmd.OutOrStdout())
	defer rest()
	if _, err := io.WriteString(out, d.Diff); err != nil || !d.Cut {
		return err
	}
	return say(cmd, "Only the beginning of the file was compared.")
}
