package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

func TestWrite_OfTwoWithTheSameConditionOneWins(t *testing.T) {
	b := newBox(t, 1000)
	for round := range 30 {
		w, err := b.write(wire.FilePut{Path: "a", Size: -1}, "old")
		must(t, err)
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				mine := fmt.Sprint("new", i)
				_, err := b.write(wire.FilePut{Path: "a", Size: -1, IfMatch: w.Entry.ETag}, mine)
				if err == nil {
					won.Add(1)
				} else if code(err) != wire.CodeChanged {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Fatalf("round %d: %d have won", round, won.Load())
		}
		if names := b.names("home"); len(names) != 1 {
			t.Fatalf("left %q", names)
		}
	}
	var won atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := b.write(wire.FilePut{Path: "fresh", Size: -1, IfNone: true}, "x"); err == nil {
				won.Add(1)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d have made it", won.Load())
	}
}

func TestWrite_AChangeByAProgramBetweenLookAndRenameIsSeen(t *testing.T) {
	b := newBox(t, 1000)
	b.put("home/a", "old")
	e, err := b.stat("a")
	must(t, err)
	must(t, b.tree.act(t.Context(), func(a *actor) error {
		d, err := a.draft(&wire.FilePut{Path: "/home/a", Size: -1, IfMatch: e.ETag})
		if err != nil {
			return err
		}
		defer d.walk.close()
		defer d.close(a)
		must(t, os.WriteFile(b.host("home/other"), []byte("by a program"), 0o644))
		must(t, os.Rename(b.host("home/other"), b.host("home/a")))
		if _, err := d.publish(condition{match: e.ETag}); !errors.Is(err, errChanged) {
			t.Errorf("got %v", err)
		}
		return nil
	}))
	if got := b.content("home/a"); got != "by a program" || len(b.names("home")) != 1 {
		t.Errorf("got %q, %q", got, b.names("home"))
	}
}

func TestLinks_AreFollowedAsFarAsTheKernelFollowsThem(t *testing.T) {
	b := newBox(t, 1000)
	b.put("home/end/file", "the end")
	target := "end"
	for i := 1; i <= maxLinks+1; i++ {
		link := fmt.Sprintf("home/link%d", i)
		must(t, os.Symlink(target, b.host(link)))
		target = filepath.Base(link)
	}
	if _, got, err := b.read(fmt.Sprintf("link%d/file", maxLinks)); err != nil || got != "the end" {
		t.Errorf("by %d links: %q, %v", maxLinks, got, err)
	}
	if _, _, err := b.read(fmt.Sprintf("link%d/file", maxLinks+1)); code(err) != wire.CodeInvalid || !strings.Contains(err.Error(), "too many links") {
		t.Errorf("by one more: %v", err)
	}
	must(t, os.Symlink("round", b.host("home/round")))
	if _, _, err := b.read("round"); code(err) != wire.CodeInvalid || !strings.Contains(err.Error(), "too many links") {
		t.Errorf("in a circle: %v", err)
	}
}

// mount puts a small file system into the tree.
func (b *box) mount(p, size string) {
	b.t.Helper()
	must(b.t, os.MkdirAll(b.host(p), 0o755))
	must(b.t, unix.Mount("tmpfs", b.host(p), "tmpfs", 0, "uid=1000,gid=1000,mode=755,size="+size))
	b.t.Cleanup(func() { must(b.t, unix.Unmount(b.host(p), unix.MNT_DETACH)) })
}

func TestFullDisk_LeavesTheOldFileAndNothingElse(t *testing.T) {
	b := newBox(t, 1000)
	b.mount("small", "256k")
	b.put("small/a", "old")
	big := strings.Repeat("x", 1<<20)
	b.put("home/big", big)
	for name, do := range map[string]func() error{
		"write": func() error { _, err := b.write(wire.FilePut{Path: "/small/a", Size: -1}, big); return err },
		"upload": func() error {
			_, err := b.write(wire.FilePut{Path: "/small/a", Size: -1, Upload: "u"}, big)
			return err
		},
		"unpack": func() error {
			_, err := b.ask(wire.FilesUnpack, at("/small"), strings.NewReader(string(tarOf(tarEntry("a", big)))))
			return err
		},
		"copy": func() error {
			_, err := b.form(wire.FilesCopy, url.Values{"from": {"/home/big"}, "to": {"/small/a"}, "overwrite": {"true"}})
			return err
		},
		"move": func() error {
			_, err := b.form(wire.FilesMove, url.Values{"from": {"/home/big"}, "to": {"/small/a"}, "overwrite": {"true"}})
			return err
		},
	} {
		if err := do(); code(err) != wire.CodeFull || !strings.Contains(err.Error(), "full") {
			t.Errorf("%s: %v", name, err)
		}
		if got := b.content("small/a"); got != "old" {
			t.Errorf("%s: got %.20q", name, got)
		}
		if names := b.names("small"); !slices.Equal(names, []string{"a"}) {
			t.Errorf("%s: left %q", name, names)
		}
	}
	if b.content("home/big") != big {
		t.Error("what was to be moved is not there any more")
	}
}

