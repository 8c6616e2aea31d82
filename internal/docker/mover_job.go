package docker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// Read implements sandbox.Home.
func (h *home) Read(ctx context.Context, w io.Writer, prefix string, progress func(archive.Stats)) (archive.Stats, error) {
	return h.job(ctx, wire.MoverJob{Do: wire.MoverRead, Prefix: prefix}, nil, w, progress)
}

// Replace implements sandbox.Home.
func (h *home) Replace(ctx context.Context, r io.Reader, c sandbox.Content, progress func(archive.Stats)) (archive.Stats, error) {
	job := wire.MoverJob{Do: wire.MoverReplace, Prefix: c.Prefix, Own: c.Own}
	if h.staged() && h.at != inVolume {
		return h.beside(ctx, func() (archive.Stats, error) { return h.job(ctx, job, r, nil, progress) })
	}
	return h.job(ctx, job, r, nil, progress)
}

// Settle implements sandbox.Home.
func (h *home) Settle(ctx context.Context) (finished bool, err error) {
	r, err := h.report(ctx, wire.MoverJob{Do: wire.MoverSettle}, nil, nil, func(archive.Stats) {})
	return r.finished, err
}

// CopyOut implements sandbox.Home.
func (h *home) CopyOut(ctx context.Context, progress func(archive.Stats)) (stats archive.Stats, err error) {
	if h.snapshot != "" && h.at != inVolume {
		stats, err = h.copyOutPooled(ctx)
	} else {
		stats, err = h.job(ctx, wire.MoverJob{Do: wire.MoverCopyOut}, nil, nil, progress)
	}
	if err == nil {
		h.kept.Store(true)
	}
	return stats, err
}

// CopyIn implements sandbox.Home.
func (h *home) CopyIn(ctx context.Context, progress func(archive.Stats)) (archive.Stats, error) {
	if h.staged() && h.snapshot != "" {
		return h.copyInPooled(ctx, progress)
	}
	return h.job(ctx, wire.MoverJob{Do: wire.MoverCopyIn}, nil, nil, progress)
}

// callersError is one of the reader or writer that a job was given. The mover only knows that it was cut off.
type callersError struct{ error }

// outcome is what a mover says of its job at the end.
type outcome struct {
	archive.Stats
	finished bool // what was cut off
}

// job is report for what has no other outcome.
func (h *home) job(ctx context.Context, job wire.MoverJob, from io.Reader, to io.Writer, progress func(archive.Stats)) (archive.Stats, error) {
	r, err := h.report(ctx, job, from, to, progress)
	return r.Stats, err
}

// report has the mover do something. from is sent to it, and to gets what it sends.
func (h *home) report(ctx context.Context, job wire.MoverJob, from io.Reader, to io.Writer, progress func(archive.Stats)) (outcome, error) {
	if err := h.ready(ctx); err != nil {
		return outcome{}, err
	}
	if ctx.Err() != nil { // a short job could be done before the connection is closed
		return outcome{}, h.lost(ctx, ctx.Err())
	}
	defer context.AfterFunc(ctx, func() { h.conn.Close() })()
	told, err := json.Marshal(job)
	if err != nil {
		return outcome{}, err
	}
	if _, err := h.conn.Write(wire.AppendFrame(nil, wire.FrameStart, told)); err != nil {
		return outcome{}, h.lost(ctx, err)
	}
	sent := make(chan error, 1)
	go func() {
		defer close(sent)
		if from != nil {
			sent <- h.send(ctx, from)
		}
	}()
	r, err := h.follow(to, progress)
	h.conn.SetWriteDeadline(time.Now()) // it takes no more
	var theirs *callersError
	if sending := <-sent; err != nil && errors.As(errors.Join(sending, err), &theirs) {
		return r, theirs.error
	}
	var known *fault.Error
	if err == nil || errors.As(err, &known) && ctx.Err() == nil {
		return r, err
	}
	return r, h.lost(ctx, err)
}

// send sends an archive, but nothing that was read after ctx had ended. When it cannot be read to its end, the mover is cut off. Only
// io.EOF itself is that end: io.ErrUnexpectedEOF is how a reader says that what it unpacks is cut off.
func (h *home) send(ctx context.Context, from io.Reader) error {
	buf := bufio.NewWriterSize(h.conn, moverBuffer)
	piece := make([]byte, wire.FrameHead+wire.MaxFrame)
	for {
		n, err := from.Read(piece[wire.FrameHead:])
		if ctx.Err() != nil {
			return ctx.Err() // the connection is being closed
		}
		if n > 0 {
			wire.PutHead(piece, wire.FrameData, n)
			if _, err := buf.Write(piece[:wire.FrameHead+n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			if _, err := buf.Write(wire.AppendFrame(nil, wire.FrameDataDone, nil)); err != nil {
				return err
			}
			return buf.Flush()
		case err != nil:
			h.cutOff()
			return &callersError{err}
		}
	}
}

// cutOff ends what the mover is sent. It then leaves the home as it was, which is waited for, and says that it has failed.
func (h *home) cutOff() {
	if half, can := h.conn.(interface{ CloseWrite() error }); !can || half.CloseWrite() != nil {
		h.conn.Close()
	}
}

// follow takes what the mover sends until it has done its job.
func (h *home) follow(to io.Writer, progress func(archive.Stats)) (end outcome, err error) {
	for frames := wire.NewFrameReader(bufio.NewReaderSize(h.conn, moverBuffer)); ; {
		h.conn.SetReadDeadline(time.Now().Add(moverSilent))
		kind, b, err := frames.Next()
		switch {
		case err != nil:
			return end, err
		case kind == wire.FrameData && to != nil:
			if _, err := to.Write(b); err != nil {
				return end, &callersError{err}
			}
		case kind == wire.FrameReport:
			var r wire.MoverReport
			if err := errors.Join(json.Unmarshal(b, &r), json.Unmarshal(r.Stats, &end.Stats)); err != nil {
				return end, err
			}
			if r.Done {
				end.finished = r.Finished
				return end, moverFault(r)
			}
			progress(end.Stats)
		default:
			return end, fmt.Errorf("%w: type %d", wire.ErrFrame, kind)
		}
	}
}

// moverFault gives what a mover tells of its failure a kind.
func moverFault(r wire.MoverReport) error {
	switch cause := errors.New(r.Error); {
	case r.Error == "":
		return nil
	case r.Kind == wire.MoverInvalid:
		return fault.Wrap(cause, fault.Invalid, "The archive cannot be unpacked: %s", clean(r.Error, longestWord))
	case r.Kind == wire.MoverFull:
		return fault.Wrap(cause, fault.Unavailable, "There is not enough room: the disk of the sandboxes' homes is full, or the limit of this home is too low.")
	case r.Kind == wire.MoverAbsent:
		return fault.Wrap(cause, fault.NotFound, "There is no copy of the home for this snapshot.")
	default:
		return fault.Wrap(cause, fault.Unavailable, "The sandbox's home cannot be moved: %s", clean(r.Error, longestWord))
	}
}

// lost says why the connection has broken.
func (h *home) lost(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return classify(cause, "move the home")
	}
	return fault.Wrap(err, fault.Unavailable, "The program that moves the home has ended, or no longer answers. Try again.")
}
