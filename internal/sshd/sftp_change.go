package sshd

import (
	"time"

	"github.com/pkg/sftp"

	"sandboxd/internal/wire"
)

// Filecmd implements sftp.FileCmder.
func (f *folder) Filecmd(r *sftp.Request) error {
	files, err := f.files()
	if err != nil {
		return told(err)
	}
	h := f.handle
	switch r.Method {
	case "Setstat":
		return told(f.set(r))
	case "Rename":
		return told(f.rename(r, false))
	case "Mkdir":
		return told(files.Mkdir(f.ctx, h, r.Filepath, false))
	case "Rmdir":
		return told(files.Remove(f.ctx, h, r.Filepath, wire.OnlyEmptyFolder))
	case "Remove":
		return told(files.Remove(f.ctx, h, r.Filepath, wire.OnlyFile))
	case "Symlink":
		return told(files.Link(f.ctx, h, r.Target, r.Filepath))
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename implements sftp.PosixRenameFileCmder.
func (f *folder) PosixRename(r *sftp.Request) error { return told(f.rename(r, true)) }

// rename moves to that very path, and not into a folder that is there.
func (f *folder) rename(r *sftp.Request, overwrite bool) error {
	if !overwrite { // a file that is being written is there, too
		switch _, err := f.lstat(r.Target); {
		case err == nil:
			return errThere
		case !isMissing(err):
			return err
		}
	}
	files, err := f.files()
	if err != nil {
		return err
	}
	return files.Rename(f.ctx, f.handle, r.Filepath, r.Target, overwrite)
}

// set sets attributes: at once, or of a file that is being written when it is in place.
func (f *folder) set(r *sftp.Request) error {
	flags, wish := r.AttrFlags(), r.Attributes()
	if flags.UidGid {
		if err := f.sameOwner(r.Filepath, wish); err != nil {
			return err
		}
	}
	u, open := f.being(r.Filepath), true
	if u == nil {
		place, e, err := f.resolve(r.Filepath)
		if err != nil {
			return err
		}
		u, open = newUpload(f, place), false
		u.was, u.size = e.Size, e.Size
	}
	u.mu.Lock()
	if flags.Permissions {
		mode := wish.Mode & wire.MaxFileMode
		u.mode = &mode
	}
	if flags.Acmodtime {
		modified := time.Unix(int64(wish.Mtime), 0)
		u.modified = &modified
	}
	var err error
	if flags.Size {
		err = u.truncate(int64(wish.Size))
	}
	u.mu.Unlock()
	if err != nil || open {
		return err
	}
	return u.Close()
}

// sameOwner refuses another owner: the sandbox's user can give nothing away.
func (f *folder) sameOwner(path string, wish *sftp.FileStat) error {
	if u := f.being(path); u != nil {
		return nil
	}
	e, err := f.stat(path)
	if err == nil && (e.UID != wish.UID || e.GID != wish.GID) {
		return sftp.ErrSSHFxPermissionDenied
	}
	return err
}
