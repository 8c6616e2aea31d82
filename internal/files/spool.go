package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/klauspost/compress/flate"

	"sandboxd/internal/fault"
)

// Bounds of spools: what one keeps in memory, what one keeps on the disk, and what all of them together do. Of that nobody's
// sandboxes have more than a part, so that those of others find room.
const (
	spoolMemory = 1 << 20
	spoolMost   = 128 << 20
	spoolsMost  = 1 << 30
	spoolOwners = 4 // who take their parts fill it
)

// spools is where spools keep what does not fit in memory: a folder on a disk, of which they take so much and no more. Safe for
// concurrent use.
type spools struct {
	folder string // "" for the system's own for temporary files, which may be memory
	most   int64  // of all together

	mu     sync.Mutex
	taken  int64
	shares map[string]int64 // of it, by owner
}

// take reserves bytes of the disk for an owner.
func (s *spools) take(owner string, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shares[owner]+n > s.most/spoolOwners {
		return fault.New(fault.Limited, "Too many large ZIP files of this owner's sandboxes are being made. Try again when they are ready, or ask for tar.")
	}
	if s.taken+n > s.most {
		return fault.New(fault.Limited, "Too many large ZIP files are being made. Try again when they are ready, or ask for tar.")
	}
	if s.shares == nil {
		s.shares = map[string]int64{}
	}
	s.taken += n
	s.shares[owner] += n
	return nil
}

func (s *spools) give(owner string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	if s.shares[owner] -= n; s.shares[owner] == 0 {
		delete(s.shares, owner)
	}
}

// open makes a file without a name, which lives as long as it is open.
func (s *spools) open() (*os.File, error) {
	if s.folder != "" {
		if err := os.MkdirAll(s.folder, 0o700); err != nil {
			return nil, fmt.Errorf("make the folder for temporary files: %w", err)
		}
	}
	f, err := os.CreateTemp(s.folder, "sandboxd-zip-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("remove the name of a temporary file: %w", err), f.Close())
	}
	return f, nil
}

// spool keeps bytes until they are copied out: the first megabyte in memory, all of them compressed in a file once there are
// more. close must be called.
type spool struct {
	of     *spools
	owner  string // of the sandbox
	memory bytes.Buffer
	file   *os.File
	packed *flate.Writer // to the file
	size   int64         // of the file
}

// Write keeps p.
func (s *spool) Write(p []byte) (int, error) {
	if s.memory.Len()+len(p) > spoolMemory {
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	return s.memory.Write(p)
}

// spill moves the content from memory to the file.
func (s *spool) spill() error {
	if s.file == nil {
		f, err := s.of.open()
		if err != nil {
			return err
		}
		s.file = f
		if s.packed, err = flate.NewWriter(onDisk{s}, flate.BestSpeed); err != nil {
			return fmt.Errorf("make a compressor: %w", err)
		}
	}
	_, err := s.memory.WriteTo(s.packed)
	return err
}

// onDisk is the file of a spool.
type onDisk struct{ s *spool }

// Write implements io.Writer.
func (d onDisk) Write(p []byte) (int, error) {
	n := int64(len(p))
	if d.s.size+n > spoolMost {
		return 0, fault.New(fault.TooLarge, "The archive has too many entries for a ZIP file. Ask for tar.")
	}
	if err := d.s.of.take(d.s.owner, n); err != nil {
		return 0, err
	}
	d.s.size += n
	return d.s.file.Write(p)
}

// copyTo writes everything that was kept to w. Nothing more can be kept then.
func (s *spool) copyTo(w io.Writer) error {
	if s.file != nil {
		if err := s.packed.Close(); err != nil {
			return err
		}
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(w, flate.NewReader(struct{ io.Reader }{s.file})); err != nil {
			return err
		}
	}
	_, err := w.Write(s.memory.Bytes())
	return err
}

// close forgets everything.
func (s *spool) close() error {
	s.memory.Reset()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.of.give(s.owner, s.size)
	s.size = 0
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
