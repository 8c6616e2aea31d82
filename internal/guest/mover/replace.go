package mover

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"sandboxd/internal/archive"
)

// What a replace has in the home meanwhile. The marks are one file that is renamed; it has the new home's time, which is another once
// something is moved out of there.
const (
	staging   = ".sandboxd-restore" // a folder
	newHome   = "new"               // in it: what is to come
	oldHome   = "old"               // what was there
	movingOut = "moving-out"        // new is complete; what was there is being moved to old
	movingIn  = "moving-in"         // all has been; what is in new is being moved
	moved     = "moved"             // all has been; what was there is being removed
)

// replace makes of a home what fill puts into an empty folder, which is on the disk before anything of the old home is touched.
func replace(home *os.File, fill func(to *os.File) (archive.Stats, error)) (archive.Stats, error) {
	if _, err := settle(home); err != nil {
		return archive.Stats{}, err
	}
	var before unix.Stat_t
	if err := unix.Fstat(int(home.Fd()), &before); err != nil {
		return archive.Stats{}, err
	}
	stats, err := stage(home, fill)
	if err == nil {
		err = inTurn(func() error { return syncAll(home) }, func() error { return mark(home) })
	}
	if err != nil {
		return stats, errors.Join(err, removeStaging(home), setTime(home, before.Mtim))
	}
	return stats, finish(home)
}

// stage makes the new home beside the old one.
func stage(home *os.File, fill func(to *os.File) (archive.Stats, error)) (archive.Stats, error) {
	if err := unix.Mkdirat(int(home.Fd()), staging, 0o700); err != nil {
		return archive.Stats{}, err
	}
	dir, err := openFolder(home, staging)
	if err != nil {
		return archive.Stats{}, err
	}
	defer dir.Close()
	to, err := makeFolder(dir, newHome)
	if err != nil {
		return archive.Stats{}, err
	}
	defer to.Close()
	return fill(to)
}

// unpack makes in a folder what an archive says, which is read to its end.
func unpack(home, to *os.File, from io.Reader, o archive.Options) (archive.Stats, error) {
	if err := archive.CopyAttributes(home, to); err != nil { // for an archive that does not say
		return archive.Stats{}, err
	}
	stats, err := archive.Extract(context.Background(), tar.NewReader(from), to, o)
	if err != nil {
		return stats, err
	}
	_, err = io.Copy(io.Discard, from) // to the end that sandboxd says, or it is cut off
	return stats, err
}

// settle finishes a replace that was cut off, or removes what is left of it when its new home is not complete, and says whether it has
// finished one. A sandbox may have put anything there: a folder that looks as if it were complete, but could not be finished, is set
// aside, since it may hold the only copy of something.
func settle(home *os.File) (finished bool, err error) {
	dir, err := openFolder(home, staging)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, removeStaging(home) // it is no folder, so not ours
	}
	defer dir.Close()
	if !marked(dir) {
		if exists(dir, moved) {
			return true, tidy(home, dir)
		}
		return false, removeStaging(home)
	}
	can, err := canFinish(home, dir)
	switch {
	case err != nil:
		return false, err
	case !can:
		return false, setAside(home)
	}
	return true, finish(home)
}

// settleWhole settles a home that cannot be read otherwise: neither the old nor the new one is there.
func settleWhole(home *os.File) (err error) {
	if unsettled(home) {
		_, err = settle(home)
	}
	return err
}

// unsettled says whether a replace was cut off when its new home was complete: neither the old nor the new one can be read then.
func unsettled(home *os.File) bool {
	dir, err := openFolder(home, staging)
	if err != nil {
		return false
	}
	defer dir.Close()
	return marked(dir)
}

// marked says of the staging folder whether the new home in it is complete.
func marked(dir *os.File) bool {
	return exists(dir, newHome) && (exists(dir, movingOut) || exists(dir, movingIn))
}

// canFinish says whether nothing is in the way of finish.
func canFinish(home, dir *os.File) (bool, error) {
	out, in := exists(dir, movingOut), exists(dir, movingIn)
	if out == in || exists(dir, moved) || isFolder(dir, movingOut) || isFolder(dir, movingIn) || !isFolder(dir, newHome) || exists(dir, oldHome) && !isFolder(dir, oldHome) {
		return false, nil
	}
	if in {
		return apart(dir, newHome, home)
	}
	if !exists(dir, oldHome) {
		return true, nil
	}
	return apart(dir, oldHome, home)
}

