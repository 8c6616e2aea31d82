package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandboxd/internal/fault"
	"sandboxd/internal/serverbackup"
	"sandboxd/internal/sqlite"
	"sandboxd/internal/template"
	"sandboxd/internal/text"
)

// stagingFolder is where a server backup is put together, in the data folder.
const stagingFolder = "server-backup.part"

// serverBackupSuffix ends the name of a server backup that was given none.
const serverBackupSuffix = ".tar.zst.age"

// serverBackup is one under way.
type serverBackup struct {
	server         bool // one is wanted
	passphraseFile string
	config         *Config
}

// sealer writes server backups. Tests make it quicker.
var sealer serverbackup.Sealer

func (b *serverBackup) flags(f *pflag.FlagSet) {
	f.BoolVar(&b.server, "server", false, "back up the server itself, on its machine, and not a sandbox; FILE is the only argument")
	f.StringVar(&b.passphraseFile, "passphrase-file", "", "with --server: file with the passphrase (default: "+passphraseEnv+", or you are asked)")
	b.config.templateFlags(f)
}

// noteOfBackup is what the database keeps of the last server backup.
type noteOfBackup struct {
	File string    `json:"file"` // "-" for standard output
	Made time.Time `json:"made"`
	Size int64     `json:"size"` // bytes; 0 when it is not known
}

// run makes a backup of the server. What of the command line is for a backup of a sandbox is refused.
func (b *serverBackup) run(cmd *cobra.Command, args []string, force bool) error {
	for _, name := range []string{"live", "repository", "id", "url", "token", "insecure"} {
		if f := cmd.Flags().Lookup(name); f.Changed && !fromVariable(f) {
			return fault.New(fault.Invalid, "--%s is for a backup of a sandbox, and not for --server.", name)
		}
	}
	if len(args) > 1 {
		return fault.New(fault.Invalid, "Use it as 'sandboxd backup --server [FILE]'.")
	}
	to, err := newSaveFile(cmd, append(args, "")[0], force)
	if err != nil {
		return err
	}
	db, err := openServer(cmd.Context(), b.config)
	if err != nil {
		return err
	}
	defer to.drop()
	err = b.make(cmd, db, to)
	if err != nil && cmd.Context().Err() != nil {
		err = fault.Wrap(err, fault.Gone, "Interrupted. No backup was made.")
	}
	return errors.Join(err, db.Close())
}

// fromVariable reports whether a flag has its value from the environment.
func fromVariable(f *pflag.Flag) bool {
	value, ok := os.LookupEnv(envName(f.Name))
	return ok && value == f.Value.String()
}

// openServer opens the database of a data folder that a server has used.
func openServer(ctx context.Context, c *Config) (*sqlite.DB, error) {
	if _, err := os.Stat(databasePath(c)); errors.Is(err, fs.ErrNotExist) {
		return nil, notUsed(c)
	}
	return openDatabase(ctx, c)
}

func (b *serverBackup) make(cmd *cobra.Command, db *sqlite.DB, to *saveFile) (err error) {
	secret, err := passphrase(cmd, b.passphraseFile, true)
	if err == nil && strings.TrimSpace(secret) == "" {
		err = fault.Field("passphrase", "The passphrase is empty, or of spaces only. Choose another one.")
	}
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	staging, done, err := openStaging(b.config.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if _, err := db.Instance(ctx); err != nil { // which makes its file, if that is missing
		return err
	}
	m, err := b.stage(ctx, staging)
	if err != nil {
		return err
	}
	if err := to.begin("sandboxd-" + m.Host + "-" + m.Made.Local().Format("2006-01-02-150405") + serverBackupSuffix); err != nil {
		return err
	}
	size, m, err := writeServerBackup(ctx, to, secret, m, staging)
	if err == nil {
		err = to.keep()
	}
	if err != nil {
		return err
	}
	return b.tell(cmd, db, to, m, size)
}

// openStaging makes the folder in which a server backup is put together, empty, for the one command that makes one.
func openStaging(data string) (folder string, done func() error, err error) {
	folder = filepath.Join(data, stagingFolder)
	err = os.MkdirAll(folder, 0o700)
	var lock *os.File
	if err == nil {
		lock, err = os.Open(folder)
	}
	if err != nil {
		return "", nil, fault.Wrap(err, fault.Unavailable, "The data folder cannot be written to: %v.", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return "", nil, errors.Join(fault.Wrap(err, fault.Conflict, "Another server backup is being made. Wait for that."), lock.Close())
	}
	left, err := os.ReadDir(folder)
	for _, f := range left { // of one that was killed
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, f.Name())))
	}
	done = func() error { return errors.Join(os.RemoveAll(folder), lock.Close()) }
	if err != nil {
		return "", nil, errors.Join(err, done())
	}
	return folder, done, nil
}

