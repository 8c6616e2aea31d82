package files

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandboxd/internal/fault"
)

// talkative is an empty file with a megabyte of properties.
func talkative(t testing.TB, kind byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h := &tar.Header{Typeflag: kind, Name: "a", PAXRecords: map[string]string{"SANDBOXD.x": strings.Repeat("x", 1<<20-2048)}, Format: tar.FormatPAX}
	if err := w.WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// propertiesOnly are the properties without the file.
func propertiesOnly(t testing.TB) []byte {
	b := talkative(t, tar.TypeReg)
	return b[:len(b)-512]
}

func TestSieve_WhatHeadersUnpackToIsCountedToo(t *testing.T) {
	ends := make([]byte, 1024)
	for name, c := range map[string]struct {
		one  []byte
		many int
		from int64
	}{
		"of entries":                {talkative(t, tar.TypeReg), 12, 2 << 20},
		"of all that follows":       {talkative(t, tar.TypeXGlobalHeader), 12, bombFrom},
		"of one entry, many times":  {propertiesOnly(t), 12, bombFrom},
		"with nothing that follows": {propertiesOnly(t), 6, bombFrom},
	} {
		plain := append(bytes.Repeat(c.one, c.many), ends...)
		s := newSieve(bytes.NewReader(gzipped(t, plain)), false)
		s.from = c.from
		if err := s.pass(t.Context(), "", io.Discard); !fault.Is(err, fault.TooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pour(slices.Concat(talkative(t, tar.TypeXGlobalHeader), talkative(t, tar.TypeReg), tarOf(t, aFile("b"))), "", false); err != nil {
		t.Errorf("a few properties: %v", err)
	}
}

// again reads the same bytes for ever.
type again struct {
	b    []byte
	at   int
	read int64
}

func (a *again) Read(p []byte) (int, error) {
	n := copy(p, a.b[a.at:])
	a.at = (a.at + n) % len(a.b)
	a.read += int64(n)
	return n, nil
}

func TestArchive_OfAGuestThatSendsNothingButPropertiesIsEnded(t *testing.T) {
	guest := &again{b: propertiesOnly(t)}
	err := sent(guest, Tar).Copy(io.Discard)
	if !fault.Is(err, fault.Unavailable) || !errors.Is(err, errBetween) || guest.read > 2*maxBetween {
		t.Errorf("after %d bytes: %v", guest.read, err)
	}
}

func TestSieve_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	left := fault.New(fault.Forbidden, "You may not any more.")
	cancel(left)
	if err := newSieve(&again{b: talkative(t, tar.TypeReg)}, false).pass(ctx, "", io.Discard); !errors.Is(err, left) {
		t.Errorf("got %v", err)
	}
	a := sent(&again{b: talkative(t, tar.TypeReg)}, Tar)
	a.ctx = ctx
	if err := a.Copy(io.Discard); !errors.Is(err, left) {
		t.Errorf("on the way out: %v", err)
	}
}

// panicking stands for a bug in what reads archives.
type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("a bug") }

func TestUnpack_APanicWhileItReadsIsAnError(t *testing.T) {
	g := &liar{take: func(_ context.Context, body io.Reader) error { _, err := io.Copy(io.Discard, body); return err }}
	s := newOn(t, g)
	_, err := s.Unpack(t.Context(), s.box, Unpacking{Folder: "x"}, panicking{})
	if !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "a bug") || s.uses() != 0 {
		t.Errorf("got %v, %d uses are left", err, s.uses())
	}
}

// TestPack_APanicWhileItReadsGivesBackWhatIsKept has so many entries that their list lies on the disk.
func TestPack_APanicWhileItReadsGivesBackWhatIsKept(t *testing.T) {
	var entries []*tar.Header
	for i := range 20_000 {
		entries = append(entries, aFile(rand.Text()+rand.Text()+strconv.Itoa(i)))
	}
	whole := tarOf(t, entries...)
	on := &spools{folder: t.TempDir(), most: spoolsMost}
	taken := int64(0)
	a := sent(io.MultiReader(bytes.NewReader(whole[:len(whole)-1024]), watching{func() { taken = on.taken }}, panicking{}), Zip)
	a.spools = on
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it did not panic")
			}
		}()
		_ = a.Copy(io.Discard)
	}()
	if taken == 0 || on.taken != 0 {
		t.Errorf("%d bytes were taken, %d are", taken, on.taken)
	}
}

// watching is read to its end at once, and tells.
type watching struct{ tell func() }

func (w watching) Read([]byte) (int, error) { w.tell(); return 0, io.EOF }

func TestPack_ANameGivenTwiceIsPackedOnce(t *testing.T) {
	names := []string{"b", "a", "b"}
	if got := once(names); !slices.Equal(got, []string{"b", "a"}) || !slices.Equal(names, []string{"b", "a", "b"}) {
		t.Errorf("got %q of %q", got, names)
	}
}
