package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// grower makes random trees of every kind of file.
type grower struct {
	t     *testing.T
	r     *rand.Rand
	root  bool     // may have other owners and access lists
	files []string // made so far, for hard links

	without omitted
}

// omitted is what a tree is made without: attributes with "=" or "%" in their names, access lists, times before 1970, holes.
type omitted struct{ equals, lists, old, holes bool }

// plant makes one in an empty folder, from a seed, without what is omitted.
func plant(t *testing.T, folder string, seed uint64, without omitted) {
	t.Helper()
	g := &grower{t: t, without: without, r: rand.New(rand.NewPCG(seed, 12)), root: os.Geteuid() == 0}
	g.folder(folder, 0)
	g.dress(folder, true)
}

func (g *grower) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *grower) folder(path string, depth int) {
	for range 3 + g.r.IntN(8) {
		at := path + "/" + g.name()
		if _, err := os.Lstat(at); err == nil {
			continue
		}
		switch kind := g.r.IntN(12); {
		case kind < 2 && depth < 4:
			g.must(os.Mkdir(at, 0o755))
			g.folder(at, depth+1)
			g.dress(at, true)
		case kind == 2:
			g.must(os.Symlink(g.target(), at))
			g.times(at)
			g.owner(at)
		case kind == 3:
			g.must(unix.Mkfifo(at, 0o644))
			g.owner(at)
			g.must(os.Chmod(at, os.FileMode(g.r.IntN(0o1000))))
			g.times(at)
		case kind == 4 && len(g.files) > 0:
			g.must(os.Link(g.files[g.r.IntN(len(g.files))], at))
		case kind == 5 && !g.without.holes:
			g.sparse(at)
			g.dress(at, false)
			g.files = append(g.files, at)
		default:
			g.must(os.WriteFile(at, g.bytes(g.size()), 0o644))
			g.dress(at, false)
			g.files = append(g.files, at)
		}
	}
}

// name makes one of any bytes that a file system takes.
func (g *grower) name() string {
	switch g.r.IntN(8) {
	case 0:
		return ".wh." + g.word(5)
	case 1:
		return ".wh..wh..opq"
	case 2:
		return strings.Repeat(g.word(5), 51)[:200+g.r.IntN(56)]
	case 3:
		return "名前 " + g.word(3) + "\n\t"
	}
	b := g.bytes(1 + g.r.IntN(20))
	for i := range b {
		if b[i] == 0 || b[i] == '/' {
			b[i] = '='
		}
	}
	if s := string(b); s != "." && s != ".." {
		return s
	}
	return "dots"
}

func (g *grower) target() string {
	return []string{"/etc/passwd", "../../../..", g.name(), "a/b/../c", strings.Repeat("long/", 300)}[g.r.IntN(5)]
}

func (g *grower) word(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + g.r.IntN(26))
	}
	return string(b)
}

func (g *grower) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.r.Uint32())
	}
	return b
}

func (g *grower) size() int {
	return []int{0, 1, 511, 512, 513, 4096, g.r.IntN(10_000), bufferSize, bufferSize + 1}[g.r.IntN(9)]
}

// sparse makes a file with holes, also at its beginning and its end.
func (g *grower) sparse(path string) {
	f, err := os.Create(path)
	g.must(err)
	defer f.Close()
	at := int64(0)
	for range g.r.IntN(5) {
		at += int64(g.r.IntN(200)) << 10
		_, err := f.WriteAt(g.bytes(1+g.r.IntN(20_000)), at)
		g.must(err)
		at += 20_000
	}
	g.must(f.Truncate(at + int64(g.r.IntN(300))<<10))
}

// dress gives a file or folder an owner, attributes, permissions and times.
func (g *grower) dress(path string, folder bool) {
	g.owner(path)
	for range g.r.IntN(3) {
		name := "user." + []string{g.word(4), "with=equals", "with space", "naïve", "%41"}[g.r.IntN(5)]
		if g.without.equals && strings.ContainsAny(name, "=%") {
			continue
		}
		g.must(unix.Lsetxattr(path, name, g.bytes(g.r.IntN(300)), 0))
	}
	if g.root && !g.without.lists && g.r.IntN(3) == 0 {
		g.must(unix.Lsetxattr(path, "system.posix_acl_access", g.list(), 0))
	}
	if g.root && folder && !g.without.lists && g.r.IntN(3) == 0 {
		g.must(unix.Lsetxattr(path, "system.posix_acl_default", g.list(), 0))
	}
	mode := uint32(g.r.IntN(0o10000))
	if !g.root {
		mode = mode&0o1777 | 0o700
	}
	g.must(unix.Fchmodat(unix.AT_FDCWD, path, mode, 0))
	if g.root && !folder && g.r.IntN(4) == 0 { // cap_net_raw, version 2
		g.must(unix.Lsetxattr(path, "security.capability", []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0))
	}
	g.times(path)
}

// list makes an access list of two users beside the owner.
func (g *grower) list() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	add := func(tag, perm uint16, id uint32) {
		b = binary.LittleEndian.AppendUint16(b, tag)
		b = binary.LittleEndian.AppendUint16(b, perm)
		b = binary.LittleEndian.AppendUint32(b, id)
	}
	perm := func() uint16 { return uint16(g.r.IntN(8)) }
	const none = ^uint32(0)
	add(1, perm(), none)
	add(2, perm(), 1234)
	add(2, perm(), 70000)
	add(4, perm(), none)
	add(16, perm(), none)
	add(32, perm(), none)
	return b
}

func (g *grower) owner(path string) {
	if g.root && g.r.IntN(2) == 0 {
		g.must(os.Lchown(path, g.r.IntN(1<<31), g.r.IntN(70_000)))
	}
}

// times gives a time between 1902 and 2038, which every file system takes, to the nanosecond.
func (g *grower) times(path string) {
	sec := g.r.Int64N(1<<32) - 1<<31
	if g.without.old {
		sec = max(sec, -sec)
	}
	g.must(unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Sec: sec}, {Sec: sec, Nsec: g.r.Int64N(1e9)}}, unix.AT_SYMLINK_NOFOLLOW))
}

// describe says all that there is to know of a tree, a line per entry; but of folders' own sizes and numbers of links, which are
// the file system's.
func describe(t *testing.T, folder string) []string {
	t.Helper()
	var lines []string
	first := map[inode]string{}
	err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		name, _ := filepath.Rel(folder, path)
		line := fmt.Sprintf("%q %o %d:%d %d.%09d", name, st.Mode, st.Uid, st.Gid, st.Mtim.Sec, st.Mtim.Nsec)
		var attrs []attribute
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			attrs, err = attributes(
				func(b []byte) (int, error) { return unix.Llistxattr(path, b) },
				func(a string, b []byte) (int, error) { return unix.Lgetxattr(path, a, b) })
		}
		if err != nil {
			return err
		}
		line += fmt.Sprintf(" %q", attrs)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			holes, _ := dataOf(int(f.Fd()), &st)
			line += fmt.Sprintf(" %d %x %v", st.Size, sha256.Sum256(content), holes)
		case unix.S_IFLNK:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" -> %q", target)
		}
		if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			id := inode{st.Dev, st.Ino}
			if first[id] == "" {
				first[id] = name
			}
			line += fmt.Sprintf(" is %q of %d", first[id], st.Nlink)
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}
