package mover

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"sandboxd/internal/archive"
)

// What the folder of a snapshot has: a copy of a home, which gets its name when all of it is on the disk.
const (
	copied  = "home"
	copying = "home.part"
)

var errNoCopy = errors.New("the snapshot has no copy of a home")

// copyOut copies a home into the folder of a snapshot.
func copyOut(home *os.File, snapshot string, o archive.Options) (stats archive.Stats, err error) {
	if err := settleWhole(home); err != nil {
		return stats, err
	}
	dir, err := os.Open(snapshot)
	if err != nil {
		return stats, err
	}
	defer dir.Close()
	if err := removeCopy(dir); err != nil {
		return stats, err
	}
	err = inTurn(
		func() (err error) { stats, err = copyInto(home, dir, o); return err },
		func() error { return syncAll(dir) },
		func() error { return unix.Renameat(int(dir.Fd()), copying, int(dir.Fd()), copied) },
		dir.Sync,
	)
	if err != nil {
		return stats, errors.Join(err, removeCopy(dir))
	}
	return stats, nil
}

// removeCopy removes what is in the folder of a snapshot. A whole copy loses its name before anything else.
func removeCopy(dir *os.File) error {
	return inTurn(
		func() error { return removeTree(dir, copying) },
		func() error {
			err := unix.Renameat(int(dir.Fd()), copied, int(dir.Fd()), copying)
			if err == unix.ENOENT {
				err = nil
			}
			return err
		},
		dir.Sync,
		func() error { return removeTree(dir, copying) },
	)
}

func copyInto(home, dir *os.File, o archive.Options) (archive.Stats, error) {
	to, err := makeFolder(dir, copying)
	if err != nil {
		return archive.Stats{}, err
	}
	defer to.Close()
	return archive.Copy(context.Background(), home, to, o)
}

// copyIn makes of a home what the copy of a snapshot is.
func copyIn(home *os.File, snapshot string, o archive.Options) (stats archive.Stats, err error) {
	err = withCopy(snapshot, func(from *os.File) (err error) {
		stats, err = replace(home, func(to *os.File) (archive.Stats, error) { return archive.Copy(context.Background(), from, to, o) })
		return err
	})
	return stats, err
}

// withCopy opens the copy of a snapshot.
func withCopy(snapshot string, do func(from *os.File) error) error {
	dir, err := os.Open(snapshot)
	if err != nil {
		return err
	}
	defer dir.Close()
	from, err := openFolder(dir, copied)
	if errors.Is(err, fs.ErrNotExist) {
		return errNoCopy
	}
	if err != nil {
		return err
	}
	defer from.Close()
	return do(from)
}
