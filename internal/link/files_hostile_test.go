package link

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// fileCalls is everything that can be asked of files, read to its end.
var fileCalls = map[string]func(ctx context.Context, s *Session) error{
	"stat": func(ctx context.Context, s *Session) error { _, err := s.FileStat(ctx, "/a"); return err },
	"list": func(ctx context.Context, s *Session) error { _, err := s.FileList(ctx, "/a", "", 0); return err },
	"read": func(ctx context.Context, s *Session) error {
		_, r, err := s.FileRead(ctx, "/a", 0, -1)
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(io.Discard, r)
		return err
	},
	"write": func(ctx context.Context, s *Session) error {
		_, err := s.FileWrite(ctx, wire.FilePut{Path: "/a", Size: -1}, bytes.NewReader(make([]byte, 8<<20)))
		return err
	},
	"upload": func(ctx context.Context, s *Session) error { _, err := s.FileUpload(ctx, "/a", "u"); return err },
	"mkdir":  func(ctx context.Context, s *Session) error { return s.FileMkdir(ctx, "/a", false) },
	"move":   func(ctx context.Context, s *Session) error { return s.FileMove(ctx, []string{"/a"}, "/b", false) },
	"delete": func(ctx context.Context, s *Session) error {
		_, err := s.FileDelete(ctx, []string{"/a"}, false)
		return err
	},
	"trash":   func(ctx context.Context, s *Session) error { _, err := s.FileTrash(ctx); return err },
	"restore": func(ctx context.Context, s *Session) error { return s.FileRestore(ctx, []string{"a"}) },
	"unpack": func(ctx context.Context, s *Session) error {
		_, err := s.FileUnpack(ctx, "/a", false, bytes.NewReader(make([]byte, 8<<20)))
		return err
	},
	"search": func(ctx context.Context, s *Session) error {
		_, err := s.FileSearch(ctx, wire.Search{Path: "/a", Query: "q", In: wire.SearchNames}, func(wire.Found) error { return nil })
		return err
	},
	"watch": func(ctx context.Context, s *Session) error {
		return s.FileWatch(ctx, []string{"/a"}, func(string) error { return nil })
	},
}

func goodEntry() *wire.Entry {
	return &wire.Entry{Name: "a", Type: wire.TypeFile, Size: 10, Modified: time.Unix(1, 0), Mode: 0o644}
}

func entryRecord(change func(e *wire.Entry)) []byte {
	e := goodEntry()
	change(e)
	return wire.AppendRecord(nil, wire.RecordEntry, wire.AppendEntry(nil, e))
}

func endRecord(payload ...byte) []byte { return wire.AppendRecord(nil, wire.RecordEnd, payload) }

func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// fileLies is what no guest of ours says. None of it is an answer to any of the calls.
var fileLies = map[string][]byte{
	"nothing":           nil,
	"garbage":           []byte("\x00\xff garbage \x07"),
	"a page":            []byte("<html>"),
	"cut off":           entryRecord(func(*wire.Entry) {})[:5],
	"huge record":       binary.AppendUvarint([]byte{'e'}, 1<<40),
	"endless number":    append([]byte{'e'}, bytes.Repeat([]byte{0xff}, 20)...),
	"unknown kind":      wire.AppendRecord(nil, '?', nil),
	"no entry":          endRecord(),
	"empty entry":       wire.AppendRecord(nil, wire.RecordEntry, nil),
	"bad problem":       wire.AppendRecord(nil, wire.RecordProblem, []byte{0xff}),
	"a folder untold":   wire.AppendRecord(nil, wire.RecordFolder, []byte("/etc")),
	"name with slash":   joined(entryRecord(func(e *wire.Entry) { e.Name = "../a" }), endRecord()),
	"name of dots":      joined(entryRecord(func(e *wire.Entry) { e.Name = ".." }), endRecord()),
	"name with zero":    joined(entryRecord(func(e *wire.Entry) { e.Name = "a\x00" }), endRecord()),
	"name too long":     joined(entryRecord(func(e *wire.Entry) { e.Name = strings.Repeat("a", 256) }), endRecord()),
	"no name":           joined(entryRecord(func(e *wire.Entry) { e.Name = "" }), endRecord()),
	"no type":           joined(entryRecord(func(e *wire.Entry) { e.Type = "tree" }), endRecord()),
	"mode too large":    joined(entryRecord(func(e *wire.Entry) { e.Mode = 1 << 20 }), endRecord()),
	"target too long":   joined(entryRecord(func(e *wire.Entry) { e.Type, e.Target = wire.TypeLink, strings.Repeat("a", 5000) }), endRecord()),
	"owner too long":    joined(entryRecord(func(e *wire.Entry) { e.Owner = strings.Repeat("a", 100) }), endRecord()),
	"found outside":     joined(wire.AppendRecord(nil, wire.RecordFound, wire.AppendFound(nil, &wire.Found{Path: "../x", Type: wire.TypeFile})), endRecord(0)),
	"found absolutely":  joined(wire.AppendRecord(nil, wire.RecordFound, wire.AppendFound(nil, &wire.Found{Path: "/x", Type: wire.TypeFile})), endRecord(0)),
	"found nowhere":     joined(wire.AppendRecord(nil, wire.RecordFound, wire.AppendFound(nil, &wire.Found{Path: "x", Type: wire.TypeFile, Text: "t", Start: 1, End: 3})), endRecord(0)),
	"trashed elsewhere": joined(wire.AppendRecord(nil, wire.RecordTrashed, wire.AppendTrashed(nil, &wire.Trashed{ID: "a/b", Path: "/x", Type: wire.TypeFile})), endRecord()),
	"trashed nowhere":   joined(wire.AppendRecord(nil, wire.RecordTrashed, wire.AppendTrashed(nil, &wire.Trashed{ID: "a", Path: "x", Type: wire.TypeFile})), endRecord()),
}

