package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

func newBackupsCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "backups [NAME]",
		Short: "List the backups that the server has, or delete one",
		Long: `backups prints the backups that the token may see, the newest first: all, or those of the sandbox NAME, also of one that is
deleted. The server deletes them when they are too old. With --delete one is deleted now, or cancelled if it is being made.`,
		Example: "  sandboxd backups\n  sandboxd backups lab\n  sandboxd backups --delete 9494f39f73f0c93e",
		Args:    cobra.MaximumNArgs(1),
	})
	quiet := cmd.Flags().BoolP("quiet", "q", false, "print ids only")
	remove := cmd.Flags().String("delete", "", "`ID` of a backup to delete")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := ""
		if len(args) > 0 {
			name = args[0]
			if err := checkBox(name); err != nil {
				return err
			}
		}
		if *remove != "" && name != "" {
			return fault.New(fault.Invalid, "The id alone says which backup is to be deleted. Leave the name out.")
		}
		if *remove != "" {
			if err := checkBackupID(*remove); err != nil {
				return err
			}
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		if *remove != "" {
			return deleteBackup(cmd, c, *remove)
		}
		return listBackups(cmd, c, name, *quiet)
	}
	return cmd
}

func deleteBackup(cmd *cobra.Command, c *client.Client, id string) error {
	b, err := c.Backup(cmd.Context(), id)
	if err != nil {
		return err
	}
	if err := c.DeleteBackup(cmd.Context(), id); err != nil {
		return err
	}
	if b.State == client.BackupMaking {
		return say(cmd, "Cancelled the backup %s of %s.", id, b.Sandbox)
	}
	return say(cmd, "Deleted the backup %s of %s.", id, b.Sandbox)
}

func listBackups(cmd *cobra.Command, c *client.Client, name string, quiet bool) error {
	list, err := c.Backups(cmd.Context(), name)
	if err != nil {
		return err
	}
	if quiet {
		for _, b := range list {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), b.ID); err != nil {
				return err
			}
		}
		return nil
	}
	rows := [][]string{{"ID", "SANDBOX", "CREATED", "SIZE", "FILES", "EXPIRES", "REPOSITORY", "STATE"}}
	for _, b := range list {
		state, expires := b.State, "-"
		switch {
		case b.State == client.BackupReady:
			expires = day(b.Expires, "-")
		case b.Checking:
			state = "checking"
		case b.Problem != "":
			state += ": " + b.Problem
		}
		if b.Root && b.State == client.BackupReady {
			state += ", with root"
		}
		rows = append(rows, []string{b.ID, b.Sandbox, day(b.Created, "-"), text.Size(b.Size), strconv.FormatInt(b.Files, 10), expires, orDash(b.Repository), state})
	}
	return printTable(cmd, rows)
}
