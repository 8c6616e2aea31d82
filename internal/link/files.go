package link

import (
	"context"
	"io"
	"net/url"
	"slices"
	"strconv"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// Causes of a Conflict over files that callers may want to tell apart with errors.Is.
var (
	ErrFileChanged = fault.New(fault.Conflict, "The file is not what it was any more.")
	ErrIsFolder    = fault.New(fault.Conflict, "That is a folder.")
	ErrDiskFull    = fault.New(fault.Conflict, "The disk of the sandbox is full.")
)

// Everything about files is done as the sandbox's user. A path is absolute in the sandbox, or relative to that user's home
// (Hello's), and holds any bytes but zero; see wire.CleanPath. Kinds of all of them: Invalid (the path cannot be one, or the
// thing is none that can be used so), NotFound, Forbidden (the user may not), Conflict, Unavailable.

// FileStat tells what a path leads to; of a link, the link itself.
func (s fileClient) FileStat(ctx context.Context, path string) (wire.Entry, error) {
	r, err := s.askFiles(ctx, wire.FilesStat, url.Values{"path": {path}}, nil)
	if err != nil {
		return wire.Entry{}, err
	}
	defer r.Close()
	return r.entry()
}

// maxListed bounds what a guest says of a folder, with the paths that its entries have, or of the trash. Ours ends a page at half of
// that.
const maxListed = 8 << 20

// FileList gives a page of a folder, at most limit entries (0 and everything above mean wire.MaxListing), fewer when they have
// much to say, that begins after the page whose Next is given. Folders come first, then by name without regard to case.
func (s fileClient) FileList(ctx context.Context, path, after string, limit int) (wire.Listing, error) {
	if limit <= 0 || limit > wire.MaxListing {
		limit = wire.MaxListing
	}
	if len(after) > wire.MaxCursor {
		return wire.Listing{}, fault.New(fault.Invalid, "That page is none of this folder's.")
	}
	r, err := s.askFiles(ctx, wire.FilesList, url.Values{"path": {path}, "after": {after}, "limit": {strconv.Itoa(limit)}}, nil)
	if err != nil {
		return wire.Listing{}, err
	}
	defer r.Close()
	var l wire.Listing
	size := 0
	end, err := r.each(wire.RecordEntry, limit, func(payload []byte) error {
		if size += len(payload); size > maxListed {
			return wire.ErrRecord
		}
		e, err := wire.DecodeEntry(payload)
		switch n := len(l.Entries); {
		case n < cap(l.Entries):
		case n < 1000:
			l.Entries = slices.Grow(l.Entries, max(n, 16)) // twice as many
		default:
			l.Entries = slices.Grow(l.Entries, max(limit-n, 1)) // copied once more at the most
		}
		l.Entries = append(l.Entries, e)
		return err
	})
	if err == nil {
		err = r.wrong(wire.DecodeListed(end, &l))
	}
	if err == nil && size+len(l.Entries)*len(l.Path) > maxListed {
		err = r.failed(wire.ErrRecord)
	}
	if err != nil {
		return wire.Listing{}, err
	}
	return l, nil
}

// FileRead gives a file and a part of its content: length bytes from offset, or to its end when length is negative. A negative
// offset counts from the end. What lies behind the end is not there: the content may be shorter than length, or empty. Content
// that the file loses while it is read is an error, what it gains does not come. The caller closes the content, which otherwise
// lives until ctx ends. ErrIsFolder when it is a folder; Invalid when it is neither.
func (s fileClient) FileRead(ctx context.Context, path string, offset, length int64) (wire.Entry, io.ReadCloser, error) {
	q := url.Values{"path": {path}, "offset": {strconv.FormatInt(offset, 10)}, "length": {strconv.FormatInt(length, 10)}}
	r, err := s.askFiles(ctx, wire.FilesRead, q, nil)
	if err != nil {
		return wire.Entry{}, nil, err
	}
	e, size, err := r.content(offset, length)
	if err != nil {
		r.Close()
		return wire.Entry{}, nil, err
	}
	return e, &content{reply: r, left: size}, nil
}

// FileWrite replaces or makes a file, or adds a piece to a resumable upload; see wire.FilePut. It reads body, in this
// goroutine, to its end; an error of body leaves everything as it was, except that a resumable upload keeps its bytes.
// ErrFileChanged when a condition does not hold; ErrDiskFull; ErrIsFolder; Conflict with another offset than the upload has.
func (s fileClient) FileWrite(ctx context.Context, put wire.FilePut, body io.Reader) (wire.Written, error) {
	if err := put.Check(); err != nil {
		return wire.Written{}, fault.Wrap(err, fault.Invalid, "The file cannot be written: %v.", err)
	}
	end, err := s.send(ctx, wire.FilesWrite, put.Values(), body)
	if err != nil {
		return wire.Written{}, err
	}
	w, err := wire.DecodeWritten(end)
	return w, s.bad(ctx, err)
}

// FileUpload tells how much of a resumable upload has arrived: 0 when there is none.
func (s fileClient) FileUpload(ctx context.Context, path, upload string) (offset int64, err error) {
	err = s.doFiles(ctx, wire.FilesUpload, url.Values{"path": {path}, "upload": {upload}}, &offset)
	return offset, err
}

// FileAbandon removes a partial upload; none is no error.
func (s fileClient) FileAbandon(ctx context.Context, path, upload string) error {
	return s.doFiles(ctx, wire.FilesAbandon, url.Values{"path": {path}, "upload": {upload}})
}

// FileChmod sets permissions, wire.MaxFileMode at most. A link has none: Invalid.
func (s fileClient) FileChmod(ctx context.Context, path string, mode uint32) error {
	return s.doFiles(ctx, wire.FilesChmod, url.Values{"path": {path}, "mode": {strconv.FormatUint(uint64(mode), 8)}})
}
