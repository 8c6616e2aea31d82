package btrfs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
)

const (
	// MinSize is that of the smallest pool, in bytes: btrfs keeps some of it for itself.
	MinSize = 256 << 20

	magic   = "_BHRfS_M"
	magicAt = 64<<10 + 64 // of the file system's first block that describes it

	formatLimit = 5 * time.Minute
	spared      = 20      // a part of so many of the host's file system stays free for others
	mostSpared  = 5 << 30 // bytes: of a large one not more than this
)

// Disk is where a pool's file system is: in a file, or on a block device. Its methods are not safe for concurrent use. They need root's
// rights over the host.
type Disk struct {
	Dir  string // where it is mounted, an absolute path
	File string // the file that has it, an absolute path; its name with ".new" at the end is one that is being made
	Path string // of the block device that has it, in the place of File; "" for none
}

// In gives the Disk of a data folder, an absolute path: pool.img in it, or the block device that pool.device in it names; pool is where
// it is mounted.
func In(data string) (Disk, error) {
	d := Disk{Dir: filepath.Join(data, "pool"), File: filepath.Join(data, "pool.img")}
	device, _, err := d.noted()
	d.Path = device
	return d, err
}

// note is the file that says which block device has the pool, and the number of its file system.
func (d Disk) note() string { return d.Dir + ".device" }

// noted gives what the note says, nothing when there is none.
func (d Disk) noted() (device, id string, err error) {
	text, err := os.ReadFile(d.note())
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	lines := strings.Fields(string(text))
	if err == nil && len(lines) != 2 {
		err = fault.New(fault.Invalid, "%s does not name a block device. Restore it from a backup, or write into it the device's path and, in a second line, its file system's UUID.", d.note())
	}
	if err != nil {
		return "", "", explain(err, "tell which device it is on")
	}
	return lines[0], lines[1], nil
}

// Exists says whether there is a pool, mounted or not.
func (d Disk) Exists() (bool, error) {
	at := d.File
	if d.Path != "" {
		at = d.note()
	}
	_, err := os.Stat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, explain(err, "be looked for")
}

// Formatted is Unavailable unless the file or the block device has a btrfs file system, mounted or not, as far as its head says.
func (d Disk) Formatted() error {
	at := d.File
	if d.Path != "" {
		at = d.Path
	}
	f, err := os.Open(at)
	if err != nil {
		return onHost(err, "open "+at)
	}
	defer f.Close()
	head := make([]byte, len(magic))
	if _, err := f.ReadAt(head, magicAt); err != nil || string(head) != magic {
		return fault.New(fault.Unavailable, "%s has no btrfs file system: the storage pool on it is damaged. Restore it from a copy.", d)
	}
	return nil
}

// Format makes the file system: in a file of size bytes, all of which are reserved on the host's disk, or on all of the block device; then
// size does not count. Conflict when there is a pool, Invalid when the device is mounted or has something on it or the size is too small,
// Unavailable when the host has no room. When it fails or ctx ends, nothing is left of it but what it has written to a device.
func (d Disk) Format(ctx context.Context, size int64) error {
	if has, err := d.Exists(); err != nil || has {
		return errors.Join(err, fault.New(fault.Conflict, "There is a storage pool already. Make it larger: sandboxd pool grow SIZE"))
	}
	program, err := exec.LookPath("mkfs.btrfs")
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "The program mkfs.btrfs is missing. Install btrfs-progs, and try again.")
	}
	if d.Path != "" {
		return d.formatDevice(ctx, program)
	}
	if size < MinSize {
		return fault.New(fault.Invalid, "A storage pool cannot be smaller than %d MiB.", MinSize>>20)
	}
	return d.formatFile(ctx, program, size)
}

func (d Disk) formatFile(ctx context.Context, program string, size int64) (err error) {
	if err := d.roomFor(size); err != nil {
		return err
	}
	fresh := d.File + underWay
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return onHost(err, "make "+fresh)
	}
	f, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return onHost(err, "make "+fresh)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			_ = os.Remove(fresh)
		}
	}()
	overwriteInPlace(f)
	if err := reserve(f, 0, size); err != nil {
		return err
	}
	if err := mkfs(ctx, program, fresh, newUUID()); err != nil {
		return err
	}
	return onHost(inTurn(f.Sync, func() error { return os.Rename(fresh, d.File) }, func() error { return syncDir(filepath.Dir(d.File)) }), "make "+d.File)
}

// formatDevice asks the kernel whether anything else uses the device, and mkfs whether something is on it.
func (d Disk) formatDevice(ctx context.Context, program string) error {
	f, err := os.OpenFile(d.Path, os.O_RDWR|unix.O_EXCL, 0)
	if errors.Is(err, unix.EBUSY) {
		return fault.Wrap(err, fault.Invalid, "%s is in use: it is mounted, or a part of something else. Unmount it first.", d.Path)
	}
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "%s cannot be opened: %s.", d.Path, cause(err))
	}
	st, err := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		return explain(err, "look at "+d.Path)
	}
	if st.Mode()&fs.ModeDevice == 0 || st.Mode()&fs.ModeCharDevice != 0 {
		return fault.New(fault.Invalid, "%s is not a block device.", d.Path)
	}
	id := newUUID()
	if err := mkfs(ctx, program, d.Path, id); err != nil {
		return err
	}
	return onHost(writeFile(d.note(), d.Path+"\n"+id+"\n"), "write "+d.note())
}

// mkfs makes a file system with a number. It refuses what has something on it.
func mkfs(ctx context.Context, program, at, id string) error {
	ctx, cancel := context.WithTimeout(ctx, formatLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--quiet", "--nodiscard", "--label", "sandboxd", "--uuid", id, at).CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fault.Wrap(err, fault.Invalid, "No file system could be made on %s: %s If nothing on it is needed, wipe it (wipefs --all %[1]s) and try again.", at, cut(string(out)))
	}
	return nil
}

