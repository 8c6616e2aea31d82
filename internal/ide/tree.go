package ide

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
)

// Bounds of a version's tree: several times today's size.
const (
	maxEntries = 20_000
	maxBytes   = 2 << 30
)

// Everything but a version begins with a dot, which no version does.
const (
	lockFile  = ".lock"
	newPrefix = ".new-"
	oldPrefix = ".old-"
)

// tree is the folder of the versions. Several processes may work on one.
type tree struct{ folder string }

// has tells whether a version is there: as a whole, since it gets its name last.
func (t tree) has(version string) bool {
	info, err := os.Lstat(filepath.Join(t.folder, version))
	return version != "" && err == nil && info.IsDir()
}

// versions lists those that are there, the newest first.
func (t tree) versions() ([]string, error) {
	entries, err := os.ReadDir(t.folder)
	if err != nil {
		return nil, fmt.Errorf("list versions of VS Code: %w", err)
	}
	made := map[string]time.Time{}
	var names []string
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names, made[e.Name()] = append(names, e.Name()), info.ModTime()
		}
	}
	slices.SortFunc(names, func(a, b string) int { return made[b].Compare(made[a]) })
	return names, nil
}

// put makes a version of what from hands to its take: an archive with one folder. It is there as a whole at the end, or not
// at all. Kinds: Unavailable (no space).
func (t tree) put(version string, from func(take func(io.Reader) error) error) (err error) {
	unlock, err := t.lock(false)
	if err != nil {
		return err
	}
	defer unlock()
	next, err := os.MkdirTemp(t.folder, newPrefix)
	if err != nil {
		return full(fmt.Errorf("make room for VS Code: %w", err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(next)) }()
	if err := from(func(r io.Reader) error { return extract(next, r) }); err != nil {
		return full(err)
	}
	if err := settle(next); err != nil {
		return full(err)
	}
	if err := os.Rename(next, filepath.Join(t.folder, version)); err != nil && !t.has(version) {
		return full(fmt.Errorf("keep VS Code: %w", err))
	}
	return nil
}

// full tells apart that the disk is.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.Wrap(err, fault.Unavailable, "There is no space left for VS Code in the data folder: it takes some 210 MiB.")
	}
	return err
}

// settle gives the folder its rights and has everything in it on the disk, so that not even a power cut leaves half of it under
// its name.
func settle(folder string) error {
	if err := os.Chmod(folder, 0o755); err != nil {
		return fmt.Errorf("keep VS Code: %w", err)
	}
	f, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("keep VS Code: %w", err)
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("keep VS Code: %w", err)
	}
	return nil
}

// remove takes a version away in one step, and its files after that.
func (t tree) remove(version string) error {
	old := filepath.Join(t.folder, oldPrefix+version)
	if err := os.Rename(filepath.Join(t.folder, version), old); err != nil {
		return fmt.Errorf("remove a version of VS Code: %w", err)
	}
	return os.RemoveAll(old)
}

// clean removes what broke off. It does nothing while another process works there.
func (t tree) clean() error {
	unlock, err := t.lock(true)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	entries, err := os.ReadDir(t.folder)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newPrefix) || strings.HasPrefix(e.Name(), oldPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(t.folder, e.Name())))
		}
	}
	return err
}

// lock keeps others from making and cleaning until unlock; one that tries does not wait for them.
func (t tree) lock(try bool) (unlock func(), err error) {
	if err := os.MkdirAll(t.folder, 0o755); err != nil {
		return nil, full(fmt.Errorf("make the folder of VS Code: %w", err))
	}
	f, err := os.OpenFile(filepath.Join(t.folder, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, full(fmt.Errorf("lock the folder of VS Code: %w", err))
	}
	how := syscall.LOCK_EX
	if try {
		how |= syscall.LOCK_NB
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock the folder of VS Code: %w", err)
	}
	return func() { f.Close() }, nil
}

// errArchive says that an archive is not what it should be.
var errArchive = fault.New(fault.Internal, "The image of VS Code is not what it should be.")

// extract puts the contents of an archive's one folder into folder, and writes nowhere else.
func extract(folder string, r io.Reader) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("open %s: %w", folder, err)
	}
	defer root.Close()
	archive, left, entries := tar.NewReader(r), int64(maxBytes), 0
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		left, entries = left-h.Size, entries+1
		top, name, _ := strings.Cut(path.Clean(h.Name), "/")
		if entries > maxEntries || left < 0 || h.Size < 0 || "/"+top != imageFolder || name != "" && !fs.ValidPath(name) {
			return fmt.Errorf("%w (%d entries, up to %q)", errArchive, entries, h.Name)
		}
		if name == "" {
			continue // the folder itself
		}
		if err := extractOne(root, name, h, archive); err != nil {
			return fmt.Errorf("take out %q: %w", h.Name, err)
		}
	}
}

// extractOne makes one file, folder or link. Whatever the archive says, nothing is setuid and only the owner can write.
func extractOne(root *os.Root, name string, h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		if path.IsAbs(h.Linkname) || !fs.ValidPath(path.Join(path.Dir(name), h.Linkname)) {
			return errArchive
		}
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		mode := fs.FileMode(0o644)
		if h.Mode&0o100 != 0 {
			mode = 0o755
		}
		return write(root, name, mode, h.Size, content)
	}
	return errArchive
}

func write(root *os.Root, name string, mode fs.FileMode, size int64, content io.Reader) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(content, size))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	return errors.Join(err, f.Chmod(mode), f.Close())
}
