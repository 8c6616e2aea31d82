package wire

import (
	"bytes"
	"errors"
	"io"
	"path"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestCleanPath_MeansOnePlaceOrIsRefused(t *testing.T) {
	for p, want := range map[string]string{
		"/":                                     "/",
		"//":                                    "/",
		"/.":                                    "/",
		".":                                     "/home/agent",
		"./":                                    "/home/agent",
		"a":                                     "/home/agent/a",
		"a/":                                    "/home/agent/a",
		"a//b/./c":                              "/home/agent/a/b/c",
		"a/../b":                                "/home/agent/b",
		"/a/../b":                               "/b",
		"/a/..":                                 "/",
		"a/..":                                  "/home/agent",
		"...":                                   "/home/agent/...",
		"%2e%2e":                                "/home/agent/%2e%2e",
		"..\\x":                                 "/home/agent/..\\x",
		"a\nb":                                  "/home/agent/a\nb",
		"\xff":                                  "/home/agent/\xff",
		"~":                                     "/home/agent/~",
		strings.Repeat("a", 255):                "/home/agent/" + strings.Repeat("a", 255),
		"":                                      "",
		"..":                                    "",
		"../x":                                  "",
		"a/../..":                               "",
		"a/../../home/agent/x":                  "",
		"/..":                                   "",
		"/../x":                                 "",
		"/a/../../x":                            "",
		"./../x":                                "",
		"a\x00":                                 "",
		"\x00":                                  "",
		strings.Repeat("a", 256):                "",
		"/" + strings.Repeat("a/", 2048):        "",
		strings.Repeat("a/", 2047):              "",
		strings.Repeat("a/../", 820):            "",
		"/" + strings.Repeat("a/", 2046) + "aa": "/" + strings.Repeat("a/", 2046) + "aa",
		"/" + strings.Repeat("a/", 2046) + "aaaa": "",
	} {
		got, err := CleanPath("/home/agent", p)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%.60q: got %.60q, %v", p, got, err)
		}
	}
}

// FuzzCleanPath: what comes out is absolute, clean, bounded, below where it began, and comes out again as it is.
func FuzzCleanPath(f *testing.F) {
	for _, p := range []string{"a/../b", "/..", "..", "a\x00b", "/a//b/", "a/./../../x", "\xff/.."} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		got, err := CleanPath("/home/agent", p)
		if err != nil {
			return
		}
		if got[0] != '/' || path.Clean(got) != got || len(got) > MaxPath || strings.Contains(got, "\x00") {
			t.Fatalf("%q gives %q", p, got)
		}
		if p[0] != '/' && got != "/home/agent" && !strings.HasPrefix(got, "/home/agent/") {
			t.Fatalf("%q leaves home: %q", p, got)
		}
		if again, err := CleanPath("/home/agent", got); again != got || err != nil {
			t.Fatalf("%q gives %q and then %q, %v", p, got, again, err)
		}
	})
}

func someEntries() []Entry {
	at := time.Unix(1_700_000_000, 123_456_789).UTC()
	return []Entry{
		{Name: "a", Type: TypeFile, Size: 1 << 40, Modified: at, Mode: 0o4755, UID: 1000, GID: 1 << 31, Owner: "agent", Group: "7", ETag: ETagOf(5, 1<<40, at)},
		{Name: "new\nline\xff", Type: TypeFolder, Modified: time.Unix(-5, 0).UTC(), Mode: 0o755},
		{Name: "l", Type: TypeLink, Target: "../x\xff", TargetType: TypeDevice, Modified: at},
		{Name: "/", Type: TypeFolder, Modified: at},
	}
}

