package template_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/git"
	"sandboxd/internal/template"
	"sandboxd/internal/template/templatetest"
)

// world is a Service over a real catalog, with a store in memory; what it builds is noted.
type world struct {
	*template.Service
	t       *testing.T
	folder  string
	shipped string
	store   *templatetest.Memory
	catalog *catalog.Catalog
	git     *fakeGit
	roots   *templatetest.Roots

	mu     sync.Mutex
	built  []string // template, reason and whether without cache
	failed []string
	users  []string
	wrong  error // of a build
}

// fakeGit gives the files that it has, or an error.
type fakeGit struct {
	mu    sync.Mutex
	files map[string]string
	at    git.Revision
	err   error
	asked []git.Source
}

func (f *fakeGit) Fetch(_ context.Context, s git.Source, work string) (git.Revision, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, s)
	if f.err != nil {
		return git.Revision{}, f.err
	}
	for name, text := range f.files {
		path := filepath.Join(work, git.FilesFolder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return git.Revision{}, err
		}
	}
	return f.at, nil
}

// plainSeal seals by turning a text round, so that a test sees what is sealed.
type plainSeal struct{}

func (plainSeal) Seal(purpose string, text []byte) ([]byte, error) {
	return []byte(purpose + "|" + turned(text)), nil
}

func (plainSeal) Open(purpose string, sealed []byte) ([]byte, error) {
	text, ok := strings.CutPrefix(string(sealed), purpose+"|")
	if !ok {
		return nil, fault.New(fault.Invalid, "It was sealed for something else.")
	}
	return []byte(turned([]byte(text))), nil
}

func turned(text []byte) string {
	out := make([]byte, 0, len(text))
	for i := range text {
		out = append(out, text[len(text)-1-i])
	}
	return string(out)
}

const onBase = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n"

func yaml(name, more string) string {
	return "name: " + name + "\ntitle: A title\ndescription: Some words.\n" + more
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, folder: t.TempDir(), shipped: t.TempDir(), store: &templatetest.Memory{}, git: &fakeGit{}, roots: &templatetest.Roots{}}
	for path, text := range map[string]string{"base/template.yaml": yaml("base", ""), "base/Dockerfile": "FROM scratch\n", "base/files/run": "#!/bin/sh\n", "base/logo.png": "\x89PNG\x00"} {
		at := filepath.Join(w.shipped, path)
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	w.open()
	return w
}

// open opens the service, as a start of sandboxd does.
func (w *world) open() {
	w.t.Helper()
	var err error
	if w.catalog, err = catalog.Open(w.shipped, w.folder); err != nil {
		w.t.Fatal(err)
	}
	w.Service, err = template.Open(w.t.Context(), template.Config{
		Folder: w.folder, Store: w.store, Git: w.git, Roots: w.roots, Templates: w.catalog, Log: slog.New(slog.DiscardHandler),
		Seal: func() (template.Sealer, error) { return plainSeal{}, nil }, Build: w.build,
		Users: func(context.Context, string) ([]string, error) { return w.users, nil },
		Failed: func(name string, scheduled bool, why error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.failed = append(w.failed, name+": "+fault.Message(why))
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) build(name string, o catalog.Order) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry := name + " " + o.Why
	if o.NoCache {
		entry += " no-cache"
	}
	w.built = append(w.built, entry)
	return w.wrong
}

// builds gives what was built so far.
func (w *world) builds() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.built, ", ")
}

// run runs the service until the test, or the returned function, ends it.
func (w *world) run() (end func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := w.Run(ctx); err != nil {
			w.t.Errorf("Run gives %v", err)
		}
	}()
	end = sync.OnceFunc(func() { cancel(); <-ended })
	w.t.Cleanup(end)
	return end
}

// edit makes an edit of texts.
func edit(files map[string]string) template.Edit {
	e := template.Edit{Files: map[string]*string{}}
	for name, text := range files {
		e.Files[name] = &text
	}
	return e
}

func (w *world) put(name string, files map[string]string) template.Files {
	w.t.Helper()
	f, err := w.Put(w.t.Context(), name, edit(files))
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

func (w *world) text(name, path string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.folder, name, path))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// left gives the names of all versions and links.
func (w *world) left() (list []string) {
	w.t.Helper()
	for _, pattern := range []string{"*", ".next-*", ".versions/*"} {
		found, err := filepath.Glob(filepath.Join(w.folder, pattern))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, path := range found {
			if name := filepath.Base(path); name != ".versions" {
				list = append(list, name)
			}
		}
	}
	return list
}

var epoch = time.Date(2026, 11, 26, 4, 0, 0, 0, time.UTC)
