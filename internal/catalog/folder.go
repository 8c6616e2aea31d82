package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// The files of a template that sandboxd itself reads.
const (
	manifestFile   = "template.yaml"
	dockerFile     = "Dockerfile"
	readmeFile     = "README.md"
	ignoreFile     = ".dockerignore"
	ownFolder      = ".sandboxd" // where builds find what sandboxd adds; a template has none of its own
	maxReadme      = 64 << 10
	maxFiles       = 10_000    // of a build context
	maxFolderBytes = 512 << 20 // of a build context
)

// racy is how young a file may be for its time stamp to prove nothing: a second write within one tick of the file
// system's clock leaves size and time as they were.
const racy = 100 * time.Millisecond

// contextFile is one file of a template's folder.
type contextFile struct {
	Path     string // with slashes, below the folder
	Mode     fs.FileMode
	Size     int64
	Modified time.Time
}

// folder is what a template's folder holds, by names and stamps; contents are read only when those have changed.
type folder struct {
	Path    string        // as it is named; a link to a folder that never changes is followed once, so that all is of one version
	Real    string        // where it is read from
	Files   []contextFile // by path; what .dockerignore leaves out is not in it, but for the files we read ourselves
	Print   string        // changes when anything in Files does
	Settled bool          // Print proves that the contents are the same, too
}

// scan reads the names and stamps of a template's folder. A Problem names a file that is not allowed.
func scan(dir string) (*folder, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("find template folder: %w", err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("open template folder: %w", err)
	}
	defer root.Close()
	ignored, err := readIgnore(root, dir)
	if err != nil {
		return nil, err
	}
	s := &scanner{root: root, dir: dir, real: real, ignored: ignored}
	if err := fs.WalkDir(root.FS(), ".", s.add); err != nil {
		return nil, err
	}
	return s.folder(time.Now()), nil
}

// scanner walks one folder.
type scanner struct {
	root    *os.Root
	dir     string
	real    string
	ignored *patternmatcher.PatternMatcher
	files   []contextFile
	bytes   int64
}

func (s *scanner) add(name string, d fs.DirEntry, err error) error {
	if err != nil {
		return fmt.Errorf("read template folder: %w", err)
	}
	if name == "." {
		return nil
	}
	if name == ownFolder {
		return s.problem(name, "The folder %s is sandboxd's own. Remove it.", ownFolder)
	}
	if skip, err := s.skip(name, d); skip || err != nil {
		return err
	}
	info, err := d.Info()
	if err != nil {
		return fmt.Errorf("read template folder: %w", err)
	}
	if info.IsDir() {
		return nil
	}
	if err := s.allowed(name, info); err != nil {
		return err
	}
	s.bytes += info.Size()
	if len(s.files) >= maxFiles || s.bytes > maxFolderBytes {
		return s.problem("", "The folder holds more than %d files or %d MiB. List what a build does not need in %s.",
			maxFiles, maxFolderBytes>>20, ignoreFile)
	}
	s.files = append(s.files, contextFile{Path: name, Mode: info.Mode(), Size: info.Size(), Modified: info.ModTime()})
	return nil
}

// skip tells whether .dockerignore leaves name out; a whole folder at once when nothing in it can be taken back in.
func (s *scanner) skip(name string, d fs.DirEntry) (bool, error) {
	switch name {
	case manifestFile, dockerFile, readmeFile, ignoreFile:
		return false, nil
	}
	out, err := s.ignored.MatchesOrParentMatches(name)
	if err != nil {
		return false, s.problem(ignoreFile, "A pattern cannot be read: %v.", err)
	}
	if out && d.IsDir() && !s.ignored.Exclusions() {
		return true, fs.SkipDir
	}
	return out && !d.IsDir(), nil
}

// allowed refuses links that leave the folder, and anything that is neither a file, a folder nor a link.
func (s *scanner) allowed(name string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.Mode()&fs.ModeSymlink == 0:
		return s.problem(name, "It is neither a file, a folder nor a link. Remove it.")
	}
	if _, err := s.root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.problem(name, "The link leads out of the template's folder. Copy the file in instead.")
	}
	return nil
}

