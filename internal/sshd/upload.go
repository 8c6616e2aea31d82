package sshd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/pkg/sftp"

	"sandboxd/internal/wire"
)

// Bounds of a file that is being written.
const (
	// maxAhead and maxPieces are how much may be held of what comes before its turn: a client sends many pieces at once, which
	// are taken in any order. More means that what is missing will not come.
	maxAhead  = 8 << 20
	maxPieces = 1024
	maxHole   = 1 << 30 // zeros that are written for what a client leaves out
)

const errHole = refusal("the file would have a hole of more than 1 GiB, which cannot be made over SFTP")

// upload is a file that is being written. A sandbox takes a file as one stream, from its beginning to its end, and puts it
// in place as a whole; SFTP writes pieces anywhere. So pieces are put in order, what they leave out is filled with what was
// there (or with zeros), and a piece before what has been sent puts the file in place and begins anew over it.
type upload struct {
	*folder
	put    wire.FilePut
	append bool // every piece goes to the end
	leave  func()

	mu sync.Mutex
	extent
	ahead
	attributes
	out *stream
	err error // the first; everything fails with it from then on
}

// extent is how far a file has come.
type extent struct {
	since time.Time
	was   int64 // how much is kept of the file that is there
	at    int64 // up to where the stream is filled
	size  int64 // what the file is to have
	begun bool  // something is to be put in place
}

// attributes are to be set when the file is in place.
type attributes struct {
	mode     *uint32
	modified *time.Time
}

// ahead are pieces whose turn has not come, in order.
type ahead struct {
	pieces []piece
	held   int // bytes of memory
}

type piece struct {
	at   int64
	data []byte
}

func (p piece) end() int64 { return p.at + int64(len(p.data)) }

// cost is the memory that data holds: the whole of the request that it came in.
func cost(data []byte) int {
	const more = 256 // of what manages it
	return cap(data) + more
}

// place gives where a piece belongs, if it overlaps no other.
func (a *ahead) place(p piece) (i int, ok bool) {
	i, _ = slices.BinarySearchFunc(a.pieces, p, func(a, b piece) int { return int(min(max(a.at-b.at, -1), 1)) })
	return i, (i == len(a.pieces) || a.pieces[i].at >= p.end()) && (i == 0 || a.pieces[i-1].end() <= p.at)
}

// insert takes a piece that overlaps no other.
func (a *ahead) insert(p piece) {
	i, _ := a.place(p)
	a.pieces, a.held = slices.Insert(a.pieces, i, p), a.held+cost(p.data)
}

// pop takes the first piece away.
func (a *ahead) pop() piece {
	p := a.pieces[0]
	a.pieces, a.held = slices.Delete(a.pieces, 0, 1), a.held-cost(p.data)
	return p
}

func (a *ahead) full() bool { return a.held > maxAhead || len(a.pieces) > maxPieces }

// maxQueued is how many pieces wait for the sandbox to take them: so the client is told at once that it may send more.
const maxQueued = 32

// stream is one pass of the file into the sandbox, which reads it. Everything but Read belongs to who holds the upload's mu.
type stream struct {
	queue chan []byte
	now   []byte        // what is left of the piece that is being read
	gone  chan struct{} // closed when the upload is given up
	done  chan struct{} // closed when the sandbox has taken it, or not
	err   error         // once done
	give  func(n int)   // gives memory back
	held  int           // of the piece that is being read
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.now) == 0 {
		select {
		case <-s.gone:
			return 0, io.ErrUnexpectedEOF
		default:
		}
		select {
		case <-s.gone:
			return 0, io.ErrUnexpectedEOF
		case next, more := <-s.queue:
			s.give(s.held)
			s.now, s.held = next, 0
			if !more {
				return 0, io.EOF
			}
			s.held = cost(next)
		}
	}
	n := copy(p, s.now)
	s.now = s.now[n:]
	return n, nil
}

// drop forgets what is queued, which nobody takes any more.
func (s *stream) drop() {
	for {
		select {
		case data, more := <-s.queue:
			if !more {
				return
			}
			s.give(cost(data))
		default:
			return
		}
	}
}

// put queues a piece, which nobody may change any more, and reports whether the sandbox takes it.
func (s *stream) put(data []byte) bool {
	select {
	case <-s.done:
		return false
	default:
	}
	select {
	case s.queue <- data:
		return true
	case <-s.done:
		return false
	}
}

func newUpload(f *folder, path string) *upload {
	return &upload{folder: f, put: wire.FilePut{Path: path, Size: -1}, leave: func() {}, extent: extent{since: time.Now()}}
}

// WriteAt implements io.WriterAt. It may keep p, which the library does not use again.
func (u *upload) WriteAt(p []byte, at int64) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.write(p, at)
}

func (u *upload) write(p []byte, at int64) (int, error) {
	if u.err != nil {
		return 0, told(u.err)
	}
	if u.append {
		at = u.size
	}
	if at < 0 || at+int64(len(p)) < at {
		return 0, sftp.ErrSSHFxBadMessage
	}
	if len(p) == 0 {
		return 0, nil
	}
	if _, ok := u.place(piece{at, p}); at < u.at || !ok {
		if err := u.finish(); err != nil { // and go over it again
			return 0, told(err)
		}
	}
	u.begun, u.size = true, max(u.size, at+int64(len(p)))
	if err := u.take(piece{at, p}); err != nil {
		return 0, told(err)
	}
	for len(u.pieces) > 0 && (u.pieces[0].at == u.at || u.full()) {
		if err := u.next(); err != nil {
			return 0, told(err)
		}
	}
	return len(p), nil
}

