package seal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sandboxd/internal/fault"
)

func TestKey_OpensWhatItSealedAndNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	key, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := key.Seal("nas", []byte("password"))
	if err != nil || bytes.Contains(sealed, []byte("password")) {
		t.Fatalf("%q, %v", sealed, err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := again.Open("nas", sealed); err != nil || string(text) != "password" {
		t.Errorf("%q, %v", text, err)
	}
	other, err := Open(filepath.Join(t.TempDir(), "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"another purpose": func() ([]byte, error) { return key.Open("other", sealed) },
		"another key":     func() ([]byte, error) { return other.Open("nas", sealed) },
		"changed":         func() ([]byte, error) { return key.Open("nas", changed) },
		"cut":             func() ([]byte, error) { return key.Open("nas", sealed[:10]) },
	} {
		if text, err := open(); !fault.Is(err, fault.Invalid) || len(text) > 0 {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestOpen_MakesAFileForItsOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	if _, err := Open(path); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 || st.Size() != 32 {
		t.Errorf("%v, %v", st, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !fault.Is(err, fault.Invalid) {
		t.Errorf("a file that is no key: %v", err)
	}
}
