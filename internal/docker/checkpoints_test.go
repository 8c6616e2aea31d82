package docker

import (
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// utsImage is what CRIU 4.2 wrote of a container called "a".
const utsImage = "19435654033247540b0000000a01611206286e6f6e6529"

func TestWithHostName_ChangesTheNameAlone(t *testing.T) {
	image, err := hex.DecodeString(utsImage)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := withHostName(image, "a-longer-name")
	const want = "1943565403324754170000000a0d612d6c6f6e6765722d6e616d651206286e6f6e6529"
	if !ok || hex.EncodeToString(got) != want {
		t.Errorf("got %x, %t", got, ok)
	}
	if back, ok := withHostName(got, "a"); !ok || hex.EncodeToString(back) != utsImage {
		t.Errorf("back: %x, %t", back, ok)
	}
	for n := range image {
		if _, ok := withHostName(image[:n], "x"); ok {
			t.Errorf("its first %d bytes are taken for a whole one", n)
		}
	}
	for _, n := range []int{0, 4, 8, 12, 13} {
		bad := append([]byte{}, image...)
		bad[n] ^= 0x50
		if _, ok := withHostName(bad, "x"); ok {
			t.Errorf("one with another byte %d is taken", n)
		}
	}
}

func TestCheckpointFiles_AreForNobodyElseAndShareWithTheKept(t *testing.T) {
	from, kept, put := filepath.Join(t.TempDir(), "cp"), filepath.Join(t.TempDir(), "checkpoints", "5a"), filepath.Join(t.TempDir(), "put")
	for name, text := range map[string]string{"pages-1.img": "secret", "sub/x.img": "more"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	n, err := moveFiles(from, kept)
	if err != nil || n != 10 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	for _, path := range []string{kept, filepath.Dir(kept)} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	if _, err := os.Stat(from); !os.IsNotExist(err) {
		t.Errorf("the old place is left: %v", err)
	}
	if err := putFiles(kept, put); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(put, "sub", "x.img")); err != nil || string(text) != "more" {
		t.Errorf("%q, %v", text, err)
	}
	if err := putFiles(filepath.Join(kept, "gone"), put); !os.IsNotExist(err) {
		t.Errorf("of a missing one: %v", err)
	}
	copied := filepath.Join(put, "copy")
	if err := copyFile(filepath.Join(kept, "pages-1.img"), copied); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(copied); err != nil || st.Mode() != fs.FileMode(0o600) {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}
