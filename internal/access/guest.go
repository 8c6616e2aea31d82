package access

import (
	"context"
	"io"
	"net"

	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// FromHub gives the links of a hub.
func FromHub(h *link.Hub) Links {
	return func(ctx context.Context, id string) (Guest, error) {
		s, err := h.Session(ctx, id)
		if err != nil {
			return nil, err // a nil *link.Session must not look like a Guest
		}
		return s, nil
	}
}

// Guest is the program inside a sandbox, as its link gives it. Implemented by link.Session, whose comments hold; tests put
// their own in its place, which need not have more than they use. Its errors are faults. What it says is not to be trusted.
type Guest interface {
	// Hello is what it said of itself when it connected.
	Hello() wire.Hello
	// Done is closed when the link has ended.
	Done() <-chan struct{}

	// Commands and VS Code.

	Exec(ctx context.Context, start wire.ExecStart) (*link.Process, error)
	IDE(ctx context.Context) (wire.IDEStatus, error)
	DialIDE(ctx context.Context) (net.Conn, error)

	// Kept processes.

	StartKept(ctx context.Context, start wire.KeptStart) error
	ListKept(ctx context.Context) ([]wire.Kept, error)
	EndKept(ctx context.Context, id string) error
	AttachKept(ctx context.Context, id string, offset int64) (*link.Kept, error)
	WriteKept(ctx context.Context, id string, p []byte, at int64) (n int, err error)
	AckKept(ctx context.Context, id string, before int64) error
	KeptStderr(ctx context.Context, id string) ([]byte, error)

	// Open ports.

	Ports(ctx context.Context) ([]wire.PortOpen, error)
	WatchPorts(ctx context.Context, emit func([]wire.PortOpen) error) error
	DialPort(ctx context.Context, port int) (net.Conn, error)

	// Terminals, by tab.

	Terminals(ctx context.Context) ([]wire.Terminal, error)
	TerminalText(ctx context.Context, tab string) ([]byte, error)
	CloseTerminal(ctx context.Context, tab string) error
	DialTerminal(ctx context.Context, tab string) (net.Conn, error)

	// Declared services.

	Services(ctx context.Context) ([]wire.ServiceStatus, error)
	StartService(ctx context.Context, name string) error
	StopService(ctx context.Context, name string) error
	RestartService(ctx context.Context, name string) error

	// Files.

	FileStat(ctx context.Context, path string) (wire.Entry, error)
	FileList(ctx context.Context, path, after string, limit int) (wire.Listing, error)
	FileRead(ctx context.Context, path string, offset, length int64) (wire.Entry, io.ReadCloser, error)
	FileWrite(ctx context.Context, put wire.FilePut, body io.Reader) (wire.Written, error)
	FileUpload(ctx context.Context, path, upload string) (offset int64, err error)
	FileAbandon(ctx context.Context, path, upload string) error
	FileSearch(ctx context.Context, search wire.Search, emit func(wire.Found) error) (more bool, err error)
	FileWatch(ctx context.Context, paths []string, emit func(folder string) error) error

	// The tree of files.

	FileMkdir(ctx context.Context, path string, parents bool) error
	FileMove(ctx context.Context, from []string, to string, overwrite bool) error
	FileCopy(ctx context.Context, from []string, to string, overwrite bool) error
	FileChmod(ctx context.Context, path string, mode uint32) error

	// Deleting files, and bringing them back.

	FileDelete(ctx context.Context, paths []string, permanent bool) ([]wire.Trashed, error)
	FileTrash(ctx context.Context) ([]wire.Trashed, error)
	FileRestore(ctx context.Context, ids []string) error
	FileEmptyTrash(ctx context.Context, ids []string) error

	// Whole folders as tar archives.

	FilePack(ctx context.Context, base string, names []string) (io.ReadCloser, error)
	FileUnpack(ctx context.Context, path string, keepLinks bool, body io.Reader) (wire.Unpacked, error)
}
