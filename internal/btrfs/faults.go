package btrfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
)

// explain gives an error of the kernel's a kind and a sentence. what completes "The storage pool could not …". One that has a kind keeps it.
func explain(err error, what string) error {
	var known *fault.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fault.Wrap(err, fault.Unavailable, "The storage pool is full. Delete snapshots or sandboxes, or make it larger: sandboxd pool grow SIZE")
	case errors.Is(err, unix.EROFS):
		return fault.Wrap(err, fault.Unavailable, "The storage pool is read-only: its file system has found an error, or was mounted so. The kernel's log (dmesg) says why.")
	case errors.Is(err, unix.EIO):
		return fault.Wrap(err, fault.Unavailable, "The storage pool could not %s: its disk has failed. The kernel's log (dmesg) says more.", what)
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(err, fault.NotFound, "The storage pool could not %s: it is not there.", what)
	case errors.Is(err, fs.ErrExist):
		return fault.Wrap(err, fault.Conflict, "The storage pool could not %s: there is one of that name already.", what)
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap(err, fault.Invalid, "The storage pool could not %s: this takes the rights of root, and of the whole host. Run sandboxd as root, outside of a container.", what)
	case errors.Is(err, unix.ENOTCONN):
		return fault.Wrap(err, fault.Invalid, "The storage pool could not %s: its quotas have been disabled. Unmount it, so that sandboxd mounts it itself and enables them.", what)
	case errors.Is(err, unix.ENOTTY), errors.Is(err, unix.EOPNOTSUPP):
		return fault.Wrap(err, fault.Invalid, "The storage pool could not %s: the kernel is too old, or it is not a btrfs file system. It takes Linux 6.7 or newer.", what)
	}
	return fault.Wrap(err, fault.Unavailable, "The storage pool could not %s: %s.", what, cause(err))
}

// cause is the innermost error's text.
func cause(err error) string {
	var number unix.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	return cut(err.Error())
}

// taken is a Conflict, or what has kept from looking.
func taken(err error, name string) error {
	if err != nil {
		return explain(err, "look for a folder")
	}
	return fault.New(fault.Conflict, "The storage pool has a folder %s already.", name)
}
