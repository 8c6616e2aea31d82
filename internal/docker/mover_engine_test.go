//go:build engine

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"
	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/wire"
)

// testListen listens as sandboxd does, and checks at the end that no folder is left.
func testListen(t *testing.T) func(name string) (Listener, error) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "link")
	hub := link.NewHub(root, nil)
	t.Cleanup(func() {
		if left, err := hub.Left(); err != nil || len(left) > 0 {
			t.Errorf("folders are left: %q (%v)", left, err)
		}
	})
	return func(name string) (Listener, error) {
		l, folder, err := hub.Listen(name)
		return Listener{l, folder}, err
	}
}

func moversOf(e *Engine) filters.Args {
	return filters.NewArgs(filters.Arg("label", labelMover+"="+e.c.Instance))
}

// movers are the names of the movers that there are.
func movers(t *testing.T, e *Engine) (names []string) {
	t.Helper()
	list, err := e.client.Load().ContainerList(context.Background(), container.ListOptions{All: true, Filters: moversOf(e)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		names = append(names, firstName(c))
	}
	return names
}

func TestHomes_KeepTheContract(t *testing.T) {
	bothWays(t, func(t *testing.T, change ...func(*Config)) {
		sandboxtest.RunHomes(t, func(t *testing.T) sandboxtest.HomesSubject {
			s := engineSubject(t, change...)
			return homesSubject(s, s.Runtime.(*Engine))
		})
	})
}

func homesSubject(s sandboxtest.RuntimeSubject, e *Engine) sandboxtest.HomesSubject {
	return sandboxtest.HomesSubject{
		RuntimeSubject: s, Homes: e, Snapshots: e, Uncounted: e.c.Pool != nil,
		Left: func(t *testing.T) []string { return movers(t, e) },
	}
}

// openHome opens a home, until the test's end at the latest.
func openHome(t *testing.T, e *Engine, id string) sandbox.Home {
	t.Helper()
	h, err := e.OpenHome(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func nothing(archive.Stats) {}

// packed is a sandbox's home as a part of an archive.
func packed(t *testing.T, e *Engine, id string) ([]byte, archive.Stats) {
	t.Helper()
	h := openHome(t, e, id)
	var b bytes.Buffer
	s, err := h.Read(t.Context(), &b, "home/", nothing)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	return b.Bytes(), s
}

// unpack replaces a sandbox's home.
func unpack(t *testing.T, e *Engine, id string, b []byte) archive.Stats {
	t.Helper()
	h := openHome(t, e, id)
	s, err := h.Replace(t.Context(), bytes.NewReader(b), sandbox.Content{Prefix: "home/"}, nothing)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	return s
}

// oddHome runs the program that makes or describes homes in a sandbox.
func oddHome(t *testing.T, e *Engine, b sandbox.ContainerSpec, what string) string {
	t.Helper()
	compile(t, "./testdata/oddhome", filepath.Join(b.LinkPath, "oddhome"))
	code, out := inside(t, e, b.ID, "0", path.Join(path.Dir(wire.SocketPath), "oddhome")+" "+what)
	if code != 0 {
		t.Fatalf("%d: %s", code, out)
	}
	return out
}

func compile(t *testing.T, what, to string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-o", to, what)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", what, err, text)
	}
}

// TestHome_MovesFilesOfEveryKind looks at the home with a program that knows nothing of archives.
func TestHome_MovesFilesOfEveryKind(t *testing.T) { bothWays(t, homeMovesFiles) }

func homeMovesFiles(t *testing.T, change ...func(*Config)) {
	e := openTest(t, change...)
	from, to := running(t, e, "patient"), running(t, e, "patient")
	oddHome(t, e, from, "plant")
	want := oddHome(t, e, from, "describe")
	if _, out := inside(t, e, to.ID, "0", "cd /home/agent && mkdir -p a/b both && echo old > large && ln -s /etc setuid"); out != "" {
		t.Fatal(out)
	}
	if err := e.Freeze(t.Context(), from.ID); err != nil {
		t.Fatal(err)
	}
	if err := e.Stop(t.Context(), to.ID, 0); err != nil {
		t.Fatal(err)
	}
	b, read := packed(t, e, from.ID)
	if read.Lost != nil || read.Files != 13 || read.Folders != 4 {
		t.Errorf("read %+v", read)
	}
	if wrote := unpack(t, e, to.ID, append(slices.Clone(b), make([]byte, 1024)...)); cmp.Diff(read, wrote) != "" {
		t.Errorf("read %+v, wrote %+v", read, wrote)
	}
	if again, _ := packed(t, e, to.ID); !bytes.Equal(b, again) {
		t.Error("the home of an archive makes another archive")
	}
	if err := e.Start(t.Context(), to.ID); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(oddHome(t, e, to, "describe"), "\n")); d != "" {
		t.Error(d)
	}
	if err := e.Thaw(t.Context(), from.ID); err != nil {
		t.Fatal(err)
	}
	if now := oddHome(t, e, from, "describe"); now != want {
		t.Errorf("it changes what it reads: %s", cmp.Diff(want, now))
	}
}

