package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

const (
	suffix     = ".tar.zst"
	partSuffix = ".part" // of what is being written
	uploadName = "upload-*" + partSuffix
)

// What is left free on the disk of the folder: the database may be there too.
const (
	spareBytes = 1 << 30
	spareShare = 20 // a twentieth of the disk, if that is less
	growStep   = 16 << 20
)

func (c *Config) fileOf(id string) string { return filepath.Join(c.Folder, id+suffix) }
func (c *Config) partOf(id string) string { return c.fileOf(id) + partSuffix }

// readFolder finds the backups that there are.
func (s *Service) readFolder() error {
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return fault.Wrap(err, fault.Unavailable, "The folder of the backups cannot be made: %v.", err)
	}
	found, err := os.ReadDir(s.Folder)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "The folder of the backups cannot be read: %v.", err)
	}
	for _, f := range found {
		name := f.Name()
		if strings.HasSuffix(name, partSuffix) {
			if err := os.Remove(filepath.Join(s.Folder, name)); err != nil {
				s.Log.Warn("unfinished backup cannot be removed", "file", name, "error", err)
			}
			continue
		}
		if e, err := s.readOne(name); err != nil {
			s.Log.Warn("file is no backup", "file", filepath.Join(s.Folder, name), "error", err)
		} else {
			s.all[e.ID], s.used[e.Owner] = e, s.used[e.Owner]+e.Size
		}
	}
	return nil
}

// readOne reads the manifest of a backup.
func (s *Service) readOne(name string) (*entry, error) {
	f, err := os.Open(filepath.Join(s.Folder, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	m, err := manifestIn(f)
	if err != nil {
		return nil, err
	}
	if m == nil || m.ID+suffix != name {
		return nil, errors.New("it has another name or no manifest")
	}
	if _, sealed, err := readSeal(f, info.Size()); err != nil || !sealed {
		return nil, errors.Join(err, errors.New("its end is missing"))
	}
	e := s.readyEntry(m)
	e.Size = info.Size()
	return e, nil
}

// grow is asked before n more bytes of a backup are written. It is Unavailable or TooLarge when they should not be.
func (s *Service) grow(e *entry, n int64) error {
	if e.Size/growStep != (e.Size+n)/growStep || e.Size == 0 {
		if err := s.roomFor(n); err != nil {
			return err
		}
	}
	return s.charge(e, n)
}

// charge counts n more bytes of a backup, or fewer, as its owner's. TooLarge when there may not be so many.
func (s *Service) charge(e *entry, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 && s.Quota > 0 && s.used[e.Owner]+n > s.Quota {
		return fault.New(fault.TooLarge, "The backups of one owner may take %s in all. Delete some that are not needed.", text.Size(s.Quota))
	}
	s.used[e.Owner] += n
	e.Size += n
	return nil
}

// roomFor is Unavailable when the disk would be too full with n more bytes.
func (s *Service) roomFor(n int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(s.Folder, &st); err != nil {
		return s.unwritable(err)
	}
	free, total := int64(st.Bavail)*st.Bsize, int64(st.Blocks)*st.Bsize
	if free-n < min(spareBytes, total/spareShare) {
		return s.unwritable(unix.ENOSPC)
	}
	return nil
}

// unwritable says why the folder cannot be written to.
func (s *Service) unwritable(err error) error {
	var known *fault.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fault.Wrap(err, fault.Unavailable, "There is not enough room on the disk of the backups. Delete some, or make room.")
	}
	return fault.Wrap(err, fault.Unavailable, "The folder of the backups cannot be written to: %s.", text.Excerpt(err.Error(), 200))
}

// bounded is a file that asks before it grows.
type bounded struct {
	file *os.File
	may  func(n int64) error
	fail func(error) error // says what an error means
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if err := b.may(int64(len(p))); err != nil {
		return 0, err
	}
	n, err := b.file.Write(p)
	return n, b.fail(err)
}

// WriteAt implements io.WriterAt, for places that were passed over.
func (b *bounded) WriteAt(p []byte, at int64) (int, error) {
	if err := b.may(int64(len(p))); err != nil {
		return 0, err
	}
	n, err := b.file.WriteAt(p, at)
	return n, b.fail(err)
}

// Seek implements io.Seeker.
func (b *bounded) Seek(offset int64, whence int) (int64, error) { return b.file.Seek(offset, whence) }

// expires says how long a backup is kept that was made at a time, for a schedule or for none.
func (c *Config) expires(made time.Time, schedule string) time.Time {
	if schedule != "" {
		return time.Time{}
	}
	return made.Add(c.Keep)
}

// dropExpired removes the backups that are too old. Those in a repository that cannot be reached are left for later.
func (s *Service) dropExpired(now time.Time) {
	for _, b := range s.List(func(b Backup) bool {
		return b.State == Ready && b.Unreachable == "" && !b.Expires.IsZero() && now.After(b.Expires)
	}) {
		if err := s.Delete(b.ID); err != nil && !fault.Is(err, fault.NotFound) {
			s.Log.Warn("old backup cannot be removed", "backup", b.ID, "sandbox", b.Sandbox, "error", err)
		}
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// syncFolder has a folder's names on the disk.
func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