// apart says whether a folder in dir and the home have no name in common.
func apart(dir *os.File, name string, home *os.File) (bool, error) {
	folder, err := openFolder(dir, name)
	if err != nil {
		return false, err
	}
	defer folder.Close()
	for {
		names, err := folder.Readdirnames(namesAtOnce)
		for _, name := range names {
			if exists(home, name) {
				return false, nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, err
		}
	}
}

// setAside gives the staging folder another name in the home.
func setAside(home *os.File) error {
	for i := 1; ; i++ {
		err := unix.Renameat2(int(home.Fd()), staging, int(home.Fd()), fmt.Sprint(staging, "-", i), unix.RENAME_NOREPLACE)
		if err != unix.EEXIST {
			return err
		}
	}
}

// finish moves the old home out and the new one in. It may be repeated.
func finish(home *os.File) error {
	dir, err := openFolder(home, staging)
	if err != nil {
		return err
	}
	defer dir.Close()
	if exists(dir, movingOut) {
		if err := unix.Mkdirat(int(dir.Fd()), oldHome, 0o700); err != nil && err != unix.EEXIST {
			return err
		}
		old, err := openFolder(dir, oldHome)
		if err != nil {
			return err
		}
		defer old.Close()
		if err := moveAll(home, old, staging); err != nil {
			return err
		}
		if err := inTurn(
			func() error { return syncAll(home) },
			func() error { return unix.Renameat(int(dir.Fd()), movingOut, int(dir.Fd()), movingIn) },
			dir.Sync,
		); err != nil {
			return err
		}
	}
	from, err := openFolder(dir, newHome)
	if err != nil {
		return err
	}
	defer from.Close()
	return inTurn(
		func() error { return moveAll(from, home, "") },
		func() error { return archive.CopyAttributes(from, home) },
		func() error { return syncAll(home) },
		func() error { return unix.Renameat(int(dir.Fd()), movingIn, int(dir.Fd()), moved) },
		dir.Sync,
		func() error { return tidy(home, dir) },
	)
}

// tidy removes what is left of a replace that is done, its mark at the end. It may be repeated.
func tidy(home, dir *os.File) error {
	var mark unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), moved, &mark, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	return inTurn(
		func() error { return removeTree(dir, oldHome) },
		func() error { return removeStaging(home) },
		func() error { return setTime(home, mark.Mtim) },
	)
}

// moveAll moves all that is in a folder, but what has the name except, to another one.
func moveAll(from, to *os.File, except string) error {
	list, err := openFolder(from, ".")
	if err != nil {
		return err
	}
	defer list.Close()
	names, err := list.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == except {
			continue
		}
		if err := unix.Renameat2(int(from.Fd()), name, int(to.Fd()), name, unix.RENAME_NOREPLACE); err != nil {
			return fmt.Errorf("move %q: %w", name, err)
		}
	}
	return nil
}

// mark says on the disk that the new home is complete.
func mark(home *os.File) error {
	dir, err := openFolder(home, staging)
	if err != nil {
		return err
	}
	defer dir.Close()
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), newHome, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	fd, err := unix.Openat(int(dir.Fd()), movingOut+".part", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), movingOut)
	defer f.Close()
	return inTurn(
		func() error { return setTime(f, st.Mtim) },
		f.Sync,
		func() error { return unix.Renameat(int(dir.Fd()), movingOut+".part", int(dir.Fd()), movingOut) },
		dir.Sync, home.Sync,
	)
}

func setTime(f *os.File, t unix.Timespec) error {
	return unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprint("/proc/self/fd/", f.Fd()), []unix.Timespec{{Nsec: unix.UTIME_OMIT}, t}, 0)
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

func removeStaging(home *os.File) error { return removeTree(home, staging) }

func exists(dir *os.File, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

func isFolder(dir *os.File, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

func openFolder(in *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(in.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// makeFolder makes one that only root may enter, and opens it.
func makeFolder(in *os.File, name string) (*os.File, error) {
	if err := unix.Mkdirat(int(in.Fd()), name, 0o700); err != nil {
		return nil, &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	return openFolder(in, name)
}

func syncAll(home *os.File) error { return unix.Syncfs(int(home.Fd())) }
