package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// liar is a guest that answers as a test says; whatever it is not asked for is left out.
type liar struct {
	access.Guest
	entry wire.Entry
	list  wire.Listing
	body  io.Reader
	take  func(ctx context.Context, body io.Reader) error
}

// on is a Service, and a sandbox with a guest.
type on struct {
	*Service
	lab *accesstest.Sandbox
	box access.Handle
}

func newOn(t *testing.T, g access.Guest) on {
	t.Helper()
	lab := accesstest.New("box", g)
	return on{New(""), lab, lab.Handle(t)}
}

// uses tells how many go on.
func (o on) uses() int { return len(o.lab.Status().Because) }

func (l *liar) Hello() wire.Hello { return wire.Hello{Home: "/home"} }

func (l *liar) FileStat(context.Context, string) (wire.Entry, error) { return l.entry, nil }
func (l *liar) FileList(context.Context, string, string, int) (wire.Listing, error) {
	return l.list, nil
}

func (l *liar) FileRead(ctx context.Context, _ string, _, _ int64) (wire.Entry, io.ReadCloser, error) {
	return l.entry, io.NopCloser(&ended{ctx, l.body}), nil
}

func (l *liar) FilePack(ctx context.Context, _ string, _ []string) (io.ReadCloser, error) {
	return io.NopCloser(&ended{ctx, l.body}), nil
}

func (l *liar) FileWrite(ctx context.Context, _ wire.FilePut, body io.Reader) (wire.Written, error) {
	return wire.Written{Entry: l.entry, Offset: 7}, l.take(ctx, body)
}

func (l *liar) FileUnpack(ctx context.Context, _ string, _ bool, body io.Reader) (wire.Unpacked, error) {
	return wire.Unpacked{}, l.take(ctx, body)
}

// ended reads until ctx ends, as a link does.
type ended struct {
	ctx context.Context
	r   io.Reader
}

func (e *ended) Read(p []byte) (int, error) {
	if e.r != nil {
		return e.r.Read(p)
	}
	<-e.ctx.Done()
	return 0, context.Cause(e.ctx)
}

func TestService_ETagsThatWouldBreakAHeaderAreNotBelieved(t *testing.T) {
	for _, etag := range []string{"x", `"x`, `"a"b"`, "\"a\r\nSet-Cookie: x\"", `"a b"`, "\"\xff\"", `"`, `W/"x"`} {
		g := &liar{entry: wire.Entry{Name: "f", Type: wire.TypeFile, ETag: etag}, body: strings.NewReader("")}
		g.list.Entries = []wire.Entry{g.entry}
		g.take = func(_ context.Context, body io.Reader) error { return nil }
		s := newOn(t, g)
		_, err1 := s.Stat(t.Context(), s.box, "f")
		_, err2 := s.Read(t.Context(), s.box, "f", 0, -1)
		_, err3 := s.List(t.Context(), s.box, "f", "", 10)
		_, err4 := s.Write(t.Context(), s.box, wire.FilePut{Path: "f", Size: -1}, strings.NewReader(""))
		for i, err := range []error{err1, err2, err3, err4} {
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("%q, %d: %v", etag, i, err)
			}
		}
		if s.uses() != 0 {
			t.Errorf("%q: %d uses are left", etag, s.uses())
		}
	}
}

func TestRead_AGuestThatFallsSilentIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &liar{entry: wire.Entry{Name: "f", Type: wire.TypeFile, Size: 9}}
		s := newOn(t, g)
		c, err := s.Read(t.Context(), s.box, "f", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // a client that takes nothing yet is no stall of the guest's
		began := time.Now()
		if _, err := io.ReadAll(c); !fault.Is(err, fault.Timeout) || time.Since(began) != stallLimit {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		c.Close()
		if s.uses() != 0 || s.transfers.Len() != 0 {
			t.Error("the use is left")
		}
	})
}

func TestPack_AGuestThatFallsSilentIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &liar{}
		s := newOn(t, g)
		a, err := s.Pack(t.Context(), s.box, "/", nil, Zip)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Copy(io.Discard); !fault.Is(err, fault.Timeout) {
			t.Errorf("got %v", err)
		}
		a.Close()
		if s.uses() != 0 || s.transfers.Len()+s.archives.Len() != 0 {
			t.Error("the use is left")
		}
	})
}

func TestWrite_AGuestThatTakesNothingIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &liar{take: func(ctx context.Context, body io.Reader) error {
			if _, err := body.Read(make([]byte, 10)); err != nil {
				return err
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		s := newOn(t, g)
		began := time.Now()
		_, err := s.Write(t.Context(), s.box, wire.FilePut{Path: "f", Size: -1}, &sluggish{})
		if !fault.Is(err, fault.Timeout) || time.Since(began) != stallLimit+clientPause {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		began = time.Now()
		var archive bytes.Buffer
		archive.Write(tarOf(t, aFile("a")))
		if _, err := s.Unpack(t.Context(), s.box, Unpacking{Folder: "/"}, &archive); !fault.Is(err, fault.Timeout) || time.Since(began) != stallLimit {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if s.uses() != 0 || s.transfers.Len()+s.archives.Len() != 0 {
			t.Error("the use is left")
		}
	})
}

// clientPause is how long a slow client takes.
const clientPause = 10 * time.Minute

// sluggish is a client that is slower than a guest may be.
type sluggish struct{}

func (*sluggish) Read(p []byte) (int, error) {
	<-time.After(clientPause)
	return copy(p, "x"), nil
}

func TestWrite_WhatTheClientFailsWithComesBack(t *testing.T) {
	left := errors.New("left")
	s := newOn(t, &liar{take: func(_ context.Context, body io.Reader) error {
		_, err := io.Copy(io.Discard, body)
		return errors.Join(errors.New("reset"), err)
	}})
	if _, err := s.Write(t.Context(), s.box, wire.FilePut{Path: "f", Size: -1}, failing{left}); err != left {
		t.Errorf("got %v", err)
	}
	if _, err := s.Unpack(t.Context(), s.box, Unpacking{Folder: "/"}, failing{left}); err != left {
		t.Errorf("got %v", err)
	}
}

func TestUnpack_AGuestThatTakesOnlySomeIsNotBelieved(t *testing.T) {
	for _, take := range []func(context.Context, io.Reader) error{
		func(context.Context, io.Reader) error { return nil },
		func(_ context.Context, body io.Reader) error { _, err := body.Read(make([]byte, 100)); return err },
	} {
		s := newOn(t, &liar{take: take})
		if _, err := s.Unpack(t.Context(), s.box, Unpacking{Folder: "/"}, bytes.NewReader(tarOf(t, aFile("a"), aFile("b")))); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v", err)
		}
	}
	refused := fault.New(fault.Conflict, "a is a folder.")
	s := newOn(t, &liar{take: func(context.Context, io.Reader) error { return refused }})
	if _, err := s.Unpack(t.Context(), s.box, Unpacking{Folder: "/"}, bytes.NewReader(tarOf(t, aFile("a")))); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func TestService_TooMuchAtOnceIsLimited(t *testing.T) {
	g := &liar{entry: wire.Entry{Name: "f", Type: wire.TypeFile}, body: strings.NewReader("")}
	s := newOn(t, g)
	var open []io.Closer
	for range maxTransfers {
		c, err := s.Read(t.Context(), s.box, "f", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	if _, err := s.Read(t.Context(), s.box, "f", 0, -1); !fault.Is(err, fault.Limited) {
		t.Errorf("got %v", err)
	}
	if c, err := s.Read(t.Context(), accesstest.New("other", g).Handle(t), "f", 0, -1); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	for _, c := range open {
		c.Close()
	}
	for range maxArchives {
		a, err := s.Pack(t.Context(), s.box, "/", nil, Tar)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
	}
	if _, err := s.Pack(t.Context(), s.box, "/", nil, Tar); !fault.Is(err, fault.Limited) {
		t.Errorf("got %v", err)
	}
	if c, err := s.Read(t.Context(), s.box, "f", 0, -1); err != nil {
		t.Errorf("files wait for archives: %v", err)
	} else {
		c.Close()
	}
	if s.transfers.Len() != 1 || s.archives.Len() != 1 {
		t.Errorf("%d and %d are counted", s.transfers.Len(), s.archives.Len())
	}
}

func TestCheckPath_CleansAndRefuses(t *testing.T) {
	for given, want := range map[string]string{
		"/": "/", "/a//b/./c/": "/a/b/c", "/a/../b": "/b", "x": "x", "./x": "x", "a/../b": "b", ".": ".", "~": ".", "~/": ".", "~/a": "a", "~user": "~user",
		"a/~": "a/~", "...": "...", "/\xff": "/\xff", "a\nb": "a\nb", " ": " ",
	} {
		if got, err := CheckPath(given); err != nil || got != want {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
	for _, given := range []string{
		"", "..", "../x", "a/../../x", "./..", "~/..", "~/../x", "/..", "/a/../../x", "a\x00b", "\x00", strings.Repeat("x", 256), strings.Repeat("x/", 2049),
	} {
		if got, err := CheckPath(given); !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != "path" {
			t.Errorf("%.20q: %q, %v", given, got, err)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	for _, seed := range []string{"/a", "a/../..", "~/x", "//", ".//..", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		got, err := CheckPath(given)
		if err != nil {
			return
		}
		if got == "" || strings.Contains("/"+got+"/", "/../") || strings.Contains(got, "//") || strings.IndexByte(got, 0) >= 0 || (got[0] == '/') != (given[0] == '/') {
			t.Fatalf("%q became %q", given, got)
		}
	})
}