// mayPass are lies that happen to be the truth of an operation that has nothing to say.
func mayPass(call, lie string) bool {
	return lie == "no entry" && (call == "mkdir" || call == "move" || call == "delete" || call == "trash" || call == "restore" || call == "watch")
}

func TestFiles_WhatAGuestShouldNotSayIsAnError(t *testing.T) {
	for lie, said := range fileLies {
		_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) { w.Write(said) })
		for call, do := range fileCalls {
			err := do(within(t), s)
			if mayPass(call, lie) {
				continue
			}
			if fault.KindOf(err) != fault.Unavailable {
				t.Errorf("%s to %s: %v", lie, call, err)
			}
		}
	}
}

func TestFiles_AGuestThatDoesNotEndCostsNeitherMemoryNorTime(t *testing.T) {
	for name, said := range map[string][]byte{
		"entries":     entryRecord(func(*wire.Entry) {}),
		"keep-alives": wire.AppendRecord(nil, wire.RecordKeepAlive, nil),
		"found":       wire.AppendRecord(nil, wire.RecordFound, wire.AppendFound(nil, &wire.Found{Path: "x", Type: wire.TypeFile})),
		"trashed":     wire.AppendRecord(nil, wire.RecordTrashed, wire.AppendTrashed(nil, &wire.Trashed{ID: "a", Path: "/x", Type: wire.TypeFile})),
	} {
		_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) { endless(w, strings.Repeat(string(said), 100)) })
		for call, do := range fileCalls {
			before := heapNow()
			if err := do(within(t), s); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("%s to %s: %v", name, call, err)
			}
			if grown := heapNow() - before; grown > 16<<20 {
				t.Errorf("%s to %s: %d MiB", name, call, grown>>20)
			}
		}
	}
}

func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestFiles_ASilentGuestIsGivenUp(t *testing.T) {
	for name, first := range map[string][]byte{"after its head": nil, "in a record": entryRecord(func(*wire.Entry) {})[:4]} {
		_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) {
			w.Write(first)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		var asking sync.WaitGroup
		for call, do := range fileCalls {
			if call == "watch" {
				continue // waits for as long as its caller does
			}
			asking.Go(func() {
				if err := do(within(t), s); fault.KindOf(err) != fault.Unavailable {
					t.Errorf("%s, %s: %v", name, call, err)
				}
			})
		}
		asking.Wait()
		if !s.alive() {
			t.Error("a guest that may just be frozen is dropped")
		}
	}
}

func TestFiles_ACallerThatLeavesDoesNotWait(t *testing.T) {
	l, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for call, do := range fileCalls {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := do(ctx, s); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", call, err)
		}
		cancel()
	}
	close(l.paused) // it does not even read any more
	for call, do := range fileCalls {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := do(ctx, s); !errors.Is(err, context.DeadlineExceeded) && fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", call, err)
		}
		cancel()
	}
}

