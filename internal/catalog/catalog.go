package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sandboxd/internal/fault"
)

// maxTemplates bounds how many folders of one catalog are read.
const maxTemplates = 500

// Catalog is the templates of some folders. Safe for concurrent use. Every call looks at the disk (names and stamps;
// contents only when those changed), so that an edit is seen at once.
type Catalog struct {
	folders []string

	mu   sync.Mutex
	read map[string]*reading // by template folder
}

// Entry is one template as it stands on the disk, usable or broken.
type Entry struct {
	Name     string
	Template Template  // what could be read; complete when Problem is nil
	Problem  *Problem  // the first of Problems, or nil
	Problems []Problem // every mistake that was found, in the order of the file
	Readme   string
	Replaces string // the folder of the template of the same name that this one stands in for, or ""
}

// Open reads templates from folders: each folder in them with a template.yaml or a Dockerfile is one. Where two have
// the same name, the later folder wins. A folder that is not there is Invalid; a broken template is not an error.
func Open(folders ...string) (*Catalog, error) {
	c := &Catalog{read: map[string]*reading{}}
	for _, f := range folders {
		abs, err := filepath.Abs(f)
		if err != nil {
			return nil, fmt.Errorf("find template folder %s: %w", f, err)
		}
		if _, err := os.ReadDir(abs); err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "The template folder %s cannot be read. Create it, or change the configuration.", abs)
		}
		if _, err := os.Stat(filepath.Join(abs, manifestFile)); err == nil {
			return nil, fault.New(fault.Invalid, "%s is a template itself. Give the folder that it is in.", abs)
		}
		c.folders = append(c.folders, abs)
	}
	return c, nil
}

// Template gives the template of this name. NotFound names the templates there are; Invalid says what is broken;
// Unavailable says which folder of templates cannot be read now.
func (c *Catalog) Template(name string) (Template, error) {
	found, err := c.find(name)
	if err != nil {
		return Template{}, err
	}
	return found.entry.Template, nil
}

// List gives every template, base first and the others by name, the broken ones with their Problem. A folder of templates that cannot be read is
// listed as a broken one.
func (c *Catalog) List() []Entry {
	all, _ := c.look() // the error is in the list
	entries := make([]Entry, 0, len(all))
	for _, r := range all {
		entries = append(entries, r.entry)
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		switch {
		case a.Name == b.Name:
			return 0
		case a.Name == firstTemplate || b.Name != firstTemplate && a.Name < b.Name:
			return -1
		}
		return 1
	})
	return entries
}

// firstTemplate comes first in lists, and so is chosen where nothing else is.
const firstTemplate = "base"

// resolved is a template with the readings of it and of the templates below it.
type resolved struct {
	entry  Entry
	read   *reading
	parent *resolved // its base, or nil
}

// find gives a usable template.
func (c *Catalog) find(name string) (*resolved, error) {
	all, err := c.look()
	if err != nil {
		return nil, err
	}
	found, ok := all[name]
	if !ok {
		return nil, fault.New(fault.NotFound, "There is no template %q. There are: %s.", shorten(name, maxName),
			strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	if found.entry.Problem != nil {
		return nil, fault.Wrap(*found.entry.Problem, fault.Invalid, "The template %s is broken: %s", name, found.entry.Problem.Error())
	}
	return found, nil
}

// look reads what changed and ties templates to their bases. Unavailable when a folder cannot be read: which templates
// there are is then not known.
func (c *Catalog) look() (all map[string]*resolved, err error) {
	all = map[string]*resolved{}
	seen := map[string]bool{}
	for _, dir := range c.folders {
		folders, readErr := templateFolders(dir)
		if readErr != nil {
			err = fault.Wrap(readErr, fault.Unavailable, "The template folder %s cannot be read now: %s.", dir, reason(readErr))
			r := brokenReading(dir, filepath.Base(dir), readErr)
			all[filepath.Base(dir)] = &resolved{read: r, entry: r.entry()}
		}
		for name, path := range folders {
			r := c.reading(path, name)
			seen[path] = true
			next := &resolved{read: r, entry: r.entry()}
			if old := all[name]; old != nil {
				next.entry.Replaces = old.read.dir
			}
			all[name] = next
		}
	}
	c.forget(seen)
	for name := range all {
		link(all, name)
	}
	return all, err
}

// templateFolders gives the folders in dir that are meant as templates. A folder that has gone since Open has none.
func templateFolders(dir string) (found map[string]string, err error) {
	found = map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || len(found) == maxTemplates {
			continue
		}
		if holds(path, manifestFile) || holds(path, dockerFile) {
			found[e.Name()] = path
		}
	}
	return found, nil
}

func holds(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// reading gives the contents of the template in path, reading it again when anything in it changed.
func (c *Catalog) reading(path, name string) *reading {
	f, err := scan(path)
	if err != nil {
		return brokenReading(path, name, err)
	}
	c.mu.Lock()
	known := c.read[path]
	c.mu.Unlock()
	if known != nil && known.settled && known.print == f.Print {
		return known
	}
	r := readTemplate(f, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read[path] = r
	return r
}

func (c *Catalog) forget(seen map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.read, func(path string, _ *reading) bool { return !seen[path] })
}

// link finds name's base, and marks a base that is missing, broken or comes back to name.
func link(all map[string]*resolved, name string) {
	r := all[name]
	base := r.read.template.Base
	if base == "" || r.entry.Problem != nil {
		return
	}
	path := []string{name}
	for next := base; next != ""; next = all[next].read.template.Base {
		if all[next] == nil || slices.Contains(path, next) {
			break
		}
		path = append(path, next)
	}
	switch last := path[len(path)-1]; {
	case all[base] == nil:
		r.mark("There is no template %q to build on. There are: %s.", shorten(base, maxName), strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	case slices.Contains(path, all[last].read.template.Base):
		r.mark("The templates build on each other in a circle: %s.", strings.Join(append(path, all[last].read.template.Base), " → "))
	case brokenBase(all, base) != "":
		r.mark("It builds on the template %s, which is broken.", brokenBase(all, base))
	case all[base].read.template.Image != "":
		r.mark("It builds on the template %s, which has no Dockerfile. Use its image in FROM instead.", base)
	default:
		r.parent = all[base]
	}
}

// brokenBase gives the first template on the way down from base that cannot be built, or "". There is no circle on it.
func brokenBase(all map[string]*resolved, base string) string {
	for base != "" {
		r := all[base]
		next := r.read.template.Base
		if len(r.read.problems) > 0 || next != "" && all[next] == nil {
			return base
		}
		base = next
	}
	return ""
}

// mark adds a problem with the base of r.
func (r *resolved) mark(format string, args ...any) {
	p := Problem{File: filepath.Join(r.read.dir, manifestFile), Line: r.read.baseLine, Message: fmt.Sprintf(format, args...)}
	r.entry.Problems = append(slices.Clone(r.entry.Problems), p)
	r.entry.Problem = &p
}
