package files

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// What stands outside of the root, and must be neither told nor changed.
const (
	secret     = "TOP-SECRET-CONTENT-1234"
	secretName = "known-only-outside-9876"
)

// trap is a tree with every kind of way out, and an outside beside it.
type trap struct {
	*box
	outside string
}

// newTrap makes one that is used as root: only the bounds of the tree hold.
func newTrap(t testing.TB) *trap {
	t.Helper()
	base := t.TempDir()
	r := &trap{outside: filepath.Join(base, "outside")}
	must(t, os.MkdirAll(filepath.Join(r.outside, "sub"), 0o755))
	for _, name := range []string{"secret", "sub/secret", secretName, "x"} {
		must(t, os.WriteFile(filepath.Join(r.outside, name), []byte(secret), 0o644))
	}
	root := filepath.Join(base, "root")
	must(t, os.Mkdir(root, 0o755))
	r.box = serve(t, root, 0)
	r.set()
	return r
}

// set makes what is in the tree anew.
func (r *trap) set() {
	r.t.Helper()
	old, err := os.ReadDir(r.root)
	must(r.t, err)
	for _, e := range old {
		must(r.t, os.RemoveAll(r.host(e.Name())))
	}
	for _, dir := range []string{"home/sub/deep", "a/b", ".sandboxd"} {
		must(r.t, os.MkdirAll(r.host(dir), 0o755))
	}
	for _, file := range []string{"home/file", "home/sub/file", "a/b/file", ".sandboxd/guest"} {
		must(r.t, os.WriteFile(r.host(file), []byte("harmless"), 0o644))
	}
	must(r.t, os.WriteFile(r.host(".sandboxd/guest"), []byte(secret), 0o644))
	up := strings.Repeat("../", 30)
	for name, target := range map[string]string{
		"abs": r.outside, "abs-file": r.outside + "/secret", "up": "../../outside", "up-file": "../../outside/secret",
		"far": up + r.outside, "far-file": up + r.outside + "/secret", "self": "self", "loop": "pool", "pool": "loop",
		"proc": "/proc/self/root" + r.outside, "cwd": "/proc/self/cwd", "fd": "/proc/self/fd", "one": "/proc/1/root" + r.outside,
		"in": "sub/deep", "dots": "..", "root": "/", "sub/out": "../../../outside", "sub/deep/out": "../../../../outside",
		"slash": "..//..//outside/", "dot": "./../../outside/.", "mixed": "sub/../../../outside", "hidden": "/.sandboxd",
		"long": strings.Repeat("a/../", 700) + "../../outside", "dangling": "../../outside/new",
	} {
		must(r.t, os.Symlink(target, r.host("home/"+name)))
	}
	for i := range 60 { // the last leads out; from the twentieth on it is few enough to be followed
		target := fmt.Sprintf("chain%d", i+1)
		if i == 59 {
			target = "../../outside"
		}
		must(r.t, os.Symlink(target, r.host(fmt.Sprintf("home/chain%d", i))))
	}
	must(r.t, unix.Mkfifo(r.host("home/fifo"), 0o666))
	must(r.t, unix.Mknod(r.host("home/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	must(r.t, unix.Mknod(r.host("home/disk"), unix.S_IFBLK|0o666, int(unix.Mkdev(7, 200))))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: r.host("home/sock"), Net: "unix"})
	must(r.t, err)
	l.SetUnlinkOnClose(false)
	l.Close()
}

// attempts are ways to say something outside. Most are not there at all, as they should be.
func (r *trap) attempts() []string {
	list := []string{
		"..", "../", "../..", "../outside", "../outside/secret", "../../outside/secret", "./../../outside", "sub/../../../outside/secret",
		"/..", "/../", "/../outside/secret", "/../../outside", "//../outside", "/./../outside", "/home/../../outside/secret", "/a/b/../../../outside",
		"sub/deep/../../../../outside/secret", "/.././outside", "..//outside", "....//outside", ".../outside", "..././outside",
		r.outside, r.outside + "/secret", "//" + r.outside, "/." + r.outside, r.root + "/home/file",
		"%2e%2e/outside", "%2e%2e%2f%2e%2e%2foutside", "..%2f..%2foutside", "%252e%252e/outside", "..%5c..%5coutside", "%c0%ae%c0%ae/outside",
		"..%00/outside", "..;/..;/outside", "..\\..\\outside\\secret", "\\..\\outside", "C:\\outside", "\xc0\xae\xc0\xae/\xc0\xae\xc0\xae/outside",
		"\uff0e\uff0e/\uff0e\uff0e/outside", "\u2025/outside", "..\u200b/outside", "~/../outside", "file:///../outside", "secret\x00", "../\x00/outside",
		"sub\x00/../../outside", strings.Repeat("../", 1360) + "outside", strings.Repeat("a", 256), strings.Repeat("a/", 2100), strings.Repeat("sub/../", 585) + "..",
		"/" + strings.Repeat("x", 4095), strings.Repeat("./", 2047) + "..", "abs", "abs/secret", "abs/sub/secret", "abs-file", "up", "up/secret",
		"up-file", "far", "far/secret", "far-file", "self", "self/secret", "loop", "loop/secret", "proc", "proc/secret", "cwd", "cwd/outside",
		"fd", "fd/3", "one", "one/secret", "in/../../../outside", "dots/../outside/secret", "dots/../../outside", "root/../outside", "root" + r.outside + "/secret",
		"sub/out", "sub/out/secret", "sub/deep/out/secret", "in/out", "in/out/secret", "slash", "slash/secret", "dot", "dot/secret", "mixed/secret", "long", "long/secret",
		"dangling", "chain0", "chain0/secret", "chain20", "chain20/secret", "chain45", "chain45/secret", "chain59", "chain59/secret",
		"hidden", "hidden/guest", "/.sandboxd", "/.sandboxd/guest", "/.sandboxd/../.sandboxd/guest", "root/.sandboxd/guest",
		"/proc/self/root" + r.outside + "/secret", "/proc/1/cwd", "/dev/fd/0", "fifo", "fifo/x", "sock", "null", "disk", "file/../../../outside", "file/x", "", "/", ".", "//", "/.",
	}
	return list
}

// doing is one operation that is given a path.
type doing struct {
	name string
	do   func(ctx context.Context, b *box, p string) string // all that was answered
}

func (b *box) raw(ctx context.Context, target string, body io.Reader) string {
	res, err := b.send(ctx, target, body)
	if err != nil {
		return "error: " + err.Error()
	}
	defer res.Body.Close()
	all, _ := io.ReadAll(res.Body)
	return string(all)
}

func inQuery(verb string, more url.Values, body string) func(context.Context, *box, string) string {
	return func(ctx context.Context, b *box, p string) string {
		v := url.Values{"path": {p}}
		for key, values := range more {
			v[key] = values
		}
		return b.raw(ctx, verb+"?"+v.Encode(), strings.NewReader(body))
	}
}

func inForm(verb, key string, more url.Values) func(context.Context, *box, string) string {
	return func(ctx context.Context, b *box, p string) string {
		v := url.Values{key: {p}}
		for key, values := range more {
			v[key] = values
		}
		return b.raw(ctx, verb, strings.NewReader(v.Encode()))
	}
}

func writing(put wire.FilePut) func(context.Context, *box, string) string {
	return func(ctx context.Context, b *box, p string) string {
		put.Path = p
		return b.raw(ctx, wire.FilesWrite+"?"+put.Values().Encode(), strings.NewReader("written"))
	}
}

// doings is everything that can be done with a path.
func doings() []doing {
	archive := string(tarOf(tarEntry("secret", "written"), tarEntry("sub/secret", "written"), tarEntry("x", "written")))
	return []doing{
		{"stat", inQuery(wire.FilesStat, nil, "")},
		{"list", inQuery(wire.FilesList, url.Values{"limit": {"1000"}}, "")},
		{"read", inQuery(wire.FilesRead, url.Values{"offset": {"0"}, "length": {"-1"}}, "")},
		{"write", writing(wire.FilePut{Size: -1})},
		{"write with parents", writing(wire.FilePut{Size: -1, Parents: true})},
		{"upload", writing(wire.FilePut{Size: -1, Upload: "u", Last: true})},
		{"offset", inQuery(wire.FilesUpload, url.Values{"upload": {"u"}}, "")},
		{"abandon", inQuery(wire.FilesAbandon, url.Values{"upload": {"u"}}, "")},
		{"mkdir", inQuery(wire.FilesMkdir, nil, "")},
		{"mkdir with parents", inQuery(wire.FilesMkdir, url.Values{"parents": {"true"}}, "")},
		{"move from", inForm(wire.FilesMove, "from", url.Values{"to": {"moved"}, "overwrite": {"true"}})},
		{"move to", inForm(wire.FilesMove, "to", url.Values{"from": {"/a/b/file"}, "overwrite": {"true"}})},
		{"copy from", inForm(wire.FilesCopy, "from", url.Values{"to": {"copied"}, "overwrite": {"true"}})},
		{"copy to", inForm(wire.FilesCopy, "to", url.Values{"from": {"/a"}, "overwrite": {"true"}})},
		{"delete", inForm(wire.FilesDelete, "path", url.Values{"permanent": {"true"}})},
		{"trash", inForm(wire.FilesDelete, "path", nil)},
		{"restore", inForm(wire.FilesRestore, "id", nil)},
		{"empty", inForm(wire.FilesEmpty, "id", nil)},
		{"chmod", inQuery(wire.FilesChmod, url.Values{"mode": {"777"}}, "")},
		{"pack", inForm(wire.FilesPack, "path", nil)},
		{"pack a name", inForm(wire.FilesPack, "name", url.Values{"path": {"/home"}})},
		{"unpack", inQuery(wire.FilesUnpack, nil, archive)},
		{"search names", inForm(wire.FilesSearch, "path", url.Values{"query": {"known-only"}, "in": {"names"}, "limit": {"100"}})},
		{"search contents", inForm(wire.FilesSearch, "path", url.Values{"query": {secret[:10]}, "in": {"content"}, "limit": {"100"}})},
	}
}

type tarFile struct {
	header  tar.Header
	content string
}

func tarEntry(name, content string) tarFile {
	return tarFile{tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}, content}
}

func tarOf(files ...tarFile) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&f.header); err != nil {
			panic(err)
		}
		w.Write([]byte(f.content))
	}
	w.Close()
	return b.Bytes()
}