func TestOtherFileSystem_IsMovedToByCopyAndHasNoTrash(t *testing.T) {
	b := newBox(t, 1000)
	b.mount("other", "1m")
	b.put("home/d/x", "x")
	b.put("other/y", "y")
	if _, err := b.form(wire.FilesMove, url.Values{"from": {"d"}, "to": {"/other"}}); err != nil {
		t.Error(err)
	}
	if b.content("other/d/x") != "x" {
		t.Error("it was not moved")
	}
	if _, err := os.Stat(b.host("home/d")); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
	if _, err := b.form(wire.FilesDelete, url.Values{"path": {"/other/y"}}); code(err) != wire.CodeConflict || !strings.Contains(err.Error(), "for good") {
		t.Errorf("got %v", err)
	}
	if _, err := b.form(wire.FilesDelete, url.Values{"path": {"/other"}, "permanent": {"true"}}); code(err) != wire.CodeConflict {
		t.Errorf("got %v", err)
	}
	if b.content("other/d/x") != "x" {
		t.Error("another file system was emptied")
	}
}

func TestSpecialFiles_AreListedAndNothingElse(t *testing.T) {
	r := newTrap(t)
	l, err := r.list("/home", "", "1000")
	must(t, err)
	types := map[string]wire.FileType{}
	for _, e := range l.Entries {
		types[e.Name] = e.Type
	}
	for name, want := range map[string]wire.FileType{"fifo": wire.TypeFIFO, "sock": wire.TypeSocket, "null": wire.TypeDevice, "disk": wire.TypeDevice} {
		if types[name] != want {
			t.Errorf("%s is %q", name, types[name])
		}
		for what, do := range map[string]func() error{
			"read":  func() error { _, _, err := r.read(name); return err },
			"write": func() error { _, err := r.write(wire.FilePut{Path: name, Size: -1}, "x"); return err },
			"copy":  func() error { _, err := r.form(wire.FilesCopy, url.Values{"from": {name}, "to": {"copy"}}); return err },
			"chmod": func() error {
				_, err := r.ask(wire.FilesChmod, url.Values{"path": {name}, "mode": {"644"}}, nil)
				return err
			},
		} {
			if err := do(); code(err) != wire.CodeInvalid {
				t.Errorf("%s %s: %v", what, name, err)
			}
		}
	}
}

func TestRead_AFileThatGrowsOrShrinksMeanwhile(t *testing.T) {
	b := newBox(t, 1000)
	const size = 8 << 20
	for name, c := range map[string]struct {
		to   int64
		want int64
	}{"grows": {2 * size, size}, "shrinks": {size / 2, -1}} {
		must(t, os.WriteFile(b.host("home/f"), make([]byte, size), 0o644))
		v := url.Values{"path": {"f"}, "offset": {"0"}, "length": {"-1"}}
		res, err := b.send(t.Context(), wire.FilesRead+"?"+v.Encode(), nil)
		must(t, err)
		must(t, os.Truncate(b.host("home/f"), c.to)) // the reader has room for far less than the file
		records := wire.NewRecordReader(res.Body)
		for range 2 {
			_, _, err := records.Next()
			must(t, err)
		}
		n, err := io.Copy(io.Discard, records.Rest())
		res.Body.Close()
		if c.want >= 0 && (err != nil || n != c.want) || c.want < 0 && err == nil {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
}

// stalled gives some bytes and then nothing until it is told to end.
type stalled struct {
	text string
	end  chan struct{}
}

func (s *stalled) Read(p []byte) (int, error) {
	if s.text != "" {
		n := copy(p, s.text)
		s.text = s.text[n:]
		return n, nil
	}
	<-s.end
	return 0, errors.New("cut off")
}

// await waits until something holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s has not come", what)
		}
	}
}