// TestHome_IsMovedByTheRealGuest has no program take the guest's place.
func TestHome_IsMovedByTheRealGuest(t *testing.T) {
	guest := filepath.Join(t.TempDir(), "guest")
	compile(t, "sandboxd/cmd/guest", guest)
	e := openTest(t, func(c *Config) { c.GuestBinary = guest })
	from, to := running(t, e, "", strictly), testBox(t, "")
	if err := e.Create(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	if code, out := inside(t, e, from.ID, "0", "echo here > /home/agent/file"); code != 0 {
		t.Fatal(out)
	}
	if err := e.Freeze(t.Context(), from.ID); err != nil {
		t.Fatal(err)
	}
	b, _ := packed(t, e, from.ID)
	unpack(t, e, to.ID, b)
	if again, _ := packed(t, e, to.ID); !bytes.Equal(b, again) {
		t.Error("the home of an archive makes another archive")
	}
	if all, err := entries(bytes.NewReader(b)); err != nil || all["home/file"] != "here\n" {
		t.Errorf("%q (%v)", all, err)
	}
}

// twoHomes makes a sandbox that does not run and two homes for it.
func twoHomes(t *testing.T, e *Engine) (id string, archives [2][]byte) {
	t.Helper()
	b := running(t, e, "patient")
	for i, version := range []string{"one", "two"} {
		code, out := inside(t, e, b.ID, "0", "cd /home/agent && rm -rf * && mkdir both && echo "+version+" > both/file && "+
			"seq -f "+version+"%g 400 | xargs touch && seq -f folder%g 200 | xargs mkdir && for i in 1 2 3 4 5 6 7 8 9; do "+
			"head -c 300000 /dev/zero | tr '\\0' $i > folder$i/"+version+"; done")
		if code != 0 {
			t.Fatal(out)
		}
		if err := e.Freeze(t.Context(), b.ID); err != nil {
			t.Fatal(err)
		}
		archives[i], _ = packed(t, e, b.ID)
		if err := e.Thaw(t.Context(), b.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Stop(t.Context(), b.ID, 0); err != nil {
		t.Fatal(err)
	}
	return b.ID, archives
}

// listed tells what is in an archive, a line for each entry. The time of the home's own folder, which comes first, does not count: what is
// done in it changes it.
func listed(t *testing.T, b []byte) (lines []string) {
	t.Helper()
	for in := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, in); err != nil {
			t.Fatal(err)
		}
		if lines == nil {
			h.ModTime = time.Time{}
		}
		lines = append(lines, fmt.Sprintf("%q %o %d:%d %s %x", h.Name, h.Mode, h.Uid, h.Gid, h.ModTime, sum.Sum(nil)))
	}
}

// TestHome_IsOldOrNewAfterAKillAtAnyMoment kills the container that replaces it.
func TestHome_IsOldOrNewAfterAKillAtAnyMoment(t *testing.T) { bothWays(t, homeIsOldOrNew) }

func homeIsOldOrNew(t *testing.T, change ...func(*Config)) {
	e := openTest(t, change...)
	id, archives := twoHomes(t, e)
	h := openHome(t, e, id)
	began := time.Now()
	if _, err := h.Replace(t.Context(), bytes.NewReader(archives[0]), sandbox.Content{Prefix: "home/"}, nothing); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	now := 0
	outcomes := map[string]int{}
	for i := range 12 {
		h, killed := openHome(t, e, id), make(chan error, 1)
		time.AfterFunc(rand.N(took), func() { killed <- e.client.Load().ContainerKill(t.Context(), e.mover(id), "KILL") })
		_, replaced := h.Replace(t.Context(), bytes.NewReader(archives[1-now]), sandbox.Content{Prefix: "home/"}, nothing)
		err := <-killed
		if err == nil && replaced != nil && !fault.Is(replaced, fault.Unavailable) {
			t.Errorf("killed: %v", replaced)
		}
		if i%2 == 0 { // or the next one ends it
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := openHome(t, e, id).Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		b, _ := packed(t, e, id)
		is := listed(t, b)
		switch {
		case slices.Equal(is, listed(t, archives[1-now])):
			now = 1 - now
			outcomes["new"]++
		case !slices.Equal(is, listed(t, archives[now])):
			t.Fatalf("neither the old home nor the new one: %s", cmp.Diff(listed(t, archives[now]), is))
		case replaced == nil:
			t.Fatal("it was replaced, and is the old one")
		default:
			outcomes["old"]++
		}
	}
	t.Logf("%v, of replaces that take %s", outcomes, took)
}

// TestHome_IsReplacedWhateverIsInTheWay has a hostile sandbox prepare its home. More is in the mover's own tests.
func TestHome_IsReplacedWhateverIsInTheWay(t *testing.T) { bothWays(t, homeIsReplaced) }

func homeIsReplaced(t *testing.T, change ...func(*Config)) {
	e := openTest(t, change...)
	b := running(t, e, "patient")
	if code, out := inside(t, e, b.ID, "0", "chmod 777 /home/agent; touch /home/agent/file"); code != 0 {
		t.Fatal(out)
	}
	if err := e.Freeze(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	want, _ := packed(t, e, b.ID)
	for name, put := range map[string]string{
		"a link":          "ln -s /.sandboxd/link .sandboxd-restore",
		"a marked link":   "mkdir .sandboxd-restore && cd .sandboxd-restore && ln -s / new && touch moving-in",
		"names that meet": "mkdir -p .sandboxd-restore/new/file && touch .sandboxd-restore/moving-in",
		"a deep tree":     `perl -e 'for (1..9000) { mkdir "d"; chdir "d" or die }'`,
		"closed folders":  "mkdir -p .sandboxd-restore/x/y x/y/z && chmod 0 .sandboxd-restore/x x/y x",
	} {
		t.Run(name, func(t *testing.T) {
			if err := e.Thaw(t.Context(), b.ID); err != nil {
				t.Fatal(err)
			}
			if code, out := inside(t, e, b.ID, "1000", "cd /home/agent && "+put); code != 0 {
				t.Fatal(out)
			}
			if err := e.Freeze(t.Context(), b.ID); err != nil {
				t.Fatal(err)
			}
			if _, s := packed(t, e, b.ID); s.Files == 0 {
				t.Errorf("read %+v", s)
			}
			unpack(t, e, b.ID, want)
			if got, _ := packed(t, e, b.ID); !bytes.Equal(want, got) {
				t.Error("the home is another one")
			}
		})
	}
}

// TestOpenHome_ThatIsLeftLeavesNothing leaves it at every moment.
func TestOpenHome_ThatIsLeftLeavesNothing(t *testing.T) { bothWays(t, openHomeThatIsLeft) }

func openHomeThatIsLeft(t *testing.T, change ...func(*Config)) {
	e := openTest(t, change...)
	b := testBox(t, "patient")
	if err := e.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var took []time.Duration
	for range 11 {
		began := time.Now()
		h := openHome(t, e, b.ID)
		took = append(took, time.Since(began))
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(took)
	t.Logf("OpenHome takes %s at p50, from %s to %s", took[len(took)/2], took[0], took[len(took)-1])
	for range 12 {
		limit := rand.N(took[len(took)/2] * 5 / 4)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		h, err := e.OpenHome(ctx, b.ID, "")
		cancel()
		switch {
		case err == nil:
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		case !fault.Is(err, fault.Timeout):
			t.Errorf("after %s: %v", limit, err)
		}
	}
	unlock, err := e.opening.Acquire(t.Context(), b.ID, 1, -1) // once the last one is undone
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	if left := movers(t, e); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// TestOpenHome_SaysSoonThatTheMoverEnds has a guest that is no mover.
func TestOpenHome_SaysSoonThatTheMoverEnds(t *testing.T) {
	e := openTest(t)
	b := testBox(t, "patient")
	if err := e.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	e.c.GuestBinary = filepath.Join(t.TempDir(), "probe")
	compile(t, "./testdata/probe", e.c.GuestBinary)
	began := time.Now()
	if _, err := e.OpenHome(t.Context(), b.ID, ""); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want Unavailable", err)
	}
	if took := time.Since(began); took > moverDial/3 {
		t.Errorf("it took %s", took)
	}
	if left := movers(t, e); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// TestHomes_WhatACrashHasLeftIsNotInTheWay has movers that nobody knows of.
func TestHomes_WhatACrashHasLeftIsNotInTheWay(t *testing.T) {
	e, other := openTest(t), openTest(t)
	leave := func(e *Engine, start bool) sandbox.ContainerSpec {
		t.Helper()
		b := testBox(t, "patient")
		if err := e.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		h := &home{s: e.homes, box: b.ID, folder: b.LinkPath, image: b.Image}
		made, err := e.makeMover(t.Context(), h, e.moverMounts(h, false))
		if err == nil && start {
			err = e.client.Load().ContainerStart(t.Context(), made, container.StartOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b, started, removed, elsewhere := leave(e, false), leave(e, true), leave(e, false), leave(other, false)
	unpack(t, e, b.ID, nil)
	unpack(t, e, started.ID, nil)
	if err := e.Remove(t.Context(), removed.ID); err != nil {
		t.Errorf("remove: %v", err)
	}
	leave(e, false)
	leave(e, true)
	for range 2 {
		if err := e.SweepHomes(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := movers(t, e); len(left) > 0 {
			t.Errorf("left over: %q", left)
		}
	}
	if all, err := e.List(t.Context()); err != nil || len(all) != 4 {
		t.Errorf("the sandboxes are %+v (%v)", all, err)
	}
	if left := movers(t, other); len(left) != 1 {
		t.Errorf("another instance has %q left", left)
	}
	if err := other.Remove(t.Context(), elsewhere.ID); err != nil {
		t.Error(err)
	}
	found, err := e.client.Load().VolumeList(t.Context(), volume.ListOptions{Filters: e.ours()})
	if err != nil || len(found.Volumes) != 4 {
		t.Errorf("%d volumes (%v)", len(found.Volumes), err)
	}
}
