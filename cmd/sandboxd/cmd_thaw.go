package main

import (
	"github.com/spf13/cobra"

	"sandboxd/internal/docker"
)

// thawOrphan is the name of newThawCmd's command.
const thawOrphan = "thaw-orphan"

// newThawCmd makes the hidden command that thaws a sandbox which was frozen for a backup when the server has died meanwhile.
func newThawCmd() *cobra.Command {
	return &cobra.Command{
		Use:    thawOrphan + " CONTAINER",
		Short:  "Thaw a container when standard input ends without a word",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return docker.ThawOrphan(cmd.Context(), args[0], cmd.InOrStdin())
		},
	}
}
