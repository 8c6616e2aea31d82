package kopia_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/kopia"
	"sandboxd/internal/kopia/child"
	"sandboxd/internal/repository"
)

// childArg has this test program be a child.
const childArg = "kopia-child"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArg {
		if child.Main(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// engine is one of a sandboxd with that name.
func engine(t *testing.T, instance string) *kopia.Engine {
	t.Helper()
	return &kopia.Engine{Program: []string{"/proc/self/exe", childArg}, Folder: t.TempDir(), Instance: instance, Log: slog.New(slog.DiscardHandler), Quiet: time.Minute}
}

// inFolder is a repository in a new folder.
func inFolder(t *testing.T) repository.Access {
	t.Helper()
	return repository.Access{Name: "nas", Place: repository.Place{Kind: repository.Folder, Path: t.TempDir()}, Secrets: repository.Secrets{Password: "correct horse"}}
}

// connected gives an engine whose repository was made.
func connected(t *testing.T, a repository.Access) *kopia.Engine {
	t.Helper()
	e := engine(t, "0123abcd")
	if made, err := e.Connect(t.Context(), a, false); err != nil || !made {
		t.Fatalf("made %v, %v", made, err)
	}
	return e
}

// draft is a backup of some bytes.
func draft(id string, content []byte) repository.Draft {
	return repository.Draft{ID: id, Title: "Backup of lab", Write: func(_ context.Context, w io.Writer) ([]byte, error) {
		_, err := io.Copy(w, bytes.NewReader(content))
		return []byte(`{"id":"` + id + `"}`), err
	}, Progress: func(repository.Progress) error { return nil }}
}

// saved saves some bytes.
func saved(t *testing.T, e *kopia.Engine, a repository.Access, id string, content []byte) repository.Item {
	t.Helper()
	item, err := e.Save(t.Context(), a, draft(id, content))
	if err != nil {
		t.Fatal(err)
	}
	return item
}

// read gives what was saved.
func read(t *testing.T, e *kopia.Engine, a repository.Access, id string) ([]byte, error) {
	t.Helper()
	r, err := e.Read(t.Context(), a, id)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(r)
	return got, errors.Join(err, r.Close())
}

// ids gives those of the backups in a repository.
func ids(t *testing.T, e *kopia.Engine, a repository.Access) []string {
	t.Helper()
	c, err := e.List(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, i := range c.Items {
		list = append(list, i.ID)
	}
	return list
}

// noise is some bytes that cannot be compressed.
func noise(seed uint64, size int) []byte {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(b)
	return b
}

func wantKind(t *testing.T, what string, err error, kind fault.Kind, field string) {
	t.Helper()
	if !fault.Is(err, kind) || fault.FieldOf(err) != field {
		t.Errorf("%s: %v (%v, field %q), want %v, field %q", what, err, fault.KindOf(err), fault.FieldOf(err), kind, field)
	}
}
