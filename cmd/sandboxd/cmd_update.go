package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
)

// updateEvery is the time between two looks at an update.
const updateEvery = time.Second

// newUpdateCmd updates one sandbox.
func newUpdateCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "update NAME",
		Short: "Put a sandbox on the newest image of its template",
		Long: `update makes the container of a sandbox anew from the image that its template gives now, with the same home, and waits for the end. A snapshot
is taken first. What does not start, or whose services do not work any more, is put back as it was. What was installed outside of the home
is gone after an update; the snapshot has it. One that is in use is left alone without --force.`,
		Example: "  sandboxd update lab\n  sandboxd update lab --force",
		Args:    cobra.ExactArgs(1),
	})
	force := cmd.Flags().Bool("force", false, "update it also when it is in use")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		if err := checkBox(name); err != nil {
			return err
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		u, err := client.Updates{Client: c}.Sandbox(cmd.Context(), name, *force)
		if said := fault.Message(err); fault.Is(err, fault.Conflict) && !*force && strings.Contains(said, " is in use") {
			return fault.Wrap(err, fault.Conflict, "%s With --force it is updated all the same.", said)
		}
		if err != nil {
			return err
		}
		return followUpdate(cmd, u, func(ctx context.Context) (client.Update, error) {
			return client.Updates{Client: c}.LastOfSandbox(ctx, name)
		})
	}
	return cmd
}

// newTemplateUpdateCmd updates the sandboxes of a template.
func newTemplateUpdateCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "update NAME",
		Short: "Put all sandboxes of a template on its newest image",
		Long: `update updates the sandboxes of a template that are on an older image, of all users, one after another and the one that was used least lately
first, as 'sandboxd update' does. Those in use are tried once more at the end. It stops after the first failure, or --max-failures. It asks
a server that runs, with the token of an admin; when this command ends early, the update continues.`,
		Example: "  sandboxd template update base\n  sandboxd template update base --force --max-failures 3",
		Args:    cobra.ExactArgs(1),
	})
	cmd.GroupID = "" // that is the parent's
	force := cmd.Flags().Bool("force", false, "update also those that are in use")
	most := cmd.Flags().Int("max-failures", 1, "stop when so many have failed")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkBox(args[0]); err != nil {
			return fault.Field("name", "%.80q is not the name of a template.", args[0])
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		u, err := client.Updates{Client: c}.Template(cmd.Context(), args[0], *force, *most)
		if err != nil {
			return err
		}
		return followUpdate(cmd, u, func(ctx context.Context) (client.Update, error) {
			return client.Updates{Client: c}.LastOfTemplate(ctx, args[0])
		})
	}
	return cmd
}

// followUpdate tells how an update goes until it has ended. The error says that something was not updated.
func followUpdate(cmd *cobra.Command, u client.Update, look func(ctx context.Context) (client.Update, error)) error {
	id, told := u.ID, map[string]string{}
	for {
		if err := tellUpdate(cmd, u, told); err != nil {
			return err
		}
		if u.State != "running" {
			return updateOutcome(u)
		}
		select {
		case <-time.After(updateEvery):
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		}
		var err error
		if u, err = look(cmd.Context()); err != nil {
			return err
		}
		if u.ID != id {
			return fault.New(fault.Conflict, "Another update has begun meanwhile. The dashboard shows both.")
		}
	}
}

// tellUpdate prints what is new.
func tellUpdate(cmd *cobra.Command, u client.Update, told map[string]string) error {
	for _, i := range u.Items {
		if told[i.Sandbox] == i.State || i.State == "waiting" {
			continue
		}
		told[i.Sandbox] = i.State
		line := i.Sandbox + ": " + strings.ReplaceAll(i.State, "-", " ")
		if i.TakenBack {
			line += ", put back as it was"
		}
		if i.Problem != "" {
			line += ": " + i.Problem
		}
		for _, l := range i.Log {
			line += "\n    " + l
		}
		if err := say(cmd, "%s", line); err != nil {
			return err
		}
	}
	return nil
}

// updateOutcome is nil when all was updated.
func updateOutcome(u client.Update) error {
	var left int
	for _, i := range u.Items {
		if i.State != "updated" {
			left++
		}
	}
	switch {
	case u.Problem != "":
		return fault.New(fault.Unavailable, "Nothing was updated: %s", u.Problem)
	case left > 0:
		return fault.New(fault.Unavailable, "%d of %d sandboxes were not updated.", left, len(u.Items))
	}
	return nil
}