func TestFileRead_AnotherLengthThanAnnouncedIsAnError(t *testing.T) {
	size := func(n int64) []byte { return wire.AppendRecord(nil, wire.RecordEnd, wire.AppendNumbers(nil, n)) }
	entry := entryRecord(func(*wire.Entry) {})
	for name, said := range map[string][]byte{
		"more":                    joined(entry, size(10), make([]byte, 11)),
		"far more":                joined(entry, size(10), make([]byte, 1<<20)),
		"less":                    joined(entry, size(10), make([]byte, 9)),
		"nothing":                 joined(entry, size(10)),
		"not the file's":          joined(entry, size(11), make([]byte, 11)),
		"negative":                joined(entry, wire.AppendRecord(nil, wire.RecordEnd, wire.AppendNumbers(nil, -1))),
		"of a folder":             joined(entryRecord(func(e *wire.Entry) { e.Type = wire.TypeFolder }), size(10), make([]byte, 10)),
		"without an entry":        joined(size(10), make([]byte, 10)),
		"with two of them":        joined(entry, entry, size(10), make([]byte, 10)),
		"the end is a keep-alive": joined(entry, wire.AppendRecord(nil, wire.RecordKeepAlive, nil)),
	} {
		_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) { w.Write(said) })
		if err := fileCalls["read"](within(t), s); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFileRead_AFileThatNeverEndsIsReadNoFurtherThanItIsLong(t *testing.T) {
	long := goodEntry()
	long.Size = 1 << 62
	for name, c := range map[string]struct {
		entry      *wire.Entry
		take, want int64
	}{
		"beyond its size": {goodEntry(), 1 << 40, 10},
		"of any size":     {long, 4 << 20, 4 << 20}, // and then its reader leaves
	} {
		head := joined(wire.AppendRecord(nil, wire.RecordEntry, wire.AppendEntry(nil, c.entry)), wire.AppendRecord(nil, wire.RecordEnd, wire.AppendNumbers(nil, c.entry.Size)))
		_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) {
			w.Write(head)
			endless(w, strings.Repeat("x", 64<<10))
		})
		before := heapNow()
		_, r, err := s.FileRead(within(t), "/a", 0, -1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n, err := io.Copy(io.Discard, io.LimitReader(r, c.take))
		if n != c.want || n < c.take && fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if grown := heapNow() - before; grown > 16<<20 {
			t.Errorf("%s: %d MiB", name, grown>>20)
		}
		if !s.alive() {
			t.Errorf("%s: the guest is dropped for one file", name)
		}
	}
}

func TestFiles_AProblemIsCleanedAndBelievedNoFurther(t *testing.T) {
	for code, kind := range map[string]fault.Kind{wire.CodeInvalid: fault.Invalid, wire.CodeNotFound: fault.NotFound, wire.CodeConflict: fault.Conflict,
		wire.CodeForbidden: fault.Forbidden, wire.CodeChanged: fault.Conflict, wire.CodeFolder: fault.Conflict, wire.CodeFull: fault.Conflict,
		"unauthenticated": fault.Unavailable, "": fault.Unavailable} {
		_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) {
			w.Write(wire.AppendRecord(nil, wire.RecordProblem, wire.AppendProblem(nil, &wire.Problem{Code: code, Message: "bad \x1b[31m\u202ething"})))
		})
		for call, do := range fileCalls {
			err := do(within(t), s)
			if fault.KindOf(err) != kind || fault.Message(err) != "bad [31mthing" {
				t.Errorf("%s, %q: %v, %q", call, code, fault.KindOf(err), fault.Message(err))
			}
		}
	}
}

func TestFileList_NoMoreThanWasAskedFor(t *testing.T) {
	listed := func(l wire.Listing) []byte { return wire.AppendRecord(nil, wire.RecordEnd, wire.AppendListed(nil, &l)) }
	entry := entryRecord(func(*wire.Entry) {})
	for name, c := range map[string]struct {
		said []byte
		ok   bool
	}{
		"two":                {joined(entry, entry, listed(wire.Listing{Path: "/a", Next: "abc"})), true},
		"three":              {joined(entry, entry, entry, listed(wire.Listing{Path: "/a"})), false},
		"relative":           {joined(entry, listed(wire.Listing{Path: "a"})), false},
		"cursor with blanks": {joined(entry, listed(wire.Listing{Path: "/a", Next: "a b\n"})), false},
		"cursor too long":    {joined(entry, listed(wire.Listing{Path: "/a", Next: strings.Repeat("a", 2000)})), false},
	} {
		_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) { w.Write(c.said) })
		if l, err := s.FileList(within(t), "/a", "", 2); (err == nil) != c.ok {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}
