package client

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/fault"
)

// Extraction says what becomes of an archive on this machine.
type Extraction struct {
	Folder    string // that it goes into, which must be there
	From      string // the wanted entry's name in the archive; "" for everything
	As        string // what that is called in Folder; "" when everything goes right into it
	KeepLinks bool   // also make symbolic links that lead out of the copy
	Report    Report
}

// ExtractTree makes what the tar r holds. Nothing is ever written outside of what the copy makes or merges into: no name, no link
// of the archive's and none that was there before leads out. Files are replaced as a whole. Modes lose what gives a program its
// owner's rights.
func ExtractTree(r io.Reader, e Extraction) error {
	base, err := os.OpenRoot(e.Folder)
	if err != nil {
		return local(err)
	}
	defer base.Close()
	x := &extractor{Extraction: e, base: base, buf: make([]byte, copyBuffer)}
	if e.As == "" {
		x.tree = base
	}
	defer x.close()
	in := tar.NewReader(r)
	for count := 0; ; count++ {
		h, err := in.Next()
		if err == io.EOF {
			if count == 0 && e.From != "" {
				return fault.New(fault.Unavailable, "The server's archive does not hold the requested path.")
			}
			return x.finish()
		}
		if err != nil {
			return damaged(err)
		}
		if err := x.entry(h, in); err != nil {
			return err
		}
	}
}

type extractor struct {
	Extraction
	base    *os.Root
	tree    *os.Root // what everything but the top itself goes into; nil until there is one
	buf     []byte
	folders []made
	checked string // the folder last found to be reached through no link
}

// made is a folder whose mode and time are set at the end.
type made struct {
	name     string
	mode     fs.FileMode
	modified time.Time
}

func (x *extractor) close() {
	if x.tree != nil && x.tree != x.base {
		x.tree.Close()
	}
}

func (x *extractor) entry(h *tar.Header, content io.Reader) error {
	rest, err := below(h.Name, x.From)
	switch {
	case err != nil:
		return err
	case rest != "":
		if err := x.plant(nil); err != nil {
			return err
		}
		return x.place(x.tree, rest, h, content)
	case h.Typeflag == tar.TypeDir:
		return x.plant(h)
	case x.As == "" || x.tree != nil:
		return fault.New(fault.Unavailable, "The server sent %q twice.", h.Name)
	}
	return x.place(x.base, x.As, h, content)
}

// plant makes the top folder as the archive has it, or anyhow, if it is not there.
func (x *extractor) plant(h *tar.Header) error {
	if x.tree != nil {
		return nil
	}
	mode := fs.FileMode(0o755)
	if h != nil {
		mode = h.FileInfo().Mode().Perm()
	}
	switch err := x.base.Mkdir(x.As, mode|0o700); {
	case err == nil && h != nil:
		x.folders = append(x.folders, made{".", mode, h.ModTime})
	case err != nil && !errors.Is(err, fs.ErrExist):
		return local(err)
	}
	tree, err := x.base.OpenRoot(x.As)
	if err != nil {
		return local(err)
	}
	x.tree = tree
	return nil
}

// place makes one entry in root.
func (x *extractor) place(root *os.Root, name string, h *tar.Header, content io.Reader) error {
	if err := x.parents(root, name); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return x.file(root, name, h, content)
	case tar.TypeDir:
		return x.folder(root, name, h)
	case tar.TypeSymlink:
		return x.link(root, name, h.Linkname)
	case tar.TypeLink:
		return x.hardLink(root, name, h.Linkname)
	}
	x.Report.skipped(name, "is neither a file nor a folder nor a link")
	return nil
}

// parents makes the folders on the way to name, and refuses to go through a link.
func (x *extractor) parents(root *os.Root, name string) error {
	folder := path.Dir(name)
	if folder == "." || folder == x.checked {
		return nil
	}
	if err := root.MkdirAll(folder, 0o755); err != nil {
		return local(err)
	}
	for at := folder; at != "."; at = path.Dir(at) {
		st, err := root.Lstat(at)
		if err != nil {
			return local(err)
		}
		if st.Mode().Type() == fs.ModeSymlink {
			return fault.New(fault.Conflict, "%q would be written through the link %q.", name, at)
		}
	}
	x.checked = folder
	return nil
}

