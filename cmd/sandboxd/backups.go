package main

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"sandboxd/internal/backup"
	"sandboxd/internal/catalog"
	"sandboxd/internal/docker"
	"sandboxd/internal/fault"
	"sandboxd/internal/lastuse"
	"sandboxd/internal/sandbox"
)

func (c *Config) backupFlags(f *pflag.FlagSet) {
	f.StringVar(&c.BackupFolder, "backup-folder", "", "folder that holds the backups of sandboxes and nothing else (default: backups in the data folder)")
	f.StringVar(&c.BackupKeep, "backup-keep", "7d", `how long a backup is kept: a duration such as "24h" or "30d"`)
	f.StringVar(&c.BackupQuota, "backup-quota", "100GiB", `disk that the backups of all sandboxes of one owner may take: "100GiB", or "0" for no bound`)
}

// backupBounds gives how long a backup is kept, and the bytes that those of one owner may take.
func (c *Config) backupBounds() (keep time.Duration, quota int64, err error) {
	after, err := catalog.ParseAfter("backup-keep", c.BackupKeep)
	if err != nil || after <= 0 {
		return 0, 0, fault.Field("backup-keep", "--backup-keep is %.40q; it must be a duration from 1s to 365d, such as \"24h\" or \"30d\".", c.BackupKeep)
	}
	if quota, err = units.RAMInBytes(c.BackupQuota); err != nil || quota < 0 {
		return 0, 0, fault.Field("backup-quota", "--backup-quota is %.40q; it must be a size such as \"100GiB\", or \"0\" for no bound.", c.BackupQuota)
	}
	return time.Duration(after), quota, nil
}

func backupFolder(c *Config) string {
	return cmp.Or(c.BackupFolder, filepath.Join(c.Data, "backups"))
}

func (a *app) newBackups(ctx context.Context) error {
	if err := a.engine.SweepHomes(ctx); err != nil {
		return err
	}
	keep, quota, err := a.config.backupBounds()
	if err != nil {
		return err
	}
	a.backups, err = backup.Open(backup.Config{
		Folder:       backupFolder(a.config),
		Repositories: a.repositories, Sandboxes: filled{a.manager, a.uses}, Version: version, Keep: keep, Quota: quota, Disk: a.homesDisk, Log: a.log,
		Failed: func(b backup.Backup) { recordBackup(a.activity, b) },
	})
	return err
}

// homesDisk gives the size of the disk that holds the homes, in bytes; of an engine on another machine that of the data folder.
func (a *app) homesDisk() int64 {
	if a.storage.pool != nil {
		if space, err := a.storage.pool.Space(); err == nil {
			return space.Size
		}
	}
	var st unix.Statfs_t
	for _, folder := range []string{a.engine.Info().Root, a.config.Data} {
		if unix.Statfs(folder, &st) == nil {
			return int64(st.Blocks) * st.Bsize
		}
	}
	return 0
}

// listen makes a socket for a container that is no sandbox.
func (a *app) listen(name string) (docker.Listener, error) {
	l, folder, err := a.links.Listen(name)
	return docker.Listener{Listener: l, Folder: folder}, err
}

// filled notes that a sandbox has what a backup brings, which counts as a use of it.
type filled struct {
	*sandbox.Manager
	uses *lastuse.Record
}

// Restore implements backup.Sandboxes.
func (f filled) Restore(ctx context.Context, ref sandbox.Ref, fill func(context.Context, sandbox.Home) error) error {
	f.uses.Note(ref.ID())
	return f.Manager.Restore(ctx, ref, fill)
}

// RestoreWithRoot implements backup.Sandboxes.
func (f filled) RestoreWithRoot(ctx context.Context, ref sandbox.Ref, root sandbox.Rootfs, fill func(context.Context, sandbox.Home) error) error {
	f.uses.Note(ref.ID())
	return f.Manager.RestoreWithRoot(ctx, ref, root, fill)
}

// CreateFrom implements backup.Sandboxes.
func (f filled) CreateFrom(ctx context.Context, r sandbox.Request, from sandbox.Origin) (sandbox.Sandbox, error) {
	s, err := f.Manager.CreateFrom(ctx, r, from)
	if err == nil {
		f.uses.Note(s.ID)
	}
	return s, err
}
