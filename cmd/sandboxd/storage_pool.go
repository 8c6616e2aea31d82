package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/btrfs"
	"sandboxd/internal/docker"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// What a mount and another command on the same storage pool may take. After a crash btrfs replays its journal when it is mounted.
const (
	mountLimit    = 2 * time.Minute
	poolTurnLimit = time.Minute
	poolTurnEvery = 100 * time.Millisecond
)

// packEvery is how often the storage pool's data is packed.
const packEvery = 10 * time.Minute

// storage is the storage pool of a server; it has none when pool is nil.
type storage struct {
	pool *btrfs.Pool
}

// poolDisk gives the Disk of the data folder's storage pool, whether there is one or not.
func poolDisk(c *Config) (btrfs.Disk, error) {
	data, err := filepath.Abs(c.Data)
	if err != nil {
		return btrfs.Disk{}, err
	}
	if real, err := filepath.EvalSymlinks(data); err == nil { // the engine remembers the path
		data = real
	}
	return btrfs.In(data)
}

// poolTurn waits until no other command makes, mounts or grows the storage pool of the data folder, which is there. Conflict when that
// takes longer than poolTurnLimit.
func poolTurn(ctx context.Context, c *Config) (done func() error, err error) {
	f, err := os.Open(c.Data)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The data folder %s cannot be opened: %v.", c.Data, err)
	}
	ctx, cancel := context.WithTimeout(ctx, poolTurnLimit)
	defer cancel()
	tick := time.NewTicker(poolTurnEvery)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f.Close, nil
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return nil, errors.Join(fault.Wrap(err, fault.Unavailable, "The data folder %s cannot be locked: %v.", c.Data, err), f.Close())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(fault.New(fault.Conflict, "Another command works on the storage pool. Try again when it has ended."), f.Close())
		}
	}
}

// mountPool mounts the storage pool, or gives up after mountLimit. The caller has the turn.
func mountPool(ctx context.Context, disk btrfs.Disk) error {
	return onPoolInTime(ctx, disk, disk.Mount)
}

// onPoolInTime does something that waits for the kernel, and cannot be ended, or gives up after mountLimit: the process is to end then.
func onPoolInTime(ctx context.Context, disk btrfs.Disk, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, mountLimit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.Timeout, "The storage pool on %s does not answer. The kernel's log (dmesg) may say why.", disk)
	}
}

// openStorage mounts and opens the storage pool, if there is one. A server whose pool cannot be mounted does not start: it would take the
// homes in it for lost. The caller must close it.
func openStorage(ctx context.Context, c *Config, log *slog.Logger) (storage, error) {
	disk, err := poolDisk(c)
	if err != nil {
		return storage{}, err
	}
	has, err := disk.Exists()
	if err == nil && !has {
		if has, err = disk.Mounted(); has {
			log.Error("the storage pool is mounted, but what it is on has been removed: back the sandboxes up, all is lost when it is unmounted", "pool", disk.Dir)
		} else if err == nil {
			err = lostPool(disk)
		}
	}
	if err != nil || !has {
		return storage{}, err
	}
	done, err := poolTurn(ctx, c)
	if err != nil {
		return storage{}, err
	}
	err = mountPool(ctx, disk)
	if err = errors.Join(err, done()); err != nil {
		return storage{}, unusable(disk, err)
	}
	var pool *btrfs.Pool
	err = onPoolInTime(ctx, disk, func(context.Context) (err error) {
		pool, err = btrfs.Open(disk.Dir)
		return err
	})
	if err != nil {
		return storage{}, unusable(disk, err)
	}
	space, err := pool.Space()
	if err != nil {
		return storage{}, unusable(disk, errors.Join(err, pool.Close()))
	}
	if space.ReadOnly {
		log.Error("the storage pool is read-only: its file system has found an error, or was mounted so; the kernel's log (dmesg) says why", "pool", disk.Dir)
	}
	log.Info("homes are in the storage pool", "pool", disk.Dir, "size", space.Size, "free", space.Free)
	return storage{pool}, nil
}

// lostPool is NotFound when there was a storage pool and what it was on is gone: the folder that it was mounted on tells.
func lostPool(disk btrfs.Disk) error {
	_, err := os.Stat(disk.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fault.New(fault.NotFound, "The storage pool is missing: there is neither %s nor %s.device. Put it back. When it is lost, remove the empty folder %s, and restore the sandboxes in it from backups (docs/server.md).",
		disk.File, disk.Dir, disk.Dir)
}

// close leaves the pool mounted: sandboxes have it in use.
func (s storage) close() error {
	if s.pool == nil {
		return nil
	}
	return s.pool.Close()
}

// unusable says why the server does not start.
func unusable(disk btrfs.Disk, err error) error {
	kind := fault.KindOf(err)
	if kind == fault.Internal {
		kind = fault.Unavailable
	}
	return fault.Wrap(err, kind, "The storage pool on %s cannot be used, and homes of sandboxes are in it, so sandboxd does not start. %s", disk, fault.Message(err))
}

// homes gives the storage pool to the engine.
func (s storage) homes() docker.Pool {
	if s.pool == nil {
		return nil
	}
	return s.pool
}

// quota gives what limits the homes.
func (s storage) quota(e *docker.Engine) sandbox.Quota {
	if s.pool == nil {
		return nil
	}
	return e
}

// figures gives what tells how full it is. The kernel answers from memory.
func (s storage) figures() func(context.Context) (used, size int64, err error) {
	if s.pool == nil {
		return nil
	}
	return func(context.Context) (used, size int64, err error) {
		space, err := s.pool.Space()
		return space.Size - space.Free, space.Size, err
	}
}

// alerts gives what tells alerts how it is.
func (s storage) alerts() func() (alert.Pool, error) {
	if s.pool == nil {
		return nil
	}
	return func() (alert.Pool, error) {
		space, err := s.pool.Space()
		return alert.Pool{Used: space.Size - space.Free, Size: space.Size, ReadOnly: space.ReadOnly}, err
	}
}

// packPool packs the storage pool's data from time to time, if there is a pool. Commands that grow it wait meanwhile.
func packPool(a *app, c *Config) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(packEvery)
		defer tick.Stop()
		for a.storage.pool != nil {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
			done, err := poolTurn(ctx, c)
			if err == nil {
				err = errors.Join(a.storage.pool.Pack(ctx), done())
			}
			if err != nil && ctx.Err() == nil {
				a.log.Warn("pack the storage pool", "error", err)
			}
		}
		return nil
	}
}
