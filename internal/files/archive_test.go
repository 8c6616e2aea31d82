package files

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"sandboxd/internal/fault"
)

// tarOf makes a tar of entries; files hold their own name.
func tarOf(t testing.TB, entries ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		if h.Typeflag == tar.TypeReg && h.Size == 0 {
			h.Size = int64(len(h.Name))
		}
		h.Mode = 0o644
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, h.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// namesIn lists a tar, and fails when it is not whole.
func namesIn(t testing.TB, b []byte) (names []string) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatalf("after %q: %v", names, err)
		}
		names = append(names, h.Name)
	}
}

// sent is an archive that a guest has sent.
func sent(stream io.Reader, f Format) *Archive {
	return &Archive{Name: "x", Format: f, stream: stream, ctx: context.Background(), spools: &spools{most: spoolsMost}, close: func() {}}
}

// hostile are entries that no archive may have, each behind good ones.
func hostile() map[string][]*tar.Header {
	return map[string][]*tar.Header{
		"absolute":     {aFile("good"), aFile("/etc/passwd")},
		"up":           {aFile("good"), aFile("../../etc/passwd")},
		"below a link": {aLink("good", "/etc"), aFile("good/passwd")},
		"hard link":    {aFile("good"), aHard("evil", "../../etc/shadow")},
		"device":       {aFile("good"), {Typeflag: tar.TypeChar, Name: "evil"}},
		"pipe":         {aFile("good"), {Typeflag: tar.TypeFifo, Name: "evil"}},
	}
}

func TestArchive_OfAHostileGuestIsNotPassedOn(t *testing.T) {
	for name, entries := range hostile() {
		for _, f := range Formats {
			var out bytes.Buffer
			err := sent(bytes.NewReader(tarOf(t, entries...)), f).Copy(&out)
			if !fault.Is(err, fault.Unavailable) || strings.Contains(fault.Message(err), "\x1b") {
				t.Errorf("%s as %s: %v", name, f, err)
			}
			if f == Tar && bytes.Contains(out.Bytes(), []byte("passwd")) {
				t.Errorf("%s: it came through", name)
			}
		}
	}
}

func TestArchive_CutOffAnywhereIsAnError(t *testing.T) {
	whole := tarOf(t, aFile("a"), aFile("b/c"), aLink("l", "a"))
	for n := range len(whole) - 512 { // one block of zeros at the end will do
		if err := sent(bytes.NewReader(whole[:n]), Tar).Copy(io.Discard); err == nil {
			t.Fatalf("cut at %d it looks whole", n)
		}
	}
	broken := errors.New("reset")
	err := sent(io.MultiReader(bytes.NewReader(whole[:700]), failing{broken}), Zip).Copy(io.Discard)
	if !errors.Is(err, broken) || !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestArchive_SparseEntriesAreRefused(t *testing.T) {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: "a", PAXRecords: map[string]string{"comment": "x"}, Format: tar.FormatPAX}
	b := tarOf(t, h)
	b = bytes.Replace(b, []byte("13 comment=x\n"), []byte("13 comment=x\n"), 1)
	if err := sent(bytes.NewReader(b), Tar).Copy(io.Discard); err != nil {
		t.Fatal(err)
	}
	var old bytes.Buffer // as GNU tar -S writes it, of the old format
	block := [512]byte{}
	copy(block[:], "hole")
	copy(block[100:], "0000644\x00")
	copy(block[124:], "00000000000\x00")
	copy(block[136:], "00000000000\x00")
	block[156] = tar.TypeGNUSparse
	copy(block[257:], "ustar  \x00")
	copy(block[386:], "07777777777\x0000000000000\x00")
	copy(block[483:], "07777777777\x00")
	sum := int64(8 * ' ')
	for i, c := range block {
		if i < 148 || i >= 156 {
			sum += int64(c)
		}
	}
	copy(block[148:], fmt.Sprintf("%06o\x00 ", sum))
	old.Write(block[:])
	old.Write(make([]byte, 1024))
	if err := sent(&old, Tar).Copy(io.Discard); !fault.Is(err, fault.Unavailable) || !errors.Is(err, errSparse) {
		t.Errorf("got %v", err)
	}
}

// endless is a guest that never stops sending.
type endless struct {
	rest []byte
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: rand.Text() + rand.Text()}) != nil {
			return 0, io.ErrUnexpectedEOF
		}
		e.rest = b.Bytes()[:512]
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	e.read += n
	return n, nil
}

