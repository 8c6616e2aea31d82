package docker

import (
	"archive/tar"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
)

const (
	whiteout    = ".wh."  // begins the name of an entry of a layer that removes a file of the layers below
	longestPath = 3900    // bytes of a path that an engine unpacks into a folder of its own: all of it may have 4,095
	maxRootSize = 1 << 20 // files and folders of a root file system that are compared; each takes some 100 bytes of memory
	maxHeaders  = 1 << 17 // folders and further names of files; each takes some 600 bytes
)

// rootSeed makes sums that a sandbox cannot aim at.
var rootSeed = maphash.MakeSeed()

// rootEntry is what is remembered of a file of an image.
type rootEntry struct {
	head, content uint64
}

// rootTree is what an image has, by path.
type rootTree map[string]rootEntry

// layerWriter writes, as a layer of an image, what a root file system has that its image does not have.
type layerWriter struct {
	out   *tar.Writer
	base  rootTree // without what was seen already
	skip  func(at string) bool
	above func(at string) bool                              // of a folder in which the engine makes what it mounts
	fetch func(at string, take func(io.Reader) error) error // gives take a file once more, as a tar archive

	folders map[string]*tar.Header
	written map[string]bool
	instead map[string]string // names of files that cannot have their first one
	links   []*tar.Header     // further names of files
	lost    archive.Stats     // what cannot be in a layer
	again   []string          // files that differ, which was seen only when they were read
}

// readTree reads the root file system of an image.
func readTree(from io.Reader, w *layerWriter) error {
	w.base = rootTree{}
	return w.each(from, func(at string, h *tar.Header, content io.Reader) error {
		if len(w.base) >= maxRootSize {
			return fault.New(fault.Invalid, "The image has more than %d files, too many to compare them.", maxRootSize)
		}
		sum, err := contentSum(h, content)
		w.base[at] = rootEntry{w.headSum(at, h), sum}
		return err
	})
}

// each calls do for the entries that count.
func (w *layerWriter) each(from io.Reader, do func(at string, h *tar.Header, content io.Reader) error) error {
	return eachEntry(from, func(at string, h *tar.Header, content io.Reader) error {
		if at == "/" || w.skip(at) || w.above(at) && h.Typeflag != tar.TypeDir { // a mount needs folders
			return nil
		}
		return do(at, h, content)
	})
}

// headSum is a sum of all that is said of a file besides its content. The time of a folder in which the engine makes what it mounts is
// another one in each container.
func (w *layerWriter) headSum(at string, h *tar.Header) uint64 {
	var sum maphash.Hash
	sum.SetSeed(rootSeed)
	modified := h.ModTime.Unix()
	if h.Typeflag == tar.TypeDir && w.above(at) {
		modified = 0
	}
	fmt.Fprintln(&sum, h.Typeflag, h.Mode, h.Uid, h.Gid, h.Size, h.Devmajor, h.Devminor, modified, path.Clean("/"+h.Linkname), h.Linkname)
	for _, name := range slices.Sorted(maps.Keys(h.PAXRecords)) {
		if strings.HasPrefix(name, "SCHILY.xattr.") {
			fmt.Fprintln(&sum, len(name), name, h.PAXRecords[name])
		}
	}
	return sum.Sum64()
}

func contentSum(h *tar.Header, content io.Reader) (uint64, error) {
	if h.Typeflag != tar.TypeReg {
		return 0, nil
	}
	var sum maphash.Hash
	sum.SetSeed(rootSeed)
	_, err := io.Copy(&sum, content)
	return sum.Sum64(), err
}

// writeLayer writes to out what a root file system has that w.base does not have.
func (w *layerWriter) writeLayer(from io.Reader) error {
	w.folders, w.written, w.instead = map[string]*tar.Header{}, map[string]bool{}, map[string]string{}
	if err := w.each(from, w.see); err != nil {
		return err
	}
	for _, at := range w.again {
		if err := w.writeAgain(at, at); err != nil {
			return err
		}
	}
	if err := w.writeLinks(); err != nil {
		return err
	}
	for _, at := range slices.Sorted(maps.Keys(w.base)) {
		if err := w.writeRemoved(at); err != nil {
			return err
		}
	}
	return w.out.Close()
}

