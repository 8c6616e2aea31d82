package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sandboxd/internal/fault"
	"sandboxd/internal/sqlite"
)

func newRollbackCmd(c *Config) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "rollback",
		Short: "Put back the database from before an upgrade, to go back to this sandboxd",
		Long: `When a newer sandboxd has upgraded the database, an older one refuses it. To go back, stop sandboxd, put the older programs in place, and
run their rollback: it puts back the copy of the database that was made before the upgrade, and keeps the newer one beside it.

It says first what is lost. Sandboxes made since keep their containers and homes: an admin is offered to adopt them.`,
		Example: "  sandboxd rollback\n  sandboxd rollback --data /srv/sandboxd --yes",
		Args:    wantArgs(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return rollback(cmd, c, yes) },
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func rollback(cmd *cobra.Command, c *Config, yes bool) (err error) {
	ctx := cmd.Context()
	plan, err := sqlite.PlanRollback(ctx, databasePath(c))
	if err != nil {
		return err
	}
	unlock, err := lockData(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := say(cmd, "%s", strings.Join(lostBy(plan), "\n")); err != nil {
		return err
	}
	if err := confirm(cmd, yes, "rollback", "What was changed since then is lost to sandboxd."); err != nil {
		return err
	}
	aside, err := plan.Do(ctx)
	if err != nil {
		return err
	}
	return say(cmd, "Put back the database of %s. The newer one is kept as %s. Now start this sandboxd.", day(plan.Copy.Made, ""), aside)
}

// lostBy tells what a rollback loses.
func lostBy(plan *sqlite.Rollback) []string {
	var lines []string
	for _, err := range plan.Damaged {
		lines = append(lines, fault.Message(err)+" An older one is taken.")
	}
	lines = append(lines,
		fmt.Sprintf("The database is of sandboxd %s (version %d).", cmp.Or(plan.Newer.Program, "of a newer version"), plan.Newer.Version),
		fmt.Sprintf("The copy is of sandboxd %s (version %d), made at %s.", plan.Copy.Program, plan.Copy.Version, day(plan.Copy.Made, "")),
	)
	if plan.Unread != nil {
		return append(lines, "The newer database is too different to tell what was added since.")
	}
	for _, added := range []struct {
		what  string
		names []string
	}{{"Sandboxes", plan.Sandboxes}, {"Users", plan.Users}} {
		if len(added.names) > 0 {
			lines = append(lines, added.what+" added since: "+strings.Join(added.names, ", "))
		}
	}
	if len(plan.Sandboxes) > 0 {
		lines = append(lines, "These sandboxes keep their containers and homes; adopt them on the list of sandboxes.")
	}
	return lines
}