// full takes so many bytes and then fails, as a client does that leaves.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func TestArchive_OfAnEndlessGuestFlowsOnlyWhileItIsRead(t *testing.T) {
	for _, f := range Formats {
		guest := &endless{}
		err := sent(guest, f).Copy(&full{left: 1 << 20})
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: %v", f, err)
		}
		if limit := 64 << 20; guest.read > limit {
			t.Errorf("%s: %d bytes were taken for a client that took one megabyte", f, guest.read)
		}
	}
}

func TestArchive_TarAndZstdSayTheSame(t *testing.T) {
	in := tarOf(t, &tar.Header{Typeflag: tar.TypeDir, Name: "d/"}, aFile("d/f"), aLink("d/l", "../.."), aHard("h", "d/f"))
	var plain, packed bytes.Buffer
	if err := errors.Join(sent(bytes.NewReader(in), Tar).Copy(&plain), sent(bytes.NewReader(in), TarZstd).Copy(&packed)); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	got, err := io.ReadAll(z)
	if err != nil || !bytes.Equal(got, plain.Bytes()) {
		t.Errorf("they differ: %v", err)
	}
	if d := cmp.Diff([]string{"d/", "d/f", "d/l", "h"}, namesIn(t, got)); d != "" {
		t.Error(d)
	}
}

// pour sends an archive through a sieve.
func pour(b []byte, coding string, keepLinks bool) (out []byte, err error) {
	var to bytes.Buffer
	err = newSieve(bytes.NewReader(b), keepLinks).pass(context.Background(), coding, &to)
	return to.Bytes(), err
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstded(t testing.TB, b []byte, window int) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithWindowSize(window), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	return z.EncodeAll(b, nil)
}

