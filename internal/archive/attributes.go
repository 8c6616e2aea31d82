package archive

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OwnerOf gives that of an open file.
func OwnerOf(f *os.File) (*Owner, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, fmt.Errorf("look at the folder: %w", err)
	}
	return &Owner{UID: int(st.Uid), GID: int(st.Gid)}, nil
}

// CopyAttributes gives an open folder the owner, permissions and extended attributes of another, and takes from it the attributes that
// that has not.
func CopyAttributes(from, to *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(from.Fd()), &st); err != nil {
		return fmt.Errorf("look at the folder: %w", err)
	}
	want, err := attributesOf(int(from.Fd()))
	if err != nil {
		return fmt.Errorf("read the folder's attributes: %w", err)
	}
	has, err := attributesOf(int(to.Fd()))
	if err != nil {
		return fmt.Errorf("read the folder's attributes: %w", err)
	}
	for _, a := range has {
		if err := unix.Fremovexattr(int(to.Fd()), a.name); err != nil && err != unix.ENODATA {
			return fmt.Errorf("remove the attribute %q: %w", a.name, err)
		}
	}
	if err := unix.Fchown(int(to.Fd()), int(st.Uid), int(st.Gid)); err != nil {
		return fmt.Errorf("change the folder's owner: %w", err)
	}
	for _, a := range want {
		if err := unix.Fsetxattr(int(to.Fd()), a.name, []byte(a.value), 0); err != nil {
			return fmt.Errorf("set the attribute %q: %w", a.name, err)
		}
	}
	if err := unix.Fchmod(int(to.Fd()), st.Mode&0o7777); err != nil {
		return fmt.Errorf("change the folder's permissions: %w", err)
	}
	return nil
}