// state is all of a folder that can change.
func state(t testing.TB, folder string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(p, &st); err != nil {
			return err
		}
		content := ""
		if d.Type().IsRegular() {
			all, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			content = string(all)
		}
		fmt.Fprintf(&b, "%s %d %o %d %d.%d %s\n", p, st.Ino, st.Mode, st.Uid, st.Mtim.Sec, st.Mtim.Nsec, content)
		return nil
	}))
	return b.String()
}

func TestTraversal_NothingOutsideIsToldOrChanged(t *testing.T) {
	for _, d := range doings() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			r := newTrap(t)
			attempts := r.attempts()
			if len(attempts) < 100 {
				t.Fatalf("only %d attempts", len(attempts))
			}
			before := state(t, r.outside)
			for _, p := range attempts {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				said := d.do(ctx, r.box, p)
				cancel()
				if strings.Contains(said, secret) || strings.Contains(said, secretName) {
					t.Errorf("%.80q tells %.200q", p, said)
				}
				if ctx.Err() == context.DeadlineExceeded {
					t.Errorf("%.80q hangs", p)
				}
				if after := state(t, r.outside); after != before {
					t.Fatalf("%.80q changes the outside:\n%s\n%s", p, before, after)
				}
				if hidden, err := os.ReadFile(r.host(".sandboxd/guest")); err != nil || string(hidden) != secret {
					t.Fatalf("%.80q changes what is hidden: %q, %v", p, hidden, err)
				}
				if !strings.HasPrefix(said, "{") { // something may have been done
					r.set()
				}
			}
		})
	}
}

