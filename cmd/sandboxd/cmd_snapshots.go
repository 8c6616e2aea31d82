package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
	"sandboxd/internal/snapshot"
)

func newSnapshotsCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "snapshots NAME",
		Short: "List the snapshots of a sandbox, restore it to one, or delete one",
		Long: `snapshots prints the snapshots of a sandbox, each below those that were taken after it. TREE has a "*" for the one that the sandbox is based on,
an "x" for those that have failed, and a line for each branch; PARENT is the one that a snapshot came after. The commands below take a snapshot by its id, or by its name if
that is the only one of that name.

A sandbox that is called as one of the commands is listed by 'sandboxd snapshots -- NAME'.`,
		Example: "  sandboxd snapshots lab\n  sandboxd snapshots restore lab 'before the upgrade'\n  sandboxd snapshots undo lab\n  sandboxd snapshots diff lab 9494f39f73f0c93e src/main.py",
		Args:    wantArgs(1),
	})
	quiet := cmd.Flags().BoolP("quiet", "q", false, "print ids only, the newest first")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := snapshotsOf(r, args[0])
		if err != nil {
			return err
		}
		list, err := s.List(cmd.Context())
		if err != nil {
			return err
		}
		if !*quiet {
			return printTable(cmd, snapshotRows(list))
		}
		for _, snap := range list.Snapshots {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), snap.ID); err != nil {
				return err
			}
		}
		return nil
	}
	for _, one := range []*cobra.Command{newSnapshotsRestoreCmd(), newSnapshotsUndoCmd(), newSnapshotsDiffCmd(), newSnapshotsSetCmd(), newSnapshotsDeleteCmd()} {
		one.GroupID = "" // that is the parent's
		cmd.AddCommand(one)
	}
	return cmd
}

// snapshotRows are a table of snapshots, as a tree.
func snapshotRows(list client.SnapshotList) [][]string {
	known, all := map[string]client.Snapshot{}, make([]snapshot.Snapshot, 0, len(list.Snapshots))
	for _, snap := range list.Snapshots {
		known[snap.ID] = snap
		all = append(all, snapshot.Snapshot{ID: snap.ID, Parent: snap.Parent, Created: snap.Created, State: snapshot.State(snap.State)})
	}
	rows := [][]string{{"TREE", "ID", "NAME", "CREATED", "SIZE", "KIND", "PARENT", "STATE", "NOTE"}}
	for _, placed := range snapshot.Tree(all, list.Head) {
		snap := known[placed.ID]
		mark, state := "o", snap.State
		switch {
		case snap.ID == list.Head:
			mark = "*"
		case snap.State == client.SnapshotFailed:
			mark, state = "x", state+": "+snap.Problem
		}
		parent := snap.Parent
		if named := known[parent].Name; named != "" {
			parent = named
		}
		lines := strings.Repeat("| ", placed.Lane)
		if placed.From != nil {
			lines = lines[:len(lines)-1] + "-"
		}
		rows = append(rows, []string{lines + mark, snap.ID, orDash(snap.Name), day(snap.Created, "-"), snapshotSize(snap), snap.Kind, orDash(parent), state, orDash(snap.Note)})
	}
	return rows
}

// snapshotNamed finds the snapshot that the arguments NAME SNAPSHOT name.
func snapshotNamed(ctx context.Context, r *remote, args []string) (s client.Snapshots, snap client.Snapshot, err error) {
	if s, err = snapshotsOf(r, args[0]); err == nil {
		snap, err = snapshotOf(ctx, s, args[1])
	}
	return s, snap, err
}

// snapshotOf finds a snapshot by its id, or by its name if one alone has that. Those that have failed count only when no other has it.
func snapshotOf(ctx context.Context, s client.Snapshots, asked string) (found client.Snapshot, err error) {
	list, err := s.List(ctx)
	if err != nil {
		return found, err
	}
	var named, failed []client.Snapshot
	for _, snap := range list.Snapshots {
		switch {
		case snap.ID == asked:
			return snap, nil
		case snap.Name != asked || asked == "":
		case snap.State == client.SnapshotFailed:
			failed = append(failed, snap)
		default:
			named = append(named, snap)
		}
	}
	if len(named) == 0 {
		named = failed
	}
	switch len(named) {
	case 0:
		return found, fault.New(fault.NotFound, "%s has no snapshot %.80q. 'sandboxd snapshots %s' lists them.", s.Sandbox, asked, s.Sandbox)
	case 1:
		return named[0], nil
	}
	return found, fault.New(fault.Conflict, "%d snapshots of %s are called %.80q. Give the id of one: 'sandboxd snapshots %s' lists them.", len(named), s.Sandbox, asked, s.Sandbox)
}

// snapshotText names a snapshot in a sentence.
func snapshotText(snap client.Snapshot) string {
	if snap.Name == "" {
		return "the snapshot " + snap.ID
	}
	return fmt.Sprintf("the snapshot %q (%s)", snap.Name, snap.ID)
}

func newSnapshotsSetCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{Use: "set NAME SNAPSHOT", Short: "Change the name or the note of a snapshot",
		Long:    "set changes what its flags say. A snapshot that the server would delete by itself is kept for good once it has a name.",
		Example: "  sandboxd snapshots set lab 9494f39f73f0c93e --name 'works' --note 'all tests pass'", Args: wantArgs(2)})
	name, note := cmd.Flags().String("name", "", "what it is called"), cmd.Flags().String("note", "", "what it is for")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var change client.SnapshotChange
		if cmd.Flags().Changed("name") {
			change.Name = name
		}
		if cmd.Flags().Changed("note") {
			change.Note = note
		}
		if change == (client.SnapshotChange{}) {
			return fault.New(fault.Invalid, "Nothing was asked for. Say --name or --note.")
		}
		s, snap, err := snapshotNamed(cmd.Context(), r, args)
		if err == nil {
			snap, err = s.Change(cmd.Context(), snap.ID, change)
		}
		if err != nil {
			return err
		}
		return say(cmd, "Changed %s of %s.", snapshotText(snap), args[0])
	}
	return cmd
}

func newSnapshotsDeleteCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{Use: "delete NAME SNAPSHOT", Short: "Delete a snapshot, or cancel one that is being taken",
		Long: `delete deletes a snapshot. The sandbox, its other snapshots and its clones stay as they are. At a terminal it asks for the id or the name
again; elsewhere it needs --yes. One that is being taken is cancelled without asking.`,
		Example: "  sandboxd snapshots delete lab 9494f39f73f0c93e\n  sandboxd snapshots delete lab works --yes", Args: wantArgs(2)})
	yes := cmd.Flags().Bool("yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, snap, err := snapshotNamed(cmd.Context(), r, args)
		if err != nil {
			return err
		}
		done := "Deleted"
		if snap.State == client.SnapshotMaking {
			done = "Cancelled"
		} else if err := confirm(cmd, *yes, args[1], "This deletes "+snapshotText(snap)+" of "+args[0]+"."); err != nil {
			return err
		}
		if err := s.Delete(cmd.Context(), snap.ID); err != nil {
			return err
		}
		return say(cmd, "%s %s of %s.", done, snapshotText(snap), args[0])
	}
	return cmd
}