// file writes a temporary file and renames it when it is whole.
func (x *extractor) file(root *os.Root, name string, h *tar.Header, content io.Reader) error {
	next := path.Join(path.Dir(name), fmt.Sprintf(".sandboxd-%d~", os.Getpid()))
	_ = root.Remove(next) // of a copy that was cut off under the same number
	f, err := root.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, h.FileInfo().Mode().Perm())
	if err != nil {
		return local(err)
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, &counted{content, x.Report}, x.buf)
	if err != nil {
		err = damaged(err)
	} else if err = f.Close(); err == nil {
		err = errors.Join(root.Chtimes(next, h.ModTime, h.ModTime), root.Rename(next, name))
	}
	if err != nil {
		f.Close()
		_ = root.Remove(next) // the first error is what counts
		return local(err)
	}
	return nil
}

func (x *extractor) folder(root *os.Root, name string, h *tar.Header) error {
	mode := h.FileInfo().Mode().Perm()
	err := root.Mkdir(name, mode|0o700)
	if err == nil {
		x.folders = append(x.folders, made{name, mode, h.ModTime})
		return nil
	}
	if st, statErr := root.Lstat(name); statErr == nil && st.IsDir() {
		return nil // merged into a folder that was there
	}
	return local(err)
}

// link makes a symbolic link, unless it leads out.
func (x *extractor) link(root *os.Root, name, target string) error {
	if !x.KeepLinks && leadsOut(name, target) {
		x.Report.skipped(name, "is a link that leads out of the copy")
		return nil
	}
	if err := x.clear(root, name); err != nil {
		return err
	}
	if err := root.Symlink(target, name); err != nil {
		return local(err)
	}
	return nil
}

// leadsOut says whether a link in the folder of name may lead out of the tree. Behind the first step down it may go up no more:
// that step may be a link itself.
func leadsOut(name, target string) bool {
	if target == "" || target[0] == '/' {
		return true
	}
	depth, down := strings.Count(name, "/"), false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "..":
			depth--
			if down || depth < 0 {
				return true
			}
		case part != "" && part != ".":
			down = true
		}
	}
	return false
}

// hardLink makes a second name of a file that the archive has brought.
func (x *extractor) hardLink(root *os.Root, name, target string) error {
	to, err := below(target, x.From)
	if err != nil {
		return err
	}
	if to == "" || root != x.tree {
		return fault.New(fault.Unavailable, "The server sent %q, which leads elsewhere.", name)
	}
	if err := x.parents(root, to); err != nil {
		return err
	}
	if st, err := root.Lstat(to); err != nil || !st.Mode().IsRegular() {
		x.Report.skipped(name, "is a hard link to something that is not a file")
		return nil
	}
	if err := x.clear(root, name); err != nil {
		return err
	}
	if err := root.Link(to, name); err != nil {
		return local(err)
	}
	return nil
}

// clear removes an existing entry, unless it is a folder.
func (x *extractor) clear(root *os.Root, name string) error {
	st, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && st.IsDir() {
		return fault.New(fault.Conflict, "%q is a folder, and would have to be something else.", name)
	}
	if err == nil {
		err = root.Remove(name)
	}
	if err != nil {
		return local(err)
	}
	return nil
}

// finish gives folders what writing into them would have changed.
func (x *extractor) finish() error {
	for _, f := range slices.Backward(x.folders) {
		err := x.tree.Chtimes(f.name, f.modified, f.modified)
		if f.mode&0o700 != 0o700 {
			err = errors.Join(err, x.tree.Chmod(f.name, f.mode))
		}
		if err != nil {
			return local(err)
		}
	}
	return nil
}