func TestRecords_ComeOutAsTheyWentIn(t *testing.T) {
	var b []byte
	for _, e := range someEntries() {
		b = AppendRecord(AppendRecord(b, RecordKeepAlive, nil), RecordEntry, AppendEntry(nil, &e))
	}
	b = append(AppendRecord(b, RecordEnd, AppendNumbers(nil, 0, 7, 1<<62)), "bare"...)
	r := NewRecordReader(bytes.NewReader(b))
	for _, want := range someEntries() {
		kind, payload, err := r.Next()
		if err != nil || kind != RecordEntry {
			t.Fatalf("got %c, %v", kind, err)
		}
		if got, err := DecodeEntry(payload); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	kind, payload, err := r.Next()
	var x, y, z int64
	if err := errors.Join(err, DecodeNumbers(payload, &x, &y, &z)); err != nil || kind != RecordEnd || x != 0 || y != 7 || z != 1<<62 {
		t.Errorf("got %c, %d, %d, %d, %v", kind, x, y, z, err)
	}
	if rest, err := io.ReadAll(r.Rest()); string(rest) != "bare" || err != nil {
		t.Errorf("got %q, %v", rest, err)
	}
	written := Written{Entry: someEntries()[0], Created: true, Offset: 99}
	if got, err := DecodeWritten(AppendWritten(nil, &written)); err != nil || !reflect.DeepEqual(got, written) {
		t.Errorf("got %+v, %v", got, err)
	}
	part := Written{Offset: 5}
	if got, err := DecodeWritten(AppendWritten(nil, &part)); err != nil || !reflect.DeepEqual(got, part) {
		t.Errorf("got %+v, %v", got, err)
	}
	trashed := Trashed{ID: "a.2", Path: "/x\n", Deleted: time.Unix(5, 0).UTC(), Type: TypeFile, Size: 3}
	if got, err := DecodeTrashed(AppendTrashed(nil, &trashed)); err != nil || !reflect.DeepEqual(got, trashed) {
		t.Errorf("got %+v, %v", got, err)
	}
	found := Found{Path: "a/b", Type: TypeFile, Line: 3, Column: 4, Text: "a needle", Start: 2, End: 8}
	if got, err := DecodeFound(AppendFound(nil, &found)); err != nil || !reflect.DeepEqual(got, found) {
		t.Errorf("got %+v, %v", got, err)
	}
	listing := Listing{Path: "/a", Next: "dYQ"}
	var got Listing
	if err := DecodeListed(AppendListed(nil, &listing), &got); err != nil || !reflect.DeepEqual(got, listing) {
		t.Errorf("got %+v, %v", got, err)
	}
	put := FilePut{Path: "/a b\xff&=", Upload: "u-1", Offset: 5, Size: 9, Last: true, IfMatch: `"x"`, Mode: 0o640, Parents: true}
	if got, err := PutOf(put.Values()); err != nil || !reflect.DeepEqual(got, put) {
		t.Errorf("got %+v, %v", got, err)
	}
	search := Search{Path: "/a", Query: "q\xff", In: SearchContent, Case: true, Regex: true, Limit: 7}
	if got, err := SearchOf(search.Values()); err != nil || !reflect.DeepEqual(got, search) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestETag_IsAnotherForEveryChange(t *testing.T) {
	at := time.Unix(1, 2)
	seen := map[string]bool{}
	for _, tag := range []string{ETagOf(1, 2, at), ETagOf(2, 2, at), ETagOf(1, 3, at), ETagOf(1, 2, at.Add(1)), ETagOf(12, 0, at), ETagOf(1, 20, at),
		ETagOf(1<<64-1, 1<<63-1, time.Unix(maxUnix, 999_999_999)), ETagOf(1, 2, time.Unix(-1, 5)), ETagOf(1, 2, time.Unix(1, 20))} {
		if seen[tag] || len(tag) > maxETag || tag[0] != '"' || tag[len(tag)-1] != '"' {
			t.Errorf("got %s", tag)
		}
		seen[tag] = true
	}
}

func TestFilePut_WhatMakesNoSenseIsRefused(t *testing.T) {
	for name, p := range map[string]FilePut{
		"offset of a whole":  {Offset: 1},
		"negative offset":    {Upload: "u", Offset: -1, Size: -1},
		"behind the end":     {Upload: "u", Offset: 5, Size: 4},
		"bad upload":         {Upload: "../u"},
		"long upload":        {Upload: strings.Repeat("u", 65)},
		"mode":               {Mode: 0o10000},
		"both conditions":    {IfMatch: "*", IfNone: true},
		"condition too long": {IfMatch: strings.Repeat("e", 100)},
		"condition, zero":    {IfMatch: "\x00"},
	} {
		if err := p.Check(); err == nil {
			t.Errorf("%s was let through", name)
		}
	}
}

// FuzzRecords: whatever is read is within its bounds, and means the same when it is written again.
func FuzzRecords(f *testing.F) {
	var all []byte
	for _, e := range someEntries() {
		all = AppendRecord(all, RecordEntry, AppendEntry(nil, &e))
	}
	f.Add(all)
	f.Add(AppendRecord(nil, RecordFound, AppendFound(nil, &Found{Path: "a", Type: TypeFile, Text: "x", End: 1})))
	f.Add(AppendRecord(nil, RecordTrashed, AppendTrashed(nil, &Trashed{ID: "a", Path: "/a", Type: TypeFile})))
	f.Add(AppendRecord(nil, RecordProblem, AppendProblem(nil, &Problem{Code: CodeFull, Message: "m"})))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewRecordReader(bytes.NewReader(b))
		for {
			_, payload, err := r.Next()
			if err != nil {
				return
			}
			if len(payload) > maxRecord {
				t.Fatalf("%d bytes", len(payload))
			}
			if e, err := DecodeEntry(payload); err == nil {
				if again, err := DecodeEntry(AppendEntry(nil, &e)); err != nil || !reflect.DeepEqual(again, e) {
					t.Fatalf("%+v comes back as %+v, %v", e, again, err)
				}
			}
			if x, err := DecodeFound(payload); err == nil {
				if again, err := DecodeFound(AppendFound(nil, &x)); err != nil || again != x {
					t.Fatalf("%+v comes back as %+v, %v", x, again, err)
				}
			}
			if x, err := DecodeTrashed(payload); err == nil {
				if again, err := DecodeTrashed(AppendTrashed(nil, &x)); err != nil || !reflect.DeepEqual(again, x) {
					t.Fatalf("%+v comes back as %+v, %v", x, again, err)
				}
			}
			if p, err := DecodeProblem(payload); err == nil && len(p.Message) > 500 {
				t.Fatalf("%d bytes of message", len(p.Message))
			}
			var l Listing
			DecodeListed(payload, &l)
			DecodeWritten(payload)
		}
	})
}
