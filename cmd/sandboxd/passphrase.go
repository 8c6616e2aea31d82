package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sandboxd/internal/fault"
)

// passphraseEnv holds the passphrase of server backups. It is no flag: a command line can be read by all.
const passphraseEnv = envPrefix + "BACKUP_PASSPHRASE"

// passphrase gives the passphrase of a server backup: from a file, unless that is "", from the environment, or typed at a terminal, twice for a new
// one.
func passphrase(cmd *cobra.Command, file string, isNew bool) (string, error) {
	if file != "" {
		secret, err := readSecret(file, cmd.InOrStdin())
		if err == nil && strings.ContainsAny(secret, "\r\n") {
			err = fault.Field("passphrase-file", "The file %q has more than one line. Put the passphrase alone into it.", file)
		}
		return secret, err
	}
	if text := os.Getenv(passphraseEnv); text != "" {
		return text, nil
	}
	fd, ok := terminalOf(cmd)
	switch {
	case !ok:
		return "", fault.New(fault.Invalid, "Nobody can be asked for the passphrase here: put it into %s, or into a file that --passphrase-file names.", passphraseEnv)
	case isNew:
		return readPassword(cmd, "Passphrase of the backup")
	}
	return typed(cmd, fd, "Passphrase of the backup: ")
}
