// Package btrfs is the storage pool: a btrfs file system in which the homes of sandboxes, and the copies that snapshots have of them,
// are subvolumes. A copy takes milliseconds whatever its size, and quotas bound what a home takes. Disk makes such a file system, in a
// file or on a block device, and mounts it; Pool is one that is mounted. It implements docker.Pool.
//
// It knows nothing of sandboxes, and never looks into a subvolume: what is in there was written by hostile programs. It drives the
// kernel itself; of btrfs-progs it needs mkfs.btrfs only.
//
// Invariant: no path below a subvolume is ever opened. A subvolume whose name has no ".new" at its end is whole, also when this
// process or the machine ends at any moment; one that has is removed by the next Open.
package btrfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
	"sandboxd/internal/semaphore"
)

const (
	folder      = "volumes" // in the file system; it has the subvolumes
	underWay    = ".new"    // at the end of the name of what is being made, or removed
	longestName = 200       // bytes, so that there is room for more in the 255 that a name may have
	rootInode   = 256       // of every subvolume
	leastUsed   = 30        // percent: parts of the disk that have less data than that give their room back
)

// Pool is a mounted storage pool. Its methods are safe for concurrent use, do not end before the kernel has answered, which is a matter
// of milliseconds unless the disk is busy, and have these kinds: Invalid (a name that cannot be one), NotFound, Conflict, Unavailable
// (the pool is full, read-only, or its disk has failed; the message says what to do). The caller must Close it.
type Pool struct {
	dir     string
	volumes *os.File
	names   semaphore.Keyed // one change at a time of a subvolume
}

// Open opens the file system that is mounted at dir, an absolute path, and removes what a crash has left in it. Invalid when
// it is not btrfs, has no quotas, or this user may not use it.
func Open(dir string) (*Pool, error) {
	if is, err := isBtrfs(dir); err != nil || !is {
		return nil, fault.Wrap(errors.Join(err, errNoBtrfs), fault.Invalid, "There is no storage pool mounted at %s. Make one: sandboxd pool create SIZE", dir)
	}
	at := filepath.Join(dir, folder)
	if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, explain(err, "be opened")
	}
	volumes, err := os.OpenFile(at, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, explain(err, "be opened")
	}
	p := &Pool{dir: dir, volumes: volumes}
	p.reclaim()
	if err := errors.Join(p.checkQuotas(), p.sweep()); err != nil {
		return nil, errors.Join(err, volumes.Close())
	}
	return p, nil
}

// reclaim has the kernel pack what little data is left in parts of the disk after deletes, best effort. Those parts would hold nothing else
// otherwise: a sandbox could fill them, delete most of it, and leave no room for the names of files, with much of the pool free. Pack does
// what the kernel leaves.
func (p *Pool) reclaim() {
	id, err := fileSystemID(p.volumes)
	if err == nil {
		_ = os.WriteFile(filepath.Join("/sys/fs/btrfs", uuid(id), "allocation/data/bg_reclaim_threshold"), []byte(strconv.Itoa(leastUsed)), 0)
	}
}

var errNoBtrfs = errors.New("it is not a btrfs file system")

func isBtrfs(dir string) (bool, error) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	return err == nil && int64(s.Type) == unix.BTRFS_SUPER_MAGIC, err
}

// Close lets the file system be unmounted.
func (p *Pool) Close() error { return p.volumes.Close() }

// sweep removes what was under way when an earlier process ended. In a read-only file system it stays.
func (p *Pool) sweep() error {
	names, err := p.list()
	for _, name := range names {
		if strings.HasSuffix(name, underWay) {
			err = errors.Join(err, p.destroy(name))
		}
	}
	if errors.Is(err, unix.EROFS) {
		return nil
	}
	return explain(err, "be tidied up")
}

