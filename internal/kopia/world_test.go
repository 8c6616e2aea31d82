package kopia_test

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/kopia"
	"sandboxd/internal/kopia/child"
	"sandboxd/internal/repository"
	"sandboxd/internal/repository/repositorytest"
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
	if made, err := e.Connect(t.Context(), a, repository.ConnectOptions{}); err != nil || !made.Created {
		t.Fatalf("made %+v, %v", made, err)
	}
	return e
}

// saved saves some bytes.
func saved(t *testing.T, e *kopia.Engine, a repository.Access, id string, content []byte) repository.Item {
	t.Helper()
	item, err := e.Save(t.Context(), a, repositorytest.Draft(id, content))
	if err != nil {
		t.Fatal(err)
	}
	return item
}

func wantKind(t *testing.T, what string, err error, kind fault.Kind, field string) {
	t.Helper()
	if !fault.Is(err, kind) || fault.FieldOf(err) != field {
		t.Errorf("%s: %v (%v, field %q), want %v, field %q", what, err, fault.KindOf(err), fault.FieldOf(err), kind, field)
	}
}
