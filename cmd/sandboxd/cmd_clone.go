package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
)

func newCloneCmd() *cobra.Command {
	o := client.NewClones{}
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "clone NAME [NEW]",
		Short: "Make new sandboxes from a sandbox, or from a snapshot of it",
		Long: `clone makes a sandbox called NEW with the files, the installed programs, the settings and the environment of the sandbox NAME, as it is now or as
--snapshot has it, waits until it runs, and prints its name on standard output. Without NEW it gets a name by itself. With --count it
makes several: NEW-1, NEW-2 and so on.

A clone has a host name, a machine id and an address of its own, and no links or public ports. A running sandbox is frozen while it is
copied. When this command ends early, the server continues.`,
		Example: "  sandboxd clone lab try\n  sandboxd clone lab agent --count 10\n  sandboxd clone lab fix --snapshot 'before the upgrade'",
		Args:    cobra.RangeArgs(1, 2),
	})
	f := cmd.Flags()
	f.IntVar(&o.Count, "count", 1, "how many to make")
	from := f.String("snapshot", "", "id or name of the `SNAPSHOT` to make them from (default: the sandbox as it is)")
	quiet := f.BoolP("quiet", "q", false, "print nothing but the names")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := snapshotsOf(r, args[0])
		if err != nil {
			return err
		}
		if len(args) == 2 {
			if o.Name = args[1]; checkBox(o.Name) != nil {
				return checkBox(o.Name)
			}
		}
		what := s.Sandbox
		if *from != "" {
			snap, err := snapshotOf(cmd.Context(), s, *from)
			if err != nil {
				return err
			}
			o.Snapshot, what = snap.ID, snapshotText(snap)+" of "+s.Sandbox
		}
		return clone(cmd, s, o, what, *quiet)
	}
	return cmd
}

// clone makes clones, and prints their names. The error says that some were not made.
func clone(cmd *cobra.Command, s client.Snapshots, n client.NewClones, what string, quiet bool) error {
	var made []client.Sandbox
	var failed []string
	err := newProgress(quiet).during("Cloning "+s.Sandbox, func() (err error) {
		made, failed, err = s.Clone(cmd.Context(), n)
		return err
	})
	switch {
	case err != nil && cmd.Context().Err() != nil:
		return fault.Wrap(err, fault.Gone, "Interrupted. The server may still make clones of %s: see 'sandboxd ls', and delete those that you do not want.", s.Sandbox)
	case err != nil:
		return err
	}
	for _, box := range made {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), box.Name); err != nil {
			return err
		}
	}
	for _, box := range made {
		if box.Problem != "" { // its memory did not come back
			if err := say(cmd, "%s: %s", box.Name, box.Problem); err != nil {
				return err
			}
		}
	}
	if !quiet {
		if err := say(cmd, "Made %s of %s.", clonesText(len(made)), what); err != nil {
			return err
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fault.New(fault.Unavailable, "%d of %d clones were not made: %s", len(failed), n.Count, failed[0])
}

// clonesText counts clones.
func clonesText(n int) string {
	if n == 1 {
		return "a clone"
	}
	return fmt.Sprintf("%d clones", n)
}