// list gives the names of all folders, sorted, and the kernel's bare error.
func (p *Pool) list() ([]string, error) {
	entries, err := os.ReadDir(p.volumes.Name())
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// List implements docker.Pool. The names are sorted.
func (p *Pool) List() ([]string, error) {
	names, err := p.list()
	return slices.DeleteFunc(names, func(n string) bool { return check(n) != nil }), explain(err, "list its folders")
}

// Path implements docker.Pool.
func (p *Pool) Path(name string) string { return filepath.Join(p.dir, folder, name) }

// check is Invalid for what is no name of a subvolume.
func check(name string) error {
	if name == "" || len(name) > longestName || name[0] == '.' || strings.ContainsAny(name, "/\x00") || strings.HasSuffix(name, underWay) {
		return fault.New(fault.Invalid, "%.50q cannot be the name of a folder in the storage pool.", name)
	}
	return nil
}

// turn waits until nothing else changes the names, in their order, so that two never wait for each other.
func (p *Pool) turn(names ...string) (done func(), err error) {
	slices.Sort(names)
	var held []func()
	done = func() {
		for _, release := range held {
			release()
		}
	}
	for _, name := range slices.Compact(names) {
		if err = check(name); err == nil {
			var release func()
			release, err = p.names.Acquire(context.Background(), name, 1, -1) // what is waited for is as quick as this
			if err == nil {
				held = append(held, release)
			}
		}
		if err != nil {
			done()
			return nil, err
		}
	}
	return done, nil
}

// open opens a subvolume; what is no subvolume is none.
func (p *Pool) open(name string) (*os.File, error) {
	fd, err := unix.Openat(int(p.volumes.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Ino != rootInode {
		err = unix.EINVAL
	}
	if err != nil {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: name, Err: err}, f.Close())
	}
	return f, nil
}

// Has implements docker.Pool.
func (p *Pool) Has(name string) (bool, error) {
	if err := check(name); err != nil {
		return false, err
	}
	has, err := p.has(name)
	return has, explain(err, "look for a folder")
}

func (p *Pool) has(name string) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(p.volumes.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil, err
}

// Create implements docker.Pool. The folder belongs to root, and others may enter it.
func (p *Pool) Create(name string) error {
	done, err := p.turn(name)
	if err != nil {
		return err
	}
	defer done()
	if has, err := p.has(name); err != nil || has {
		return taken(err, name)
	}
	fresh := name + underWay
	return explain(inTurn(
		func() error { return p.destroy(fresh) },
		func() error { return createSubvolume(p.volumes, fresh) },
		func() error { return unix.Fchmodat(int(p.volumes.Fd()), fresh, 0o755, 0) }, // whatever the umask
		func() error { return p.rename(fresh, name, unix.RENAME_NOREPLACE) },
		p.commit,
	), "make a folder")
}

// Copy implements docker.Pool. What programs have written to from by then is in the copy. It is on the disk afterwards.
func (p *Pool) Copy(from, to string) error {
	done, err := p.turn(from, to)
	if err != nil {
		return err
	}
	defer done()
	if has, err := p.has(to); err != nil || has {
		return taken(err, to)
	}
	source, err := p.open(from)
	if err != nil {
		return explain(err, "copy a folder")
	}
	defer source.Close()
	return explain(snapshot(source, p.volumes, to), "copy a folder") // the kernel writes the data out, and all is there or nothing
}

// Move implements docker.Pool. The new name is on the disk afterwards.
func (p *Pool) Move(name, to string) error {
	done, err := p.turn(name, to)
	if err != nil {
		return err
	}
	defer done()
	if has, err := p.has(to); err != nil || has {
		return taken(err, to)
	}
	return explain(inTurn(func() error { return p.rename(name, to, unix.RENAME_NOREPLACE) }, p.commit), "move a folder")
}

// Replace implements docker.Pool. What replaces the folder is on the disk afterwards.
func (p *Pool) Replace(name, with string) error {
	done, err := p.turn(name, with)
	if err != nil {
		return err
	}
	defer done()
	old := name + underWay
	err = inTurn(
		func() error { return p.follow(name, with) },
		func() error { return p.destroy(old) },
		func() error { return p.rename(with, old, unix.RENAME_NOREPLACE) },
		func() error {
			err := p.rename(old, name, unix.RENAME_EXCHANGE)
			if err != nil {
				err = errors.Join(err, p.rename(old, with, unix.RENAME_NOREPLACE))
			}
			return err
		},
		p.commit,
	)
	if err != nil {
		return explain(err, "replace a folder")
	}
	// The new one is there. When the old one does not go, the next change of this folder or the next Open removes it.
	_ = p.destroy(old)
	return nil
}

// Remove implements docker.Pool. The room that it took is free some time later.
func (p *Pool) Remove(name string) error {
	done, err := p.turn(name)
	if err != nil {
		return err
	}
	defer done()
	return explain(errors.Join(p.destroy(name), p.destroy(name+underWay)), "remove a folder")
}

func (p *Pool) rename(from, to string, flags uint) error {
	fd := int(p.volumes.Fd())
	return unix.Renameat2(fd, from, fd, to, flags)
}

// commit has the kernel write down which subvolumes there are.
func (p *Pool) commit() error { return p.volumes.Sync() }

// destroy removes a subvolume and those in it, and gives the kernel's bare error. A missing one is none. It goes by their numbers, so it
// follows no path that a sandbox has made.
func (p *Pool) destroy(name string) error {
	f, err := p.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	id, err := subvolumeID(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := p.destroyNested(id); err != nil {
		return err
	}
	return destroySubvolume(p.volumes, name)
}

// destroyNested removes the subvolumes in one, the innermost first.
func (p *Pool) destroyNested(id uint64) error {
	all := []uint64{id}
	for i := 0; i < len(all); i++ {
		children, err := childrenOf(p.volumes, all[i])
		if err != nil {
			return err
		}
		all = append(all, children...)
	}
	for _, child := range slices.Backward(all[1:]) {
		if err := destroyByID(p.volumes, child); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// Space is what a pool has. Size and Free are in bytes; Free is an estimate of the kernel's.
type Space struct {
	Size, Free int64
	ReadOnly   bool // its file system has found an error, or was mounted so
}

// Space gives what the pool has.
func (p *Pool) Space() (Space, error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(p.volumes.Fd()), &s); err != nil {
		return Space{}, explain(err, "say how much is free")
	}
	return spaceOf(s), nil
}

func spaceOf(s unix.Statfs_t) Space {
	return Space{Size: int64(s.Blocks) * s.Bsize, Free: int64(s.Bavail) * s.Bsize, ReadOnly: s.Flags&unix.ST_RDONLY != 0}
}

// Sync has all that was written to the pool put on the disk, so that a Copy soon after is quick. When ctx ends it returns; the kernel
// continues.
func (p *Pool) Sync(ctx context.Context) error {
	fd, err := unix.FcntlInt(p.volumes.Fd(), unix.F_DUPFD_CLOEXEC, 0) // which Close does not take away
	if err != nil {
		return explain(err, "write what was changed")
	}
	written := make(chan error, 1)
	go func() { written <- errors.Join(unix.Syncfs(fd), unix.Close(fd)) }()
	select {
	case err := <-written:
		return explain(err, "write what was changed")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inTurn does one thing after another, as far as they succeed.
func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