func (b *box) temporaries(p string) (list []string) {
	b.t.Helper()
	for _, name := range b.names(p) {
		if isTemporary(name) {
			list = append(list, name)
		}
	}
	return list
}

func TestWrite_WhatIsCutOffIsGoneUnlessItGoesOn(t *testing.T) {
	b := newBox(t, 1000)
	b.put("home/a", "old")
	for _, put := range []wire.FilePut{{Path: "a", Size: -1}, {Path: "a", Size: -1, Upload: "u1"}} {
		content := &stalled{strings.Repeat("x", pieceSize), make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() {
			res, err := b.send(ctx, wire.FilesWrite+"?"+put.Values().Encode(), content)
			if err == nil {
				_, err = readAnswer(res.Body)
				res.Body.Close()
			}
			over <- err
		}()
		await(t, "a temporary file", func() bool {
			list := b.temporaries("home")
			if len(list) != 1 {
				return false
			}
			st, err := os.Stat(b.host("home/" + list[0]))
			return err == nil && st.Size() > 0
		})
		if l, err := b.list("/home", "", "100"); err != nil || slices.ContainsFunc(l.Entries, func(e wire.Entry) bool { return isTemporary(e.Name) }) {
			t.Errorf("listed %+v, %v", l, err)
		}
		cancel()
		close(content.end)
		if err := <-over; err == nil {
			t.Error("no error")
		}
		want := 0
		if put.Upload != "" {
			want = 1
		}
		await(t, "the end", func() bool { return len(b.temporaries("home")) == want })
		if got := b.content("home/a"); got != "old" {
			t.Errorf("got %.10q", got)
		}
	}
}

func TestSweep_TakesWhatIsOldFromFoldersThatAreUsedAndThoseOfTheJournal(t *testing.T) {
	b := newBox(t, 1000)
	old := time.Now().Add(-25 * time.Hour)
	begin := func(p, id string, age time.Time) {
		t.Helper()
		_, err := b.write(wire.FilePut{Path: p, Upload: id, Size: -1, Parents: true}, "part")
		must(t, err)
		must(t, os.Chtimes(b.host("home/"+filepath.Dir(p)+"/"+uploadName(filepath.Base(p), id)), age, age))
	}
	begin("d/used", "old", old)
	begin("d/used", "new", time.Now())
	if _, err := b.list("d", "", "10"); err != nil {
		t.Fatal(err)
	}
	if got := b.temporaries("home/d"); !slices.Equal(got, []string{uploadName("used", "new")}) {
		t.Errorf("left %q", got)
	}
	begin("d/used", "older", old)
	begin("d/another", "new", time.Now())
	if got := b.temporaries("home/d"); len(got) != 2 || slices.Contains(got, uploadName("used", "older")) {
		t.Errorf("left %q", got)
	}
	begin("e/f", "old", old)
	begin("e/f", "new", time.Now())
	begin("g/h", "old", old)
	must(t, os.WriteFile(b.host("home/e/.mine.sandboxd-x~"), nil, 0o644)) // a user's own file
	must(t, os.Chtimes(b.host("home/e/.mine.sandboxd-x~"), old, old))
	killed := b.host("home/e/" + temporaryName("k")) // of a guest that was killed
	must(t, os.WriteFile(killed, nil, 0o644))
	must(t, os.Chown(killed, 1000, 1000))
	must(t, os.Chtimes(killed, old, old))
	b.tree.Sweep(t.Context())
	if got := b.names("home/e"); !slices.Equal(got, []string{uploadName("f", "new"), ".mine.sandboxd-x~"}) {
		t.Errorf("left %q", got)
	}
	if got := b.names("home/g"); len(got) != 0 {
		t.Errorf("left %q", got)
	}
	if got := b.content("home/" + journal); got != "%2Fhome%2Fd\n%2Fhome%2Fe\n" {
		t.Errorf("the journal is %q", got)
	}
	must(t, os.WriteFile(b.host("home/"+journal), []byte("%zz\nrelative\n\n/../../etc\n/nowhere\n"), 0o644))
	b.tree.Sweep(t.Context())
	if _, err := os.Stat(b.host("home/" + journal)); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

// oddNames are names that a program could misread.
var oddNames = []string{"new\nline", "\x1b[31mred\x1b]0;title\x07", "\u202egpj.exe", "<img src=x onerror=alert(1)>", "\xff\xfe\x80", "%2e%2e", "a%00b",
	" ", "-rf", "~", "$(id)", "back\\slash", "'\"`", "\u00e9", "e\u0301", strings.Repeat("n", 255), strings.Repeat("\u00fc", 127), ".hidden", "con", "a:b", "&amp;"}

func TestOddNames_AreNamesLikeAnyOther(t *testing.T) {
	b := newBox(t, 1000)
	var want []string
	for i, name := range oddNames {
		content := fmt.Sprint("content ", i)
		if _, err := b.write(wire.FilePut{Path: "/home/d/" + name, Size: -1, Parents: true}, content); err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if e, got, err := b.read("d/" + name); err != nil || got != content || e.Name != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
		want = append(want, name)
	}
	l, err := b.list("d", "", "1000")
	must(t, err)
	var got []string
	for _, e := range l.Entries {
		got = append(got, e.Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("listed %q", got)
	}
	for i, name := range oddNames {
		_, err := b.form(wire.FilesCopy, url.Values{"from": {"d/" + name}, "to": {"c"}})
		if i == 0 {
			must(t, err)
			must(t, os.Remove(b.host("home/c")))
			must(t, os.Mkdir(b.host("home/c"), 0o777))
			must(t, os.Chmod(b.host("home/c"), 0o777))
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", name, err)
		}
		a, err := b.form(wire.FilesDelete, url.Values{"path": {"c/" + name}})
		if err != nil || len(a.trashed) != 1 || a.trashed[0].Path != "/home/c/"+name {
			t.Errorf("%q: %+v, %v", name, a, err)
			continue
		}
		if _, err := b.form(wire.FilesRestore, url.Values{"id": {a.trashed[0].ID}}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if n := len(b.names("home/c")); n != len(oddNames)-1 {
		t.Errorf("%d are back", n)
	}
}

func TestPage_HoldsNoMoreThanTwiceWhatItShows(t *testing.T) {
	p := page{limit: 100}
	const many = 1_000_000
	for i := range many {
		p.add(rowOf(fmt.Sprintf("%07d", (i*7919)%many), false))
		if len(p.rows) > 2*p.limit+64 {
			t.Fatalf("%d rows", len(p.rows))
		}
	}
	p.close()
	if len(p.rows) != 100 || !p.more || p.rows[0].name != "0000000" || p.rows[99].name != "0000099" {
		t.Errorf("%d rows, %v to %v", len(p.rows), p.rows[0], p.rows[len(p.rows)-1])
	}
}

// FuzzFind: with any path, the walk ends in a folder of the root.
func FuzzFind(f *testing.F) {
	r := newTrap(f)
	for _, p := range r.attempts() {
		f.Add(p, true)
	}
	f.Fuzz(func(t *testing.T, p string, follow bool) {
		clean, err := wire.CleanPath("/home", p)
		if err != nil {
			clean = p // the walk has to stand that as well
		}
		must(t, r.tree.act(t.Context(), func(a *actor) error {
			s, err := a.find(clean, follow)
			if err != nil {
				return nil
			}
			defer s.walk.close()
			where, err := os.Readlink(ownFD(s.walk.fd()))
			if err != nil {
				return err
			}
			if where != r.root && !strings.HasPrefix(where, r.root+"/") || strings.HasPrefix(where, r.root+"/.sandboxd") {
				t.Errorf("%q leads to %q", p, where)
			}
			if strings.Contains(s.name, "/") || s.name == ".." {
				t.Errorf("%q ends with %q", p, s.name)
			}
			return nil
		}))
	})
}

// FuzzCursor: a cursor is one of ours, or refused.
func FuzzCursor(f *testing.F) {
	f.Add(rowOf("name", true).cursor())
	f.Add("x")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := rowOfCursor(s)
		if err == nil && s != "" && compareRows(r, rowOf(r.name, !r.other)) != 0 {
			t.Errorf("%q gives %+v", s, r)
		}
	})
}

// FuzzTrashText: where something was is an absolute, clean path, or the text is none.
func FuzzTrashText(f *testing.F) {
	f.Add(trashHead + "\nPath=/a%20b\nDeletionDate=2026-01-02T03:04:05\n")
	f.Add(trashHead + "\nPath=../../etc/passwd\n")
	f.Fuzz(func(t *testing.T, text string) {
		where, _, err := parseTrashText(text)
		if err != nil {
			return
		}
		if clean, err := wire.CleanPath("/", where); err != nil || clean != where || where == "/" {
			t.Errorf("%q gives %q", text, where)
		}
	})
}
