package files

import (
	"bufio"
	"context"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

func TestMove_ToAnotherFileSystemLosesNothingThatCannotBeCopied(t *testing.T) {
	for name, spoil := range map[string]func(b *box){
		"a pipe": func(b *box) { must(t, unix.Mkfifo(b.host("home/d/e/pipe"), 0o600)) },
		"another file system": func(b *box) {
			b.mount("home/d/e/mounted", "64k")
			b.put("home/d/e/mounted/x", "x")
		},
		"what may not be read": func(b *box) { must(t, os.WriteFile(b.host("home/d/e/closed"), nil, 0)) },
	} {
		b := newBox(t, 1000)
		b.mount("other", "1m")
		b.put("home/d/a", "a")
		b.put("home/d/e/z", "z")
		spoil(b)
		before := b.names("home/d/e")
		if err := b.transferred(wire.FilesMove, []string{"d"}, "/other", false); err == nil {
			t.Errorf("%s: it was moved", name)
		}
		if b.content("home/d/a") != "a" || b.content("home/d/e/z") != "z" || !slices.Equal(b.names("home/d/e"), before) {
			t.Errorf("%s: it is not what it was: %q", name, b.names("home/d/e"))
		}
		if left := b.names("other"); len(left) > 0 {
			t.Errorf("%s: left %q", name, left)
		}
	}
}

// between calls f when a folder has been copied to another file system, before it is removed from where it was.
func (b *box) between(f func()) error {
	return b.tree.actLong(b.t.Context(), func(a *actor) error {
		from, err := a.find("/home/d", false)
		must(b.t, err)
		defer from.walk.close()
		to, err := a.find("/other/d", false)
		must(b.t, err)
		defer to.walk.close()
		must(b.t, copyTo(from, to, false, true))
		f()
		return removeCopied(from, to)
	})
}

func TestMove_WhatHasChangedSinceItWasCopiedStays(t *testing.T) {
	write := func(b *box, p, text string) func() {
		return func() { must(t, os.WriteFile(b.host(p), []byte(text), 0o644)) }
	}
	for name, c := range map[string]struct {
		change func(b *box) func()
		stays  string
	}{
		"a file":           {func(b *box) func() { return write(b, "home/d/e/x", "new") }, "home/d/e/x"},
		"of the same size": {func(b *box) func() { return write(b, "home/d/e/x", "y") }, "home/d/e/x"},
		"a new file":       {func(b *box) func() { return write(b, "home/d/e/fresh", "y") }, "home/d/e/fresh"},
		"the copy":         {func(b *box) func() { return write(b, "other/d/e/x", "other") }, "home/d/e/x"},
		"a link": {func(b *box) func() {
			return func() { must(t, os.Remove(b.host("home/d/l"))); must(t, os.Symlink("elsewhere", b.host("home/d/l"))) }
		}, "home/d/l"},
		"nothing": {func(b *box) func() { return func() {} }, ""},
	} {
		b := newBox(t, 1000)
		b.mount("other", "1m")
		b.put("home/d/e/x", "x")
		must(t, os.Symlink("e", b.host("home/d/l")))
		past := time.Unix(1e9, 123_456_789)
		must(t, os.Chtimes(b.host("home/d/e/x"), past, past))
		err := b.between(c.change(b))
		if c.stays == "" {
			if _, gone := os.Lstat(b.host("home/d")); err != nil || !os.IsNotExist(gone) || b.content("other/d/e/x") != "x" {
				t.Errorf("%s: %v, %v", name, err, gone)
			}
			continue
		}
		if err != errKept {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(b.host(c.stays)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMove_AFileThatChangesWhileItIsCopiedIsNotTakenForWhole(t *testing.T) {
	b := newBox(t, 1000)
	b.put("home/in", "content")
	b.put("home/out", "content")
	open := func(p string) int {
		fd, err := unix.Open(b.host(p), unix.O_RDWR, 0)
		must(t, err)
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	in, out := open("home/in"), open("home/out")
	var was unix.Stat_t
	must(t, unix.Fstat(in, &was))
	must(t, sameStill(in, out, &was))
	must(t, unix.Ftruncate(out, 3))
	if err := sameStill(in, out, &was); err != errChanging {
		t.Errorf("a part: %v", err)
	}
	must(t, os.WriteFile(b.host("home/out"), []byte("content"), 0o644))
	must(t, os.WriteFile(b.host("home/in"), []byte("changed"), 0o644))
	if err := sameStill(in, out, &was); err != errChanging {
		t.Errorf("changed: %v", err)
	}
}

func TestSameTime_AllowsForWhatFileSystemsKeep(t *testing.T) {
	exact := unix.Timespec{Sec: 5, Nsec: 123_456_789}
	for copied, same := range map[unix.Timespec]bool{
		exact: true, {Sec: 5}: true, {Sec: 5, Nsec: 123_456_000}: true, {Sec: 5, Nsec: 123_456_700}: true,
		{Sec: 6, Nsec: 123_456_789}: false, {Sec: 5, Nsec: 123_456_788}: false, {Sec: 5, Nsec: 200_000_000}: false,
	} {
		if sameTime(exact, copied) != same {
			t.Errorf("%+v", copied)
		}
	}
}

func TestCopy_ACancelledOneLeavesNothing(t *testing.T) {
	b := newBox(t, 1000)
	b.put("home/d/e/x", "x")
	must(t, os.Chmod(b.host("home/d/e"), 0o500))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := b.tree.actLong(ctx, func(a *actor) error {
		from, err := a.find("/home/d/e", false)
		must(t, err)
		defer from.walk.close()
		to, err := a.find("/home/copy", false)
		must(t, err)
		defer to.walk.close()
		half := temporaryName("copy")
		must(t, (&copier{from: from.walk.fork(), to: to.walk.fork(), depth: len(to.walk.levels)}).copy("e", half))
		if names := b.temporaries("home"); len(names) != 1 {
			t.Errorf("half a copy is %q", names)
		}
		cancel()
		to.walk.tidy(half)
		return copyOne(from, to, false)
	})
	if err == nil {
		t.Error("it was copied")
	}
	if names := b.temporaries("home"); len(names) > 0 {
		t.Errorf("left %q", names)
	}
}

func TestCopy_OneThatIsLeftHalfwayIsClearedAway(t *testing.T) {
	b := newBox(t, 1000)
	for i := range 500 {
		b.put("home/d/"+strings.Repeat("f", 1+i%200)+"/"+strings.Repeat("g", 1+i/200), strings.Repeat("x", 1<<16))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	v := url.Values{"from": {"d"}, "to": {"copy"}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		req, err := b.sendForm(ctx, wire.FilesCopy, v)
		if err == nil {
			req.Close()
		}
	}()
	b.until("half a copy is there", func() bool { return len(b.temporaries("home")) > 0 || slices.Contains(b.names("home"), "copy") })
	cancel()
	<-ended
	b.idle(b.tree.long)
	if names := b.temporaries("home"); len(names) > 0 {
		t.Errorf("left %q", names)
	}
}

func TestUnpack_AnEntryThatLooksOldIsNotSweptBeforeItIsInItsPlace(t *testing.T) {
	b := newBox(t, 1000)
	b.put("home/a", "old")
	must(t, b.tree.act(t.Context(), func(a *actor) error {
		w, err := a.openIn("/home", false)
		must(t, err)
		defer w.close()
		u := unpacking{walk: w, tree: b.tree}
		past := time.Now().Add(-2 * writeAge)
		return u.put(&member{name: "a"}, func(name string) error {
			if name == "a" {
				return unix.EEXIST
			}
			must(t, os.WriteFile(b.host("home/"+name), []byte("new"), 0o644))
			must(t, os.Chtimes(b.host("home/"+name), past, past))
			must(t, os.Chown(b.host("home/"+name), 1000, 1000))
			w.sweep([]string{name}) // as a listing of the folder does
			return nil
		})
	}))
	if got := b.content("home/a"); got != "new" || len(b.names("home")) != 1 {
		t.Errorf("got %q, %q", got, b.names("home"))
	}
}

// sendForm asks for a verb and gives the answer as it comes.
func (b *box) sendForm(ctx context.Context, verb string, v url.Values) (io.ReadCloser, error) {
	res, err := b.send(ctx, verb, strings.NewReader(v.Encode()))
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// until looks again and again.
func (b *box) until(what string, cond func() bool) {
	b.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			b.t.Fatalf("it is not so that %s", what)
		case <-tick.C:
		}
	}
}

// idle waits until nobody has a seat of that kind.
func (b *box) idle(seats chan struct{}) {
	b.t.Helper()
	for range cap(seats) {
		select {
		case seats <- struct{}{}:
		case <-time.After(patience):
			b.t.Fatal("it continues")
		}
	}
	for range cap(seats) {
		<-seats
	}
}

// program lets the tree find a program of that text as ripgrep.
func (b *box) program(text string) {
	b.t.Helper()
	program := filepath.Join(b.t.TempDir(), "rg")
	must(b.t, os.WriteFile(program, []byte(text), 0o755))
	for dir := filepath.Dir(program); dir != os.TempDir(); dir = filepath.Dir(dir) {
		must(b.t, os.Chmod(dir, 0o755))
	}
	b.tree.cfg.Find = func(string) string { return program }
}

// wrapper is a program that runs another one, which has left its group and holds on to what it was given.
const wrapper = `#!/bin/sh
setsid sh -c ': > started; sleep 40' &
sleep 40
`

func TestSearchContents_AWrapperOfRipgrepEndsWithTheSearch(t *testing.T) {
	b := newBox(t, 1000)
	b.program(wrapper)
	b.own("home")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := wire.Search{Path: "/home", Query: "x", In: wire.SearchContent}
	must(t, s.Check())
	go func() {
		if body, err := b.sendForm(ctx, wire.FilesSearch, s.Values()); err == nil {
			bufio.NewReader(body).ReadByte()
			body.Close()
		}
	}()
	b.until("it searches", func() bool { return slices.Contains(b.names("home"), "started") })
	cancel()
	b.idle(b.tree.seeks)
}

func TestDelete_LooksAtAllBeforeItTouchesTheFirst(t *testing.T) {
	for name, bad := range map[string]string{"nothing": "none", "the root": "/", "elsewhere": "/other/y", "the trash": ".local/share/Trash"} {
		for _, permanent := range []string{"false", "true"} {
			if permanent == "true" && (name == "elsewhere" || name == "the trash") {
				continue
			}
			b := newBox(t, 1000)
			b.mount("other", "1m")
			b.put("other/y", "y")
			b.put("home/a", "a")
			if _, err := b.form(wire.FilesDelete, url.Values{"path": {"a", bad}, "permanent": {permanent}}); err == nil {
				t.Errorf("%s: it was deleted", name)
			}
			if !slices.Contains(b.names("home"), "a") {
				t.Errorf("%s, permanent %s: the first is gone", name, permanent)
			}
		}
	}
}

func TestDelete_ThatFailsInTheMiddleTellsWhatIsInTheTrash(t *testing.T) {
	b := newBox(t, 1000)
	b.put("home/a", "a")
	b.put("home/b/c", "c")
	must(t, os.Chown(b.host("home/b"), 0, 0)) // of which nothing may be taken
	got, err := b.form(wire.FilesDelete, url.Values{"path": {"a", "b/c"}})
	if code(err) != wire.CodeForbidden || got == nil || len(got.trashed) != 1 || got.trashed[0].Path != "/home/a" {
		t.Fatalf("got %+v, %v", got, err)
	}
	if _, err := b.form(wire.FilesRestore, url.Values{"id": {got.trashed[0].ID}}); err != nil || b.content("home/a") != "a" {
		t.Errorf("got %v", err)
	}
}
