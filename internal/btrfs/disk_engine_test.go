//go:build engine

package btrfs

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
)

// smallHost mounts a file system in memory, until the test's end.
func smallHost(t *testing.T, size string) string {
	t.Helper()
	at := t.TempDir()
	must(t, unix.Mount("tmpfs", at, "tmpfs", 0, "size="+size))
	t.Cleanup(func() { must(t, unix.Unmount(at, 0)) })
	return at
}

// device gives a loop device as a block device that has nothing on it, until the test's end.
func device(t *testing.T, size int64) (*os.File, *os.File) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	must(t, err)
	must(t, f.Truncate(size))
	loop, err := newLoop(f)
	must(t, err)
	t.Cleanup(func() { must(t, loop.Close(), f.Close()) })
	return loop, f
}

func TestDisk_IsAllOnTheHostAndNothingWithoutRoom(t *testing.T) {
	host := smallHost(t, "700m")
	d := Disk{Dir: filepath.Join(host, "pool"), File: filepath.Join(host, "pool.img")}
	wantKind(t, d.Mount(t.Context()), fault.NotFound)
	wantKind(t, d.Format(t.Context(), 1<<20), fault.Invalid)
	wantKind(t, d.Format(t.Context(), 690<<20), fault.Unavailable)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Format(ended, 300<<20); err == nil {
		t.Error("it was made without end")
	}
	must(t, os.Remove(d.Dir))
	if left, err := os.ReadDir(host); err != nil || len(left) > 0 {
		t.Errorf("left over: %v (%v)", left, err)
	}
	d = testDisk(t, host, 300<<20)
	wantKind(t, d.Format(t.Context(), 300<<20), fault.Conflict)
	if has, err := d.Exists(); err != nil || !has {
		t.Errorf("it exists: %v (%v)", has, err)
	}
	var st unix.Stat_t
	must(t, unix.Stat(d.File, &st))
	if st.Blocks*512 < 300<<20 {
		t.Errorf("%d bytes are reserved", st.Blocks*512)
	}
	p := openAt(t, d)
	must(t, p.Create("a"))
	write(t, p, "a", "file", "kept")
	before, err := p.Space()
	must(t, err)

	wantKind(t, d.Grow(t.Context(), 200<<20), fault.Invalid)
	wantKind(t, d.Grow(t.Context(), 2<<30), fault.Unavailable)
	f, err := os.OpenFile(d.File, os.O_RDWR, 0)
	must(t, err)
	wantKind(t, reserve(f, 300<<20, 2<<30), fault.Unavailable) // as if others had taken the room meanwhile
	must(t, f.Close(), unix.Stat(d.File, &st))
	if now, err := p.Space(); err != nil || now.Size != before.Size || st.Size != 300<<20 {
		t.Errorf("it has %d, and had %d; its file has %d (%v)", now.Size, before.Size, st.Size, err)
	}
	for range 2 {
		must(t, d.Grow(t.Context(), 450<<20))
		if now, err := p.Space(); err != nil || now.Size != before.Size+150<<20 {
			t.Errorf("it has %d, and had %d (%v)", now.Size, before.Size, err)
		}
	}
	_, err = fill(t, p, "a", 200<<20)
	must(t, err)
	reads(t, p, "a", "file", "kept")
}

func TestDisk_OfADeviceIsMadeOnlyWhereNothingIs(t *testing.T) {
	loop, f := device(t, 300<<20)
	data := t.TempDir()
	d, err := In(data)
	must(t, err)
	d.Path = loop.Name()
	if out, err := exec.Command("mkfs.ext4", "-q", loop.Name()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	err = d.Format(t.Context(), 0)
	wantKind(t, err, fault.Invalid)
	if err == nil || !strings.Contains(fault.Message(err), "wipefs") {
		t.Error(err)
	}
	elsewhere := t.TempDir()
	must(t, unix.Mount(loop.Name(), elsewhere, "ext4", 0, ""))
	wantKind(t, d.Format(t.Context(), 0), fault.Invalid)
	must(t, unix.Unmount(elsewhere, 0))
	if has, err := d.Exists(); err != nil || has {
		t.Errorf("it exists: %v (%v)", has, err)
	}
	_, err = f.WriteAt(bytes.Repeat([]byte{0}, 1<<20), 0) // as wipefs does
	must(t, err)
	must(t, unix.IoctlSetInt(int(loop.Fd()), unix.BLKFLSBUF, 0))
	must(t, d.Format(t.Context(), 0))
	t.Cleanup(func() { must(t, d.Unmount()) })

	d, err = In(data)
	if err != nil || d.Path != loop.Name() {
		t.Fatalf("the pool is %+v (%v)", d, err)
	}
	must(t, d.Mount(t.Context()))
	p := openAt(t, d)
	must(t, p.Create("a"))
	before, err := p.Space()
	must(t, err)
	must(t, f.Truncate(400<<20), unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_SET_CAPACITY, 0), d.Grow(t.Context(), 0))
	if now, err := p.Space(); err != nil || now.Size != before.Size+100<<20 {
		t.Errorf("it has %d, and had %d (%v)", now.Size, before.Size, err)
	}
	must(t, p.Close(), d.Unmount())
	_, err = d.Space()
	wantKind(t, err, fault.Conflict)
	must(t, os.WriteFile(d.note(), []byte(d.Path+"\n00000000-0000-4000-8000-000000000000\n"), 0o600))
	wantKind(t, d.Mount(t.Context()), fault.Invalid)
	if is, err := d.Mounted(); err != nil || is {
		t.Errorf("it is mounted: %v (%v)", is, err)
	}
	for _, path := range []string{d.File, data, "/dev/null"} {
		other := Disk{Dir: filepath.Join(t.TempDir(), "pool"), Path: path}
		wantKind(t, other.Format(t.Context(), 0), fault.Invalid)
	}
}

// TestMount_UsesTheDeviceThatAContainerHoldsOn has the file system mounted elsewhere, too.
func TestMount_UsesTheDeviceThatAContainerHoldsOn(t *testing.T) {
	d := testDisk(t, t.TempDir(), 300<<20)
	p := openAt(t, d)
	must(t, p.Create("a"))
	elsewhere := t.TempDir()
	must(t, unix.Mount(p.Path("a"), elsewhere, "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(t, unix.Unmount(elsewhere, 0)) })
	f, err := os.Open(d.File)
	must(t, err)
	defer f.Close()
	loops := func() string {
		t.Helper()
		loop, err := loopOf(f)
		if err != nil || loop == nil {
			t.Fatalf("there is no loop device (%v)", err)
		}
		info, err := unix.IoctlLoopGetStatus64(int(loop.Fd()))
		must(t, err, loop.Close())
		if info.Flags&unix.LO_FLAGS_AUTOCLEAR == 0 {
			t.Error("it stays for ever")
		}
		t.Logf("past the host's cache: %t", info.Flags&unix.LO_FLAGS_DIRECT_IO != 0)
		return loop.Name()
	}
	before := loops()
	must(t, p.Close(), d.Unmount(), d.Mount(t.Context()))
	if now := loops(); now != before {
		t.Errorf("it was %s and is %s", before, now)
	}
	must(t, os.WriteFile(filepath.Join(elsewhere, "file"), []byte("x"), 0o600))
	reads(t, openAt(t, d), "a", "file", "x")
}
