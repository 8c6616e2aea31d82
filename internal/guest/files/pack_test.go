package files

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// members reads a tar with package tar, as name, type and size.
func members(t testing.TB, archive []byte) (list []string) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if err == io.EOF {
			slices.Sort(list)
			return list
		}
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		list = append(list, fmt.Sprintf("%s %c %d%s", h.Name, h.Typeflag, len(content), h.Linkname))
	}
}

func TestPack_HoldsWhatTheUserMayReadAndFollowsNothing(t *testing.T) {
	b := newBox(t, 1000)
	b.put("home/d/a", "a")
	b.put("home/d/large", strings.Repeat("l", smallFile+7))
	b.put("home/d/e/f", "f")
	b.put("home/other", "o")
	must(t, os.Symlink("/home/other", b.host("home/d/l")))
	must(t, os.WriteFile(b.host("home/d/root's"), []byte(secret), 0o600))
	must(t, os.Mkdir(b.host("home/d/closed"), 0o700))
	must(t, os.WriteFile(b.host("home/d/closed/x"), []byte(secret), 0o644))
	must(t, unix.Mkfifo(b.host("home/d/fifo"), 0o666))
	all := []string{"a 0 1", "closed/ 5 0", "e/ 5 0", "e/f 0 1", "l 2 0/home/other", fmt.Sprintf("large 0 %d", smallFile+7)}
	for name, c := range map[string]struct {
		v    url.Values
		want []string
	}{
		"a folder":       {url.Values{"path": {"d"}}, all},
		"a selection":    {url.Values{"path": {"d"}, "name": {"e", "a"}}, []string{"a 0 1", "e/ 5 0", "e/f 0 1"}},
		"by a link":      {url.Values{"path": {"d"}, "name": {"l"}}, []string{"l 2 0/home/other"}},
		"nothing in it":  {url.Values{"path": {"d"}, "name": {"fifo"}}, nil},
		"a closed thing": {url.Values{"path": {"d"}, "name": {"closed"}}, []string{"closed/ 5 0"}},
	} {
		a, err := b.form(wire.FilesPack, c.v)
		must(t, err)
		if got := members(t, a.bare); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q", name, got)
		}
		if bytes.Contains(a.bare, []byte(secret)) {
			t.Errorf("%s: the secret is in it", name)
		}
	}
	for name, c := range map[string]struct {
		v    url.Values
		code string
	}{
		"not there":    {url.Values{"path": {"d"}, "name": {"none"}}, wire.CodeNotFound},
		"a path":       {url.Values{"path": {"d"}, "name": {"e/f"}}, wire.CodeInvalid},
		"up":           {url.Values{"path": {"d"}, "name": {".."}}, wire.CodeInvalid},
		"no folder":    {url.Values{"path": {"other"}}, wire.CodeNotFound},
		"may not look": {url.Values{"path": {"d/closed"}}, wire.CodeForbidden},
	} {
		if _, err := b.form(wire.FilesPack, c.v); code(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPack_OfManyFoldersIsWhole(t *testing.T) {
	b := newBox(t, 1000)
	var want []string
	for i := range 40 {
		want = append(want, fmt.Sprintf("%d/ 5 0", i))
		for j := range 50 {
			size := (i*50 + j) % 700
			b.put(fmt.Sprintf("home/d/%d/%d", i, j), strings.Repeat("x", size))
			want = append(want, fmt.Sprintf("%d/%d 0 %d", i, j, size))
		}
	}
	slices.Sort(want)
	for range 5 {
		a, err := b.form(wire.FilesPack, at("d"))
		must(t, err)
		if got := members(t, a.bare); !slices.Equal(got, want) {
			t.Fatalf("%d of %d", len(got), len(want))
		}
	}
}

// descriptors are how many this process has open below a folder.
func descriptors(t testing.TB, below string) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range list {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(target, below+"/") {
			n++
		}
	}
	return n
}

func TestPack_ThatNobodyReadsHoldsNothingUpAndLeavesNothing(t *testing.T) {
	b := newBox(t, 1000)
	for i := range 300 {
		b.put(fmt.Sprintf("home/d/%d/%d", i%20, i), strings.Repeat("x", smallFile))
	}
	b.put("home/d/large", strings.Repeat("x", 4<<20))
	ctx, cancel := context.WithCancel(t.Context())
	for range 8 { // more than there are seats
		res, err := b.send(ctx, wire.FilesPack, strings.NewReader(at("d").Encode()))
		must(t, err)
		defer res.Body.Close()
	}
	if _, err := b.form(wire.FilesDelete, url.Values{"path": {"d/0"}, "permanent": {"true"}}); err != nil {
		t.Error(err)
	}
	if _, err := b.write(wire.FilePut{Path: "new", Size: -1}, "x"); err != nil {
		t.Error(err)
	}
	cancel()
	await(t, "the end of all", func() bool { return descriptors(t, b.root) == 0 })
}

// FuzzPackNames: the archive has every name as it is.
func FuzzPackNames(f *testing.F) {
	f.Add("a", "", int64(5), int64(1), uint32(1000))
	f.Add(strings.Repeat("d/", 60)+"f", "target", int64(0), int64(-1), uint32(1<<32-1))
	f.Add("\xff\n/x", "\u00fc", int64(1<<34), int64(1<<40), uint32(1<<21))
	f.Fuzz(func(t *testing.T, name, target string, size, modified int64, uid uint32) {
		if name == "" || len(name) > wire.MaxPath || strings.ContainsRune(name+target, 0) || size < 0 || len(target) > wire.MaxPath || modified > 1<<50 || modified < -1<<50 {
			return
		}
		x := packed{as: name, target: target, file: target == ""}
		x.st.Mode, x.st.Size, x.st.Mtim.Sec, x.st.Uid = unix.S_IFLNK|0o644, size, modified, uid
		var b bytes.Buffer
		must(t, tar.NewWriter(&b).WriteHeader(x.header(viewer{})))
		h, err := tar.NewReader(&b).Next()
		must(t, err)
		if h.Name != name || h.Linkname != target || x.file && h.Size != size || h.ModTime.Unix() != modified || h.Uid != int(uid) {
			t.Fatalf("%q, %q, %d, %d comes back as %+v", name, target, size, modified, h)
		}
	})
}

func TestReadNames_GivesOnlyThoseThatAnArchiveCanSay(t *testing.T) {
	list := filepath.Join(t.TempDir(), "passwd")
	must(t, os.WriteFile(list, []byte("a\x00b:x:1:1::/:\n"+strings.Repeat("n", 65)+":x:2:2::/:\n\u00fc:x:3:3::/:\n"), 0o644))
	if got := readNames(list); len(got) != 1 || got[3] != "\u00fc" {
		t.Errorf("got %v", got)
	}
}
