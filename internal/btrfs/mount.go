package btrfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
)

const (
	loopControl = "/dev/loop-control"
	loopTries   = 16 // others may take the free one that we have just found
	mountFlags  = unix.MS_NOATIME | unix.MS_NOSUID | unix.MS_NODEV
	// Without discards the file stays reserved on the host's disk. Whatever the default subvolume is, all of the file system is mounted. The
	// seconds are how soon the room of what was removed is free.
	mountOptions = "nodiscard,subvolid=5,commit=5"
)

// Mounted says whether a pool is mounted.
func (d Disk) Mounted() (bool, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, d.Dir, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &st)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, onHost(err, "look at "+d.Dir)
	}
	if st.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return false, nil
	}
	is, err := isBtrfs(d.Dir)
	return is, onHost(err, "look at "+d.Dir)
}

// Mount mounts the pool, if it is not, and enables its quotas. NotFound when there is none; Invalid when this user or the kernel cannot,
// or the block device has another file system than it was made with; Unavailable when it is damaged. What it asks of the kernel is waited
// for; ctx ends it in between.
func (d Disk) Mount(ctx context.Context) error {
	is, err := d.Mounted()
	if err != nil {
		return err
	}
	if !is {
		if err := os.Mkdir(d.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return onHost(err, "make "+d.Dir)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.mount(); err != nil {
			return err
		}
	}
	dir, err := os.Open(d.Dir)
	if err != nil {
		return explain(err, "be opened")
	}
	err = d.check(dir)
	if err == nil {
		err = enableQuotas(dir)
	}
	if errors.Is(err, unix.EROFS) {
		err = nil // there are none to enable, and Open finds that, or they are enabled
	}
	if err = errors.Join(err, dir.Close()); err != nil && !is {
		err = errors.Join(err, d.Unmount())
	}
	return explain(err, "enable quotas")
}

func (d Disk) mount() error {
	if d.Path != "" {
		return d.mountFrom(d.Path)
	}
	f, err := os.OpenFile(d.File, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(err, fault.NotFound, "There is no storage pool. Make one: sandboxd pool create SIZE")
	}
	if err != nil {
		return onHost(err, "open "+d.File)
	}
	defer f.Close()
	device, err := loopOf(f) // one whose mount lives on in a container, for example
	if err == nil && device == nil {
		device, err = newLoop(f)
	}
	if err != nil {
		return err
	}
	defer device.Close() // after that the mount is what holds it
	return d.mountFrom(device.Name())
}

func (d Disk) mountFrom(device string) error {
	err := unix.Mount(device, d.Dir, "btrfs", mountFlags, mountOptions)
	switch {
	case errors.Is(err, unix.ENODEV):
		return fault.Wrap(err, fault.Invalid, "This kernel has no btrfs. Load its module (modprobe btrfs), or install a kernel that has it.")
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EUCLEAN):
		return fault.Wrap(err, fault.Unavailable, "%s has no btrfs file system that can be mounted. The kernel's log (dmesg) says why.", d)
	case errors.Is(err, unix.ENOENT):
		return fault.Wrap(err, fault.Unavailable, "The block device of the storage pool, %s, is not there.", device)
	}
	return explain(err, "be mounted")
}

// check is Invalid when a block device has another file system than it was made with: names of devices change.
func (d Disk) check(dir *os.File) error {
	if d.Path == "" {
		return nil
	}
	_, want, err := d.noted()
	if err != nil || want == "" {
		return err
	}
	id, err := fileSystemID(dir)
	if err == nil && uuid(id) != want {
		err = fault.New(fault.Invalid, "%s has another file system than the storage pool's. Write the right device's path into the first line of %s.", d.Path, d.note())
	}
	return err
}

// Unmount unmounts the pool. Conflict when it is in use. When it is not mounted, nothing happens.
func (d Disk) Unmount() error {
	if is, err := d.Mounted(); err != nil || !is {
		return err
	}
	err := unix.Unmount(d.Dir, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EBUSY) {
		return fault.Wrap(err, fault.Conflict, "The storage pool is in use. Stop sandboxd and its sandboxes first.")
	}
	return explain(err, "be unmounted")
}

// Space gives what a mounted pool has; Conflict when it is not mounted. Unlike Open it changes nothing, so that it can be asked beside a
// process that has the pool open.
func (d Disk) Space() (Space, error) {
	if is, err := d.Mounted(); err != nil || !is {
		return Space{}, errors.Join(err, errUnmounted)
	}
	var s unix.Statfs_t
	if err := unix.Statfs(d.Dir, &s); err != nil {
		return Space{}, explain(err, "say how much is free")
	}
	return spaceOf(s), nil
}

var errUnmounted = fault.New(fault.Conflict, "The storage pool is not mounted. Mount it: sandboxd pool mount")

// newLoop gives a loop device of a file, which is gone when nothing has it open or mounted any more. It reads and writes past the host's
// cache, where the host's file system can.
func newLoop(f *os.File) (*os.File, error) {
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, noLoop(err)
	}
	defer control.Close()
	for range loopTries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, noLoop(err)
		}
		device, err := configure(f, n)
		if !errors.Is(err, unix.EBUSY) {
			return device, noLoop(err)
		}
	}
	return nil, noLoop(unix.EBUSY)
}

func noLoop(err error) error {
	return fault.Wrap(err, fault.Invalid, "No loop device can be made for the storage pool: %s. Load the module (modprobe loop), run sandboxd as root outside of a container, or give the pool a block device.", causeOf(err))
}

func causeOf(err error) string {
	if err == nil {
		return ""
	}
	return cause(err)
}

func configure(f *os.File, n int) (*os.File, error) {
	device, err := os.OpenFile(loopPath(n), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	c := unix.LoopConfig{Fd: uint32(f.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO}}
	copy(c.Info.File_name[:len(c.Info.File_name)-1], f.Name())
	err = unix.IoctlLoopConfigure(int(device.Fd()), &c)
	if errors.Is(err, unix.EINVAL) {
		c.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
		err = unix.IoctlLoopConfigure(int(device.Fd()), &c)
	}
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return device, nil
}

// loopOf gives the loop device that has a file, nil when none has.
func loopOf(f *os.File) (*os.File, error) {
	var want unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &want); err != nil {
		return nil, onHost(err, "look at "+f.Name())
	}
	found, err := filepath.Glob("/sys/block/loop*/loop")
	if err != nil {
		return nil, err
	}
	for _, one := range found {
		device, err := os.Open("/dev/" + filepath.Base(filepath.Dir(one)))
		if err != nil {
			continue // it is gone meanwhile
		}
		is, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
		if err == nil && is.Device == want.Dev && is.Inode == want.Ino && is.Offset == 0 {
			return device, nil
		}
		device.Close()
	}
	return nil, nil
}

func loopPath(n int) string { return "/dev/loop" + strconv.Itoa(n) }