func (s *scanner) problem(name, format string, args ...any) error {
	return Problem{File: path.Join(s.dir, name), Message: fmt.Sprintf(format, args...)}
}

func (s *scanner) folder(now time.Time) *folder {
	slices.SortFunc(s.files, func(a, b contextFile) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) })
	sum := sha256.New()
	f := &folder{Path: s.dir, Real: s.real, Files: s.files, Settled: true}
	fmt.Fprintf(sum, "%q\n", s.real)
	for _, file := range s.files {
		fmt.Fprintf(sum, "%q %o %d %d\n", file.Path, file.Mode, file.Size, file.Modified.UnixNano())
		if now.Sub(file.Modified) < racy {
			f.Settled = false
		}
	}
	f.Print = hex.EncodeToString(sum.Sum(nil))
	return f
}

// readIgnore reads .dockerignore; without one nothing is left out.
func readIgnore(root *os.Root, dir string) (*patternmatcher.PatternMatcher, error) {
	text, err := readBounded(root, ignoreFile, maxManifest)
	return parseIgnore(dir, text, err)
}

// parseIgnore takes in .dockerignore, or why it cannot be read.
func parseIgnore(dir string, text []byte, err error) (*patternmatcher.PatternMatcher, error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, Problem{File: path.Join(dir, ignoreFile), Message: "The file cannot be read, or is too large."}
	}
	patterns, err := ignorefile.ReadAll(bytes.NewReader(text))
	if err == nil {
		var m *patternmatcher.PatternMatcher
		if m, err = patternmatcher.New(patterns); err == nil {
			return m, nil
		}
	}
	return nil, Problem{File: path.Join(dir, ignoreFile), Message: fmt.Sprintf("A pattern cannot be read: %v.", err)}
}

var errTooLarge = errors.New("file is too large")

// readBounded reads a file of at most limit bytes below root. Only regular files are opened: a pipe would never end.
func readBounded(root *os.Root, name string, limit int64) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: not a file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = errTooLarge
	}
	return text, err
}

// digest is the content of the build context: paths, contents, and whether a file can be run; nothing of times and
// owners, so that a clone on another machine gives the same.
func (f *folder) digest() (string, error) {
	root, err := os.OpenRoot(f.Real)
	if err != nil {
		return "", fmt.Errorf("open template folder: %w", err)
	}
	defer root.Close()
	ignored, err := readIgnore(root, f.Path)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, file := range f.Files {
		if out, _ := ignored.MatchesOrParentMatches(file.Path); out && file.Path != dockerFile {
			continue
		}
		if err := digestFile(sum, root, file); err != nil {
			return "", fmt.Errorf("read template folder: %w", err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func digestFile(sum hash.Hash, root *os.Root, file contextFile) error {
	if file.Mode&fs.ModeSymlink != 0 {
		target, err := root.Readlink(file.Path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "link %q %q\n", file.Path, target)
		return nil
	}
	f, err := openContext(root, file.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	content := sha256.New()
	if _, err := io.Copy(content, io.LimitReader(f, maxFolderBytes)); err != nil {
		return err
	}
	fmt.Fprintf(sum, "file %q %t %x\n", file.Path, file.Mode&0o111 != 0, content.Sum(nil))
	return nil
}

// apartLine is a line of template.yaml that says how sandboxes are held or kept, or whether they offer VS Code. An image has
// nothing of that, so it is left out of the digest, and a change gives no other image.
var apartLine = regexp.MustCompile(`(?m)^(?:freeze_after|stop_after|pool|ide|user_namespaces):[ \t]*["']?[A-Za-z0-9.]*["']?[ \t]*(?:#.*)?(?:\r?\n|\z)`)

// openContext opens a file of the build context as a digest sees it.
func openContext(root *os.Root, name string) (io.ReadCloser, error) {
	if name == manifestFile {
		if text, err := readBounded(root, name, maxManifest); err == nil {
			return io.NopCloser(bytes.NewReader(apartLine.ReplaceAll(text, nil))), nil
		} // one that is broken or too large is no template's
	}
	return root.Open(name)
}