// Remove removes the pool that Format has made, with all that is in it; of one on a block device only the note, and mkfs will find the file
// system there. Conflict when it is mounted. When there is none, nothing happens.
func (d Disk) Remove() error {
	if is, err := d.Mounted(); err != nil || is {
		return errors.Join(err, fault.New(fault.Conflict, "The storage pool is mounted. Unmount it first."))
	}
	at := d.File
	if d.Path != "" {
		at = d.note()
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return onHost(err, "remove "+at)
	}
	_ = os.Remove(d.Dir) // it is empty, or not ours
	return onHost(syncDir(filepath.Dir(at)), "remove "+at)
}

// Room gives what the host's disk has for the file of a pool, in bytes: all that is free but for what is to stay so, never below 0.
func (d Disk) Room() (int64, error) {
	free, keep, err := d.hostSpace()
	return max(0, free-keep), err
}

func newUUID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails since Go 1.24
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return uuid(id)
}

// overwriteInPlace keeps a file system that copies on write from doing so twice, best effort.
func overwriteInPlace(f *os.File) {
	const noCopyOnWrite = 0x00800000
	if flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS); err == nil {
		_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|noCopyOnWrite))
	}
}

// hostSpace gives what the host's disk has free, and what of it is to stay so.
func (d Disk) hostSpace() (free, keep int64, err error) {
	var s unix.Statfs_t
	dir := filepath.Dir(d.File)
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, onHost(err, "look at "+dir)
	}
	return int64(s.Bavail) * s.Bsize, min(int64(s.Blocks)*s.Bsize/spared, mostSpared), nil
}

// roomFor is Unavailable when the host's disk has no room for so many bytes more, beside what is to stay free.
func (d Disk) roomFor(more int64) error {
	free, keep, err := d.hostSpace()
	if err != nil {
		return err
	}
	if free-keep < more {
		return fault.New(fault.Unavailable, "The disk of %s has %.1f GiB free, of which %.1f GiB have to stay so. Choose a smaller size, or free some room.", filepath.Dir(d.File), gib(free), gib(keep))
	}
	return nil
}

// reserve makes a file larger, and has all of it on the host's disk: otherwise a full host would damage the pool. When that fails the
// file is as it was.
func reserve(f *os.File, from, to int64) error {
	err := unix.EINTR
	for err == unix.EINTR {
		err, _ = unix.Fallocate(int(f.Fd()), 0, from, to-from).(unix.Errno)
	}
	switch {
	case err == 0:
		return nil
	case err == unix.EOPNOTSUPP:
		return fault.Wrap(errors.Join(err, f.Truncate(from)), fault.Invalid, "The file system of %s cannot reserve room for a file. Give the storage pool a block device: sandboxd pool create --device DEV", filepath.Dir(f.Name()))
	}
	return onHost(errors.Join(err, f.Truncate(from)), "reserve room in "+filepath.Dir(f.Name()))
}

// onHost is explain for what is not about the pool's file system, but about the host's.
func onHost(err error, what string) error {
	var known *fault.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fault.Wrap(err, fault.Unavailable, "The host's disk is full: could not %s.", what)
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap(err, fault.Invalid, "Could not %s: this takes the rights of root.", what)
	}
	return fault.Wrap(err, fault.Unavailable, "Could not %s: %s.", what, cause(err))
}

// writeFile makes a file that is there as a whole or not at all.
func writeFile(at, text string) error {
	f, err := os.OpenFile(at+underWay, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return inTurn(func() error { return os.Rename(at+underWay, at) }, func() error { return syncDir(filepath.Dir(at)) })
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Grow makes the pool larger while it is mounted and in use: its file to size bytes, or as large as its block device is by now; then size
// does not count. Invalid when it is larger already, Unavailable when the host has no room; then the pool is as it was. It may be
// repeated when it was cut off.
func (d Disk) Grow(ctx context.Context, size int64) error {
	if is, err := d.Mounted(); err != nil || !is {
		return errors.Join(err, errUnmounted)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.Path == "" {
		if err := d.growFile(size); err != nil {
			return err
		}
	}
	dir, err := os.Open(d.Dir)
	if err != nil {
		return explain(err, "grow")
	}
	return explain(errors.Join(resize(dir), dir.Close()), "grow")
}

func (d Disk) growFile(size int64) error {
	f, err := os.OpenFile(d.File, os.O_RDWR, 0)
	if err != nil {
		return onHost(err, "open "+d.File)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return onHost(err, "look at "+d.File)
	}
	if size < st.Size() {
		return fault.New(fault.Invalid, "The storage pool has %d MiB already, and cannot be made smaller.", st.Size()>>20)
	}
	if size > st.Size() {
		if err := d.roomFor(size - st.Size()); err != nil {
			return err
		}
		if err := reserve(f, st.Size(), size); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return onHost(err, "write "+d.File)
		}
	}
	device, err := loopOf(f)
	if err != nil {
		return err
	}
	if device == nil {
		return fault.New(fault.Unavailable, "%s is mounted, but not from %s. Unmount it, so that sandboxd mounts it itself.", d.Dir, d.File)
	}
	return explain(errors.Join(unix.IoctlSetInt(int(device.Fd()), unix.LOOP_SET_CAPACITY, 0), device.Close()), "grow")
}

// String names what has the pool.
func (d Disk) String() string {
	if d.Path != "" {
		return d.Path
	}
	return fmt.Sprintf("the file %s", d.File)
}

func gib(bytes int64) float64 { return float64(bytes) / (1 << 30) }
