package sshd_test

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pkg/sftp"
)

// What stands outside of the root, and must be neither told nor changed.
const (
	secret     = "TOP-SECRET-CONTENT-1234"
	secretName = "known-only-outside-9876"
)

// trap is a root with every kind of way out, and an outside beside it. Only the walls of the tree keep anybody in: everybody
// may do everything in both.
type trap struct {
	t             *testing.T
	root, outside string
	sftp          *sftp.Client
}

func newTrap(t *testing.T) *trap {
	t.Helper()
	base := t.TempDir()
	r := &trap{t: t, root: filepath.Join(base, "root"), outside: filepath.Join(base, "outside")}
	for dir := base; dir != os.TempDir(); dir = filepath.Dir(dir) {
		r.must(os.Chmod(dir, 0o777))
	}
	for _, name := range []string{"secret", "sub/secret", secretName, "x"} {
		r.puts(filepath.Join(r.outside, name), secret)
	}
	r.set()
	w := newWorldIn(t, r.root)
	r.sftp = w.sftp(w.client())
	return r
}

func (r *trap) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// puts makes a file that everybody may change, in folders of the same kind.
func (r *trap) puts(path, content string) {
	r.t.Helper()
	r.must(os.MkdirAll(filepath.Dir(path), 0o777))
	r.must(os.WriteFile(path, []byte(content), 0o666))
	r.must(os.Chmod(path, 0o666))
	for dir := filepath.Dir(path); dir != filepath.Dir(r.root); dir = filepath.Dir(dir) {
		r.must(os.Chmod(dir, 0o777))
	}
}

// set makes what is in the root anew. The session begins in home/agent.
func (r *trap) set() {
	r.t.Helper()
	r.must(os.MkdirAll(r.root, 0o777))
	old, err := os.ReadDir(r.root)
	r.must(err)
	for _, e := range old {
		r.must(os.RemoveAll(filepath.Join(r.root, e.Name())))
	}
	home := filepath.Join(r.root, "home/agent")
	for _, file := range []string{"file", "sub/file", "sub/deep/file", "../../a/b/file"} {
		r.puts(filepath.Join(home, file), "harmless")
	}
	r.puts(filepath.Join(r.root, ".sandboxd/guest"), secret)
	for name, target := range map[string]string{
		"abs": r.outside, "abs-file": r.outside + "/secret", "up": "../../../outside", "up-file": "../../../outside/secret",
		"far": strings.Repeat("../", 30) + r.outside, "far-file": strings.Repeat("../", 30) + r.outside + "/secret",
		"self": "self", "loop": "pool", "pool": "loop", "proc": "/proc/self/root" + r.outside, "cwd": "/proc/self/cwd", "fd": "/proc/self/fd",
		"in": "sub/deep", "dots": "..", "root": "/", "sub/out": "../../../../outside", "sub/deep/out": "../../../../../outside",
		"slash": "..//..//..//outside/", "dot": "./../../../outside/.", "mixed": "sub/../../../../outside", "hidden": "/.sandboxd",
		"dangling": "../../../outside/new", "chain0": "chain1", "chain1": "chain2", "chain2": "dots/../../../outside",
	} {
		r.must(os.Symlink(target, filepath.Join(home, name)))
	}
	r.must(syscall.Mkfifo(filepath.Join(home, "fifo"), 0o666))
}

