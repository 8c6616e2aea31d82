package files

import (
	"net/url"
	"os"
	"testing"

	"sandboxd/internal/wire"
)

func TestWrite_MakesReplacesAndTells(t *testing.T) {
	b := newBox(t, 1000)
	w, err := b.write(wire.FilePut{Path: "a.txt", Size: -1}, "hello")
	must(t, err)
	if !w.Created || w.Offset != 5 || w.Entry.Size != 5 || w.Entry.UID != 1000 || w.Entry.Mode != 0o644 || w.Entry.Name != "a.txt" {
		t.Errorf("got %+v", w)
	}
	must(t, os.Chmod(b.host("home/a.txt"), 0o751))
	again, err := b.write(wire.FilePut{Path: "/home/a.txt", Size: 3, IfMatch: w.Entry.ETag}, "you")
	must(t, err)
	if again.Created || again.Entry.Mode != 0o751 || again.Entry.ETag == w.Entry.ETag {
		t.Errorf("got %+v", again)
	}
	e, text, err := b.read("a.txt")
	if err != nil || text != "you" || e != again.Entry {
		t.Errorf("got %+v, %q, %v", e, text, err)
	}
	if names := b.names("home"); len(names) != 1 {
		t.Errorf("left %q", names)
	}
}

func TestWrite_ConditionsHold(t *testing.T) {
	b := newBox(t, 1000)
	b.put("home/a", "old")
	e, err := b.stat("a")
	must(t, err)
	for name, c := range map[string]struct {
		put  wire.FilePut
		code string
	}{
		"another":       {wire.FilePut{Path: "a", Size: -1, IfMatch: `"x"`}, wire.CodeChanged},
		"none, is":      {wire.FilePut{Path: "a", Size: -1, IfNone: true}, wire.CodeChanged},
		"any, is not":   {wire.FilePut{Path: "b", Size: -1, IfMatch: "*"}, wire.CodeChanged},
		"that, is not":  {wire.FilePut{Path: "b", Size: -1, IfMatch: e.ETag}, wire.CodeChanged},
		"folder":        {wire.FilePut{Path: "/home", Size: -1}, wire.CodeFolder},
		"no folder":     {wire.FilePut{Path: "c/d", Size: -1}, wire.CodeNotFound},
		"below a file":  {wire.FilePut{Path: "a/d", Size: -1}, wire.CodeNotFound},
		"too little":    {wire.FilePut{Path: "a", Size: 9}, wire.CodeInvalid},
		"too much":      {wire.FilePut{Path: "a", Size: 1}, wire.CodeInvalid},
		"root's":        {wire.FilePut{Path: "/x", Size: -1}, ""},
		"any, is":       {wire.FilePut{Path: "d/e/f", Size: -1, Parents: true}, ""},
		"none, is none": {wire.FilePut{Path: "g", Size: -1, IfNone: true, Mode: 0o600}, ""},
	} {
		if _, err := b.write(c.put, "new"); code(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := b.content("home/a"); got != "old" {
		t.Errorf("got %q", got)
	}
}

func TestUpload_ComesInPiecesAndGoesOn(t *testing.T) {
	b := newBox(t, 1000)
	offset := func() int64 {
		t.Helper()
		a, err := b.ask(wire.FilesUpload, url.Values{"path": {"big"}, "upload": {"u1"}}, nil)
		must(t, err)
		var n int64
		must(t, wire.DecodeNumbers(a.end, &n))
		return n
	}
	if n := offset(); n != 0 {
		t.Errorf("got %d", n)
	}
	w, err := b.write(wire.FilePut{Path: "big", Upload: "u1", Size: 9}, "abc")
	must(t, err)
	if w.Offset != 3 || w.Entry.Name != "" || offset() != 3 {
		t.Errorf("got %+v", w)
	}
	if _, err := b.write(wire.FilePut{Path: "big", Upload: "u1", Offset: 2, Size: 9}, "abc"); code(err) != wire.CodeConflict {
		t.Errorf("got %v", err)
	}
	if l, err := b.list("", "", "10"); code(err) != wire.CodeInvalid {
		t.Errorf("got %v, %v", l, err)
	}
	if l, err := b.list("/home", "", "10"); err != nil || len(l.Entries) != 1 { // but for the journal's folder
		t.Errorf("got %+v, %v", l, err)
	}
	w, err = b.write(wire.FilePut{Path: "big", Upload: "u1", Offset: 3, Size: 9, Last: true}, "defghi")
	must(t, err)
	if w.Offset != 9 || w.Entry.Size != 9 || !w.Created || b.content("home/big") != "abcdefghi" || offset() != 0 {
		t.Errorf("got %+v", w)
	}
}
