package git

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"unicode/utf8"

	"sandboxd/internal/fault"
)

// maxFiles bounds the files and folders of a revision.
const maxFiles = 2_000

var errFiles = fault.New(fault.TooLarge, "The folder in the repository has more than %d files.", maxFiles)

// untar writes the files of git's archive into a new folder. Links are refused: a template has no use for them, and one could lead out.
func untar(from io.Reader, folder string, most int64) error {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	t := tar.NewReader(from)
	left := most
	for n := 0; ; n++ {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n > maxFiles:
			return errFiles
		}
		if left -= h.Size; left < 0 {
			return fault.New(fault.TooLarge, "The files of this revision are larger than %d MiB.", most>>20)
		}
		if err := entry(root, t, h); err != nil {
			return err
		}
	}
}

// entry writes one entry of an archive.
func entry(root *os.Root, content io.Reader, h *tar.Header) error {
	if !utf8.ValidString(h.Name) {
		return fault.Field("path", "The name %.80q in the repository is not UTF-8. Rename the file there.", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeXGlobalHeader: // has the commit
		return nil
	case tar.TypeDir:
		return root.MkdirAll(path.Clean(h.Name), 0o755)
	case tar.TypeReg:
	case tar.TypeSymlink:
		return fault.Field("path", "%.80q in the repository is a symbolic link, which a template cannot have. Put the file there instead.", h.Name)
	default:
		return fault.Field("path", "%.80q in the repository is neither a file nor a folder.", h.Name)
	}
	mode := fs.FileMode(0o644)
	if h.Mode&0o100 != 0 {
		mode = 0o755
	}
	if err := root.MkdirAll(path.Dir(h.Name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", h.Name, err)
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Chmod(mode), f.Close())
}
