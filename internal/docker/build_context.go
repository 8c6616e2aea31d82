package docker

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

// Bounds on a build context.
const (
	maxContextBytes = 512 << 20
	maxContextFiles = 20_000
	maxIgnore       = 256 << 10
)

const (
	dockerfile = "Dockerfile"
	ignoreFile = ".dockerignore"
)

// contextWriter writes a build's context as a tar.
type contextWriter struct {
	root    *os.Root
	ignored *patternmatcher.PatternMatcher
	extra   map[string][]byte
	out     *tar.Writer
	folders map[string]bool // written so far
	bytes   int64
	files   int
}

// writeContext writes b's context to w: its folder without what .dockerignore leaves out, and the extra files, which
// replace those of the same path. Owners are left out. Links are kept as links; the engine resolves them within the
// context. Invalid names an entry that is too large or cannot be sent.
func writeContext(w io.Writer, b catalog.Build) (err error) {
	root, err := os.OpenRoot(b.Folder)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "The template's folder %s cannot be read: %v.", b.Folder, errors.Unwrap(err))
	}
	defer root.Close()
	a := &contextWriter{root: root, extra: b.Extra, out: tar.NewWriter(w), folders: map[string]bool{}}
	if a.ignored, err = readIgnored(root); err != nil {
		return err
	}
	if err := fs.WalkDir(root.FS(), ".", a.addEntry); err != nil {
		return unreadable(err)
	}
	if err := a.addExtra(); err != nil {
		return err
	}
	return a.out.Close()
}

// unreadable classifies what stopped the reading of a template's folder.
func unreadable(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fault.Wrap(err, fault.Invalid, "The template's folder cannot be read: %v.", p)
	}
	return fmt.Errorf("read build context: %w", err)
}

func readIgnored(root *os.Root) (*patternmatcher.PatternMatcher, error) {
	f, err := root.Open(ignoreFile)
	if errors.Is(err, fs.ErrNotExist) {
		return patternmatcher.New(nil)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "%s cannot be read: %v.", ignoreFile, err)
	}
	defer f.Close()
	patterns, err := ignorefile.ReadAll(io.LimitReader(f, maxIgnore))
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "%s cannot be read: %v.", ignoreFile, err)
	}
	m, err := patternmatcher.New(patterns)
	return m, fault.Wrap(err, fault.Invalid, "A pattern in %s cannot be read: %v.", ignoreFile, err)
}

func (a *contextWriter) addEntry(name string, d fs.DirEntry, err error) error {
	if err != nil || name == "." {
		return err
	}
	if skip, err := a.skip(name, d); skip || err != nil {
		return err
	}
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed while we read
	}
	if err != nil {
		return err
	}
	return a.add(name, info)
}

// skip tells whether name is left out. A folder is left out as a whole when no pattern can take back a part of it.
func (a *contextWriter) skip(name string, d fs.DirEntry) (bool, error) {
	if _, replaced := a.extra[name]; replaced {
		return true, nil
	}
	if name == dockerfile || name == ignoreFile {
		return false, nil // the builder needs them whatever the patterns say
	}
	out, err := a.ignored.MatchesOrParentMatches(filepath.FromSlash(name))
	if err != nil {
		return false, fault.Wrap(err, fault.Invalid, "A pattern in %s cannot be read: %v.", ignoreFile, err)
	}
	if out && d.IsDir() && !a.ignored.Exclusions() {
		return true, fs.SkipDir
	}
	return out && !d.IsDir(), nil
}

func (a *contextWriter) add(name string, info fs.FileInfo) error {
	link := ""
	var err error
	switch {
	case info.Mode().IsRegular(), info.IsDir():
	case info.Mode()&fs.ModeSymlink != 0:
		if link, err = a.root.Readlink(name); err != nil {
			return err
		}
	default:
		return fault.New(fault.Invalid, "%s is neither a file, a folder nor a link, so it cannot be part of a build. Remove it, or list it in %s.", name, ignoreFile)
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name = name
	if info.IsDir() {
		header.Name += "/"
		a.folders[name] = true
	}
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	header.Format = tar.FormatPAX
	if err := a.count(name, header.Size); err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return a.out.WriteHeader(header)
	}
	return a.copy(name, header)
}

// copy writes one file: as many bytes as its header says, or it fails, since it changed while it was read.
func (a *contextWriter) copy(name string, header *tar.Header) (err error) {
	f, err := a.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return fault.Wrap(errors.Join(err, errChanged), fault.Invalid, "%s changed while it was read. Try again.", name)
	}
	if err := a.out.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.CopyN(a.out, f, header.Size)
	if errors.Is(err, io.EOF) {
		return fault.Wrap(err, fault.Invalid, "%s changed while it was read. Try again.", name)
	}
	return err
}

var errChanged = errors.New("file changed")

func (a *contextWriter) count(name string, size int64) error {
	a.files++
	a.bytes += size
	if a.files > maxContextFiles || a.bytes > maxContextBytes {
		return fault.New(fault.Invalid, "The template's folder is too large to build from: more than %d files or %d MiB, counted up to %s. List what the build does not need in %s.",
			maxContextFiles, maxContextBytes>>20, name, ignoreFile)
	}
	return nil
}

// addExtra adds the extra files and the folders that they are in.
func (a *contextWriter) addExtra() error {
	for _, name := range slices.Sorted(maps.Keys(a.extra)) {
		if !fs.ValidPath(name) || name == "." {
			return fault.New(fault.Internal, "%q is not a path for an extra file of a build.", name)
		}
		if err := a.addFolders(name); err != nil {
			return err
		}
		content := a.extra[name]
		if err := a.count(name, int64(len(content))); err != nil {
			return err
		}
		if err := a.out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		if _, err := a.out.Write(content); err != nil {
			return err
		}
	}
	return nil
}

// addFolders adds the folders above name that are not there yet.
func (a *contextWriter) addFolders(name string) error {
	for i, r := range name {
		if dir := name[:i]; r == '/' && !a.folders[dir] {
			a.folders[dir] = true
			if err := a.out.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
				return err
			}
		}
	}
	return nil
}
