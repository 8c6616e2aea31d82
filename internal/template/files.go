package template

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// File is one file of a template.
type File struct {
	Path       string // with slashes
	Size       int64  // bytes
	Executable bool
	IsText     bool // Text has all of it: it is UTF-8 and at most MaxText
	Text       string
}

// Files are all files of a template, as they were in one moment.
type Files struct {
	Template string
	Origin   Origin
	ETag     string // of paths, contents and rights, in quotes
	List     []File // by path, at most MaxFiles
	More     bool   // there are more files

	folder string // that they were read from, which never changes for a template that was made here
}

// manifest and its like are the files that every template has.
const (
	manifest   = "template.yaml"
	dockerFile = "Dockerfile"
	readme     = "README.md"
)

// Skeleton gives the files of a new template.
func Skeleton(name string) map[string]string {
	return map[string]string{
		manifest:   "name: " + name + "\ntitle: " + titleOf(name) + "\ndescription: What this sandbox is for.\nicon: box\nbase: base\n",
		dockerFile: "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n\n# RUN sudo install-packages ripgrep\n",
		readme:     "# " + name + "\n\nWhat is in this template, and how it is used.\n",
	}
}

// titleOf makes a title of a name.
func titleOf(name string) string {
	return strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], "-", " ")
}

// Origin says where a template is from. NotFound when there is none.
func (s *Service) Origin(name string) (Origin, error) {
	e, err := entryOf(s.c.Templates, name)
	if err != nil {
		return "", err
	}
	if e.Template.Folder != s.disk.link(name) {
		return Shipped, nil
	}
	if _, ok := s.source(name); ok {
		return Git, nil
	}
	return Own, nil
}

// entryOf finds a template, usable or broken.
func entryOf(all Templates, name string) (catalog.Entry, error) {
	for _, e := range all.List() {
		if e.Name == name {
			return e, nil
		}
	}
	_, err := all.Template(name)
	return catalog.Entry{}, cmp.Or(err, fault.New(fault.NotFound, "There is no template called %.64q.", name))
}

// Files gives the files of any template.
func (s *Service) Files(name string) (Files, error) {
	e, err := entryOf(s.c.Templates, name)
	if err != nil {
		return Files{}, err
	}
	origin, err := s.Origin(name)
	if err != nil {
		return Files{}, err
	}
	f, err := readFiles(e.Template.Folder)
	f.Template, f.Origin = name, origin
	return f, err
}

// readFiles reads a folder. What is neither a file nor a folder is left out.
func readFiles(folder string) (Files, error) {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return Files{}, fault.Wrap(err, fault.Unavailable, "The template's folder cannot be read.")
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Files{}, fault.Wrap(err, fault.Unavailable, "The template's folder cannot be read.")
	}
	defer root.Close()
	out := Files{folder: folder}
	sum, total := sha256.New(), int64(0)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if total += info.Size(); len(out.List) == MaxFiles || total > MaxBytes {
			out.More = true
			return fs.SkipAll
		}
		content, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		f := fileOf(name, content, info.Mode())
		fmt.Fprintf(sum, "%q %t %x\n", name, f.Executable, sha256.Sum256(content))
		out.List = append(out.List, f)
		return nil
	})
	if err != nil {
		return Files{}, fault.Wrap(err, fault.Unavailable, "The template's folder cannot be read: %v.", errors.Unwrap(err))
	}
	slices.SortFunc(out.List, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	out.ETag = `"` + hex.EncodeToString(sum.Sum(nil)[:12]) + `"`
	return out, nil
}

func fileOf(name string, content []byte, mode fs.FileMode) File {
	f := File{Path: name, Size: int64(len(content)), Executable: mode&0o111 != 0}
	if len(content) <= MaxText && utf8.Valid(content) && !bytes.ContainsRune(content, 0) {
		f.IsText, f.Text = true, string(content)
	}
	return f
}

// Edit is a change of a template: all files that it has from now on, by path. One without a text stays as it is.
type Edit struct {
	Files map[string]*string
	Match func(etag string) bool // of the version that the change is made to, "" for none; nil takes any
}

// Check gives what would be wrong with a template, were it as the edit says.
func (s *Service) Check(name string, e Edit) ([]catalog.Problem, error) {
	if err := errors.Join(checkName(name), checkPaths(e.Files)); err != nil {
		return nil, err
	}
	_, files, err := s.merged(name, e.Files)
	if err != nil {
		return nil, err
	}
	return s.c.Templates.Check(name, files), nil
}

// merged gives the files of a template with an edit, and those that stay.
func (s *Service) merged(name string, edit map[string]*string) (stay Files, files map[string][]byte, err error) {
	files = map[string][]byte{}
	version, err := s.disk.current(name)
	if err == nil {
		if stay, err = readFiles(version); err != nil {
			return stay, nil, err
		}
	}
	for at, content := range edit {
		if content != nil {
			files[at] = []byte(*content)
			continue
		}
		i := slices.IndexFunc(stay.List, func(f File) bool { return f.Path == at })
		if i < 0 {
			return stay, nil, fault.Field("files", "There is no file %.80q that could stay as it is.", at)
		}
		if stay.List[i].IsText {
			files[at] = []byte(stay.List[i].Text)
		}
	}
	return stay, files, nil
}

