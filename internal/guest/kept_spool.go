package guest

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// Bounds of a spool.
const (
	spoolMemory = 256 << 10          // what waits for a reader is in memory first
	spoolFile   = wire.MaxKeptOutput // and then in a file
	spoolRetry  = 5 * time.Second    // between two attempts to write to a disk that is full
)

var (
	errSpoolOver = errors.New("the output is not wanted any more")
	errForgotten = errors.New("that part of the output is forgotten")
)

// spool keeps what a program writes until it is told to forget it. Each byte has an offset, counted from the first one that was
// ever written. A writer waits while there is no room; nothing is lost. One writes, one reads, and anybody forgets.
//
// The oldest bytes are in a file that has no name, at their offset modulo its size; the newest are in memory. A reader that
// keeps up costs no disk at all.
type spool struct {
	folders []string // where the file may be
	memory  int      // bound of buf
	file    int64    // bound of the file

	mu      sync.Mutex // also held across what is done to the file: it is a local one, and all three have to agree on it
	first   int64      // bytes before it are forgotten
	split   int64      // bytes before it are in the file
	buf     []byte     // those from it on
	disk    *os.File   // nil while none was needed
	changed chan struct{}
	over    bool
}

func newSpool(folders ...string) *spool {
	return &spool{folders: folders, memory: spoolMemory, file: spoolFile, changed: make(chan struct{})}
}

// last needs mu.
func (s *spool) last() int64 { return s.split + int64(len(s.buf)) }

// bounds gives the first offset that is kept and the one behind the last.
func (s *spool) bounds() (first, last int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first, s.last()
}

// wake tells all who wait that something has changed. It needs mu.
func (s *spool) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Write keeps p, and waits for room. It fails only when the spool is closed.
func (s *spool) Write(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		k, wait, err := s.put(p[n:])
		if err != nil {
			return n, err
		}
		n += k
		if wait != nil {
			t := time.NewTimer(spoolRetry)
			select {
			case <-wait:
			case <-t.C:
			}
			t.Stop()
		}
	}
	return n, nil
}

// put keeps some of p. wait is closed when there may be room for more.
func (s *spool) put(p []byte) (n int, wait <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return 0, nil, errSpoolOver
	}
	if len(s.buf)+len(p) > s.memory {
		s.spill()
	}
	n = min(len(p), s.memory-len(s.buf))
	if n == 0 {
		return 0, s.changed, nil
	}
	s.buf = append(s.buf, p[:n]...)
	s.wake()
	return n, nil, nil
}

// spill moves bytes from memory to the file, as many as it takes. What cannot be written stays where it is. It needs mu.
func (s *spool) spill() {
	n := min(int64(len(s.buf)), s.file-(s.split-s.first))
	if n <= 0 || !s.open() {
		return
	}
	for n > 0 {
		at := s.split % s.file
		k, err := s.disk.WriteAt(s.buf[:min(n, s.file-at)], at)
		s.buf = s.buf[:copy(s.buf, s.buf[k:])]
		s.split += int64(k)
		n -= int64(k)
		if err != nil {
			return
		}
	}
}

// open makes the file when there is none, and reports whether there is one then. It needs mu.
func (s *spool) open() bool {
	for _, folder := range s.folders {
		if s.disk != nil {
			break
		}
		s.disk = unnamedFile(folder)
	}
	return s.disk != nil
}

// unnamedFile makes a file without a name on the disk of that folder; nil when that cannot be.
func unnamedFile(folder string) *os.File {
	fd, err := unix.Open(folder, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), filepath.Join(folder, "output"))
	}
	f, err := os.CreateTemp(folder, ".sandboxd-*")
	if err != nil {
		return nil
	}
	os.Remove(f.Name()) // it is used by its descriptor; at worst an empty-looking file is left
	return f
}

// readAt copies bytes from an offset on. It gives 0 when there are none yet.
func (s *spool) readAt(at int64, p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return 0, errSpoolOver
	case at < s.first:
		return 0, errForgotten
	case at >= s.split:
		return copy(p, s.buf[min(at-s.split, int64(len(s.buf))):]), nil
	}
	from := at % s.file
	n := min(int64(len(p)), s.split-at, s.file-from)
	k, err := s.disk.ReadAt(p[:n], from)
	if k > 0 {
		err = nil
	}
	return k, err
}

// beyond gives a channel that is closed when something changes, or at once when there are bytes from an offset on.
func (s *spool) beyond(at int64) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || at < s.last() {
		return already
	}
	return s.changed
}

// forget lets go of all before an offset; what is not written yet cannot be.
func (s *spool) forget(before int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before > s.last() {
		return false
	}
	if before <= s.first || s.over {
		return true
	}
	s.first = before
	if s.first >= s.split {
		s.buf = s.buf[:copy(s.buf, s.buf[s.first-s.split:])]
		s.split = s.first
		s.empty()
	}
	s.wake()
	return true
}

// empty gives back what the file and the memory hold, when nothing is in them. It needs mu.
func (s *spool) empty() {
	if len(s.buf) == 0 {
		s.buf = nil
	}
	if s.disk != nil {
		s.disk.Close()
		s.disk = nil
	}
}

// close gives everything up. Who waits is told.
func (s *spool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over, s.buf = true, nil
	s.empty()
	s.wake()
}
