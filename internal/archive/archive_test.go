package archive

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func open(t *testing.T, folder string) *os.File {
	t.Helper()
	f, err := os.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// pack archives a folder.
func pack(t *testing.T, folder string, o Options) ([]byte, Stats) {
	t.Helper()
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	s, err := Write(t.Context(), open(t, folder), out, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), s
}

func TestExtract_MakesWhatWasWritten(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		from, to := t.TempDir(), t.TempDir()
		plant(t, from, seed, omitted{})
		b, wrote := pack(t, from, Options{Prefix: "home/"})
		checked, err := Check(t.Context(), tar.NewReader(bytes.NewReader(b)), Options{Prefix: "home/"}, func(h *tar.Header, _ io.Reader) error {
			t.Errorf("%q is beside", h.Name)
			return nil
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		made, err := Extract(t.Context(), tar.NewReader(bytes.NewReader(b)), open(t, to), Options{Prefix: "home/"})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if d := cmp.Diff(describe(t, from), describe(t, to)); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
		for what, s := range map[string]Stats{"made": made, "checked": checked} {
			if d := cmp.Diff(wrote, s); d != "" {
				t.Errorf("seed %d: %s: %s", seed, what, d)
			}
		}
		again, _ := pack(t, to, Options{Prefix: "home/"})
		if !bytes.Equal(b, again) {
			t.Errorf("seed %d: another archive of an equal tree", seed)
		}
	}
}

func TestWrite_ListsWhatCannotBeKept(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	socket(t, folder+"/sock")
	if err := os.Truncate(create(t, folder+"/vast"), 2<<40); err != nil {
		t.Fatal(err)
	}
	deep := open(t, folder)
	for range 20 { // a path that is longer than a call takes
		deep = below(t, deep, string(bytes.Repeat([]byte("d"), 250)))
	}
	_, s := pack(t, folder, Options{})
	var reasons []string
	for _, l := range s.Lost {
		reasons = append(reasons, l.Reason)
	}
	slices.Sort(reasons)
	if d := cmp.Diff([]string{"has a path longer than 4096 bytes", "has holes, and those of all files would be more than 256 GiB", "is a socket"}, reasons); d != "" {
		t.Error(d)
	}
}