// see writes an entry that differs. Links follow when it is known which files are written.
func (w *layerWriter) see(at string, h *tar.Header, content io.Reader) error {
	if len(w.written) > maxRootSize || len(w.folders)+len(w.links) > maxHeaders {
		return fault.New(fault.Invalid, "The sandbox has too many files outside of its home for a backup of its root file system: at most %d that were changed, and %d folders and hard links in all.", maxRootSize, maxHeaders)
	}
	if why := unkept(at); why != "" {
		w.lost.Lose(at, why)
		return nil
	}
	if h.Typeflag == tar.TypeDir {
		w.folders[at] = h
	}
	if h.Typeflag == tar.TypeLink {
		w.links = append(w.links, h)
		return nil
	}
	was, had := w.base[at]
	delete(w.base, at)
	if h.Typeflag == tar.TypeDir && w.above(at) && !had {
		return nil // the engine has made it
	}
	if !had || was.head != w.headSum(at, h) {
		return w.write(at, h, content)
	}
	sum, err := contentSum(h, content)
	if err == nil && sum != was.content {
		w.again = append(w.again, at)
	}
	return err
}

// unkept says why no layer can have a file of a path; "" when it can.
func unkept(at string) string {
	switch {
	case strings.Contains(at, "/"+whiteout):
		return "has a name that begins with .wh., which stands for a deletion in an image"
	case len(at) > longestPath:
		return "has a path that is too long for an image"
	}
	return ""
}

// write writes an entry after the folders that it is in.
func (w *layerWriter) write(at string, h *tar.Header, content io.Reader) error {
	if w.written[at] {
		return nil
	}
	for i, c := range at {
		if folder := at[:i]; c == '/' && i > 0 && !w.written[folder] && w.folders[folder] != nil {
			w.written[folder] = true
			if err := w.writeAs(folder, w.folders[folder], nil); err != nil {
				return err
			}
		}
	}
	w.written[at] = true
	return w.writeAs(at, h, content)
}

func (w *layerWriter) writeAs(at string, h *tar.Header, content io.Reader) error {
	entry := *h
	entry.Name, entry.Format = at[1:], tar.FormatPAX
	if h.Typeflag == tar.TypeDir {
		entry.Name += "/"
	}
	if err := w.out.WriteHeader(&entry); err != nil {
		return fmt.Errorf("write %.200q: %w", at, err)
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(w.out, content)
	return err
}

// writeAgain writes a file that has been read past, which the container has at from.
func (w *layerWriter) writeAgain(at, from string) error {
	return w.fetch(from, func(content io.Reader) error {
		in := tar.NewReader(content)
		h, err := in.Next()
		if err != nil {
			return fmt.Errorf("read %.200q again: %w", from, err)
		}
		return w.write(at, h, in)
	})
}

// target gives the name under which the file of a link is in the layer. One that cannot be there has that of its first further name.
func (w *layerWriter) target(h *tar.Header) string {
	target := path.Clean("/" + h.Linkname)
	if unkept(target) == "" {
		return target
	}
	if w.instead[target] == "" {
		w.instead[target] = path.Clean("/" + h.Name)
	}
	return w.instead[target]
}

// writeLinks writes the further names of files of which one is new, or which are written. The file is then, too: layers are unpacked alone.
func (w *layerWriter) writeLinks() error {
	files := map[string]bool{}
	for _, h := range w.links {
		at, target := path.Clean("/"+h.Name), w.target(h)
		was, had := w.base[at]
		delete(w.base, at)
		files[target] = files[target] || w.written[target] || !had || was.head != w.headSum(at, h)
	}
	for _, h := range w.links {
		at, target := path.Clean("/"+h.Name), w.target(h)
		if !files[target] {
			continue
		}
		if !w.written[target] {
			if err := w.writeAgain(target, path.Clean("/"+h.Linkname)); err != nil {
				return err
			}
		}
		h.Linkname = target[1:]
		if err := w.write(at, h, nil); err != nil { // not twice, when it is the file itself
			return err
		}
	}
	return nil
}

// writeRemoved says that a file of the image is gone, unless the folder that it was in says so.
func (w *layerWriter) writeRemoved(at string) error {
	folder, name := path.Split(at)
	if up := path.Clean(folder); up != "/" && w.folders[up] == nil || w.above(at) || unkept(at) != "" {
		return nil
	}
	return w.write(folder+whiteout+name, &tar.Header{Typeflag: tar.TypeReg, Mode: 0o600}, strings.NewReader(""))
}