// attempts are ways to say something outside. Most are not there at all, as they should be.
func (r *trap) attempts() []string {
	return []string{
		"..", "../..", "../../..", "../../../outside", "../../../outside/secret", "./../../../outside/secret", "sub/../../../../outside/secret",
		"/..", "/../", "/../outside", "/../outside/secret", "/../../outside/secret", "//../outside/secret", "/./../outside", "/home/../../outside/secret",
		"/a/b/../../../outside/secret", "sub/deep/../../../../../outside/secret", "/.././outside", "..//..//..//outside", "....//outside", "..././outside",
		r.outside, r.outside + "/secret", "//" + r.outside, "/." + r.outside, r.root + "/home/agent/file", "%2e%2e/%2e%2e/%2e%2e/outside/secret",
		"..%2f..%2f..%2foutside", "%252e%252e/outside", "..\\..\\..\\outside\\secret", "\\..\\outside", "\xc0\xae\xc0\xae/\xc0\xae\xc0\xae/outside",
		"\uff0e\uff0e/\uff0e\uff0e/outside", "..\u200b/outside", "~/../../../outside", "secret\x00", "../../../outside/secret\x00", "sub\x00/../../../../outside",
		strings.Repeat("../", 1360) + "outside/secret", strings.Repeat("a", 256), strings.Repeat("a/", 2100), "/" + strings.Repeat("x", 4095),
		"abs", "abs/secret", "abs/sub/secret", "abs/new", "abs-file", "up", "up/secret", "up/new", "up-file", "far", "far/secret", "far-file",
		"self", "self/secret", "loop", "loop/secret", "proc", "proc/secret", "cwd", "cwd/outside/secret", "fd", "fd/3", "in/../../../../outside/secret",
		"in/out", "in/out/secret", "dots/../../outside/secret", "dots/../../../outside", "root/../outside/secret", "root" + r.outside + "/secret", "sub/out",
		"sub/out/secret", "sub/deep/out/secret", "slash", "slash/secret", "dot", "dot/secret", "mixed/secret", "dangling", "chain0", "chain0/secret",
		"hidden", "hidden/guest", "/.sandboxd", "/.sandboxd/guest", "/a/../.sandboxd/guest", "root/.sandboxd/guest", "/proc/self/root" + r.outside + "/secret",
		"/proc/1/cwd", "/dev/fd/0", "fifo", "fifo/x", "file/../../../../outside/secret", "file/x", "", "/", ".", "//",
	}
}

// told is all that was answered: names, a text, an error.
func told(parts ...any) string { return fmt.Sprintf("%q", fmt.Sprint(parts...)) }

func names(list []os.FileInfo) (text string) {
	for _, e := range list {
		text += e.Name() + " "
	}
	return text
}

// reads gives what is in a file.
func reads(f *sftp.Client, p string) string {
	file, err := f.Open(p)
	if err != nil {
		return told(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 1<<20))
	return told(string(text), err)
}

// writes puts something into a file.
func writes(f *sftp.Client, p string, flags int) string {
	file, err := f.OpenFile(p, flags)
	if err != nil {
		return told(err)
	}
	_, err = file.Write([]byte("written"))
	return told(err, file.Close())
}

// throughOwn makes a link to p, and does through it what a client can.
func throughOwn(f *sftp.Client, p string) string {
	made := f.Symlink(p, "own")
	target, err := f.ReadLink("own")
	list, _ := f.ReadDir("own")
	st, _ := f.Stat("own")
	_ = f.Chmod("own", 0o600)
	_ = f.Truncate("own", 3)
	return told(made, target, err, names(list), st != nil) + reads(f, "own") + reads(f, "own/secret") + reads(f, "own/sub/secret") +
		writes(f, "own", os.O_WRONLY|os.O_CREATE|os.O_TRUNC) + writes(f, "own/new", os.O_WRONLY|os.O_CREATE) +
		told(f.Mkdir("own/folder"), f.PosixRename("/a/b/file", "own/x"), f.Remove("own/secret"))
}

