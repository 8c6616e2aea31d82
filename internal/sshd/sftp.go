package sshd

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"time"

	"github.com/pkg/sftp"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// Bounds of SFTP.
const (
	maxOpenFiles = 64 // of one connection
	pathLimit    = 40 // links that are followed
)

// Files is what SFTP asks of files.Service, whose comments hold.
type Files interface {
	fileContent
	fileTree
}

type fileContent interface {
	Stat(ctx context.Context, h access.Handle, path string) (files.Entry, error)
	List(ctx context.Context, h access.Handle, path, after string, limit int) (wire.Listing, error)
	Read(ctx context.Context, h access.Handle, file string, offset, length int64) (*files.Content, error)
	Write(ctx context.Context, h access.Handle, put wire.FilePut, body io.Reader) (files.Written, error)
}

type fileTree interface {
	Mkdir(ctx context.Context, h access.Handle, path string, parents bool) error
	Rename(ctx context.Context, h access.Handle, from, to string, overwrite bool) error
	Remove(ctx context.Context, h access.Handle, path string, only wire.Only) error
	Chmod(ctx context.Context, h access.Handle, path string, mode uint32) error
	Touch(ctx context.Context, h access.Handle, path string, modified time.Time) error
	Link(ctx context.Context, h access.Handle, path, target string) error
}

func init() {
	// What is not done is not offered. The list is the library's own, and knows the name.
	if err := sftp.SetSFTPExtensions("posix-rename@openssh.com"); err != nil {
		panic(err)
	}
}

// sftp serves the subsystem on the session's channel.
func (s *session) sftp(ctx context.Context) {
	defer s.channel.Close()
	f := &folder{connection: s.connection, ctx: ctx, writes: map[string]*upload{}}
	home, err := f.home()
	if err != nil {
		s.fail(err)
		return
	}
	server := sftp.NewRequestServer(s.channel, sftp.Handlers{FileGet: f, FilePut: f, FileCmd: f, FileList: f},
		sftp.WithStartDirectory(home))
	err = server.Serve()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && ctx.Err() == nil {
		s.fail(fault.Wrap(err, fault.Invalid, "The SFTP session was not understood."))
		return
	}
	s.exit(0, 0)
}

// home is where relative paths begin: where commands do.
func (f *folder) home() (string, error) {
	files, err := f.files()
	if err != nil {
		return "", err
	}
	for _, at := range []string{wire.HomePath, "."} {
		var l wire.Listing
		if l, err = files.List(f.ctx, f.handle, at, "", 1); err == nil {
			return wire.CleanPath("/", l.Path)
		}
	}
	return "", err
}

// folder answers SFTP's requests. The library calls it from several goroutines, reads and writes side by side.
type folder struct {
	*connection
	ctx context.Context // the session's

	mu     sync.Mutex
	writes map[string]*upload // files that are being written, by path
}

// files gives the service.
func (f *folder) files() (Files, error) { return f.server.cfg.Files, nil }

// enter counts an open file of the connection in. The caller must call leave.
func (f *folder) enter() (leave func(), err error) {
	c := f.connection
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened >= maxOpenFiles {
		return nil, refusal("too many files are open: close some first")
	}
	c.opened++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.opened--
	}), nil
}

// refusal is an error that is made here, for whoever reads it.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

// errThere says that a name is taken.
const errThere = refusal("there is something of that name already")

// told is err as SFTP has it: by its code where there is one, else by a sentence that a person may read.
func told(err error) error {
	var own refusal
	switch {
	case err == nil, errors.As(err, &own), errors.Is(err, io.EOF), errors.Is(err, os.ErrNotExist):
		return err
	case errors.Is(err, sftp.ErrSSHFxPermissionDenied), errors.Is(err, sftp.ErrSSHFxFailure),
		errors.Is(err, sftp.ErrSSHFxBadMessage), errors.Is(err, sftp.ErrSSHFxOpUnsupported):
		return err
	}
	switch fault.KindOf(err) {
	case fault.NotFound, fault.Gone:
		return os.ErrNotExist
	case fault.Forbidden:
		return sftp.ErrSSHFxPermissionDenied
	}
	return errors.New(text.OneLine(fault.Message(err), maxReason))
}

// stat tells what is at the end of path's links.
func (f *folder) stat(path string) (wire.Entry, error) {
	_, e, err := f.resolve(path)
	return e, err
}

// resolve follows path's links, and gives where they end, be anything there or not.
func (f *folder) resolve(path string) (string, wire.Entry, error) {
	for range pathLimit {
		e, err := f.lstat(path)
		if err != nil || e.Type != wire.TypeLink {
			return path, e, err
		}
		path = target(path, e)
	}
	return path, wire.Entry{}, refusal("too many links lead to each other")
}

// lstat tells what path leads to, a link's own. A file that is being written is there already.
func (f *folder) lstat(path string) (wire.Entry, error) {
	if e, ok := f.beingWritten(path); ok {
		return e, nil
	}
	files, err := f.files()
	if err != nil {
		return wire.Entry{}, err
	}
	e, err := files.Stat(f.ctx, f.handle, path)
	return e.Entry, err
}

func target(link string, e wire.Entry) string {
	if path.IsAbs(e.Target) {
		return path.Clean(e.Target)
	}
	return path.Join(path.Dir(link), e.Target)
}

// info is an entry as the library wants it.
type info struct{ wire.Entry }

func (i info) Name() string       { return i.Entry.Name }
func (i info) Size() int64        { return i.Entry.Size }
func (i info) ModTime() time.Time { return i.Modified }
func (i info) IsDir() bool        { return i.Type == wire.TypeFolder }
func (i info) Sys() any           { return nil }
func (i info) Uid() uint32        { return i.UID }
func (i info) Gid() uint32        { return i.GID }

// Mode implements fs.FileInfo.
func (i info) Mode() fs.FileMode {
	m := fs.FileMode(i.Entry.Mode & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if i.Entry.Mode&bit != 0 {
			m |= flag
		}
	}
	switch i.Type {
	case wire.TypeFolder:
		m |= fs.ModeDir
	case wire.TypeLink:
		m |= fs.ModeSymlink
	case wire.TypeFIFO:
		m |= fs.ModeNamedPipe
	case wire.TypeSocket:
		m |= fs.ModeSocket
	case wire.TypeDevice:
		m |= fs.ModeDevice
	}
	return m
}
