package files

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

func link(name, target string) tarFile {
	return tarFile{header: tar.Header{Name: name, Linkname: target, Typeflag: tar.TypeSymlink, Mode: 0o777}}
}

func hard(name, target string) tarFile {
	return tarFile{header: tar.Header{Name: name, Linkname: target, Typeflag: tar.TypeLink, Mode: 0o644}}
}

func special(name string, kind byte) tarFile {
	return tarFile{header: tar.Header{Name: name, Typeflag: kind, Mode: 0o666, Devmajor: 1, Devminor: 3}}
}

func folder(name string) tarFile {
	return tarFile{header: tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}}
}

// refusedArchives are archives with an entry that leads out, or is none that is made.
func refusedArchives(outside string) map[string][]tarFile {
	return map[string][]tarFile{
		"absolute":                 {tarEntry("/bad", "x")},
		"absolute, the outside":    {tarEntry(outside+"/bad", "x")},
		"up":                       {tarEntry("../bad", "x")},
		"up in the middle":         {tarEntry("a/../../bad", "x")},
		"up and back":              {tarEntry("a/../bad", "x")},
		"up at the end":            {folder("bad/..")},
		"up, dotted":               {tarEntry("./.././bad", "x")},
		"long name":                {tarEntry(strings.Repeat("b", 300)+"bad", "x")},
		"deep":                     {tarEntry(strings.Repeat("b/", 300)+"bad", "x")},
		"link, absolute":           {link("bad", "/etc")},
		"link, the outside":        {link("bad", outside)},
		"link, up":                 {link("bad", "..")},
		"link, far up":             {link("a/b/bad", "../../../x")},
		"link, up behind a name":   {link("bad", "a/../../outside")},
		"link, by another":         {folder("p/q"), link("p/q/root", "../.."), link("p/q/bad", "root/../outside")},
		"link, empty":              {link("bad", "")},
		"hard link, absolute":      {hard("bad", outside+"/secret")},
		"hard link, up":            {hard("bad", "../../outside/secret")},
		"hard link, to nothing":    {hard("bad", "nothing")},
		"hard link, to a folder":   {folder("f"), hard("bad", "f")},
		"hard link, itself":        {hard("bad", "bad")},
		"hard link, to a link":     {link("l", "file"), hard("bad", "l")},
		"hard link, by a link":     {hard("bad", "up/secret")},
		"through a link of ours":   {tarEntry("up/bad", "x")},
		"through a link, far":      {tarEntry("chain59/bad", "x")},
		"through a new link":       {link("new", "sub"), tarEntry("new/bad", "x")},
		"folder through a link":    {folder("up/bad")},
		"link through a link":      {link("up/bad", "x")},
		"folder in a link's stead": {folder("up")},
		"device":                   {special("bad", tar.TypeChar)},
		"block device":             {special("bad", tar.TypeBlock)},
		"fifo":                     {special("bad", tar.TypeFifo)},
		"something new":            {special("bad", 'Z')},
		"file without a name":      {tarEntry(".", "bad")},
	}
}

func TestUnpack_WhatLeadsOutIsRefusedByName(t *testing.T) {
	r := newTrap(t)
	before := state(t, r.outside)
	for name, files := range refusedArchives(r.outside) {
		_, err := r.ask(wire.FilesUnpack, at("/home"), bytes.NewReader(tarOf(files...)))
		if code(err) != wire.CodeInvalid || !strings.Contains(err.Error(), "refused: the entry") {
			t.Errorf("%s: %v", name, err)
		}
		if after := state(t, r.outside); after != before {
			t.Fatalf("%s: the outside has changed: %s", name, after)
		}
		filepath.WalkDir(r.root, func(p string, _ os.DirEntry, _ error) error {
			if strings.HasSuffix(p, "bad") {
				t.Errorf("%s: %s was made", name, p)
			}
			return nil
		})
		r.set()
	}
}

// paxOf puts an extended header with one record before an archive.
func paxOf(key, value string, archive []byte) []byte {
	rest := " " + key + "=" + value + "\n"
	n := len(rest)
	for n != len(rest)+len(strconv.Itoa(n)) { // it counts itself
		n = len(rest) + len(strconv.Itoa(n))
	}
	head := tarOf(tarEntry("pax", strconv.Itoa(n)+rest))
	head[156] = tar.TypeXHeader
	return append(sealed(head[:len(head)-2*tarHeader]), archive...)
}

