package main

import (
	"github.com/spf13/cobra"

	kopiachild "sandboxd/internal/kopia/child"
)

// kopiaChild is the name of newKopiaCmd's command.
const kopiaChild = "kopia"

// newKopiaCmd makes the hidden command that does one thing with a repository of backups, in a process of its own. It opens neither the
// database nor the log.
func newKopiaCmd() *cobra.Command {
	return &cobra.Command{
		Use:    kopiaChild,
		Short:  "Do with a backup repository what standard input says",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kopiachild.Main(cmd.InOrStdin(), cmd.OutOrStdout()) != nil {
				return exitStatus(1)
			}
			return nil
		},
	}
}
