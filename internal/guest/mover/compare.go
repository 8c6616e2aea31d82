package mover

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/archive"
	"sandboxd/internal/wire"
)

// compare writes what differs between the copy of a snapshot and a home, as JSON texts, up to a number of them.
func (m *mover) compare(home *os.File, most int) error {
	out := json.NewEncoder(frames{m})
	sent := 0
	return withCopy(m.snapshot, func(from *os.File) error {
		err := archive.Compare(context.Background(), from, home, staging, func(d archive.Difference) error {
			if sent++; sent > most {
				return archive.ErrEnough
			}
			return out.Encode(d)
		})
		if errors.Is(err, archive.ErrEnough) {
			return nil
		}
		return err
	})
}

// versions writes the beginning of a file in the copy of a snapshot and in a home.
func (m *mover) versions(home *os.File, path string, most int) error {
	return withCopy(m.snapshot, func(from *os.File) (err error) {
		var v wire.FileVersions
		if v.Before, err = beginning(from, path, most); err == nil {
			v.After, err = beginning(home, path, most)
		}
		if err != nil {
			return err
		}
		return json.NewEncoder(frames{m}).Encode(v)
	})
}

// beginning gives the first bytes of a regular file below a folder, nil when there is none. It follows no link.
func beginning(folder *os.File, path string, most int) ([]byte, error) {
	for {
		name, rest, below := strings.Cut(path, "/")
		if name == "" || name == "." || name == ".." {
			return nil, nil
		}
		if !below {
			return beginningAt(folder, name, most)
		}
		next, err := openFolder(folder, name)
		if err != nil {
			return nil, nil // no such folder
		}
		defer next.Close()
		folder, path = next, rest
	}
}

func beginningAt(folder *os.File, name string, most int) ([]byte, error) {
	fd, err := unix.Openat(int(folder.Fd()), name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil // no such file, or a link or a socket
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, err
	}
	b := make([]byte, min(int64(most), st.Size))
	n, err := io.ReadFull(f, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF { // it was cut meanwhile
		err = nil
	}
	return b[:n], err
}