// Put makes or changes a template of one's own. What is broken is refused: Invalid with the field "files" and the mistakes. Other kinds:
// Conflict (it comes from git), ErrChanged.
func (s *Service) Put(ctx context.Context, name string, e Edit) (Files, error) {
	if err := errors.Join(checkName(name), checkPaths(e.Files)); err != nil {
		return Files{}, err
	}
	return s.change(ctx, name, func() (Files, error) {
		stay, files, err := s.merged(name, e.Files)
		if err != nil {
			return Files{}, err
		}
		if e.Match != nil && !e.Match(stay.ETag) {
			return Files{}, ErrChanged
		}
		if err := refusal(s.c.Templates.Check(name, files)); err != nil {
			return Files{}, err
		}
		return s.write(name, stay, e.Files)
	})
}

// write makes a version of an edit and puts it into place.
func (s *Service) write(name string, stay Files, edit map[string]*string) (Files, error) {
	old, _ := s.disk.current(name)
	version, err := s.disk.begin(name)
	if err != nil {
		return Files{}, err
	}
	for _, at := range slices.Sorted(maps.Keys(edit)) {
		i := slices.IndexFunc(stay.List, func(f File) bool { return f.Path == at })
		executable := i >= 0 && stay.List[i].Executable
		if edit[at] == nil {
			err = errors.Join(err, copyFile(filepath.Join(old, at), filepath.Join(version, at), executable))
		} else {
			err = errors.Join(err, writeFile(filepath.Join(version, at), []byte(*edit[at]), executable || i < 0 && strings.HasPrefix(*edit[at], "#!")))
		}
	}
	if err == nil {
		err = s.disk.put(name, version)
	}
	if err != nil {
		return Files{}, errors.Join(unwritten(err), os.RemoveAll(version))
	}
	return s.Files(name)
}

func writeFile(at string, content []byte, executable bool) error {
	mode := fs.FileMode(0o644)
	if executable {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(at, content, mode), os.Chmod(at, mode))
}

func copyFile(from, to string, executable bool) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return writeFile(to, content, executable)
}

// nameLine is the line of template.yaml that a copy has otherwise.
var nameLine = regexp.MustCompile(`(?m)^name:.*$`)

// Copy makes a template of one's own with the files of another one. Kinds as for Put, and TooLarge.
func (s *Service) Copy(ctx context.Context, from, name string) (Files, error) {
	if err := checkName(name); err != nil {
		return Files{}, err
	}
	e, err := entryOf(s.c.Templates, from)
	if err != nil {
		return Files{}, err
	}
	all, err := readFiles(e.Template.Folder)
	if err != nil {
		return Files{}, err
	}
	if all.More {
		return Files{}, fault.New(fault.TooLarge, "The template %s has more than %d files or %d MiB, which is too much for a copy.", from, MaxFiles, MaxBytes>>20)
	}
	return s.change(ctx, name, func() (Files, error) {
		if _, err := s.disk.current(name); err == nil {
			return Files{}, taken(name)
		}
		version, err := s.disk.begin(name)
		if err != nil {
			return Files{}, err
		}
		var about string
		for _, f := range all.List {
			err = errors.Join(err, copyFile(filepath.Join(all.folder, f.Path), filepath.Join(version, f.Path), f.Executable))
			if f.Path == manifest {
				about = f.Text
			}
		}
		err = errors.Join(err, writeFile(filepath.Join(version, manifest), []byte(nameLine.ReplaceAllLiteralString(about, "name: "+name)), false))
		if err == nil {
			err = refusal(s.c.Templates.CheckFolder(name, version))
		}
		if err == nil {
			err = s.disk.put(name, version)
		}
		if err != nil {
			return Files{}, errors.Join(err, os.RemoveAll(version))
		}
		return s.Files(name)
	})
}

func taken(name string) error {
	return &fault.Error{Kind: fault.Conflict, Field: "name", Message: fmt.Sprintf("There is a template %.64s of your own already. Choose another name.", name)}
}

// refusal is Invalid with the first mistakes, each in a line of its own, and how many more there are. Check lists them all.
func refusal(problems []catalog.Problem) error {
	const most = 8
	if len(problems) == 0 {
		return nil
	}
	var lines []string
	for _, p := range problems[:min(most, len(problems))] {
		lines = append(lines, p.Error())
	}
	if n := len(problems) - most; n > 0 {
		lines = append(lines, fmt.Sprintf("And %d more.", n))
	}
	return fault.Field("files", "%s", strings.Join(lines, "\n"))
}

// checkName refuses what cannot be the name of a template of one's own: "new" is a page.
func checkName(name string) error {
	if name == "new" {
		return fault.Field("name", "A template cannot be called new.")
	}
	return catalog.CheckName(name)
}

// checkPaths refuses files that a template cannot have.
func checkPaths(files map[string]*string) error {
	if len(files) > MaxFiles {
		return fault.Field("files", "A template has at most %d files.", MaxFiles)
	}
	for at, content := range files {
		first, _, _ := strings.Cut(at, "/")
		switch {
		case at == "" || len(at) > 200 || path.IsAbs(at) || path.Clean(at) != at || first == ".." || at == "." || strings.Contains(at, `\`) || text.Unprintable(at):
			return fault.Field("files", "%.80q is not the path of a file. Write it such as files/setup.sh.", at)
		case first == ".sandboxd" || first == ".git":
			return fault.Field("files", "A template has no folder %s.", first)
		case strings.Count(at, "/") > 8:
			return fault.Field("files", "%.80q is in too many folders.", at)
		case content != nil && len(*content) > MaxText:
			return fault.Field("files", "%.80q is larger than %d KiB.", at, MaxText>>10)
		case content != nil && (!utf8.ValidString(*content) || strings.ContainsRune(*content, 0)):
			return fault.Field("files", "%.80q is not text.", at)
		}
		for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
			if _, both := files[dir]; both {
				return fault.Field("files", "%.80q cannot be a file and a folder.", dir)
			}
		}
	}
	return nil
}
