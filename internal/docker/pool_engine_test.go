//go:build engine

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"golang.org/x/sys/unix"

	"sandboxd/internal/btrfs"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// testPool makes a storage pool, until the test's end.
func testPool(t *testing.T) *btrfs.Pool {
	t.Helper()
	host := t.TempDir()
	d := btrfs.Disk{Dir: filepath.Join(host, "pool"), File: filepath.Join(host, "pool.img")}
	if err := d.Format(t.Context(), 1<<30); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := d.Unmount()
		for end := time.Now().Add(time.Minute); fault.Is(err, fault.Conflict) && time.Now().Before(end); <-time.After(100 * time.Millisecond) {
			err = d.Unmount() // the engine may be ending the last container
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err := d.Mount(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, err := btrfs.Open(d.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func withPool(p Pool) func(*Config) { return func(c *Config) { c.Pool = p } }

// bothWays runs tests without a pool and, beside them, in one, and beside other tests.
func bothWays(t *testing.T, run func(t *testing.T, change ...func(*Config))) {
	t.Helper()
	t.Parallel()
	t.Run("without a pool", func(t *testing.T) {
		t.Parallel()
		run(t)
	})
	t.Run("in a pool", func(t *testing.T) {
		t.Parallel()
		run(t, withPool(testPool(t)))
	})
}

// filesOf gives what is in a sandbox's home, a line for each entry.
func filesOf(t *testing.T, e *Engine, id string) string {
	t.Helper()
	b, _ := packed(t, e, id)
	all, err := entries(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for name, content := range all {
		lines = append(lines, name+"="+content)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// shell has a command succeed in a sandbox.
func shell(t *testing.T, e *Engine, id, user, command string) string {
	t.Helper()
	code, out := inside(t, e, id, user, command)
	if code != 0 {
		t.Fatalf("%s: %d: %s", command, code, out)
	}
	return out
}

func stopped(t *testing.T, e *Engine, id string) {
	t.Helper()
	must(t, e.Stop(t.Context(), id, 0))
}

func homeFor(t *testing.T, e *Engine, id, snapshot string) sandbox.Home {
	t.Helper()
	h, err := e.OpenHome(t.Context(), id, snapshot)
	must(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

// snapshotOf copies a home, and gives the snapshot's id. The copy is removed at the test's end.
func snapshotOf(t *testing.T, e *Engine, id string) string {
	t.Helper()
	snapshot := sandbox.NewID()
	h := homeFor(t, e, id, snapshot)
	_, err := h.CopyOut(t.Context(), nothing)
	must(t, err, h.Close())
	t.Cleanup(func() {
		if fresh, err := Open(context.Background(), e.c); err == nil {
			must(t, fresh.RemoveCopy(context.Background(), snapshot), fresh.Close())
		}
	})
	return snapshot
}

func copyIn(t *testing.T, e *Engine, id, snapshot string) {
	t.Helper()
	h := homeFor(t, e, id, snapshot)
	_, err := h.CopyIn(t.Context(), nothing)
	must(t, err, h.Close())
}

func placeOf(t *testing.T, e *Engine, id string, want location) {
	t.Helper()
	if at, err := e.homePlace(t.Context(), id); err != nil || at != want {
		t.Errorf("the home is %s (%v), want %s", at, err, want)
	}
}

func TestPool_AHomeHasWhatTheImageHasAndNoMoreThanItsLimit(t *testing.T) {
	pool := testPool(t)
	e := openTest(t, withPool(pool))
	running(t, e, "patient")
	image := imageWithHome(t, e)
	b := running(t, e, "patient", func(b *sandbox.ContainerSpec) { b.Image, b.Limits.Disk = image, 20<<20 })
	placeOf(t, e, b.ID, inPool)
	if got := shell(t, e, b.ID, "0", "cat /home/agent/greeting; stat -c '%u %a' /home/agent"); got != "hello\n1000 711\n" {
		t.Errorf("the home has %q", got)
	}
	if code, out := inside(t, e, b.ID, "1000", "head -c 50000000 /dev/zero > /home/agent/big"); code == 0 || !strings.Contains(out, "quota") {
		t.Errorf("%d: %s", code, out)
	}
	shell(t, e, b.ID, "1000", "rm /home/agent/big && sync /home/agent && head -c 10000000 /dev/zero > /home/agent/big")
	stopped(t, e, b.ID)
	b.Limits.Disk = 60 << 20
	must(t, e.Recreate(t.Context(), b), e.Start(t.Context(), b.ID))
	shell(t, e, b.ID, "1000", "head -c 50000000 /dev/zero > /home/agent/big && sync /home/agent/big")
	must(t, pool.Sync(t.Context()))
	sizes, err := NewSizes(e).Measure(t.Context())
	if got := sizes[b.ID]; err != nil || got.Home < 50_000_000 || got.Home > 60<<20 || len(sizes) != 2 {
		t.Errorf("the sizes are %+v (%v)", sizes, err)
	}
	snapshot := snapshotOf(t, e, b.ID)
	stopped(t, e, b.ID)
	whole, _ := packed(t, e, b.ID)
	unpack(t, e, b.ID, whole) // although there is no room for both
	h := openHome(t, e, b.ID)
	if _, err := h.Replace(t.Context(), bytes.NewReader(slices.Concat(whole, renamed(t, whole), renamed(t, renamed(t, whole)))), sandbox.Content{Prefix: "home/"}, nothing); !fault.Is(err, fault.Unavailable) {
		t.Errorf("it takes any amount: %v", err)
	}
	must(t, h.Close())
	if again, _ := packed(t, e, b.ID); !bytes.Equal(whole, again) {
		t.Error("the home is another one")
	}
	copyIn(t, e, b.ID, snapshot)
	must(t, e.Start(t.Context(), b.ID))
	if code, out := inside(t, e, b.ID, "1000", "head -c 80000000 /dev/urandom > /home/agent/more"); code == 0 {
		t.Errorf("restored, it has no limit: %s", out)
	}
	must(t, e.Remove(t.Context(), b.ID))
}

// renamed gives a part of an archive with other names of the files in the home.
func renamed(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for in := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		if h.Typeflag == tar.TypeReg {
			h.Name += "-again"
			delete(h.PAXRecords, "path")
			must(t, w.WriteHeader(h))
			_, err = io.Copy(w, in)
			must(t, err)
		}
	}
	must(t, w.Flush())
	return out.Bytes()
}

// imageWithHome makes an image whose home has something, until the test's end.
func imageWithHome(t *testing.T, e *Engine) string {
	t.Helper()
	ctx, cli := t.Context(), e.client.Load()
	made, err := cli.ContainerCreate(ctx, &container.Config{Image: testImage, Cmd: []string{"sh", "-c",
		"mkdir -p /home/agent && echo hello > /home/agent/greeting && chown 1000:1000 /home/agent /home/agent/greeting && chmod 711 /home/agent"}}, nil, nil, nil, "")
	must(t, err, cli.ContainerStart(ctx, made.ID, container.StartOptions{}))
	done, failed := cli.ContainerWait(ctx, made.ID, container.WaitConditionNotRunning)
	select {
	case <-done:
	case err := <-failed:
		t.Fatal(err)
	}
	ref := "sandboxd-test-home:" + e.c.Instance
	_, err = cli.ContainerCommit(ctx, made.ID, container.CommitOptions{Reference: ref})
	must(t, err, cli.ContainerRemove(ctx, made.ID, container.RemoveOptions{Force: true}))
	t.Cleanup(func() {
		fresh, err := dial("")
		must(t, err)
		_, err = fresh.ImageRemove(context.Background(), ref, image.RemoveOptions{Force: true})
		must(t, err, fresh.Close())
	})
	return ref
}

func TestPool_SnapshotsTakeNoProgramAndNoTime(t *testing.T) {
	e := openTest(t, withPool(testPool(t)))
	b := running(t, e, "patient")
	took := map[string]time.Duration{}
	for _, size := range []string{"small", "large"} {
		if size == "large" {
			shell(t, e, b.ID, "0", "cd /home/agent && seq -f f%g 5000 | xargs touch && head -c 150000000 /dev/urandom > big && sync big")
		}
		id := sandbox.NewID()
		h := homeFor(t, e, b.ID, id)
		must(t, e.Freeze(t.Context(), b.ID))
		began := time.Now()
		_, err := h.CopyOut(t.Context(), nothing)
		took[size] = time.Since(began)
		must(t, err, e.Thaw(t.Context(), b.ID))
		if left := movers(t, e); len(left) > 0 {
			t.Errorf("movers: %q", left)
		}
		began = time.Now()
		must(t, h.Close())
		t.Logf("the copy of the %s one takes %s, its close %s", size, took[size], time.Since(began))
		must(t, e.RemoveCopy(t.Context(), id))
	}
	if took["large"] > 10*took["small"]+time.Second {
		t.Errorf("copies take %v", took)
	}
}

func TestPool_ComparesAHomeWithItsCopy(t *testing.T) {
	guest := filepath.Join(t.TempDir(), "guest")
	compile(t, "sandboxd/cmd/guest", guest)
	e := openTest(t, withPool(testPool(t)), func(c *Config) { c.GuestBinary = guest })
	b := running(t, e, "")
	shell(t, e, b.ID, "0", "cd /home/agent && echo one > file && echo same > other")
	snapshot := snapshotOf(t, e, b.ID)
	shell(t, e, b.ID, "0", "echo two > /home/agent/file")
	h := homeFor(t, e, b.ID, snapshot)
	found, more, err := h.Compare(t.Context(), 10)
	if err != nil || more || len(found) != 1 || found[0].Path != "file" {
		t.Errorf("they differ in %+v, %v (%v)", found, more, err)
	}
	must(t, h.Close())
	h = homeFor(t, e, b.ID, snapshot)
	before, after, err := h.Versions(t.Context(), "file", 100)
	if string(before) != "one\n" || string(after) != "two\n" {
		t.Errorf("it was %q and is %q (%v)", before, after, err)
	}
	must(t, h.Close())
	stopped(t, e, b.ID)
	copyIn(t, e, b.ID, snapshot)
	if got := filesOf(t, e, b.ID); !strings.Contains(got, "home/file=one\n") {
		t.Errorf("restored, it has %q", got)
	}
}

// TestPool_APlainHomeMovesInWhenItIsRestored has an engine without a pool make sandboxes first.
func TestPool_APlainHomeMovesInWhenItIsRestored(t *testing.T) {
	c := testConfig(t)
	plain := openTest(t, func(one *Config) { *one = c })
	b := running(t, plain, "patient")
	shell(t, plain, b.ID, "0", "cd /home/agent && echo one > file && chown 1000 . && chmod 710 .")
	stopped(t, plain, b.ID)
	inVolumes := snapshotOf(t, plain, b.ID)
	must(t, plain.Start(t.Context(), b.ID))
	shell(t, plain, b.ID, "0", "echo two > /home/agent/file")
	stopped(t, plain, b.ID)

	pool := testPool(t)
	e := openTest(t, func(one *Config) { *one = c; one.Pool = pool })
	must(t, e.Start(t.Context(), b.ID), e.Recreate(t.Context(), b))
	placeOf(t, e, b.ID, inVolume)
	again := snapshotOf(t, e, b.ID) // a plain home has a plain copy
	if has, err := pool.Has(e.snapshotVolume(again)); err != nil || has {
		t.Errorf("its copy is in the pool: %v (%v)", has, err)
	}
	b.Limits.Disk = 20 << 20
	copyIn(t, e, b.ID, inVolumes)
	placeOf(t, e, b.ID, inNext)
	if got := filesOf(t, e, b.ID); !strings.Contains(got, "home/file=one\n") {
		t.Errorf("restored, it has %q", got)
	}
	if err := e.Start(t.Context(), b.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("the old home is started: %v", err)
	}
	copyIn(t, e, b.ID, again)
	copyIn(t, e, b.ID, inVolumes)
	for range 2 {
		must(t, e.Recreate(t.Context(), b))
		placeOf(t, e, b.ID, inPool)
	}
	must(t, e.Start(t.Context(), b.ID))
	if got := shell(t, e, b.ID, "0", "cat /home/agent/file; stat -c '%u %a' /home/agent"); got != "one\n1000 710\n" {
		t.Errorf("moved, it has %q", got)
	}
	if code, out := inside(t, e, b.ID, "0", "head -c 50000000 /dev/zero > /home/agent/big"); code == 0 {
		t.Errorf("moved, it has no limit: %s", out)
	}
	shell(t, e, b.ID, "0", "rm /home/agent/big")
	pooled := snapshotOf(t, e, b.ID)
	stopped(t, e, b.ID)
	copyIn(t, e, b.ID, again) // a plain copy into a home in the pool
	if got := filesOf(t, e, b.ID); !strings.Contains(got, "home/file=two\n") {
		t.Errorf("restored, it has %q", got)
	}
	copyIn(t, e, b.ID, pooled)
	placeOf(t, e, b.ID, inPool)
	if names, err := pool.List(); err != nil || len(names) != 2 {
		t.Errorf("the pool has %q (%v)", names, err)
	}

	poolIntoPlain(t, plain, e, pooled)
	must(t, e.Remove(t.Context(), b.ID), e.RemoveCopy(t.Context(), inVolumes))
	if names, err := e.pooled(t.Context(), ""); err != nil || len(names) > 0 {
		t.Errorf("the pool has the homes %q (%v)", names, err)
	}
}

// poolIntoPlain restores plain homes to a copy that is in the pool.
func poolIntoPlain(t *testing.T, plain, e *Engine, pooled string) {
	t.Helper()
	other := testBox(t, "patient")
	must(t, plain.Create(t.Context(), other))
	copyIn(t, e, other.ID, pooled)
	placeOf(t, e, other.ID, inNext)
	missing := other
	missing.Image = "sandboxd-test-none:none"
	if err := e.Create(t.Context(), missing); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want NotFound", err)
	}
	copyIn(t, e, other.ID, pooled)
	must(t, e.Create(t.Context(), other), e.Start(t.Context(), other.ID))
	if got := shell(t, e, other.ID, "0", "cat /home/agent/file"); got != "one\n" {
		t.Errorf("moved, it has %q", got)
	}
	unmoved := testBox(t, "patient")
	must(t, plain.Create(t.Context(), unmoved))
	copyIn(t, e, unmoved.ID, pooled)
	must(t, e.Remove(t.Context(), unmoved.ID), e.Remove(t.Context(), other.ID))
}

// TestPool_WhatACrashLeavesIsFinished leaves what a process that ends there leaves.
func TestPool_WhatACrashLeavesIsFinished(t *testing.T) {
	pool := testPool(t)
	c := testConfig(t)
	plain := openTest(t, func(one *Config) { *one = c })
	e := openTest(t, func(one *Config) { *one = c; one.Pool = pool })
	content := func(name string) {
		must(t, os.WriteFile(filepath.Join(pool.Path(name), "file"), []byte("kept"), 0o600))
	}
	started := func(b sandbox.ContainerSpec) {
		t.Helper()
		must(t, e.Create(t.Context(), b), e.Start(t.Context(), b.ID))
		if got := shell(t, e, b.ID, "0", "cat /home/agent/file"); got != "kept" {
			t.Errorf("it has %q", got)
		}
		must(t, e.Remove(t.Context(), b.ID))
	}
	t.Run("a create after the folder", func(t *testing.T) {
		b := testBox(t, "patient")
		must(t, pool.Create(e.resource(b.ID)))
		content(e.resource(b.ID))
		all, err := e.List(t.Context())
		if err != nil || len(all) != 1 || !all[0].Partial || all[0].ID != b.ID {
			t.Errorf("it lists %+v (%v)", all, err)
		}
		started(b)
	})
	t.Run("a removal after the volume", func(t *testing.T) {
		b := testBox(t, "patient")
		must(t, e.Create(t.Context(), b), e.removeContainer(t.Context(), b.ID), e.client.Load().VolumeRemove(t.Context(), e.resource(b.ID), false))
		must(t, e.Remove(t.Context(), b.ID), e.Remove(t.Context(), b.ID))
	})
	for step := range 5 {
		t.Run(fmt.Sprint("a move after step ", step), func(t *testing.T) {
			b := testBox(t, "patient")
			must(t, plain.Create(t.Context(), b), pool.Create(e.resource(b.ID)+partNext))
			content(e.resource(b.ID) + partNext)
			moveHalf(t, e, b, step)
			started(b)
		})
	}
	t.Run("what was being made", func(t *testing.T) {
		must(t, pool.Create(e.resource("1")+partMaking), pool.Create(e.resource("2")+partNext+partMaking), pool.Create(e.snapshotVolume("3")+partMaking), pool.Create("other-part"))
		if copies, _, err := e.Parts(t.Context()); err != nil || !slices.Equal(copies, []string{"3"}) {
			t.Errorf("there are %q (%v)", copies, err)
		}
		must(t, e.SweepHomes(t.Context()))
	})
	if names, err := pool.List(); err != nil || !slices.Equal(names, []string{"other-part"}) {
		t.Errorf("the pool has %q (%v)", names, err)
	}
}

// moveHalf does the first steps of a move into the pool.
func moveHalf(t *testing.T, e *Engine, b sandbox.ContainerSpec, steps int) {
	t.Helper()
	name := e.resource(b.ID)
	for _, do := range []func() error{
		func() error { return e.removeContainer(t.Context(), b.ID) },
		func() error { return e.client.Load().VolumeRemove(t.Context(), name, false) },
		func() error { return e.c.Pool.Copy(name+partNext, name) },
		func() error { return e.makePooled(t.Context(), b) },
	}[:steps] {
		must(t, do())
	}
}

// TestPool_AHomeThatIsGoneIsNotMadeAnew takes the folder away, as when the pool is not mounted.
func TestPool_AHomeThatIsGoneIsNotMadeAnew(t *testing.T) {
	pool := testPool(t)
	e := openTest(t, withPool(pool))
	b := testBox(t, "patient")
	must(t, e.Create(t.Context(), b), pool.Remove(e.resource(b.ID)))
	if err := e.Start(t.Context(), b.ID); err == nil {
		t.Error("it was started")
	}
	if err := e.Recreate(t.Context(), b); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v, want Invalid", err)
	}
	must(t, e.Remove(t.Context(), b.ID))
}

// TestPool_AHomeThatIsLeftMountedIsReplacedInPlace mounts one as an engine that was killed leaves it.
func TestPool_AHomeThatIsLeftMountedIsReplacedInPlace(t *testing.T) {
	pool := testPool(t)
	e := openTest(t, withPool(pool))
	b := running(t, e, "patient")
	shell(t, e, b.ID, "0", "echo one > /home/agent/file")
	snapshot := snapshotOf(t, e, b.ID)
	shell(t, e, b.ID, "0", "echo two > /home/agent/file")
	stopped(t, e, b.ID)
	v, err := e.client.Load().VolumeInspect(t.Context(), e.resource(b.ID))
	must(t, err, unix.Mount(pool.Path(e.resource(b.ID)), v.Mountpoint, "", unix.MS_BIND, ""))
	copyIn(t, e, b.ID, snapshot)
	seen, err := os.ReadFile(filepath.Join(v.Mountpoint, "file"))
	if string(seen) != "one\n" {
		t.Errorf("who has it mounted sees %q (%v)", seen, err)
	}
	must(t, unix.Unmount(v.Mountpoint, 0))
	must(t, e.Start(t.Context(), b.ID))
	if got := shell(t, e, b.ID, "0", "cat /home/agent/file"); got != "one\n" {
		t.Errorf("restored, it has %q", got)
	}
}

func TestPool_SandboxesMakeNoSubvolumes(t *testing.T) {
	e := openTest(t, withPool(testPool(t)))
	for _, b := range []sandbox.ContainerSpec{running(t, e, "patient"), running(t, e, "patient", strictly)} {
		for _, high := range []string{"", "1"} { // the kernel takes 32 bits of the number
			code, out := inside(t, e, b.ID, "0", `cd /home/agent && perl -e 'opendir D, "." or die; open F, "<", "." or die; `+
				`my $a = pack("q", 0) . "nested" . "\0" x 4082; $r = syscall(16, fileno(F), 0x`+high+`5000940e, $a); exit($r == 0 ? 0 : 7)'`)
			if code != 7 {
				t.Errorf("%s: %d: %s", b.Profile, code, out)
			}
		}
		shell(t, e, b.ID, "0", "cd /home/agent && head -c 100000 /dev/urandom > one && cp --reflink=always one two && cmp one two && stty -a < /dev/null; test -f two")
	}
}
