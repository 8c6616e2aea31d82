package files

import (
	"context"
	"fmt"
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

func (b *box) transferred(verb string, from []string, to string, overwrite bool) error {
	_, err := b.form(verb, url.Values{"from": from, "to": {to}, "overwrite": {fmt.Sprint(overwrite)}})
	return err
}

func TestCopy_IsTheSameTree(t *testing.T) {
	b := newBox(t, 1000)
	b.put("home/d/e/x", "x")
	b.put("home/d/run", "#!")
	b.put("home/d/big", strings.Repeat("b", 1<<20))
	must(t, os.Chmod(b.host("home/d/run"), 0o4750))
	must(t, os.Chmod(b.host("home/d/e"), 0o500))
	past := time.Unix(1e9, 5)
	for _, p := range []string{"home/d/run", "home/d/e"} {
		must(t, os.Chtimes(b.host(p), past, past))
	}
	must(t, os.Symlink("../../nowhere", b.host("home/d/l")))
	must(t, os.Symlink("e", b.host("home/d/to-folder")))
	must(t, unix.Mkfifo(b.host("home/d/fifo"), 0o600))
	must(t, b.transferred(wire.FilesCopy, []string{"d"}, "copy", false))
	if b.content("home/copy/e/x") != "x" || len(b.content("home/copy/big")) != 1<<20 {
		t.Error("contents differ")
	}
	if got := b.names("home/copy"); !slices.Equal(got, []string{"big", "e", "l", "run", "to-folder"}) {
		t.Errorf("got %q", got)
	}
	for p, mode := range map[string]uint32{"copy/run": 0o750, "copy/e": 0o500} {
		if e, err := b.stat(p); err != nil || e.Mode != mode || !e.Modified.Equal(past) || e.UID != 1000 {
			t.Errorf("%s: %+v, %v", p, e, err)
		}
	}
	for p, target := range map[string]string{"copy/l": "../../nowhere", "copy/to-folder": "e"} {
		if got, err := os.Readlink(b.host("home/" + p)); got != target {
			t.Errorf("%s: %q, %v", p, got, err)
		}
	}
	if names := b.temporaries("home"); len(names) > 0 {
		t.Errorf("left %q", names)
	}
}

func TestTransfer_FollowsTheRulesOfMv(t *testing.T) {
	for name, c := range map[string]struct {
		verb      string
		from      []string
		to        string
		overwrite bool
		code      string
		there     string // afterwards
	}{
		"rename":                {wire.FilesMove, []string{"a"}, "new", false, "", "new"},
		"into a folder":         {wire.FilesMove, []string{"a"}, "d", false, "", "d/a"},
		"into by a link":        {wire.FilesMove, []string{"a"}, "l", false, "", "d/a"},
		"several":               {wire.FilesMove, []string{"a", "b"}, "d", false, "", "d/b"},
		"several, no folder":    {wire.FilesMove, []string{"a", "b"}, "new", false, wire.CodeInvalid, "a"},
		"a folder into another": {wire.FilesMove, []string{"d"}, "e", false, "", "e/d/x"},
		"over a file":           {wire.FilesMove, []string{"a"}, "b", false, wire.CodeConflict, "a"},
		"over a file, asked":    {wire.FilesMove, []string{"a"}, "b", true, "", "b"},
		"over what is in it":    {wire.FilesMove, []string{"a"}, "full", false, wire.CodeConflict, "a"},
		"folder over empty":     {wire.FilesMove, []string{"d"}, "holds-d", true, "", "holds-d/d/x"},
		"folder over full":      {wire.FilesMove, []string{"d"}, "full", true, wire.CodeConflict, "d/x"},
		"into itself":           {wire.FilesMove, []string{"d"}, "d/sub", false, wire.CodeInvalid, "d/x"},
		"into what is in it":    {wire.FilesMove, []string{"d"}, "d/inner", false, wire.CodeInvalid, "d/x"},
		"itself":                {wire.FilesMove, []string{"a"}, "a", false, wire.CodeConflict, "a"},
		"what is not there":     {wire.FilesMove, []string{"none"}, "new", false, wire.CodeNotFound, "a"},
		"to where nothing is":   {wire.FilesMove, []string{"a"}, "none/new", false, wire.CodeNotFound, "a"},
		"the root":              {wire.FilesMove, []string{"/"}, "new", false, wire.CodeInvalid, "a"},
		"home":                  {wire.FilesMove, []string{"."}, "new", false, wire.CodeInvalid, "a"},
		"link itself":           {wire.FilesMove, []string{"l"}, "new", false, "", "new"},
		"copy into itself":      {wire.FilesCopy, []string{"d"}, "d/sub", false, wire.CodeInvalid, "d/x"},
		"copy by a link in it":  {wire.FilesCopy, []string{"d"}, "d/back/new", false, "", "new/x"},
		"copy over":             {wire.FilesCopy, []string{"a"}, "b", false, wire.CodeConflict, "a"},
		"copy over, asked":      {wire.FilesCopy, []string{"a"}, "b", true, "", "a"},
		"nothing":               {wire.FilesCopy, nil, "b", true, wire.CodeInvalid, "a"},
	} {
		b := newBox(t, 1000)
		for _, p := range []string{"a", "b", "d/x", "e/y", "full/a", "full/d/y", "d/inner/z"} {
			b.put("home/"+p, p)
		}
		must(t, os.MkdirAll(b.host("home/holds-d/d"), 0o755))
		b.own("home/holds-d/d")
		must(t, os.Symlink("d", b.host("home/l")))
		must(t, os.Symlink("..", b.host("home/d/back")))
		if err := b.transferred(c.verb, c.from, c.to, c.overwrite); code(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(b.host("home/" + c.there)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if left := b.temporaries("home"); len(left) > 0 {
			t.Errorf("%s: left %q", name, left)
		}
	}
}

func TestDelete_TakesAllOfATreeAndFollowsNothing(t *testing.T) {
	r := newTrap(t)
	before := state(t, r.outside)
	for i := range 6000 { // more than are looked at in one go
		must(t, os.WriteFile(r.host(fmt.Sprintf("home/sub/f%d", i)), nil, 0o600))
	}
	must(t, os.MkdirAll(r.host("home/sub/"+strings.Repeat("deep/", 150)), 0o755))
	if _, err := r.form(wire.FilesDelete, url.Values{"path": {"/home"}, "permanent": {"true"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(r.host("home")); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
	if after := state(t, r.outside); after != before {
		t.Errorf("the outside has changed: %s", after)
	}
	must(t, os.MkdirAll(r.host("home/"+strings.Repeat("deep/", 300)), 0o755))
	if _, err := r.form(wire.FilesDelete, url.Values{"path": {"/home/deep"}, "permanent": {"true"}}); code(err) != wire.CodeConflict {
		t.Errorf("got %v", err)
	}
}

func TestTrash_HoldsSeveralOfANameAndStandsNonsense(t *testing.T) {
	b := newBox(t, 1000)
	long := strings.Repeat("n", 255)
	var ids []string
	for i, name := range []string{"same", "same", "same", long, long} {
		b.put("home/"+name, fmt.Sprint(i))
		a, err := b.form(wire.FilesDelete, url.Values{"path": {name}})
		must(t, err)
		ids = append(ids, a.trashed[0].ID)
	}
	if !slices.Equal(ids[:3], []string{"same", "same.2", "same.3"}) || len(ids[4]) > 255-len(trashSuffix) || ids[3] == ids[4] {
		t.Errorf("got %q", ids)
	}
	info := b.host("home/" + trashFolder + "/info/")
	for name, text := range map[string]string{"out": trashHead + "\nPath=../../../outside\n", "none": "", "binary": "\x00\xff", "root": trashHead + "\nPath=/\n",
		"up": trashHead + "\nPath=/home/../../x\n", "huge": trashHead + "\nPath=/" + strings.Repeat("x/", 1<<20), "zero": trashHead + "\nPath=/a%00b\n", "lost": trashHead + "\nPath=/lost\n"} {
		must(t, os.WriteFile(info+name+trashSuffix, []byte(text), 0o644))
		if name != "lost" {
			must(t, os.WriteFile(b.host("home/"+trashFolder+"/files/"+name), nil, 0o644))
		}
	}
	must(t, unix.Mkfifo(info+"fifo"+trashSuffix, 0o644))
	a, err := b.form(wire.FilesTrash, nil)
	if err != nil || len(a.trashed) != 5 {
		t.Errorf("got %+v, %v", a.trashed, err)
	}
	for _, id := range []string{"out", "none", "up", "huge", "fifo", "lost", "never"} {
		if _, err := b.form(wire.FilesRestore, url.Values{"id": {id}}); err == nil {
			t.Errorf("%s was restored", id)
		}
	}
	must(t, os.RemoveAll(b.host("home/gone")))
	b.put("home/gone/x", "x")
	a, err = b.form(wire.FilesDelete, url.Values{"path": {"gone/x"}})
	must(t, err)
	must(t, os.Remove(b.host("home/gone")))
	if _, err := b.form(wire.FilesRestore, url.Values{"id": {a.trashed[0].ID}}); err != nil || b.content("home/gone/x") != "x" {
		t.Errorf("got %v", err)
	}
	if _, err := b.form(wire.FilesDelete, url.Values{"path": {trashFolder}}); code(err) != wire.CodeConflict {
		t.Errorf("got %v", err)
	}
	if _, err := b.form(wire.FilesDelete, url.Values{"path": {trashFolder + "/files/same"}}); code(err) != wire.CodeConflict {
		t.Errorf("got %v", err)
	}
	if _, err := b.form(wire.FilesEmpty, url.Values{"id": {"same"}}); err != nil {
		t.Error(err)
	}
	if _, err := b.form(wire.FilesEmpty, nil); err != nil {
		t.Error(err)
	}
	if left := append(b.names("home/"+trashFolder+"/files"), b.names("home/"+trashFolder+"/info")...); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

func TestChmod_ChangesWhatItSays(t *testing.T) {
	b := newBox(t, 1000)
	b.put("home/f", "x")
	must(t, os.Symlink("f", b.host("home/l")))
	if _, err := b.ask(wire.FilesChmod, url.Values{"path": {"f"}, "mode": {"640"}}, nil); err != nil {
		t.Error(err)
	}
	if e, err := b.stat("f"); err != nil || e.Mode != 0o640 {
		t.Errorf("got %+v, %v", e, err)
	}
	if _, err := b.ask(wire.FilesChmod, url.Values{"path": {"l"}, "mode": {"777"}}, nil); code(err) != wire.CodeInvalid {
		t.Errorf("got %v", err)
	}
	for _, mode := range []string{"", "8", "-1", "10000", "u+x"} {
		if _, err := b.ask(wire.FilesChmod, url.Values{"path": {"f"}, "mode": {mode}}, nil); code(err) != wire.CodeInvalid {
			t.Errorf("%q: %v", mode, err)
		}
	}
}

// watchFor begins a watch and gives the folders that it tells of.
func (b *box) watchFor(ctx context.Context, folders ...string) <-chan string {
	b.t.Helper()
	res, err := b.send(ctx, wire.FilesWatch, strings.NewReader(url.Values{"path": folders}.Encode()))
	must(b.t, err)
	news := make(chan string, 1000)
	go func() {
		defer close(news)
		defer res.Body.Close()
		records := wire.NewRecordReader(res.Body)
		for {
			_, payload, err := records.Next()
			if err != nil {
				return
			}
			news <- string(payload)
		}
	}()
	for range folders {
		b.hear(news)
	}
	return news
}

func (b *box) hear(news <-chan string) string {
	b.t.Helper()
	select {
	case folder := <-news:
		return folder
	case <-time.After(patience):
		b.t.Fatal("nothing is heard")
		return ""
	}
}

func TestWatch_TellsEachListenerOfItsFolders(t *testing.T) {
	b := newBox(t, 1000)
	b.put("home/a/x", "")
	b.put("home/b/x", "")
	must(t, os.Mkdir(b.host("home/closed"), 0o700))
	one, stop := context.WithCancel(t.Context())
	first := b.watchFor(one, "a", "closed")
	second := b.watchFor(t.Context(), "a", "b")
	must(t, os.WriteFile(b.host("home/closed/secret"), nil, 0o600)) // the user may not look there
	must(t, os.WriteFile(b.host("home/a/new"), nil, 0o644))
	if x, y := b.hear(first), b.hear(second); x != "a" || y != "a" {
		t.Errorf("heard %q, %q", x, y)
	}
	stop()
	for range first {
	}
	await(t, "the end of the first", func() bool {
		b.tree.watching.mu.Lock()
		defer b.tree.watching.mu.Unlock()
		return len(b.tree.watching.watches) == 1
	})
	must(t, os.WriteFile(b.host("home/b/x"), []byte("more"), 0o644))
	if got := b.hear(second); got != "b" {
		t.Errorf("heard %q", got)
	}
	must(t, os.RemoveAll(b.host("home/b")))
	if got := b.hear(second); got != "b" {
		t.Errorf("heard %q", got)
	}
}

func TestWatch_ManyChangesAreOnePieceOfNews(t *testing.T) {
	b := newBox(t, 1000)
	news := b.watchFor(t.Context(), "/home")
	began := time.Now()
	for i := range 5000 {
		must(t, os.WriteFile(b.host(filepath.Join("home", fmt.Sprint(i%50))), nil, 0o644))
	}
	b.hear(news)
	n, took := len(news), time.Since(began)
	if most := int(took/watchPause) + 2; n > most {
		t.Errorf("%d pieces of news in %v", n, took)
	}
}

func TestWatch_ThereIsABound(t *testing.T) {
	b := newBox(t, 1000)
	for range maxWatches {
		b.watchFor(t.Context(), "/home")
	}
	if _, err := b.form(wire.FilesWatch, url.Values{"path": {"/home"}}); code(err) != wire.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	if _, err := b.form(wire.FilesWatch, url.Values{"path": make([]string, wire.MaxWatched+1)}); code(err) != wire.CodeInvalid {
		t.Errorf("got %v", err)
	}
}