// sealed gives the header at the beginning of an archive the sum that it should have, so that what else is in it matters.
func sealed(archive []byte) []byte {
	sum := 8 * int(' ') // its own field counts as blanks
	for i, c := range archive[:tarHeader] {
		if i < 148 || i >= 156 {
			sum += int(c)
		}
	}
	copy(archive[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return archive
}

func TestUnpack_MakesWhatStandsInIt(t *testing.T) {
	b := newBox(t, 1000)
	b.put("home/old", "old")
	b.put("home/in the way", "old")
	must(t, os.Link(b.host("home/old"), b.host("home/same")))
	archive := tarOf(folder("./"), folder("d/"), tarEntry("d/a", "first"), tarEntry("d/a", "second"), tarEntry("old", "new"),
		tarEntry("big", strings.Repeat("b", 3*pieceSize+5)), link("l", "d/a"), link("d/up", "../old"), hard("h", "d/a"), hard("h", "d/a"),
		link("in the way", "d"), tarEntry("new/folder/x", "x"), tarEntry("weird\n\x1b[31m\u202e<b>", "w"), tarEntry("back\\slash", "b"),
		tarFile{tar.Header{Name: "set", Mode: 0o6755, Size: 1, Typeflag: tar.TypeReg, ModTime: time.Unix(1e9, 0)}, "s"})
	a, err := b.ask(wire.FilesUnpack, at("/home"), bytes.NewReader(archive))
	must(t, err)
	var entries, size int64
	must(t, wire.DecodeNumbers(a.end, &entries, &size))
	if entries != 15 || size < 3*pieceSize {
		t.Errorf("%d entries, %d bytes", entries, size)
	}
	for name, want := range map[string]string{"d/a": "second", "old": "new", "same": "old", "h": "second", "l": "second", "d/up": "new",
		"new/folder/x": "x", "back\\slash": "b", "set": "s", "big": strings.Repeat("b", 3*pieceSize+5)} {
		if got := b.content("home/" + name); got != want {
			t.Errorf("%s: got %.40q", name, got)
		}
	}
	e, err := b.stat("set")
	if err != nil || e.Mode != 0o755 || e.UID != 1000 || !e.Modified.Equal(time.Unix(1e9, 0)) {
		t.Errorf("got %+v, %v", e, err)
	}
	if target, err := os.Readlink(b.host("home/in the way")); target != "d" {
		t.Errorf("got %q, %v", target, err)
	}
	for _, name := range b.names("home") {
		if isTemporary(name) {
			t.Errorf("left %q", name)
		}
	}
	if _, err := b.ask(wire.FilesUnpack, at("/home"), bytes.NewReader(tarOf(tarEntry("d", "x")))); code(err) != wire.CodeFolder {
		t.Errorf("got %v", err)
	}
}

func TestUnpack_KeepsLinksWhenAskedTo(t *testing.T) {
	r := newTrap(t)
	v := url.Values{"path": {"/home"}, "links": {"true"}}
	_, err := r.ask(wire.FilesUnpack, v, bytes.NewReader(tarOf(link("kept", r.outside), link("sub/kept", "../../../outside"), link("up", "/new"))))
	must(t, err)
	for name, want := range map[string]string{"kept": r.outside, "sub/kept": "../../../outside", "up": "/new"} {
		if got, _ := os.Readlink(r.host("home/" + name)); got != want {
			t.Errorf("got %q", got)
		}
	}
	before := state(t, r.outside)
	if _, err := r.ask(wire.FilesUnpack, v, bytes.NewReader(tarOf(link("k", r.outside), tarEntry("k/x", "x")))); code(err) != wire.CodeInvalid {
		t.Errorf("got %v", err)
	}
	if after := state(t, r.outside); after != before {
		t.Errorf("the outside has changed: %s", after)
	}
}

func TestUnpack_WhatIsCutOffOrDamagedSaysSo(t *testing.T) {
	b := newBox(t, 1000)
	whole := tarOf(tarEntry("a", strings.Repeat("a", 2000)), folder("d"), tarEntry(strings.Repeat("n", 150), "b"))
	for n := 1; n < len(whole)-2*tarHeader; n += 100 {
		_, err := b.ask(wire.FilesUnpack, at("/home/x"), bytes.NewReader(whole[:n]))
		if code(err) != wire.CodeInvalid {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for _, name := range b.names("home/x") {
		if isTemporary(name) {
			t.Errorf("left %q", name)
		}
	}
	huge := tarEntry("huge", "")
	huge.header.Size = 1 << 40
	var head bytes.Buffer
	must(t, tar.NewWriter(&head).WriteHeader(&huge.header))
	for name, archive := range map[string][]byte{
		"text":           []byte(strings.Repeat("this is no archive ", 100)),
		"gzip":           append([]byte("\x1f\x8b\x08"), make([]byte, 1000)...),
		"a wrong sum":    append(bytes.Repeat([]byte{'x'}, 100), whole[100:]...),
		"a huge size":    head.Bytes(),
		"pax, a size":    paxOf("size", "99999999999999999999", whole),
		"pax, below 0":   paxOf("size", "-1", whole),
		"pax, zero byte": paxOf("path", "bad\x00", whole),
		"pax, damaged":   bytes.Replace(paxOf("path", "p", whole), []byte("path=p\n"), []byte("path=pp"), 1),
		"holes":          paxOf("GNU.sparse.realsize", "1099511627776", whole),
		"holes, by GNU":  sparseGNU(),
	} {
		if _, err := b.ask(wire.FilesUnpack, at("/home/y"), bytes.NewReader(archive)); code(err) != wire.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnpack_SaysThatAHeaderIsTooLong(t *testing.T) {
	b := newBox(t, 1000)
	archive := paxOf("path", strings.Repeat("n", 5<<20), tarOf(tarEntry("a", "a")))
	if _, err := b.ask(wire.FilesUnpack, at("/home"), bytes.NewReader(archive)); code(err) != wire.CodeInvalid || !strings.Contains(err.Error(), "longer than 1 MiB") {
		t.Errorf("got %v", err)
	}
}

// sparseGNU is an entry of a terabyte of holes.
func sparseGNU() []byte {
	archive := tarOf(tarEntry("holes", ""))
	archive[156] = tar.TypeGNUSparse
	copy(archive[257:], "ustar  \x00")
	copy(archive[386:], "07777777777\x0000000000000\x00")
	copy(archive[483:], "07777777777\x00")
	return sealed(archive)
}

// repeated is an archive that says the same again and again.
type repeated struct {
	piece []byte
	times int
	rest  []byte
	half  func()
}

func (r *repeated) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.times == 0 {
			return 0, io.EOF
		}
		if r.times--; r.times == 10 {
			r.half()
		}
		r.rest = r.piece
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestUnpack_ManyEntriesCostNoMemory(t *testing.T) {
	b := newBox(t, 0)
	entry := tarOf(folder("./"))[:tarHeader]
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, grown := heap(), uint64(0)
	many := &repeated{piece: bytes.Repeat(entry, 1000), times: 200, half: func() { grown = heap() }}
	u := unpacking{tree: b.tree, body: io.MultiReader(many, bytes.NewReader(make([]byte, 2*tarHeader)))}
	must(t, b.tree.act(t.Context(), func(a *actor) (err error) { u.walk, err = a.openIn("/home", false); return err }))
	defer u.walk.close()
	must(t, u.all())
	if u.entries != 200_000 || grown > before+2<<20 {
		t.Errorf("%d entries, %d bytes more", u.entries, grown-before)
	}
	u.entries, u.body = wire.MaxUnpacked-1, bytes.NewReader(tarOf(folder("a"), folder("b")))
	if err := u.all(); code(err) != wire.CodeInvalid || !strings.Contains(err.Error(), "entries") {
		t.Errorf("got %v", err)
	}
}

// mended is an archive whose headers have the sums that they should have.
func mended(archive []byte) []byte {
	archive = bytes.Clone(archive)
	for b := archive; len(b) >= tarHeader; b = b[tarHeader:] {
		if string(b[257:262]) == "ustar" {
			sealed(b)
		}
	}
	return archive
}

// FuzzUnpack: with any archive, nothing outside is changed, and nothing is left half made or open.
func FuzzUnpack(f *testing.F) {
	f.Add(tarOf(tarEntry("a", "b"), link("l", "a"), hard("h", "a"), folder("d/e"), tarEntry("d/e/../x", "")))
	f.Add(tarOf(link("l", ".."), tarEntry("l/x", "")))
	f.Add(tarOf(tarEntry("out/x", "x"), hard("h", "out/secret")))
	f.Add(paxOf("path", "../x", tarOf(tarEntry("x", ""))))
	f.Add(sparseGNU())
	r := newTrap(f)
	before := state(f, r.outside)
	f.Fuzz(func(t *testing.T, archive []byte) {
		archive = mended(archive)
		for _, keep := range []bool{false, true} {
			must(t, os.Mkdir(r.host("home/fuzz"), 0o755))
			must(t, os.Symlink("../../../outside", r.host("home/fuzz/out")))
			u := unpacking{tree: r.tree, body: bytes.NewReader(archive), keepLinks: keep}
			must(t, r.tree.act(t.Context(), func(a *actor) (err error) { u.walk, err = a.openIn("/home/fuzz", false); return err }))
			u.all()
			if len(u.walk.levels) != 3 {
				t.Fatalf("%d levels are open", len(u.walk.levels))
			}
			u.walk.close()
			if after := state(t, r.outside); after != before {
				t.Fatalf("the outside has changed: %s", after)
			}
			filepath.WalkDir(r.host("home/fuzz"), func(p string, _ os.DirEntry, _ error) error {
				if isTemporary(filepath.Base(p)) {
					t.Fatalf("left %q", p)
				}
				return nil
			})
			must(t, os.RemoveAll(r.host("home/fuzz")))
		}
	})
}
