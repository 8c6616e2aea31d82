package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sandboxd/internal/fault"
	"sandboxd/internal/serverbackup"
	"sandboxd/internal/sqlite"
)

// dataEntry is something that may be in the data folder.
type dataEntry struct {
	pattern string // of path.Match
	kept    bool   // a server backup has it
	rows    bool   // it is a database, with a "-wal" and a "-shm"
	why     string // a server backup does not have it; "" when nobody need be told

	templates bool // it is the folder of those that are made in the dashboard
}

// restoredFolder is where a restore puts the templates of the server's own, and its CA file: they come from outside the data folder.
const restoredFolder = "restored"

// dataEntries are all that there is in a data folder: what is new there must be in this list.
var dataEntries = []dataEntry{
	{pattern: "sandboxd.db", kept: true, rows: true},
	{pattern: "activity.db", kept: true, rows: true},
	{pattern: sqlite.InstanceFile, kept: true},
	{pattern: "secret.key", kept: true},
	{pattern: "prices.json", kept: true},
	{pattern: "agents.json", kept: true},
	{pattern: "ssh_host_ed25519_key", kept: true},
	{pattern: ownFolder, kept: true, templates: true},
	{pattern: restoredFolder, why: "the templates and CA file of your own are taken from where --templates and --ca-file name them"},

	{pattern: "backups", why: "backups of sandboxes: copy the folder, or use a repository"},
	{pattern: "pool", why: "homes: back the sandboxes up"},
	{pattern: "pool.img", why: "homes: back the sandboxes up"},
	{pattern: "pool.device", why: "it names a disk of this machine"},
	{pattern: "checkpoints", why: "what snapshots have of the memory of sandboxes: they stay on this machine"},
	{pattern: "history.db", rows: true, why: "figures of this machine and its containers"},
	{pattern: "logs.db", rows: true, why: "log lines of this machine's containers"},
	{pattern: sqlite.UpgradeFolder, why: "copies of older databases"},
	{pattern: serverbackup.ReplacedPrefix + "*", why: "what a restore has replaced"},
	{pattern: "*.db.damaged-*", why: "damaged databases"},
	{pattern: "sandboxd.db.newer-*", why: "databases of newer versions"},

	{pattern: "bin"}, {pattern: "ide"}, {pattern: "ide-source"}, {pattern: "kopia"}, {pattern: "link"}, {pattern: "templates"}, {pattern: "ca"},
	{pattern: "spool"}, {pattern: "lock"}, {pattern: stagingFolder}, {pattern: "server-restore.*"},
	{pattern: "*.new"}, {pattern: "*.part"}, {pattern: "sandboxd.db.recovered"}, {pattern: "sandboxd.db.new-wal"}, {pattern: "sandboxd.db.new-shm"},
	{pattern: "sandboxd.db.back"},
}

// entryOf finds what a name in the data folder is.
func entryOf(name string) (dataEntry, bool) {
	i := slices.IndexFunc(dataEntries, func(e dataEntry) bool {
		plain := name
		if e.rows {
			plain = strings.TrimSuffix(strings.TrimSuffix(name, "-wal"), "-shm")
		}
		is, err := path.Match(e.pattern, plain)
		return err == nil && is
	})
	if i < 0 {
		return dataEntry{}, false
	}
	return dataEntries[i], true
}

// isServers reports whether a name in the data folder is replaced by a restore of the server.
func isServers(name string) bool {
	e, known := entryOf(name)
	return known && (e.kept || e.pattern == restoredFolder)
}

// leftOut tells what of the data folder a server backup does not have, and why.
func leftOut(data string) (all []serverbackup.LeftOut, err error) {
	found, err := os.ReadDir(data)
	for _, f := range found {
		switch e, known := entryOf(f.Name()); {
		case !known:
			all = append(all, serverbackup.LeftOut{Name: f.Name(), Why: "it is not sandboxd's"})
		case e.why != "" && f.Name() == strings.TrimSuffix(strings.TrimSuffix(f.Name(), "-wal"), "-shm"):
			all = append(all, serverbackup.LeftOut{Name: f.Name(), Why: e.why})
		}
	}
	return all, err
}

// used reports whether a server has used the data folder.
func used(data string) (bool, error) {
	found, err := os.ReadDir(data)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(found, func(f fs.DirEntry) bool { return isServers(f.Name()) && f.Name() != ownFolder }), err // a look at templates makes that
}

// lockData keeps servers off the data folder, which is there. Conflict when one uses it.
func lockData(c *Config) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(c.Data, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The data folder %s cannot be locked: %v.", c.Data, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = fault.Wrap(err, fault.Conflict, "Another sandboxd serves the data folder %s already. End it, or choose another with --data.", c.Data)
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// serverDatabase recovers and upgrades the database where it needs that, and opens it. The caller has locked the data folder.
func serverDatabase(ctx context.Context, c *Config, log *slog.Logger) (*sqlite.DB, error) {
	path := databasePath(c)
	if err := sqlite.Recover(ctx, path, log); err != nil {
		return nil, err
	}
	if err := sqlite.Upgrade(ctx, path, version, log); err != nil {
		return nil, err
	}
	db, err := openDatabase(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := db.NoteProgram(ctx, version); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
