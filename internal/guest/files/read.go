package files

import (
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// pieceSize is how much of a file is in the guest's memory: what one stream may have under way, and so enough.
const pieceSize = 256 << 10

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// read answers with the file's entry, how many bytes follow, and these.
func (q *ask) read() error {
	p, err := q.path("path")
	if err != nil {
		return err
	}
	offset, err := q.number("offset", 10)
	if err != nil {
		return err
	}
	length, err := q.number("length", 10)
	if err != nil {
		return err
	}
	fd := -1
	var e wire.Entry
	err = q.tree.act(q.Context(), func(a *actor) error {
		fd, e, err = a.open(p)
		return err
	})
	if err != nil {
		return about(p, err)
	}
	defer unix.Close(fd)
	if offset < 0 {
		offset = max(e.Size+offset, 0)
	}
	left := max(e.Size-offset, 0)
	if length >= 0 {
		left = min(left, length)
	}
	q.reply.record(wire.RecordEntry, wire.AppendEntry(nil, &e))
	if err := q.reply.bare(wire.AppendNumbers(nil, left)); err != nil {
		return err
	}
	return q.pour(fd, offset, left)
}

// open opens a file for reading.
func (a *actor) open(p string) (fd int, e wire.Entry, err error) {
	s, err := a.find(p, true)
	if err != nil {
		return -1, e, err
	}
	defer s.walk.close()
	if s.name == "" {
		return -1, e, errFolder
	}
	var st unix.Stat_t
	if fd, err = openFile(s.walk.fd(), s.name, &st); err != nil {
		return -1, e, err
	}
	e = a.viewer().of(s.name, &st)
	e.Modified = time.Unix(st.Mtim.Unix())
	return fd, e, nil
}

// pour sends left bytes of a file from offset on. Bytes that the file gains are not sent; a loss breaks the stream.
func (q *ask) pour(fd int, offset, left int64) error {
	buf := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(buf)
	for left > 0 {
		n := 0
		want := buf[:min(left, pieceSize)]
		if err := seat(q.Context(), q.tree.brief); err != nil {
			return err
		}
		err := again(func() (err error) { n, err = unix.Pread(fd, want, offset); return err })
		<-q.tree.brief
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if _, err := q.reply.w.Write(want[:n]); err != nil {
			return nil // the request has ended
		}
		offset, left = offset+int64(n), left-int64(n)
	}
	return nil
}
