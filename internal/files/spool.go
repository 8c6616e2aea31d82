package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"sandboxd/internal/fault"
)

// Bounds of a spool: what it keeps in memory, and what it keeps at all.
const (
	spoolMemory = 1 << 20
	spoolMost   = 512 << 20
)

// spool keeps bytes until they are copied out: the first megabyte in memory, all in a file without a name once there are more.
// The zero value is empty. close must be called.
type spool struct {
	memory bytes.Buffer
	file   *os.File
	size   int64
}

// Write keeps p.
func (s *spool) Write(p []byte) (int, error) {
	if s.size += int64(len(p)); s.size > spoolMost {
		return 0, fault.New(fault.TooLarge, "The archive has too many entries for a ZIP file. Ask for tar.")
	}
	if s.memory.Len()+len(p) > spoolMemory {
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	return s.memory.Write(p)
}

// spill moves what is in memory to the file.
func (s *spool) spill() error {
	if s.file == nil {
		f, err := os.CreateTemp("", "sandboxd-zip-")
		if err != nil {
			return fmt.Errorf("make a temporary file: %w", err)
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil { // it lives as long as it is open
			return fmt.Errorf("remove the name of a temporary file: %w", err)
		}
	}
	_, err := s.memory.WriteTo(s.file)
	return err
}

// copyTo writes everything that was kept to w.
func (s *spool) copyTo(w io.Writer) error {
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(w, struct{ io.Reader }{s.file}); err != nil {
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
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