// dropStaging removes what a killed command has left of a server backup. One that is being made stays.
func dropStaging(data string) error {
	if _, err := os.Stat(filepath.Join(data, stagingFolder)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_, done, err := openStaging(data)
	if fault.Is(err, fault.Conflict) {
		return nil
	}
	if err == nil {
		err = done()
	}
	return err
}

// stage copies all that is to be in a backup into a folder.
func (b *serverBackup) stage(ctx context.Context, folder string) (m serverbackup.Manifest, err error) {
	host, err := os.Hostname()
	if err != nil || checkBox(host) != nil { // it becomes part of a file's name
		host = "server"
	}
	var skipped []serverbackup.LeftOut
	m = serverbackup.Manifest{Made: time.Now().UTC().Truncate(time.Second), By: version, Database: sqlite.Known(), Host: host}
	for _, e := range dataEntries {
		if !e.kept {
			continue
		}
		if e.templates {
			more, err := stageTemplates(filepath.Join(b.config.Data, e.pattern), filepath.Join(folder, e.pattern))
			if err != nil {
				return m, err
			}
			skipped = append(skipped, more...)
			continue
		}
		if err := stageEntry(ctx, filepath.Join(b.config.Data, e.pattern), filepath.Join(folder, e.pattern), e.rows); err != nil {
			return m, err
		}
	}
	if m.LeftOut, err = leftOut(b.config.Data); err != nil {
		return m, err
	}
	more, err := b.stageOwn(filepath.Join(folder, restoredFolder))
	m.LeftOut = slices.Concat(m.LeftOut, skipped, more)
	return m, err
}

// stageTemplates copies what the templates that are made in the dashboard have now, a folder each. It tells what it has left out.
func stageTemplates(from, to string) (skipped []serverbackup.LeftOut, err error) {
	versions, err := template.Versions(from)
	for name, version := range versions {
		more, one := copyTemplates(version, filepath.Join(to, name))
		skipped, err = append(skipped, more...), errors.Join(err, one)
	}
	return skipped, fault.Wrap(err, fault.Unavailable, "The templates in %s cannot be copied: %v.", from, err)
}

// stageEntry copies a file or a database, if it is there.
func stageEntry(ctx context.Context, from, to string, rows bool) error {
	_, err := os.Stat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case rows:
		return sqlite.Copy(ctx, from, to)
	}
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	return fault.Wrap(err, fault.Unavailable, "%s cannot be copied: %v.", from, err)
}

// stageOwn copies what sandboxd is given from outside the data folder: folders of templates, and the CA file. It tells what it has left out.
func (b *serverBackup) stageOwn(folder string) (skipped []serverbackup.LeftOut, err error) {
	for n, from := range b.config.Templates {
		more, err := copyTemplates(from, filepath.Join(folder, fmt.Sprintf("templates-%d", n+1)))
		if err != nil {
			return nil, fault.Wrap(err, fault.Unavailable, "The templates in %s cannot be copied: %v.", from, err)
		}
		skipped = append(skipped, more...)
	}
	if b.config.CAFile == "" {
		return skipped, nil
	}
	content, err := os.ReadFile(b.config.CAFile)
	if err == nil {
		err = errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "ca.pem"), content, 0o600))
	}
	return skipped, fault.Wrap(err, fault.Unavailable, "The CA file %s cannot be copied: %v.", b.config.CAFile, err)
}

// copyTemplates copies the regular files of a folder.
func copyTemplates(from, to string) (skipped []serverbackup.LeftOut, err error) {
	err = filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() {
			skipped = append(skipped, serverbackup.LeftOut{Name: path, Why: "it is a link, or no regular file"})
			return nil
		}
		return copyTemplate(path, filepath.Join(to, name))
	})
	return skipped, err
}

func copyTemplate(from, to string) error {
	st, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, content, st.Mode().Perm()&0o100|0o600)
	}
	return err
}

// tell says what there is now, and has the database remember it.
func (b *serverBackup) tell(cmd *cobra.Command, db *sqlite.DB, to *saveFile, m serverbackup.Manifest, size int64) error {
	file := to.path
	if file != stdio {
		if full, err := filepath.Abs(file); err == nil {
			file = full
		}
	}
	note, err := json.Marshal(noteOfBackup{file, m.Made, size})
	if err == nil {
		err = db.NoteBackup(cmd.Context(), string(note))
	}
	lines := []string{fmt.Sprintf("Saved %s: %s, read back.", to.path, text.Size(size))}
	if file == stdio {
		lines = []string{fmt.Sprintf("Written to standard output: %s, read as it was written. 'sandboxd restore --server --check FILE' reads what became of it.", text.Size(size))}
	}
	lines = append(lines, "Not in it:", "  homes of sandboxes: 'sandboxd backup' and schedules back them up",
		"  volumes: 'sandboxd cp volume/NAME:. FOLDER' copies one", "  snapshots of sandboxes, and images: they stay on this machine")
	for _, l := range m.LeftOut {
		lines = append(lines, fmt.Sprintf("  %s: %s", l.Name, l.Why))
	}
	lines = append(lines, "Keep the passphrase somewhere else: without it nobody can read the backup. It holds all passwords and keys of the server.")
	for _, line := range lines {
		err = errors.Join(err, say(cmd, "%s", line))
	}
	return err
}
