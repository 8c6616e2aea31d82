package link

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

const (
	rootMode   = 0o700 // no other user of the host gets to any socket
	folderMode = 0o755
	socketMode = 0o600
)

// listener is a listening socket and the file that it is bound to.
type listener struct {
	*net.UnixListener
	path string
	file fs.FileInfo
}

// stands says whether guests still find the socket at its path. The number of its file is not given to another one while
// the socket is open.
func (l *listener) stands() bool {
	now, err := os.Lstat(l.path)
	return err == nil && os.SameFile(now, l.file)
}

// Listen listens on a new socket in a folder of that name beside those of the sandboxes, for a container that is no sandbox. A name
// that is no sandbox's id has a letter beyond f. The caller closes the listener and removes the folder; Left tells of one that was
// not. Kinds: Invalid, Unavailable.
func (h *Hub) Listen(name string) (l net.Listener, folder string, err error) {
	if !validID(name) {
		return nil, "", fault.New(fault.Invalid, "%q cannot name a folder.", name)
	}
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	made, err := listen(h.root, h.folder(name))
	if err != nil {
		return nil, "", fault.Wrap(err, fault.Unavailable, "A socket cannot be made.")
	}
	return made, h.folder(name), nil
}

// listen makes the folder and a new socket in it. The folder itself is never replaced, because containers have it
// mounted. The socket is bound through the folder's descriptor: a socket's path may have 107 bytes only, a data folder
// any length.
func listen(root, folder string) (*listener, error) {
	if err := makeFolder(root, rootMode); err != nil {
		return nil, err
	}
	if err := makeFolder(folder, folderMode); err != nil {
		return nil, err
	}
	path := filepath.Join(folder, wire.SocketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove old socket: %w", err)
	}
	dir, err := os.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("open link folder: %w", err)
	}
	defer dir.Close()
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), wire.SocketName)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l.SetUnlinkOnClose(false) // the short path means another folder by then
	if err := shorten(l); err != nil {
		l.Close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		l.Close()
		return nil, fmt.Errorf("set socket mode: %w", err)
	}
	file, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("look at the socket: %w", err)
	}
	return &listener{UnixListener: l, path: path, file: file}, nil
}

// maxBacklog bounds the connections that wait to be accepted. They are accepted slowly: what a program has left there must not
// hold up the guest of the next start for long. One that finds it full dials again.
const maxBacklog = 16

// shorten bounds the backlog, which Go makes as long as the kernel allows.
func shorten(l *net.UnixListener) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), maxBacklog) })
	return errors.Join(controlErr, err)
}

// makeFolder makes a folder with just that mode, whatever the umask is and whatever mode it had.
func makeFolder(path string, mode fs.FileMode) error {
	if err := os.MkdirAll(path, mode); err != nil {
		return fmt.Errorf("make link folder: %w", err)
	}
	if err := os.Chmod(path, mode); err != nil {
		return fmt.Errorf("set link folder mode: %w", err)
	}
	return nil
}
