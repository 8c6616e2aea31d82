package docker

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/fault"
)

// utsImage is what CRIU 4.2 wrote of a container called "a".
const utsImage = "19435654033247540b0000000a01611206286e6f6e6529"

func decoded(t *testing.T, text string) []byte {
	t.Helper()
	image, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestAdapt_ChangesTheHostNameAndTheGroupsOfMounts(t *testing.T) {
	folder := t.TempDir()
	uts, mounts := filepath.Join(folder, "utsns-12.img"), filepath.Join(folder, "mountpoints-13.img")
	external := written([]criuField{{number: 2, value: 144}, {number: 7, text: []byte("./shared")}, {number: 10}, {number: 11, value: 4},
		{number: 18, text: []byte("/shared")}})
	own := written([]criuField{{number: 2, value: 127}, {number: 9, text: []byte{}}, {number: 11, value: 2}})
	file := binary.LittleEndian.AppendUint32(nil, criuMagic)
	file = binary.LittleEndian.AppendUint32(file, criuMounts)
	for _, m := range [][]byte{external, own} {
		file = append(binary.LittleEndian.AppendUint32(file, uint32(len(m))), m...)
	}
	if err := errors.Join(os.WriteFile(uts, decoded(t, utsImage), 0o600), os.WriteFile(mounts, file, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := adapt(folder, "a-longer-name"); err != nil {
		t.Fatal(err)
	}
	const want = "1943565403324754170000000a0d612d6c6f6e6765722d6e616d651206286e6f6e6529"
	if got, err := os.ReadFile(uts); err != nil || hex.EncodeToString(got) != want {
		t.Errorf("host name: %x, %v", got, err)
	}
	got, err := os.ReadFile(mounts)
	if err != nil || len(got) != len(file) || bytes.Equal(got, file) {
		t.Fatalf("mounts: %x, %v", got, err)
	}
	at := criuHead + criuLength + bytes.Index(external, []byte{11 << 3, 4}) + 1
	if file[at] = 0; !bytes.Equal(got, file) {
		t.Errorf("mounts: %x, want %x", got, file)
	}
}

func TestAdapt_RefusesWhatItDoesNotKnow(t *testing.T) {
	image, nothing := decoded(t, utsImage), func([]criuField) {}
	if same, ok := edited(image, criuUTS, nothing); !ok || !bytes.Equal(same, image) {
		t.Errorf("unchanged: %x, %t", same, ok)
	}
	for n := range image {
		if _, ok := edited(image[:n], criuUTS, nothing); ok {
			t.Errorf("its first %d bytes are taken for a whole one", n)
		}
	}
	for _, n := range []int{0, 4, 8, 12, 13} {
		bad := bytes.Clone(image)
		if bad[n] ^= 0x55; n == 12 {
			bad[n] = 0x0d // a number of four bytes
		}
		if _, ok := edited(bad, criuUTS, nothing); ok {
			t.Errorf("one with another byte %d is taken", n)
		}
	}
	if err := adapt(t.TempDir(), "x"); err == nil {
		t.Error("a folder without such files is taken")
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
	if n, err := sumUp(from); err != nil || n != 10 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := moveFiles(from, kept); err != nil {
		t.Fatal(err)
	}
	if n, err := isWhole(kept); err != nil || n != 10 {
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
	for what, damage := range map[string]string{"cut": "secre", "of another bit": "secreu"} {
		if err := errors.Join(os.Remove(filepath.Join(kept, "pages-1.img")), os.WriteFile(filepath.Join(kept, "pages-1.img"), []byte(damage), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := isWhole(kept); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("of one that is %s: %v", what, err)
		}
	}
	copied := filepath.Join(put, "copy")
	if err := copyFile(filepath.Join(kept, "pages-1.img"), copied); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(copied); err != nil || st.Mode() != fs.FileMode(0o600) {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

func TestCRIUWord_IsTheFirstErrorOfItsLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "dump.log")
	const text = "(00.01) Warn  (compel/x.c:1): Not this\n(00.02) Error (criu/files-reg.c:1061): Can't dump ghost file /root/\x1b[1mbig of 3145728 size, increase limit\n" +
		"(00.03) Error (criu/cr-dump.c:2128): Dumping FAILED.\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("c", 600)
	for _, said := range []string{
		"Cannot checkpoint container " + long + ": runc did not terminate successfully: exit status 1: criu failed: type NOTIFY errno 0 path= " + log + ": unknown",
		"runc did not terminate successfully: exit status 1: criu failed: type NOTIFY errno 0\nlog file: " + log + ": unknown",
	} {
		const want = "CRIU refuses it: Can't dump ghost file /root/[1mbig of 3145728 size, increase limit."
		if got := criuWord(fmt.Errorf("from the engine: %w", errors.New(said))); got != want {
			t.Errorf("got %q", got)
		}
	}
	if got, want := criuWord(errors.New("criu failed: x path= /not/there: y")), "CRIU refuses it: its log /not/there cannot be read from here."; got != want {
		t.Errorf("got %q", got)
	}
	if got := criuWord(errors.New("the disk is full")); got != "the disk is full." {
		t.Errorf("got %q", got)
	}
}
