package web

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/git"
	"sandboxd/internal/template"
	"sandboxd/internal/template/templatetest"
)

// ownCatalog has some templates, and over them those that are made in a folder.
type ownCatalog struct {
	Templates
	own    *catalog.Catalog
	folder string
}

func (c ownCatalog) made() (list []catalog.Entry) {
	for _, e := range c.own.List() {
		if strings.HasPrefix(e.Template.Folder, c.folder) {
			list = append(list, e)
		}
	}
	return list
}

func (c ownCatalog) List() []catalog.Entry { return append(c.Templates.List(), c.made()...) }

func (c ownCatalog) Template(name string) (catalog.Template, error) {
	for _, e := range c.made() {
		if e.Name == name {
			return e.Template, nil
		}
	}
	return c.Templates.Template(name)
}

func (c ownCatalog) Check(name string, files map[string][]byte) []catalog.Problem {
	return c.own.Check(name, files)
}

func (c ownCatalog) CheckFolder(name, dir string) []catalog.Problem {
	return c.own.CheckFolder(name, dir)
}

func (c ownCatalog) BuiltOn(name string) []string { return c.own.BuiltOn(name) }

// fakeFetcher has one revision of one template.
type fakeFetcher struct {
	mu  sync.Mutex
	err error
}

func (f *fakeFetcher) Fetch(_ context.Context, s git.Source, work string) (git.Revision, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return git.Revision{}, f.err
	}
	at := filepath.Join(work, git.FilesFolder)
	err := errors.Join(os.Mkdir(at, 0o755), os.WriteFile(filepath.Join(at, "template.yaml"), []byte("name: rust\ntitle: Rust\ndescription: Words.\n"), 0o600),
		os.WriteFile(filepath.Join(at, "Dockerfile"), []byte("FROM scratch\n"), 0o600))
	return git.Revision{Commit: strings.Repeat("c0ffee", 7)[:40], HostKeys: s.HostKeys}, err
}

// plainKey seals nothing.
type plainKey struct{}

func (plainKey) Seal(_ string, text []byte) ([]byte, error)   { return text, nil }
func (plainKey) Open(_ string, sealed []byte) ([]byte, error) { return sealed, nil }

// ownTemplates makes templates in a folder of the test's, over others.
func ownTemplates(t *testing.T, below Templates, images *fakeImages) (ownCatalog, *template.Service) {
	t.Helper()
	shipped, own := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"template.yaml": "name: base\ntitle: Base\ndescription: A bare Debian.\n", "Dockerfile": "FROM scratch\n"} {
		at := filepath.Join(shipped, "base", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := catalog.Open(shipped, own)
	if err != nil {
		t.Fatal(err)
	}
	c := ownCatalog{Templates: below, own: all, folder: own}
	s, err := template.Open(t.Context(), template.Config{
		Folder: own, Store: &templatetest.Memory{}, Git: images.git, Templates: sourced{c, shipped}, Log: slog.New(slog.DiscardHandler),
		Seal: func() (template.Sealer, error) { return plainKey{}, nil }, Roots: &images.roots,
		Users: func(context.Context, string) ([]string, error) { return images.users, nil },
		Build: func(name string, _ catalog.Order) error {
			if name == "torn" {
				return fault.New(fault.Invalid, "The template torn is broken.")
			}
			images.mu.Lock()
			defer images.mu.Unlock()
			images.built++
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// sourced says where the base template's files are, which no fake does.
type sourced struct {
	ownCatalog
	shipped string
}

func (s sourced) List() []catalog.Entry {
	list := s.ownCatalog.List()
	for i := range list {
		if list[i].Name == "base" {
			list[i].Template.Folder = filepath.Join(s.shipped, "base")
		}
	}
	return list
}
