package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/archive"
)

// written makes the file of a backup of a tree with these files, and its seal.
func written(t *testing.T, files map[string]string) *os.File {
	t.Helper()
	home := t.TempDir()
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	f, err := os.Create(filepath.Join(t.TempDir(), "b.tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	m := &Manifest{Format: formatName, Version: formatVersion, ID: "0123456789abcdef", Made: time.Unix(1e9, 0).UTC(), Sandbox: Settings{Name: "ml"}}
	w, err := newWriter(f, m)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := archive.Write(t.Context(), dir, tar.NewWriter(w), archive.Options{Prefix: homePrefix})
	if err != nil {
		t.Fatal(err)
	}
	m.note(stats)
	if err := w.close(m); err != nil {
		t.Fatal(err)
	}
	got, err := check(t.Context(), f, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := seal(f, got.sum); err != nil {
		t.Fatal(err)
	}
	return f
}

// sealed adds the seal to a backup.
func sealed(t *testing.T, b []byte) []byte {
	t.Helper()
	f := fileOf(t, b)
	if err := seal(f, sha256.Sum256(b)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCheck_TellsWhatABackupHas(t *testing.T) {
	f := written(t, map[string]string{"a": "text", "d/b": strings.Repeat("x", 3<<20)})
	got, err := check(t.Context(), f, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !got.sealed || got.manifest == nil || got.manifest.Sandbox.Name != "ml" || got.prefix != homePrefix || got.stats.Files != 2 ||
		got.stats.Folders != 1 || got.stats.Bytes != 4+3<<20 {
		t.Errorf("%+v %+v", got, got.manifest)
	}
	if b, err := os.ReadFile(f.Name()); err != nil || !bytes.Contains(b, []byte(sealText)) {
		t.Error(err)
	}
}
