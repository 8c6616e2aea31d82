package sandbox

import (
	"context"
	"io"

	"sandboxd/internal/archive"
)

// Homes opens the homes of sandboxes from outside them. Safe for concurrent use, but there is one open Home of a sandbox at a
// time: opening another ends what an earlier one does. Kinds as for Runtime.
type Homes interface {
	// OpenHome gets ready for one of the things that a Home can do. The caller must Close it. snapshot is the id of the one that
	// CopyOut makes the copy for, or CopyIn takes it from; "" when neither is wanted.
	OpenHome(ctx context.Context, id, snapshot string) (Home, error)
}

// Content says what of an archive becomes a home.
type Content struct {
	Prefix string // of its entries
	Own    bool   // all of it belongs to whom the home belongs, whatever the archive says
}

// Home does one thing with the home of a sandbox, which must not run meanwhile, or be frozen. Each blocks until it is done or ctx
// ends, and calls progress now and then. A reader or writer that blocks is waited for, so it must end with ctx. What ctx ends counts
// as cut off. Unavailable when the Home was closed, another one was opened, or the sandbox was removed.
type Home interface {
	// Read writes the home to w as entries of a tar archive whose names begin with prefix, without an archive's end. An error of w
	// comes back as it is.
	Read(ctx context.Context, w io.Writer, prefix string, progress func(archive.Stats)) (archive.Stats, error)
	// Replace makes the home of what has that prefix in a tar archive. When that fails, or is cut off, the home is the old one
	// or, once all of the new one is on the disk, will be that after a Settle. Invalid when the archive cannot be unpacked,
	// Unavailable when the disk is full. An error of r comes back as it is.
	Replace(ctx context.Context, r io.Reader, c Content, progress func(archive.Stats)) (archive.Stats, error)
	// CopyOut makes the copy of the home for a snapshot, in the place of what is left of an earlier one. Unavailable when the disk
	// is full. Blocks of files are shared with the home where the file system can. In a storage pool it takes no longer for a large home,
	// and tells nothing of what was copied; so it is with CopyIn.
	CopyOut(ctx context.Context, progress func(archive.Stats)) (archive.Stats, error)
	// CopyIn is Replace with the copy of a snapshot. NotFound when it has none. With a storage pool the home is in there afterwards; one that
	// was not needs a Runtime.Recreate before the sandbox is started.
	CopyIn(ctx context.Context, progress func(archive.Stats)) (archive.Stats, error)
	// Compare gives what differs between the copy of a snapshot and the home, which is the later one, as archive.Compare tells it, but
	// at most so many differences; more says that there are others. The sandbox may run meanwhile. NotFound as for CopyIn.
	Compare(ctx context.Context, most int) (found []archive.Difference, more bool, err error)
	// Versions gives the first bytes of a file, at most so many, as the copy of a snapshot and as the home has it: nil where that has
	// no regular file. The sandbox may run meanwhile. NotFound as for CopyIn.
	Versions(ctx context.Context, path string, most int) (before, after []byte, err error)
	// Settle finishes or undoes a Replace or CopyIn that was cut off, and says whether it has finished one. One that was not cut
	// off is no error.
	Settle(ctx context.Context) (finished bool, err error)
	// Close ends what is still being done. It may be called more than once.
	Close() error
}
