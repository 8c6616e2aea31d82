package sshd

import (
	"io"
	"os"
	"sync"

	"github.com/pkg/sftp"

	"sandboxd/internal/wire"
)

// pageSize is how many entries of a folder are asked for at once.
const pageSize = 1000

// Filelist implements sftp.FileLister: a folder, or what a path leads to.
func (f *folder) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	switch r.Method {
	case "List":
		return f.list(r.Filepath)
	case "Stat":
		return one(f.stat(r.Filepath))
	}
	return nil, sftp.ErrSSHFxOpUnsupported
}

// Lstat implements sftp.LstatFileLister.
func (f *folder) Lstat(r *sftp.Request) (sftp.ListerAt, error) { return one(f.lstat(r.Filepath)) }

// Readlink implements sftp.ReadlinkFileLister.
func (f *folder) Readlink(path string) (string, error) {
	e, err := f.lstat(path)
	if err != nil {
		return "", told(err)
	}
	if e.Type != wire.TypeLink {
		return "", sftp.ErrSSHFxFailure
	}
	return e.Target, nil
}

// LookupUserName and LookupGroupName would look for names of this machine; ids of the sandbox are shown as they are.
func (f *folder) LookupUserName(id string) string  { return id }
func (f *folder) LookupGroupName(id string) string { return id }

// entry is a list of one.
type entry struct{ info }

func one(e wire.Entry, err error) (sftp.ListerAt, error) {
	if err != nil {
		return nil, told(err)
	}
	return entry{info{e}}, nil
}

// ListAt implements sftp.ListerAt.
func (e entry) ListAt(out []os.FileInfo, at int64) (int, error) {
	if at > 0 || len(out) == 0 {
		return 0, io.EOF
	}
	out[0] = e.info
	return 1, io.EOF
}

// listing reads a folder page by page, as it is asked for.
type listing struct {
	*folder
	path  string
	leave func()

	mu   sync.Mutex
	have []wire.Entry // of the present page, not given yet
	at   int64        // given so far
	next string
	last bool
}

func (f *folder) list(path string) (sftp.ListerAt, error) {
	leave, err := f.enter()
	if err != nil {
		return nil, err
	}
	l := &listing{folder: f, path: path, leave: leave}
	if err := l.turn(); err != nil { // the answer to opening a folder says whether there is one
		leave()
		return nil, told(err)
	}
	return l, nil
}

func (l *listing) turn() error {
	files, err := l.files()
	if err != nil {
		return err
	}
	page, err := files.List(l.ctx, l.handle, l.path, l.next, pageSize)
	if err != nil {
		return err
	}
	l.have, l.next, l.last = page.Entries, page.Next, page.Next == ""
	return nil
}

// ListAt implements sftp.ListerAt. The library asks in order.
func (l *listing) ListAt(out []os.FileInfo, at int64) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at != l.at {
		return 0, sftp.ErrSSHFxFailure
	}
	for len(l.have) == 0 {
		if l.last {
			return 0, io.EOF
		}
		if err := l.turn(); err != nil {
			return 0, told(err)
		}
	}
	n := min(len(out), len(l.have))
	for i := range n {
		out[i] = info{l.have[i]}
	}
	l.have, l.at = l.have[n:], l.at+int64(n)
	return n, nil
}

// Close implements io.Closer.
func (l *listing) Close() error {
	l.leave()
	return nil
}
