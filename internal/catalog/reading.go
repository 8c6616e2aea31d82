package catalog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// reading is the content of one template's folder. It is never changed once made.
type reading struct {
	dir      string
	real     string // where it was read from; see folder
	print    string
	settled  bool
	template Template
	docker   *dockerfile // nil for a template with an image
	problems []Problem
	readme   string
	baseLine int
	content  string // digest of the build context
}

func (r *reading) entry() Entry {
	e := Entry{Name: r.template.Name, Template: r.template, Problems: r.problems, Readme: r.readme}
	if len(r.problems) > 0 {
		e.Problem = &r.problems[0]
	}
	return e
}

// brokenReading stands for a folder that cannot be read at all.
func brokenReading(dir, name string, err error) *reading {
	var p Problem
	if !errors.As(err, &p) {
		p = Problem{File: dir, Message: "The folder cannot be read: " + reason(err) + "."}
	}
	return &reading{dir: dir, template: Template{Name: name, Title: name, Icon: "box", Source: Source{Folder: dir}}, problems: []Problem{p}}
}

// reason gives the innermost words of a file error: "permission denied".
func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return shorten(err.Error(), 200)
}

// unreadable says why a file of ours cannot be read.
func unreadable(file string, err error) Problem {
	if errors.Is(err, fs.ErrNotExist) {
		return Problem{File: file, Message: "The file is missing."}
	}
	return Problem{File: file, Message: "The file cannot be read: " + reason(err) + "."}
}

// readTemplate reads the contents of a folder.
func readTemplate(f *folder, name string) *reading {
	root, err := os.OpenRoot(f.Real)
	if err != nil {
		return brokenReading(f.Path, name, err)
	}
	defer root.Close()
	r := &reading{dir: f.Path, real: f.Real, print: f.Print, settled: f.Settled}
	text, err := readBounded(root, manifestFile, maxManifest)
	r.readManifest(name, text, err)
	text, err = readBounded(root, dockerFile, maxDockerfile)
	r.readDockerfile(text, err)
	if text, err := readBounded(root, readmeFile, maxReadme); err == nil {
		r.readme = strings.ToValidUTF8(string(text), "\uFFFD")
	}
	if r.content, err = f.digest(); err != nil {
		r.problems = append(r.problems, brokenReading(f.Path, name, err).problems...)
	}
	return r
}

// readManifest takes in template.yaml, or why it cannot be read.
func (r *reading) readManifest(name string, text []byte, err error) {
	file := filepath.Join(r.dir, manifestFile)
	r.template = Template{Name: name, Title: name, Icon: "box"}
	defer func() { r.template.Folder = r.dir }()
	if err != nil {
		r.problems = append(r.problems, unreadable(file, err))
		return
	}
	m, at, problems := parseManifest(file, text)
	if len(problems) == 0 {
		r.template, problems = checkManifest(file, name, m, at)
		r.baseLine = at.of("$.base")
	}
	r.problems = append(r.problems, problems...)
}

// readDockerfile takes in the Dockerfile, or why it cannot be read.
func (r *reading) readDockerfile(text []byte, err error) {
	file := filepath.Join(r.dir, dockerFile)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case r.template.Image != "" && missing:
		return
	case r.template.Image != "":
		r.problems = append(r.problems, Problem{File: filepath.Join(r.dir, manifestFile),
			Message: "The template has an image, so its Dockerfile would not be used. Remove one of them."})
		return
	case missing:
		r.problems = append(r.problems, Problem{File: file, Message: "The file is missing. A template has a Dockerfile, or image in its template.yaml."})
		return
	case err != nil:
		r.problems = append(r.problems, unreadable(file, err))
		return
	}
	d, problems := parseDockerfile(file, text)
	r.docker = d
	r.problems = append(r.problems, problems...)
	if len(r.problems) == 0 {
		r.checkBase(file)
	}
}

// checkBase reports a base that the Dockerfile does not build on, and the other way round.
func (r *reading) checkBase(file string) {
	p := problems{file: file}
	line := 0
	for _, i := range r.docker.Steps {
		if i.Word == "FROM" {
			line = i.Line
			break
		}
	}
	if r.template.Base != "" && !r.docker.OnBase {
		p.add(line, "template.yaml has base: %s, but the Dockerfile does not build on it. Write ARG %s and FROM ${%[2]s}.", r.template.Base, baseArg)
	}
	if r.template.Root != "" && !r.docker.OnBase {
		p.add(line, "template.yaml has root, but the Dockerfile does not build on it. Write ARG %s and FROM ${%[1]s}.", baseArg)
	}
	if r.template.Base == "" && r.template.Root == "" && r.docker.OnBase {
		p.add(line, "FROM ${%s} needs a base in template.yaml.", baseArg)
	}
	r.problems = append(r.problems, p.list...)
}
