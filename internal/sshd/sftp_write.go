package sshd

import (
	"errors"
	"io"
	"os"
	"path"

	"github.com/pkg/sftp"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// umask is what sshd has: nobody but the owner writes.
const umask = 0o022

// Filewrite implements sftp.FileWriter.
func (f *folder) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	u, err := f.upload(r)
	if err != nil {
		return nil, told(err)
	}
	return u, nil
}

// OpenFile implements sftp.OpenFileWriter.
func (f *folder) OpenFile(r *sftp.Request) (sftp.WriterAtReaderAt, error) {
	u, err := f.upload(r)
	if err != nil {
		return nil, told(err)
	}
	return &both{upload: u}, nil
}

// upload opens a file for writing.
func (f *folder) upload(r *sftp.Request) (*upload, error) {
	flags := r.Pflags()
	place, before, err := f.resolve(r.Filepath)
	missing := isMissing(err)
	switch {
	case err != nil && !missing:
		return nil, err
	case missing && !flags.Creat:
		return nil, os.ErrNotExist
	case !missing && flags.Creat && flags.Excl:
		return nil, errThere
	case !missing && before.Type != wire.TypeFile:
		return nil, refusal("that is no file")
	}
	leave, err := f.enter()
	if err != nil {
		return nil, err
	}
	u := newUpload(f, place)
	u.append, u.put.IfNone, u.begun = flags.Append, flags.Creat && flags.Excl, missing || flags.Trunc
	if missing {
		u.put.Mode = modeOf(r.Attrs)
	} else if !flags.Trunc {
		u.was, u.size = before.Size, before.Size
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes[r.Filepath] = u
	u.leave = func() {
		leave()
		f.written(r.Filepath, u)
	}
	return u, nil
}

func isMissing(err error) bool {
	return fault.Is(err, fault.NotFound) || errors.Is(err, os.ErrNotExist)
}

// written forgets a file that is in place.
func (f *folder) written(path string, u *upload) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writes[path] == u {
		delete(f.writes, path)
	}
}

// modeOf gives the permissions that a new file is wanted with. The library does not tell which attributes there are: four
// bytes can only be permissions.
func modeOf(attrs []byte) uint32 {
	if len(attrs) != 4 {
		return 0
	}
	mode := uint32(attrs[2])<<8 | uint32(attrs[3])
	return mode & 0o777 &^ umask
}

// being gives a file that is being written, or nil.
func (f *folder) being(path string) *upload {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes[path]
}

// beingWritten tells of a file that is being written and not in place yet.
func (f *folder) beingWritten(at string) (wire.Entry, bool) {
	u := f.being(at)
	if u == nil {
		return wire.Entry{}, false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.begun {
		return wire.Entry{}, false
	}
	e := wire.Entry{Name: path.Base(at), Type: wire.TypeFile, Size: u.size, Mode: u.put.Mode, Modified: u.since}
	if e.Mode == 0 {
		e.Mode = 0o666 &^ umask
	}
	if u.mode != nil {
		e.Mode = *u.mode
	}
	if u.modified != nil {
		e.Modified = *u.modified
	}
	return e, true
}

// both is a file that is read and written. What has been written is put in place before it is read.
type both struct {
	*upload
	reading *download
}

// WriteAt implements io.WriterAt.
func (b *both) WriteAt(p []byte, at int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look(nil)
	return b.write(p, at)
}

// ReadAt implements io.ReaderAt.
func (b *both) ReadAt(p []byte, at int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.finish(); err != nil {
		return 0, told(err)
	}
	if b.reading == nil {
		d, err := b.download(b.put.Path)
		if err != nil {
			return 0, told(err)
		}
		b.look(d)
	}
	return b.reading.ReadAt(p, at)
}

func (b *both) look(d *download) {
	if b.reading != nil {
		b.reading.Close()
	}
	b.reading = d
}

// Close implements io.Closer.
func (b *both) Close() error {
	b.mu.Lock()
	b.look(nil)
	b.mu.Unlock()
	return b.upload.Close()
}