// onPaths is everything that SFTP can do with a path.
var onPaths = map[string]func(f *sftp.Client, p string) string{
	"stat": func(f *sftp.Client, p string) string {
		st, err := f.Stat(p)
		if err != nil {
			return told(err)
		}
		return told(st.Name(), st.Size())
	},
	"lstat": func(f *sftp.Client, p string) string {
		st, err := f.Lstat(p)
		if err != nil {
			return told(err)
		}
		return told(st.Name(), st.Size())
	},
	"readlink": func(f *sftp.Client, p string) string { return told(f.ReadLink(p)) },
	"realpath": func(f *sftp.Client, p string) string { return told(f.RealPath(p)) },
	"list": func(f *sftp.Client, p string) string {
		list, err := f.ReadDir(p)
		return told(names(list), err)
	},
	"read":            reads,
	"write":           func(f *sftp.Client, p string) string { return writes(f, p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC) },
	"append":          func(f *sftp.Client, p string) string { return writes(f, p, os.O_RDWR|os.O_APPEND) },
	"make only new":   func(f *sftp.Client, p string) string { return writes(f, p, os.O_WRONLY|os.O_CREATE|os.O_EXCL) },
	"mkdir":           func(f *sftp.Client, p string) string { return told(f.Mkdir(p)) },
	"rename from":     func(f *sftp.Client, p string) string { return told(f.Rename(p, "moved")) + reads(f, "moved/secret") },
	"rename to":       func(f *sftp.Client, p string) string { return told(f.Rename("/a/b/file", p)) },
	"replace from":    func(f *sftp.Client, p string) string { return told(f.PosixRename(p, "file")) + reads(f, "file") },
	"replace":         func(f *sftp.Client, p string) string { return told(f.PosixRename("/a/b/file", p)) },
	"remove":          func(f *sftp.Client, p string) string { return told(f.Remove(p)) },
	"rmdir":           func(f *sftp.Client, p string) string { return told(f.RemoveDirectory(p)) },
	"link at":         func(f *sftp.Client, p string) string { return told(f.Symlink("/", p)) },
	"link to":         throughOwn,
	"chmod":           func(f *sftp.Client, p string) string { return told(f.Chmod(p, 0o700)) },
	"touch":           func(f *sftp.Client, p string) string { return told(f.Chtimes(p, time.Unix(1, 0), time.Unix(1, 0))) },
	"truncate":        func(f *sftp.Client, p string) string { return told(f.Truncate(p, 3)) },
	"give to another": func(f *sftp.Client, p string) string { return told(f.Chown(p, 1234, 1234)) },
}

// state is all of a folder that can change.
func (r *trap) state(folder string) string {
	r.t.Helper()
	var b strings.Builder
	r.must(filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(p, &st); err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %d %o %d %d.%d", p, st.Ino, st.Mode, st.Uid, st.Mtim.Sec, st.Mtim.Nsec)
		if d.Type().IsRegular() {
			b.WriteString(" " + content(r.t, p))
		}
		b.WriteString("\n")
		return nil
	}))
	return b.String()
}

// TestSFTP_NothingOutsideIsToldOrChanged tries every path in every request that has one.
func TestSFTP_NothingOutsideIsToldOrChanged(t *testing.T) {
	for name, do := range onPaths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTrap(t)
			if attempts := len(r.attempts()); attempts < 60 {
				t.Fatalf("only %d attempts", attempts)
			}
			r.reachesInside()
			before, hidden := r.state(r.outside), r.state(filepath.Join(r.root, ".sandboxd"))
			for _, p := range r.attempts() {
				said := r.within(p, func() string { return do(r.sftp, p) })
				if strings.Contains(said, secret) || strings.Contains(said, secretName) {
					t.Errorf("%.80q tells %.300s", p, said)
				}
				if after := r.state(r.outside); after != before {
					t.Fatalf("%.80q changes the outside:\n%s\n%s", p, before, after)
				}
				if after := r.state(filepath.Join(r.root, ".sandboxd")); after != hidden {
					t.Fatalf("%.80q changes what is hidden:\n%s\n%s", p, hidden, after)
				}
				if strings.Contains(said, "<nil>") { // something may have been done
					r.set()
					hidden = r.state(filepath.Join(r.root, ".sandboxd"))
				}
			}
			r.set()
			r.reachesInside()
		})
	}
}

// reachesInside sees that it is the walls that keep things from being reached, and nothing else.
func (r *trap) reachesInside() {
	r.t.Helper()
	got := reads(r.sftp, "in/file") + reads(r.sftp, "root/a/b/file") + writes(r.sftp, "in/new", os.O_WRONLY|os.O_CREATE) + told(r.sftp.Remove("in/new"))
	if strings.Count(got, "harmless") != 2 || strings.Count(got, "<nil>") != 5 {
		r.t.Fatalf("what is inside cannot be reached: %s", got)
	}
}

// within gives what do answers, which must not take longer than the patience of a test.
func (r *trap) within(p string, do func() string) string {
	r.t.Helper()
	answer := make(chan string, 1)
	go func() { answer <- do() }()
	select {
	case said := <-answer:
		return said
	case <-time.After(patience):
		r.t.Fatalf("%.80q hangs", p)
		return ""
	}
}