// take sends a piece when it is its turn, and holds it until then. When there is no memory for that, what is missing before it
// is taken not to come.
func (u *upload) take(p piece) error {
	if p.at > u.at && u.memory.take(early, cost(p.data)) {
		u.insert(p)
		return nil
	}
	for len(u.pieces) > 0 && u.pieces[0].at < p.at {
		if err := u.next(); err != nil {
			return err
		}
	}
	if err := u.fill(p.at); err != nil {
		return err
	}
	return u.send(p.data)
}

// next sends the first piece that is held, and what is missing before it.
func (u *upload) next() error {
	if err := u.fill(u.pieces[0].at); err != nil {
		return err
	}
	data := u.pop().data
	err := u.send(data)
	u.memory.give(early, cost(data))
	return err
}

// send adds to the stream, which begins with it. Nobody may change data any more.
func (u *upload) send(data []byte) error {
	if u.out == nil {
		if err := u.begin(); err != nil {
			return u.fail(err)
		}
	}
	if err := u.memory.await(u.ctx, cost(data)); err != nil {
		return u.fail(err)
	}
	if !u.out.put(data) {
		u.memory.give(flowing, cost(data))
		return u.fail(cmp.Or(u.out.err, io.ErrUnexpectedEOF))
	}
	u.at += int64(len(data))
	return nil
}

func (u *upload) fail(err error) error {
	if u.err == nil {
		u.err = err
	}
	u.memory.give(early, u.held)
	u.ahead = ahead{}
	if u.out != nil {
		select {
		case <-u.out.done:
			u.out.drop()
		default: // it is dropped when it is closed
		}
	}
	return u.err
}

// begin opens a stream.
func (u *upload) begin() error {
	files, err := u.files()
	if err != nil {
		return err
	}
	s := &stream{queue: make(chan []byte, maxQueued), gone: make(chan struct{}), done: make(chan struct{})}
	s.give = func(n int) { u.memory.give(flowing, n) }
	put := u.put
	u.running.Go(func() {
		defer close(s.done)
		_, s.err = files.Write(u.ctx, u.handle, put, s)
		s.give(s.held)
		s.drop()
	})
	u.out = s
	return nil
}

// fill sends what was there, and zeros behind that, up to to.
func (u *upload) fill(to int64) error {
	if to <= u.at {
		return nil
	}
	if to-max(u.at, u.was) > maxHole {
		return u.fail(errHole)
	}
	if err := u.keep(min(to, u.was)); err != nil {
		return err
	}
	zeros := make([]byte, min(to-u.at, pieceSize))
	for u.at < to {
		if err := u.send(zeros[:min(int64(len(zeros)), to-u.at)]); err != nil {
			return err
		}
	}
	return nil
}

// keep sends of the file that is there what lies before to.
func (u *upload) keep(to int64) error {
	if to <= u.at {
		return nil
	}
	files, err := u.files()
	if err != nil {
		return u.fail(err)
	}
	old, err := files.Read(u.ctx, u.handle, u.put.Path, u.at, to-u.at)
	if err != nil {
		return u.fail(err)
	}
	defer old.Close()
	for u.at < to {
		buf := make([]byte, pieceSize)
		n, err := old.Read(buf)
		if n > 0 {
			if err := u.send(buf[:min(int64(n), to-u.at)]); err != nil {
				return err
			}
		}
		if err != nil && u.at < to {
			return u.fail(fmt.Errorf("read what was there: %w", err))
		}
	}
	return nil
}

// finish puts in place what has been written, if anything has.
func (u *upload) finish() error {
	if u.err != nil || !u.begun {
		return u.err
	}
	for len(u.pieces) > 0 {
		if err := u.next(); err != nil {
			return err
		}
	}
	if err := u.fill(u.size); err != nil {
		return err
	}
	if u.out == nil { // an empty file is a stream too
		if err := u.begin(); err != nil {
			return u.fail(err)
		}
	}
	close(u.out.queue)
	<-u.out.done
	u.out.drop() // there is some when a sandbox says that it has all before it has
	if u.out.err != nil {
		return u.fail(u.out.err)
	}
	u.was, u.at, u.begun, u.out = u.size, 0, false, nil
	u.put.IfNone, u.put.Mode = false, 0
	return nil
}

// truncate cuts the file, or makes it longer.
func (u *upload) truncate(size int64) error {
	if size < 0 {
		return sftp.ErrSSHFxBadMessage
	}
	if err := u.finish(); err != nil {
		return err
	}
	u.was, u.size, u.begun = min(u.was, size), size, true
	return nil
}

// TransferError implements sftp.TransferError: the client is gone, and what it has not finished is not put in place.
func (u *upload) TransferError(error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	_ = u.fail(io.ErrUnexpectedEOF)
}

// Close implements io.Closer: it puts the file in place.
func (u *upload) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	defer u.leave()
	err := u.finish()
	if u.out != nil { // it has failed
		close(u.out.gone)
		<-u.out.done
		u.out.drop()
		u.out = nil
	}
	if err == nil {
		err = u.dress()
	}
	_ = u.fail(refusal("the file is closed"))
	return told(err)
}

// dress sets what was asked for while the file was not in place.
func (u *upload) dress() error {
	files, err := u.files()
	if err == nil && u.mode != nil {
		err = files.Chmod(u.ctx, u.handle, u.put.Path, *u.mode)
	}
	if err == nil && u.modified != nil {
		err = files.Touch(u.ctx, u.handle, u.put.Path, *u.modified)
	}
	return err
}
