package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandboxd/internal/fault"
	"sandboxd/internal/serverbackup"
	"sandboxd/internal/sqlite"
	"sandboxd/internal/template"
)

// serverRestore is one under way.
type serverRestore struct {
	server         bool // one is wanted
	check          bool // it is only read
	replace        bool
	passphraseFile string
	config         *Config
}

func (r *serverRestore) flags(f *pflag.FlagSet) {
	f.BoolVar(&r.server, "server", false, "restore the server itself into --data, on its machine, and not a sandbox; FILE is the only argument")
	f.BoolVar(&r.check, "check", false, "with --server: only read the backup, and say what it is")
	f.BoolVar(&r.replace, "replace", false, "with --server: replace what a server has in the data folder, and keep that beside it")
	f.StringVar(&r.passphraseFile, "passphrase-file", "", "with --server: file with the passphrase (default: "+passphraseEnv+", or you are asked)")
}

// run restores a server. What of the command line is for a restore of a sandbox is refused.
func (r *serverRestore) run(cmd *cobra.Command, args []string, open func(cmd *cobra.Command, path string) (io.ReadCloser, error)) error {
	for _, name := range []string{"new", "template", "save-first", "yes", "url", "token", "insecure"} {
		if f := cmd.Flags().Lookup(name); f.Changed && !fromVariable(f) {
			return fault.New(fault.Invalid, "--%s is for a restore of a sandbox, and not for --server.", name)
		}
	}
	if len(args) != 1 {
		return fault.New(fault.Invalid, "Use it as 'sandboxd restore --server FILE'.")
	}
	from, err := open(cmd, args[0])
	if err != nil {
		return err
	}
	defer from.Close()
	if !r.check {
		return r.restore(cmd, from)
	}
	secret, err := passphrase(cmd, r.passphraseFile, false)
	if err != nil {
		return err
	}
	m, err := serverbackup.Check(cmd.Context(), bufio.NewReaderSize(from, 1<<20), secret)
	if err != nil {
		return err
	}
	return say(cmd, "The backup is whole: %d files of the server %s, made by sandboxd %s at %s, with a database of version %d. This sandboxd can use up to version %d.",
		len(m.Files), m.Host, m.By, day(m.Made, ""), m.Database, sqlite.Known())
}

func (r *serverRestore) restore(cmd *cobra.Command, from io.Reader) (err error) {
	data := r.config.Data
	if err := makeData(r.config); err != nil {
		return err
	}
	unlock, err := lockData(r.config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := finishServerRestore(r.config, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	has, err := used(data)
	if err != nil {
		return err
	}
	if has && !r.replace {
		return fault.New(fault.Conflict, "A server has used the data folder %s already. Name another one with --data, or say --replace: what it has is kept beside.", data)
	}
	secret, err := passphrase(cmd, r.passphraseFile, false)
	if err != nil {
		return err
	}
	m, err := r.extract(cmd.Context(), from, secret)
	if err != nil && cmd.Context().Err() != nil {
		err = fault.Wrap(err, fault.Gone, "Interrupted. Nothing was changed.")
	}
	if err != nil {
		return errors.Join(err, serverbackup.Forget(data))
	}
	if err := serverbackup.Commit(data); err != nil {
		return err
	}
	replaced, err := serverbackup.Finish(data, isServers)
	if err != nil {
		return err
	}
	return r.tell(cmd, m, replaced)
}

// extract puts the files of a backup beside what there is.
func (r *serverRestore) extract(ctx context.Context, from io.Reader, secret string) (serverbackup.Manifest, error) {
	folder, err := serverbackup.Begin(r.config.Data)
	if err != nil {
		return serverbackup.Manifest{}, err
	}
	m, err := serverbackup.Extract(ctx, bufio.NewReaderSize(from, 1<<20), secret, folder, func(m serverbackup.Manifest) error {
		if m.Database > sqlite.Known() {
			return fault.New(fault.Conflict, "The backup is of a newer sandboxd, %.60s (its database is of version %d, this program knows up to %d). Restore it with that one.",
				m.By, m.Database, sqlite.Known())
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	return m, template.Take(filepath.Join(folder, ownFolder))
}

// tell says what there is now, and what to do next.
func (r *serverRestore) tell(cmd *cobra.Command, m serverbackup.Manifest, replaced string) error {
	lines := []string{"Restored the server " + m.Host + " as it was at " + day(m.Made, "") + " into " + r.config.Data + "."}
	if replaced != "" {
		lines = append(lines, "What it has replaced is in "+replaced+".")
	}
	for _, f := range m.Files {
		if strings.HasPrefix(f.Path, restoredFolder+"/") {
			lines = append(lines, "Its own templates and CA file are in "+filepath.Join(r.config.Data, restoredFolder)+": put them where --templates and --ca-file name them.")
			break
		}
	}
	lines = append(lines, "Stop the old server for good before you start this one: both would take the same containers and repositories for theirs.",
		"Now start sandboxd. Sandboxes whose containers are on this machine stay; those that run are restarted if the data folder is another one.",
		"Sandboxes whose containers are not on this machine fail, and say so. Restore their homes from backups:",
		"copy the folder 'backups' into the data folder first, unless they are in a repository; then 'sandboxd backups' and 'sandboxd restore ID NAME'.")
	for _, line := range lines {
		if err := say(cmd, "%s", line); err != nil {
			return err
		}
	}
	return nil
}

// finishServerRestore finishes a restore that was cut off. The caller keeps servers off the data folder.
func finishServerRestore(c *Config, log *slog.Logger) error {
	replaced, err := serverbackup.Finish(c.Data, isServers)
	if replaced != "" {
		log.Warn("finished a restore of the server that was cut off", "data", c.Data, "replaced", replaced)
	}
	return err
}
