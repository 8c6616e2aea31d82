// Command oddhome makes the home of a sandbox hold files of every kind ("plant"), or prints all that can be seen of what it holds, a
// line for each ("describe"). It shares no code with what moves homes.
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const home = "/home/agent"

func main() {
	err := os.Chdir(home)
	if err == nil && len(os.Args) == 2 && os.Args[1] == "plant" {
		err = plant()
	} else if err == nil {
		err = filepath.WalkDir(".", describe)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func plant() error {
	everyByte := func() string {
		var b []byte
		for c := 1; c < 256; c++ {
			if c != '/' {
				b = append(b, byte(c))
			}
		}
		return string(b)
	}()
	var sparse int
	for _, step := range []func() error{
		func() error { return os.MkdirAll("a/b/c/empty", 0o755) },
		func() error { return os.WriteFile(everyByte, []byte("named"), 0o644) },
		func() error { return os.WriteFile("a/\xff\xfe not UTF-8", nil, 0o600) },
		func() error { return os.WriteFile("large", []byte(strings.Repeat("0123456789abcdef", 300_001)), 0o640) },
		func() error { return os.Link("large", "a/again") },
		func() error { return os.Link("large", "a/b/once more") },
		func() error { return os.Symlink("../../../../etc/passwd", "a/out") },
		func() error { return os.Symlink(strings.Repeat("far/", 500), "far") },
		func() error { return unix.Lchown("far", 1000, 70_000) },
		func() error { return unix.Mkfifo("a/pipe", 0o622) },
		func() (err error) { sparse, err = unix.Open("sparse", unix.O_WRONLY|unix.O_CREAT, 0o600); return err },
		func() error { _, err := unix.Pwrite(sparse, []byte("within"), 40<<20); return err },
		func() error { return unix.Ftruncate(sparse, 60<<20) },
		func() error { return os.WriteFile("setuid", []byte("#!"), 0o755) },
		func() error { return os.Chown("setuid", 1234, 4_000_000_000) },
		func() error { return unix.Chmod("setuid", 0o6755) },
		func() error { return os.WriteFile("closed", []byte("secret"), 0) },
		func() error { return os.Chown("closed", 1000, 1000) },
		func() error { return os.WriteFile("attributes", nil, 0o644) },
		func() error { return unix.Setxattr("attributes", "user.a=b%3D", []byte("\x00\xff\n"), 0) },
		func() error { return unix.Setxattr("attributes", "user.empty", nil, 0) },
		func() error { return unix.Setxattr("attributes", "system.posix_acl_access", accessList(), 0) },
		func() error { return unix.Setxattr("a/b", "system.posix_acl_default", accessList(), 0) },
		func() error { return os.WriteFile("able", []byte("x"), 0o755) },
		func() error { return unix.Setxattr("able", "security.capability", able(), 0) },
		func() error { return os.Chown("a/b/c", 1000, 1000) },
		func() error { return unix.Chmod("a/b/c", 0o3000) },
		func() error { return when("large", unix.Timespec{Sec: -1_000_000, Nsec: 123_456_789}) },
		func() error { return when("far", unix.Timespec{Sec: 4_000_000_000, Nsec: 1}) },
		func() error { return when("a/b", unix.Timespec{Sec: 1, Nsec: 999_999_999}) },
		func() error { return os.Chown(".", 1000, 1000) },
		func() error { return unix.Chmod(".", 0o2710) },
		func() error { return unix.Setxattr(".", "user.top", []byte("x"), 0) },
		func() error { return when(".", unix.Timespec{Sec: 2, Nsec: 3}) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// accessList lets user 1234 read.
func accessList() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range [][3]uint32{{1, 6, ^uint32(0)}, {2, 4, 1234}, {4, 4, ^uint32(0)}, {16, 6, ^uint32(0)}, {32, 0, ^uint32(0)}} {
		b = binary.LittleEndian.AppendUint16(b, uint16(e[0]))
		b = binary.LittleEndian.AppendUint16(b, uint16(e[1]))
		b = binary.LittleEndian.AppendUint32(b, e[2])
	}
	return b
}

// able is the capability to bind low ports, version 2.
func able() []byte {
	return []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
}

func when(name string, at unix.Timespec) error {
	return unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}

var first = map[uint64]string{}

func describe(name string, _ fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return err
	}
	line := fmt.Sprintf("%q %o %d:%d %d.%09d", name, st.Mode, st.Uid, st.Gid, st.Mtim.Sec, st.Mtim.Nsec)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		line += fmt.Sprintf(" %d %x, sparse: %t", st.Size, sha256.Sum256(b), st.Blocks*512 < st.Size/2)
		if st.Nlink > 1 {
			if first[st.Ino] == "" {
				first[st.Ino] = name
			}
			line += fmt.Sprintf(" %d links, is %q", st.Nlink, first[st.Ino])
		}
	case unix.S_IFLNK:
		target, err := os.Readlink(name)
		if err != nil {
			return err
		}
		line += fmt.Sprintf(" -> %q", target)
	}
	fmt.Println(line + attributes(name))
	return nil
}

func attributes(name string) (out string) {
	var list, value [4096]byte
	n, err := unix.Llistxattr(name, list[:])
	if err != nil {
		return " " + err.Error()
	}
	names := strings.Split(strings.TrimSuffix(string(list[:n]), "\x00"), "\x00")
	slices.Sort(names)
	for _, a := range names {
		if n, err := unix.Lgetxattr(name, a, value[:]); err == nil {
			out += fmt.Sprintf(" %q=%q", a, value[:n])
		}
	}
	return out
}