func TestHardLink_IsReplacedAndNotWrittenThrough(t *testing.T) {
	for _, d := range []doing{
		{"write", writing(wire.FilePut{Size: -1})},
		{"upload", writing(wire.FilePut{Size: -1, Upload: "u", Last: true})},
		{"move", inForm(wire.FilesMove, "to", url.Values{"from": {"/a/b/file"}, "overwrite": {"true"}})},
		{"copy", inForm(wire.FilesCopy, "to", url.Values{"from": {"/a/b/file"}, "overwrite": {"true"}})},
		{"delete", inForm(wire.FilesDelete, "path", url.Values{"permanent": {"true"}})},
	} {
		r := newTrap(t)
		must(t, os.Link(filepath.Join(r.outside, "x"), r.host("home/hard")))
		if said := d.do(t.Context(), r.box, "hard"); strings.HasPrefix(said, "{") {
			t.Errorf("%s: %s", d.name, said)
		}
		if now, err := os.ReadFile(r.host("home/hard")); err == nil && string(now) == secret {
			t.Errorf("%s: nothing was done", d.name)
		}
		if got, err := os.ReadFile(filepath.Join(r.outside, "x")); err != nil || string(got) != secret {
			t.Errorf("%s: got %q, %v", d.name, got, err)
		}
	}
	r := newTrap(t)
	must(t, os.Link(filepath.Join(r.outside, "secret"), r.host("home/secret")))
	if _, err := r.ask(wire.FilesUnpack, at("/home"), bytes.NewReader(tarOf(tarEntry("secret", "written")))); err != nil {
		t.Fatal(err)
	}
	if r.content("home/secret") != "written" {
		t.Error("it was not written at all")
	}
	if got, err := os.ReadFile(filepath.Join(r.outside, "secret")); err != nil || string(got) != secret {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestTraversal_FoldersThatBecomeLinksMeanwhileLeadNowhere(t *testing.T) {
	for _, d := range doings() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			r := newTrap(t)
			must(t, os.Symlink("../../outside", r.host("home/swap")))
			must(t, os.Symlink("../../outside/secret", r.host("home/swap-file")))
			before := state(t, r.outside)
			ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			defer cancel()
			swapped := make(chan int)
			go func() {
				n := 0
				for ; ctx.Err() == nil; n++ {
					unix.Renameat2(unix.AT_FDCWD, r.host("home/sub"), unix.AT_FDCWD, r.host("home/swap"), unix.RENAME_EXCHANGE)
					unix.Renameat2(unix.AT_FDCWD, r.host("home/file"), unix.AT_FDCWD, r.host("home/swap-file"), unix.RENAME_EXCHANGE)
				}
				swapped <- n
			}()
			for ctx.Err() == nil {
				for _, p := range []string{"sub/secret", "sub", "sub/sub/secret", "sub/" + secretName, "file", "."} {
					if said := d.do(t.Context(), r.box, p); strings.Contains(said, secret) || strings.Contains(said, secretName) && !strings.Contains(p, secretName) {
						t.Errorf("%q tells %.200q", p, said)
					}
				}
				os.Mkdir(r.host("home/sub"), 0o755)
				os.Symlink("../../outside", r.host("home/swap"))
				if _, err := os.Lstat(r.host("home/file")); err != nil {
					os.Symlink("../../outside/secret", r.host("home/file"))
				}
				os.WriteFile(r.host("a/b/file"), []byte("harmless"), 0o644)
			}
			if n := <-swapped; n < 10 {
				t.Errorf("swapped %d times only", n)
			}
			if after := state(t, r.outside); before != after {
				t.Errorf("the outside has changed:\n%s\n%s", before, after)
			}
		})
	}
}

func TestOpen_AFileThatBecomesALinkMeanwhileIsNotFollowed(t *testing.T) {
	r := newTrap(t)
	must(t, os.Symlink("../../outside/secret", r.host("home/swap")))
	var outside unix.Stat_t
	must(t, unix.Stat(filepath.Join(r.outside, "secret"), &outside))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			unix.Renameat2(unix.AT_FDCWD, r.host("home/file"), unix.AT_FDCWD, r.host("home/swap"), unix.RENAME_EXCHANGE)
		}
	}()
	opened := 0
	for range 30_000 {
		must(t, r.tree.act(t.Context(), func(a *actor) error {
			w, err := a.openIn("/home", false)
			if err != nil {
				return err
			}
			defer w.close()
			var st unix.Stat_t
			fd, err := openFile(w.fd(), "file", &st)
			if err != nil {
				return nil
			}
			opened++
			defer unix.Close(fd)
			if st.Ino == outside.Ino {
				t.Error("the outside was opened")
			}
			return nil
		}))
	}
	cancel()
	<-done
	if opened == 0 {
		t.Error("nothing was opened at all")
	}
}