func TestSieve_TakesTarAndItsCompressions(t *testing.T) {
	in := tarOf(t, &tar.Header{Typeflag: tar.TypeDir, Name: "./"}, aFile("./a"), &tar.Header{Typeflag: tar.TypeDir, Name: "d"}, aLink("d/l", "../a"), aHard("h", "./a"))
	for name, c := range map[string]struct {
		body   []byte
		coding string
	}{
		"plain": {in, ""}, "said to be plain": {in, "identity"}, "gzip": {gzipped(t, in), ""}, "zstd": {zstded(t, in, 1<<20), ""},
		"said to be gzip": {gzipped(t, in), "gzip"}, "said to be zstd": {zstded(t, in, 1<<20), "zstd"}, "GZIP": {gzipped(t, in), "X-Gzip"},
		"padded": {append(slices.Clone(in), make([]byte, 10<<10)...), ""},
	} {
		out, err := pour(c.body, c.coding, false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff([]string{"a", "d", "d/l", "h"}, namesIn(t, out)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestSieve_RefusesHostileEntriesByName(t *testing.T) {
	all := hostile()
	all["below a link"] = []*tar.Header{aLink("good", "other"), aFile("good/passwd")}
	all["link out"] = []*tar.Header{aFile("good"), aLink("evil", "../../etc")}
	all["absolute link"] = []*tar.Header{aFile("good"), aLink("evil", "/etc")}
	for name, entries := range all {
		b := tarOf(t, entries...)
		_, err := pour(b, "", false)
		bad := entries[len(entries)-1].Name
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), bad) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := pour(b, "", true); (err == nil) != strings.HasSuffix(name, "link out") && (err == nil) != (name == "absolute link") {
			t.Errorf("%s, with links kept: %v", name, err)
		}
	}
}

func TestSieve_WhatIsNoArchiveIsSaidSo(t *testing.T) {
	in := tarOf(t, aFile("a"), aFile("b"))
	zipped := gzipped(t, in)
	damaged := slices.Clone(zipped)
	damaged[len(damaged)-6] ^= 0xff // in the checksum
	for name, c := range map[string]struct {
		body   []byte
		coding string
	}{
		"nothing": {nil, ""}, "text": {[]byte(strings.Repeat("text ", 500)), ""}, "short": {[]byte("x"), ""}, "zip": {[]byte("PK\x03\x04" + strings.Repeat("x", 600)), ""},
		"not gzip": {in, "gzip"}, "not zstd": {in, "zstd"}, "cut gzip": {zipped[:len(zipped)/2], ""}, "cut tar": {in[:600], ""}, "no end": {in[:2048], ""},
		"damaged": {damaged, ""}, "large window": {zstded(t, bytes.Repeat(in, 40_000), 128<<20), ""}, "cut zstd": {zstded(t, in, 1<<20)[:40], ""},
	} {
		if _, err := pour(c.body, c.coding, false); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSieve_SaysThatAHeaderIsTooLong(t *testing.T) {
	value := strings.Repeat("n", 5<<20)
	record := fmt.Sprintf("%d path=%s\n", len("5242894 path=\n")+len(value), value)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: int64(len(record))}), second(io.WriteString(w, record)), w.Flush()); err != nil {
		t.Fatal(err)
	}
	archive := b.Bytes()
	sum := bytes.Clone(archive[148:154]) // with the type of an extended header, which is another letter
	n, err := strconv.ParseInt(string(sum), 8, 64)
	if err != nil {
		t.Fatal(err)
	}
	archive[156] = tar.TypeXHeader
	copy(archive[148:], fmt.Sprintf("%06o", n+tar.TypeXHeader-tar.TypeReg))
	_, err = pour(append(archive, tarOf(t, aFile("a"))...), "", false)
	if !fault.Is(err, fault.TooLarge) || !strings.Contains(fault.Message(err), "longer than 1 MiB") {
		t.Errorf("got %v", err)
	}
}

func TestSieve_RefusesBombs(t *testing.T) {
	zeros := func(n int64) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "zeros", Size: n}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, b := range map[string][]byte{
		"gzip": gzipped(t, zeros(8<<20)), "zstd": zstded(t, zeros(8<<20), 1<<20), "twice": gzipped(t, append(gzipped(t, zeros(8<<20)), 0)),
	} {
		s := newSieve(bytes.NewReader(b), false)
		s.from = 1 << 20
		var out full
		out.left = 1 << 40
		err := s.pass(t.Context(), "", &out)
		if name == "twice" { // only one layer is undone: what is inside is no tar
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !fault.Is(err, fault.TooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if passed := 1<<40 - out.left; passed > 4<<20 {
			t.Errorf("%s: %d bytes passed", name, passed)
		}
	}
}

// FuzzSieve holds what passes to be a whole, safe archive, whatever comes in.
func FuzzSieve(f *testing.F) {
	f.Add(tarOf(f, aFile("a"), aLink("l", "a"), aHard("h", "a")), true)
	f.Add(tarOf(f, aFile("../x")), false)
	f.Add(gzipped(f, tarOf(f, aFile("a"))), false)
	f.Add(zstded(f, tarOf(f, aFile("a")), 1<<20), false)
	f.Fuzz(func(t *testing.T, b []byte, keep bool) {
		out, err := pour(b, "", keep)
		if err == nil {
			checkSafe(t, out)
		}
	})
}

// FuzzArchive is the same for what a guest sends.
func FuzzArchive(f *testing.F) {
	f.Add(tarOf(f, aFile("a"), aLink("l", "/"), aHard("h", "a")))
	f.Add(tarOf(f, aLink("l", "/"), aFile("l/x")))
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		if sent(bytes.NewReader(b), Tar).Copy(&out) == nil {
			checkSafe(t, out.Bytes())
		}
		if sent(bytes.NewReader(b), Zip).Copy(&out) == nil {
			out.Reset()
		}
	})
}

// checkSafe fails when an archive has what a careless extractor would put outside.
func checkSafe(t *testing.T, b []byte) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(b))
	links := map[string]bool{}
	for {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("it is not whole: %v", err)
		}
		name := strings.TrimSuffix(h.Name, "/")
		if strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") {
			t.Fatalf("%q passed", h.Name)
		}
		for i := range name {
			if name[i] == '/' && links[name[:i]] {
				t.Fatalf("%q passed below a link", h.Name)
			}
		}
		links[name] = h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink && links[h.Linkname]
		if h.Typeflag == tar.TypeLink && (strings.HasPrefix(h.Linkname, "/") || strings.Contains("/"+h.Linkname+"/", "/../")) {
			t.Fatalf("a hard link to %q passed", h.Linkname)
		}
		if !strings.Contains("015\x002", string(h.Typeflag)) {
			t.Fatalf("type %q passed", h.Typeflag)
		}
	}
}
