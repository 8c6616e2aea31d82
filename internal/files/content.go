package files

import (
	"context"
	"io"
	"path"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// Causes of a Conflict that callers may want to tell apart with errors.Is.
var (
	ErrChanged  = link.ErrFileChanged // the write's condition does not hold
	ErrIsFolder = link.ErrIsFolder    // only a file would do
	ErrDiskFull = link.ErrDiskFull    // the sandbox's
)

// Entry is something in a sandbox, and where it is.
type Entry struct {
	Path string // absolute
	wire.Entry
}

// Stat tells what a path leads to; of a link, the link itself.
func (s *Service) Stat(ctx context.Context, h access.Handle, path string) (e Entry, err error) {
	err = s.call(ctx, h, "stat", callLimit, func(ctx context.Context, g access.Guest) (err error) {
		e, err = stat(ctx, g, path)
		return err
	})
	return e, err
}

func stat(ctx context.Context, g access.Guest, path string) (Entry, error) {
	clean, err := CheckPath(path)
	if err != nil {
		return Entry{}, err
	}
	e, err := g.FileStat(ctx, clean)
	if err == nil {
		err = checkEntry(e)
	}
	return Entry{Path: absolute(g, clean), Entry: e}, err
}

// List gives a page of a folder: folders first, then by name without regard to case. limit is 1 to wire.MaxListing; after is
// the Next of the page before, or "".
func (s *Service) List(ctx context.Context, h access.Handle, path, after string, limit int) (l wire.Listing, err error) {
	err = s.call(ctx, h, "list", callLimit, func(ctx context.Context, g access.Guest) (err error) {
		l, err = list(ctx, g, path, after, limit)
		return err
	})
	return l, err
}

func list(ctx context.Context, g access.Guest, path, after string, limit int) (wire.Listing, error) {
	clean, err := CheckPath(path)
	if err != nil {
		return wire.Listing{}, err
	}
	l, err := g.FileList(ctx, clean, after, limit)
	for _, e := range l.Entries {
		if err == nil {
			err = checkEntry(e)
		}
	}
	return l, err
}

// Glance is Stat and List for a page that looks again by itself: they are no use of the sandbox and wake nothing, and one that
// rests is a Conflict.
type Glance struct{ service *Service }

// Glance gives it.
func (s *Service) Glance() Glance { return Glance{s} }

// Stat is Service.Stat.
func (l Glance) Stat(ctx context.Context, h access.Handle, path string) (e Entry, err error) {
	err = l.call(ctx, h, func(ctx context.Context, g access.Guest) (err error) {
		e, err = stat(ctx, g, path)
		return err
	})
	return e, err
}

// List is Service.List.
func (l Glance) List(ctx context.Context, h access.Handle, path, after string, limit int) (page wire.Listing, err error) {
	err = l.call(ctx, h, func(ctx context.Context, g access.Guest) (err error) {
		page, err = list(ctx, g, path, after, limit)
		return err
	})
	return page, err
}

func (l Glance) call(ctx context.Context, h access.Handle, f func(ctx context.Context, g access.Guest) error) error {
	leave, err := l.service.enterCall(ctx, h)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	session, err := h.Look(ctx)
	if err != nil {
		return err
	}
	return f(ctx, session.Guest)
}

// Content is a file, or a part of it, on its way out of a sandbox. The caller must Close it. It belongs to one
// goroutine, but for Close.
type Content struct {
	Entry Entry // the whole file's
	Size  int64 // of this part

	r     *patient
	close func()
}

// Read reads. io.EOF comes after Size bytes and not before; a guest that sends fewer is Unavailable, one that sends nothing for
// a minute Timeout.
func (c *Content) Read(p []byte) (int, error) { return c.r.Read(p) }

// Close ends it. It may be called more than once.
func (c *Content) Close() error {
	c.close()
	return nil
}

// Read opens a file: length bytes from offset, or to its end when length is negative. A negative offset counts from the end.
// A range that reaches past the end makes Size less than length. ErrIsFolder when it is a folder.
func (s *Service) Read(ctx context.Context, h access.Handle, file string, offset, length int64) (*Content, error) {
	clean, err := CheckPath(file)
	if err != nil {
		return nil, err
	}
	t, err := s.begin(ctx, h, "read "+path.Base(clean), false)
	if err != nil {
		return nil, err
	}
	e, body, err := t.guest.FileRead(t.ctx, clean, offset, length)
	if err == nil {
		if err = checkEntry(e); err != nil {
			body.Close()
		}
	}
	if err != nil {
		err = why(t.ctx, err)
		t.end()
		return nil, err
	}
	return &Content{
		Entry: Entry{absolute(t.guest, clean), e}, Size: wire.PartOf(e.Size, offset, length), r: t.from(body),
		close: func() { body.Close(); t.end() },
	}, nil
}

// Write replaces or makes a file as a whole or not at all, or adds a piece to a resumable upload: see wire.FilePut. It reads
// body in this goroutine to its end; an error of body comes back as it is, and everything is as it was, except that
// a resumable upload keeps its bytes. ErrChanged when a condition does not hold, ErrDiskFull, ErrIsFolder.
// Timeout when the guest takes nothing for a minute.
func (s *Service) Write(ctx context.Context, h access.Handle, put wire.FilePut, body io.Reader) (Written, error) {
	if err := checkPut(&put); err != nil {
		return Written{}, err
	}
	t, err := s.begin(ctx, h, "write "+path.Base(put.Path), false)
	if err != nil {
		return Written{}, err
	}
	defer t.end()
	feed := t.to(body)
	defer feed.rest()
	w, err := t.guest.FileWrite(t.ctx, put, feed)
	switch {
	case feed.err != nil:
		return Written{}, feed.err
	case err != nil:
		return Written{}, why(t.ctx, err)
	case put.Size >= 0 && w.Offset > put.Size:
		return Written{}, fault.New(fault.Unavailable, "The program inside the sandbox did not answer as it should.")
	}
	return Written{Entry: Entry{absolute(t.guest, put.Path), w.Entry}, Created: w.Created, Offset: w.Offset}, checkEntry(w.Entry)
}

// Written is the result of a Write.
type Written struct {
	Entry   Entry // of the file; its name is "" while pieces of an upload are missing
	Created bool  // there was none before
	Offset  int64 // how much there is
}

// checkPut checks a write and cleans its path.
func checkPut(put *wire.FilePut) (err error) {
	if put.Path, err = CheckPath(put.Path); err != nil {
		return err
	}
	if put.Upload != "" {
		if err := checkUpload(put.Upload); err != nil {
			return err
		}
	}
	return checkMode(put.Mode)
}

// Upload tells how much of a resumable upload has arrived: 0 when there is none.
func (s *Service) Upload(ctx context.Context, h access.Handle, path, upload string) (offset int64, err error) {
	err = s.call(ctx, h, "upload", callLimit, func(ctx context.Context, g access.Guest) error {
		clean, err := CheckPath(path)
		if err == nil {
			err = checkUpload(upload)
		}
		if err == nil {
			offset, err = g.FileUpload(ctx, clean, upload)
		}
		return err
	})
	return offset, err
}

// Abandon removes a partial upload; none is no error.
func (s *Service) Abandon(ctx context.Context, h access.Handle, path, upload string) error {
	return s.call(ctx, h, "upload", callLimit, func(ctx context.Context, g access.Guest) error {
		clean, err := CheckPath(path)
		if err == nil {
			err = checkUpload(upload)
		}
		if err != nil {
			return err
		}
		return g.FileAbandon(ctx, clean, upload)
	})
}
