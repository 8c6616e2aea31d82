package catalog

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"sandboxd/internal/fault"
)

// Check gives what would be wrong with a template of this name, were it made of these files, by their paths: every mistake, as List has
// them, with File as the files are named here. It looks at template.yaml and the Dockerfile, and at the templates that there are for a base.
func (c *Catalog) Check(name string, files map[string][]byte) []Problem {
	r := &reading{}
	text, err := fileOf(files, manifestFile)
	r.readManifest(name, text, err)
	text, err = fileOf(files, dockerFile)
	r.readDockerfile(text, err)
	if text, ok := files[ignoreFile]; ok {
		r.checkIgnore(text)
	}
	return c.asOne(name, r)
}

// checkIgnore takes in a mistake of .dockerignore.
func (r *reading) checkIgnore(text []byte) {
	var err error
	if len(text) > maxManifest {
		err = errTooLarge
	}
	var wrong Problem
	if _, err := parseIgnore("", text, err); errors.As(err, &wrong) {
		r.problems = append(r.problems, wrong)
	}
}

// CheckFolder is Check for all files of a folder, as List would read it, with what a template may not hold.
func (c *Catalog) CheckFolder(name, dir string) []Problem {
	var r *reading
	if f, err := scan(dir); err != nil {
		r = brokenReading(dir, name, err)
	} else {
		r = readTemplate(f, name)
	}
	problems := slices.Clone(c.asOne(name, r))
	for i, p := range problems {
		if below, err := filepath.Rel(dir, p.File); err == nil {
			problems[i].File = below
		}
	}
	return problems
}

// asOne gives the mistakes of a reading, were it the template of this name.
func (c *Catalog) asOne(name string, r *reading) []Problem {
	all, _ := c.look() // what cannot be read is a broken base
	draft := &resolved{read: r, entry: r.entry()}
	all[name] = draft
	link(all, name)
	return draft.entry.Problems
}

func fileOf(files map[string][]byte, name string) ([]byte, error) {
	text, ok := files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return text, nil
}

// BuiltOn gives the names of the templates that build on this one, sorted.
func (c *Catalog) BuiltOn(name string) (names []string) {
	for _, e := range c.List() {
		if e.Template.Base == name {
			names = append(names, e.Name)
		}
	}
	return names
}

// CheckName refuses what cannot be the name of a template. Invalid with the field "name".
func CheckName(name string) error {
	if wrong := nameMistake("The name", name); wrong != "" {
		return fault.Field("name", "%s", wrong)
	}
	return nil
}
