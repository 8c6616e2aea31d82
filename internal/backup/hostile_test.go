package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
)

var discard = slog.New(slog.DiscardHandler)

// noise is text that cannot be compressed.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

type failing struct{ io.Reader }

func (f *failing) Read(b []byte) (int, error) {
	n, err := f.Reader.Read(b)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func fileOf(t *testing.T, b []byte) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err == nil {
		_, err = f.Write(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func wholeBackup(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(written(t, map[string]string{"a": "text", "d/noise": noise(60 << 10), "d/zeros": strings.Repeat("\x00", 1<<20)}).Name())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestReceive_RefusesABackupCutOffAnywhere also refuses one that is cut between two of its frames.
func TestReceive_RefusesABackupCutOffAnywhere(t *testing.T) {
	s, _ := open(t, nil)
	whole := wholeBackup(t)
	for n := 0; n < len(whole); n += 1 + rand.N(1+len(whole)/100) {
		if n > len(whole)-2*sealSize {
			n = min(n, len(whole)-1)
		}
		a, err := s.Receive(t.Context(), "ann", bytes.NewReader(whole[:n]))
		if err == nil {
			a.Close()
			t.Fatalf("%d of %d bytes are taken", n, len(whole))
		}
		wantKind(t, "cut off", err, fault.Invalid)
	}
	for n := len(whole) - sealSize - 5; n < len(whole); n++ {
		if a, err := s.Receive(t.Context(), "ann", bytes.NewReader(whole[:n])); err == nil {
			a.Close()
			t.Fatalf("%d of %d bytes are taken", n, len(whole))
		}
	}
	if a, err := s.Receive(t.Context(), "ann", bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	} else if a.Manifest == nil {
		t.Error("it has no manifest")
	} else {
		a.Close()
	}
}

func TestReceive_RefusesABackupWithOneBitChanged(t *testing.T) {
	s, _ := open(t, nil)
	whole := wholeBackup(t)
	for range 200 {
		b := bytes.Clone(whole)
		at := rand.N(len(b))
		b[at] ^= 1 << rand.N(8)
		a, err := s.Receive(t.Context(), "ann", bytes.NewReader(b))
		if err == nil {
			a.Close()
			t.Fatalf("a change of byte %d of %d is taken", at, len(b))
		}
		if k := fault.KindOf(err); k != fault.Invalid && k != fault.Conflict {
			t.Errorf("byte %d: %v", at, err)
		}
	}
}

// told makes a sealed backup of a few files whose manifest was changed, with those layers.
func told(t *testing.T, change func(*Manifest), layers ...[]byte) []byte {
	t.Helper()
	f := fileOf(t, nil)
	m := &Manifest{Format: formatName, Version: formatVersion, ID: "0123456789abcdef"}
	w, err := newWriter(f, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		whole := &Manifest{Root: &RootManifest{Size: int64(len(layer))}}
		if err := whole.writeRoot(w, bytes.NewReader(layer)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write(tarOf(t, false, tar.Header{Name: "home/a", Size: 4})); err != nil {
		t.Fatal(err)
	}
	m.Home.Files, m.Home.Bytes = 1, 4
	change(m)
	if err := w.close(m); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return sealed(t, b)
}

// tarOf is an archive of entries whose content is zeros.
func tarOf(t *testing.T, end bool, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		h.Mode = 0o644
		err := w.WriteHeader(&h)
		if err == nil {
			_, err = w.Write(make([]byte, h.Size))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if end {
		err = w.Close()
	} else {
		err = w.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func compressed(t *testing.T, b []byte, o ...zstd.EOption) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, o...)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestReceive_RefusesWhatLiesOrCannotBe(t *testing.T) {
	const disk = 64 << 20
	s, _ := open(t, func(c *Config) { c.Disk = func() int64 { return disk } })
	one := tar.Header{Name: "a", Size: 4}
	for name, c := range map[string]struct {
		content []byte
		kind    fault.Kind
		says    string
	}{
		"nothing":              {nil, fault.Invalid, "empty"},
		"text":                 {[]byte("hello"), fault.Invalid, "no archive"},
		"a picture":            {append([]byte("\x89PNG\r\n"), noise(4000)...), fault.Invalid, "no archive"},
		"an empty archive":     {compressed(t, make([]byte, 1024)), fault.Invalid, "no files"},
		"text, compressed":     {compressed(t, []byte(noise(4000))), fault.Invalid, "damaged"},
		"of a newer sandboxd":  {told(t, func(m *Manifest) { m.Version = 99 }), fault.Conflict, "newer"},
		"of no version":        {told(t, func(m *Manifest) { m.Version = 0 }), fault.Invalid, "no sense"},
		"fewer files":          {told(t, func(m *Manifest) { m.Home.Files = 9 }), fault.Invalid, "not complete"},
		"fewer bytes":          {told(t, func(m *Manifest) { m.Home.Bytes = 5 }), fault.Invalid, "not complete"},
		"leads out":            {gzipped(t, tarOf(t, true, tar.Header{Name: "../a"})), fault.Invalid, `"../a"`},
		"leads out by a link":  {compressed(t, tarOf(t, true, tar.Header{Name: "l", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"})), fault.Invalid, `"l"`},
		"larger than the disk": {compressed(t, tarOf(t, true, one, tar.Header{Name: "b", Size: disk + 1})), fault.Invalid, "larger than the disk"},
		"more at its end":      {compressed(t, append(tarOf(t, true, one), make([]byte, 20<<20)...)), fault.Invalid, "follow its end"},
		"cut off, foreign":     {gzipped(t, tarOf(t, true, one, one)[:700]), fault.Invalid, "cut off"},
		"a cut gzip":           {gzipped(t, tarOf(t, true, one))[:40], fault.Invalid, "cut off"},
	} {
		a, err := s.Receive(t.Context(), "ann", bytes.NewReader(c.content))
		if err == nil {
			a.Close()
		}
		wantKind(t, name, err, c.kind)
		if err != nil && !strings.Contains(fault.Message(err), c.says) {
			t.Errorf("%s: it says %q", name, fault.Message(err))
		}
	}
	for name, content := range map[string][]byte{
		"tar": tarOf(t, true, one), "gzip": gzipped(t, tarOf(t, true, one)), "zstd": compressed(t, tarOf(t, true, one)),
		"a manifest of another program": tarOf(t, true, tar.Header{Name: manifestName, Size: 20}),
	} {
		a, err := s.Receive(t.Context(), "ann", bytes.NewReader(content))
		if err != nil || a.Manifest != nil || a.prefix != "" || a.Stats.Files != 1 {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		if err == nil {
			a.Close()
		}
	}
}

// TestReceive_ABombTakesNoMemory takes in a small file that becomes a gigabyte, whose frame asks for much memory too.
func TestReceive_ABombTakesNoMemory(t *testing.T) {
	s, _ := open(t, func(c *Config) { c.Disk = func() int64 { return 100 << 20 } })
	var bomb bytes.Buffer
	z, err := zstd.NewWriter(&bomb, zstd.WithWindowSize(512<<20), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: "a", Size: 300 << 20}); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	z, w = nil, nil
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = s.Receive(t.Context(), "ann", bytes.NewReader(bomb.Bytes()))
	runtime.ReadMemStats(&after)
	wantKind(t, "bomb", err, fault.Invalid)
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 100 {
		t.Errorf("%d bytes take %d MiB of memory", bomb.Len(), used)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte("\x28\xB5\x2F\xFD"))
	f.Add([]byte("\x1F\x8B"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := check(t.Context(), fileOf(t, b), 1<<20)
		if err == nil && got.stats.Files+got.stats.Folders == 0 && got.manifest == nil {
			t.Error("nothing is taken for something")
		}
	})
}

func TestNote_CutsALongListOfLosses(t *testing.T) {
	var m Manifest
	var s archive.Stats
	for range 1000 {
		s.Lost = append(s.Lost, archive.Loss{Path: strings.Repeat("x", 500), Reason: "is a socket"})
	}
	m.note(s)
	if len(m.Home.Lost) < 10 || len(m.Home.Lost) > 100 || int64(len(m.Home.Lost))+m.Home.MoreLost != 1000 {
		t.Errorf("%d listed, %d more", len(m.Home.Lost), m.Home.MoreLost)
	}
}
