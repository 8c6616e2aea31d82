package files

import (
	"errors"
	"fmt"
	"io"
	"path"

	"golang.org/x/sys/unix"

	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// errBody says that the content did not arrive.
var errBody = errors.New("the content did not arrive")

// write takes a file, or a piece of one. It answers first that it will, and at the end that it has.
func (q *ask) write() error {
	put, err := wire.PutOf(q.v)
	if err != nil {
		return problem(wire.CodeInvalid, "The file cannot be written: %v.", err)
	}
	if put.Path, err = q.clean(put.Path); err != nil {
		return err
	}
	var d *draft
	err = q.tree.act(q.Context(), func(a *actor) error {
		d, err = a.draft(&put)
		return err
	})
	if err != nil {
		return writeProblem(put.Path, err)
	}
	defer d.walk.close()
	w, err := q.take(d, &put)
	if err != nil {
		return writeProblem(put.Path, err)
	}
	q.reply.end(wire.AppendWritten(nil, &w))
	return nil
}

func writeProblem(p string, err error) error {
	switch {
	case errors.Is(err, errChanged):
		return problem(wire.CodeChanged, "%s has changed meanwhile.", text.OneLine(p, 200))
	case errors.Is(err, errBody):
		return problem(wire.CodeUnavailable, "The content did not arrive as a whole.")
	}
	return about(p, err)
}

// draft begins what put asks for.
func (a *actor) draft(put *wire.FilePut) (d *draft, err error) {
	w, err := a.walk()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	name, err := w.to(put.Path, true, put.Parents)
	if err != nil {
		return nil, err
	}
	s := dirEntry{w, name}
	if err := a.early(s, put); err != nil {
		return nil, err
	}
	if put.Upload == "" {
		return s.begin(temporaryName(name), false, put.Mode)
	}
	own := uploadName(name, put.Upload)
	if put.Offset == 0 {
		a.note(path.Dir(put.Path))
		w.sweepHere()
	}
	if d, err = s.begin(own, true, put.Mode); err != nil {
		return nil, err
	}
	d.kept = true
	return d, d.resume(a, put)
}

// early refuses what can be refused before the content is sent.
func (a *actor) early(s dirEntry, put *wire.FilePut) error {
	st, there, err := s.replaceable()
	if err != nil {
		return err
	}
	if put.Upload != "" && !put.Last {
		return nil
	}
	return conditionOf(put).holds(&st, there)
}

func conditionOf(put *wire.FilePut) condition { return condition{put.IfMatch, put.IfNone} }

// resume appends a piece to an upload.
func (d *draft) resume(a *actor, put *wire.FilePut) error {
	at, err := unix.Seek(d.fd, 0, io.SeekEnd)
	if err == nil && at != put.Offset {
		if at == 0 {
			d.kept = false
		}
		err = problem(wire.CodeConflict, "The upload has %d bytes: continue from there.", at)
	}
	if err != nil {
		d.close(a)
	}
	return err
}

// take reads the content into the draft and ends it, one way or the other.
func (q *ask) take(d *draft, put *wire.FilePut) (w wire.Written, err error) {
	defer func() {
		q.tree.brief <- struct{}{} // also when the request has ended: it must be cleaned up
		defer func() { <-q.tree.brief }()
		d.walk.actor.user.become(func() error { d.close(d.walk.actor); return nil })
	}()
	if err := q.reply.begin(); err != nil {
		return w, errBody
	}
	w.Offset, err = q.fill(d, put)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG) {
		d.kept = false
	}
	if err != nil || put.Upload != "" && !put.Last {
		return w, err
	}
	if put.Size >= 0 && w.Offset != put.Size {
		return w, problem(wire.CodeInvalid, "The content has %d bytes and should have %d.", w.Offset, put.Size)
	}
	err = q.tree.act(q.Context(), func(*actor) error {
		w.Entry, err = d.publish(conditionOf(put))
		return err
	})
	w.Created = d.created
	return w, err
}

// fill writes the content behind what the draft has and gives where that ends.
func (q *ask) fill(d *draft, put *wire.FilePut) (at int64, err error) {
	buf := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(buf)
	at = put.Offset
	for {
		n, err := io.ReadAtLeast(q.Body, buf[:], pieceSize/2)
		if n > 0 {
			if put.Size >= 0 && at+int64(n) > put.Size {
				return at, problem(wire.CodeInvalid, "The content is larger than the %d bytes that it should have.", put.Size)
			}
			err := q.tree.act(q.Context(), func(*actor) error {
				_, err := writer(d.fd).Write(buf[:n])
				return err
			})
			if err != nil {
				return at, err
			}
			at += int64(n)
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF { // ReadAtLeast's for an end
			return at, nil
		}
		if err != nil {
			return at, fmt.Errorf("%w: %w", errBody, err)
		}
	}
}
