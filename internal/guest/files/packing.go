package files

import (
	"archive/tar"
	"bufio"
	"context"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

var batchRooms = sync.Pool{New: func() any { return new([batchBytes]byte) }}

// read reads batches ahead, until there are no more.
func (p *packing) read() {
	for b := range p.todo {
		if p.ctx.Err() == nil {
			p.act(func(*actor) error { b.read(); return nil })
		}
		close(b.ready)
	}
}

// read looks at the batch's files, and reads the small ones.
func (b *batch) read() {
	for i := range b.things {
		if x := &b.things[i]; x.file && !b.readFile(x) {
			x.gone = true
		}
	}
}

func (b *batch) readFile(x *packed) bool {
	fd, err := openAt(b.folder.fd, x.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if unix.Fstat(fd, &x.st) != nil || !isFile(&x.st) {
		return false
	}
	if x.st.Size > smallFile || b.used+int(x.st.Size) > batchBytes {
		return true
	}
	if b.room == nil {
		b.room = batchRooms.Get().(*[batchBytes]byte)
	}
	x.small = b.room[b.used : b.used+int(x.st.Size)]
	b.used += len(x.small)
	if len(x.small) == 0 {
		x.small = b.room[:0]
		return true
	}
	n, err := io.ReadFull(reader(fd), x.small)
	clear(x.small[n:]) // zeros for the part that it has lost since the look, as tar does
	return err == nil || err == io.EOF || err == io.ErrUnexpectedEOF
}

// write writes the archive.
func (p *packing) write(out *bufio.Writer, view viewer) error {
	archive := tar.NewWriter(out)
	for b := range p.order {
		<-b.ready
		err := p.writeBatch(archive, view, b)
		b.end()
		if err != nil {
			return err
		}
	}
	if p.err != nil {
		return p.err
	}
	if err := p.ctx.Err(); err != nil {
		return context.Cause(p.ctx)
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return out.Flush()
}

func (p *packing) writeBatch(archive *tar.Writer, view viewer, b *batch) error {
	for i := range b.things {
		x := &b.things[i]
		switch {
		case x.gone:
			continue
		case x.file && x.small == nil:
			if err := p.writeLarge(archive, view, b, x); err != nil {
				return err
			}
			continue
		}
		if err := archive.WriteHeader(x.header(view)); err != nil {
			return err
		}
		if _, err := archive.Write(x.small); err != nil {
			return err
		}
	}
	return nil
}

// header is what the archive says of x.
func (x *packed) header(view viewer) *tar.Header {
	h := &tar.Header{
		Typeflag: tar.TypeSymlink, Name: x.as, Linkname: x.target, Mode: int64(x.st.Mode & wire.MaxFileMode), ModTime: time.Unix(x.st.Mtim.Sec, 0),
		Uid: int(x.st.Uid), Gid: int(x.st.Gid), Uname: nameOf(view.users, x.st.Uid), Gname: nameOf(view.groups, x.st.Gid),
	}
	switch {
	case x.file:
		h.Typeflag, h.Size = tar.TypeReg, x.st.Size
	case isFolder(&x.st):
		h.Typeflag = tar.TypeDir
	}
	return h
}

// writeLarge writes a file while it reads it. A part that it loses meanwhile becomes zeros, one that it gains is left out.
func (p *packing) writeLarge(archive *tar.Writer, view viewer, b *batch, x *packed) error {
	fd := -1
	err := p.act(func(*actor) (err error) {
		fd, err = openFile(b.folder.fd, x.name, &x.st)
		return err
	})
	if err != nil { // it is left out
		return p.ctx.Err()
	}
	defer unix.Close(fd)
	if err := archive.WriteHeader(x.header(view)); err != nil {
		return err
	}
	buf := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(buf)
	for left := x.st.Size; left > 0; {
		piece := buf[:min(left, pieceSize)]
		if err := seat(p.ctx, p.tree.brief); err != nil {
			return err
		}
		n, err := io.ReadFull(reader(fd), piece)
		<-p.tree.brief
		clear(piece[n:])
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		if _, err := archive.Write(piece); err != nil {
			return err
		}
		left -= int64(len(piece))
	}
	return nil
}
