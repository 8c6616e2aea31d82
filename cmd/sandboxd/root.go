package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/sqlite"
)

func newRootCmd() *cobra.Command {
	c := &Config{}
	root := &cobra.Command{
		Use:   "sandboxd",
		Short: "Sandboxes that you and your agents may break, on a machine you own",
		Long: `sandboxd serves a dashboard, an API and a subdomain for every sandbox, on plain Docker.

  sandboxd serve                       serve on http://localhost:8080; prints a link for the first run
  sandboxd doctor                      check this machine, and say how to fix problems
  sandboxd token create ci             make an API token, printed alone on standard output
  sandboxd login https://box.lan       remember a server, here or on another machine, and a token for it
  sandboxd ssh lab                     open a shell in a sandbox

Every flag can be given as a variable too: --log-level is SANDBOXD_LOG_LEVEL. A flag on the command line wins.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return fromEnv(cmd.Flags(), os.LookupEnv)
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fault.Wrap(err, fault.Invalid, "%v. See '%s --help'.", err, cmd.CommandPath())
	})
	c.dataFlags(root.PersistentFlags())
	open := func(ctx context.Context) (accounts, error) { return openAccounts(ctx, c) }
	root.AddGroup(&cobra.Group{ID: serverGroup, Title: "On the server:"}, &cobra.Group{ID: clientGroup, Title: "From anywhere:"})
	for _, cmd := range []*cobra.Command{newServeCmd(c), newDoctorCmd(c), newTokenCmd(open), newUserCmd(open), newTemplateCmd(c), newIDECmd(c), newPoolCmd(c),
		newRollbackCmd(c), newSocketProxyCmd()} {
		cmd.GroupID = serverGroup
		root.AddCommand(cmd)
	}
	root.AddCommand(newRemoteCmds(c)...)
	root.AddCommand(newVersionCmd(), newDocsCmd(root), newSendChatCmd(), newThawCmd(), newKopiaCmd())
	return root
}

// openAccounts opens the database of the data folder for a command beside a server that may be running.
// A folder that no server has used is refused: no server would see the changes.
func openAccounts(ctx context.Context, c *Config) (accounts, error) {
	if _, err := os.Stat(databasePath(c)); errors.Is(err, fs.ErrNotExist) {
		return accounts{}, notUsed(c)
	}
	db, err := openDatabase(ctx, c)
	if err != nil {
		return accounts{}, err
	}
	service := newAccounts(db)
	if err := bootstrap(ctx, service); err != nil {
		return accounts{}, errors.Join(err, db.Close())
	}
	return accounts{service, db.Sandboxes(), db.Close}, nil
}

func notUsed(c *Config) error {
	return fault.New(fault.NotFound, "The data folder %s has not been used yet. Start 'sandboxd serve' first, or name its folder with --data.", c.Data)
}

// bootstrap makes the first admin, claimed when the environment holds a password.
func bootstrap(ctx context.Context, accounts *auth.Service) error {
	err := accounts.Bootstrap(ctx, os.Getenv(adminPasswordEnv))
	if fault.FieldOf(err) == "password" {
		return fault.Wrap(err, fault.Invalid, "%s cannot be used: %s", adminPasswordEnv, fault.Message(err))
	}
	return err
}

func makeData(c *Config) error {
	err := os.MkdirAll(c.Data, 0o700)
	return fault.Wrap(err, fault.Unavailable, "The data folder %s cannot be made: %v. Choose another with --data.", c.Data, err)
}

func openDatabase(ctx context.Context, c *Config) (*sqlite.DB, error) {
	if err := makeData(c); err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, databasePath(c))
}

func newVersionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "sandboxd", version)
			return err
		},
	}
}

// commit is the commit that the binary was built from, or "unknown".
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	return "unknown"
}
