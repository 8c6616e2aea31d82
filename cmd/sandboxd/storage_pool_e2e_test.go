//go:build e2e

package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const poolImage = "debian:trixie-slim"

// fills writes bytes into a file of a sandbox's home, and wants that to work, or to be refused because the home is full.
func (s *server) fills(name, file, bytes string, works bool) {
	s.t.Helper()
	out := s.exec(name, map[string]any{"command": "head -c " + bytes + " /dev/urandom > " + file + " && sync " + file})
	if works && out.ExitCode != 0 || !works && (out.ExitCode == 0 || !strings.Contains(out.Stderr, "quota")) {
		s.t.Errorf("%s writes %s: %+v", name, bytes, out)
	}
}

// reads wants a sandbox's home to have a file with a text.
func (s *server) reads(name, file, want string) {
	s.t.Helper()
	if out := s.exec(name, map[string]any{"command": "cat " + file}); out.Stdout != want+"\n" {
		s.t.Errorf("%s of %s has %q, want %q (%s)", file, name, out.Stdout, want, out.Stderr)
	}
}

// deletesAll deletes every sandbox, and wants nothing to be left in the storage pool and on the engine.
func (s *server) deletesAll() {
	s.t.Helper()
	s.deleteAll()
	s.until("the storage pool is empty", func() bool { return len(s.pooled()) == 0 })
	s.checkNothingLeft()
}

// TestStoragePool_AFullHomeHarmsNoOther fills a home to its limit, empties it, and raises the limit while the sandbox runs.
func TestStoragePool_AFullHomeHarmsNoOther(t *testing.T) {
	t.Parallel()
	s := newPoolServer(t, "1GiB", "--prebuild", "")
	for _, name := range []string{"full", "other"} {
		s.create(map[string]any{"name": name, "image": poolImage, "memory": "128MiB", "disk": "64MiB"})
	}
	s.fills("full", "big", "100000000", false)
	s.fills("other", "big", "40000000", true)
	if status, body := s.raw("PUT", "/sandboxes/full/files?path=/home/agent/more", strings.Repeat("x", 10<<20)); status != http.StatusInsufficientStorage {
		t.Errorf("an upload into the full home: %d %s", status, body)
	}
	s.exec("full", map[string]any{"command": "rm -f big more; sync -f ."})
	s.fills("full", "big", "40000000", true)
	s.fills("full", "more", "40000000", false)
	if status, body := s.raw("PATCH", "/sandboxes/full", map[string]any{"disk": "256MiB"}); status != http.StatusOK {
		t.Fatalf("raise: %d %s", status, body)
	}
	s.fills("full", "more", "80000000", true)
	if names := s.clones("full", map[string]any{"name": "second"}); len(names) == 1 {
		s.fills("second", "again", "150000000", true) // it begins at 0
		s.fills("second", "more", "150000000", false)
	}
	s.deletesAll()
}

// seesPool has the engine see the mount of a server's storage pool, which was made after the engine was started.
func (e *privateEngine) seesPool(s *server) {
	e.t.Helper()
	dir := filepath.Join(s.data, "pool")
	source, err := exec.Command("findmnt", "-no", "SOURCE", dir).Output()
	if err != nil {
		e.t.Fatalf("the pool is not mounted: %v", err)
	}
	if out, err := e.inside("mount", "-t", "btrfs", strings.TrimSpace(string(source)), dir).CombinedOutput(); err != nil {
		e.t.Fatalf("%v %s", err, out)
	}
}

// TestStoragePool_OutlivesSandboxdTheEngineAndTheMachine takes a snapshot, a clone, and goes back and forth, with all of them killed in between.
func TestStoragePool_OutlivesSandboxdTheEngineAndTheMachine(t *testing.T) {
	e := newPrivateEngine(t, "{}")
	s := newPoolServer(t, "1GiB", "--prebuild", "")
	e.seesPool(s)
	s.create(map[string]any{"name": "lab", "image": poolImage, "memory": "128MiB", "disk": "64MiB"})
	s.exec("lab", map[string]any{"command": "echo one > file; sync file"})
	one := s.snapshot("lab", "one")
	s.exec("lab", map[string]any{"command": "echo two > file; sync file"})
	s.clones("lab", map[string]any{"name": "second", "snapshot": one.ID})
	recovers := func(after string) {
		t.Helper()
		e.start()
		e.await()
		s.start()
		s.allRun()
		t.Logf("after the end of %s", after)
		s.reads("second", "file", "one")
	}

	s.kill()
	e.kill(true)
	recovers("sandboxd and the engine")
	s.reads("lab", "file", "two")
	s.reverts("lab", one.ID)
	s.reads("lab", "file", "one")

	s.kill()
	e.kill(false)
	recovers("sandboxd and the engine, after a restore")
	s.reads("lab", "file", "one")
	for _, b := range s.snapshots("lab") {
		if b.Kind == "safety" {
			s.reverts("lab", b.ID)
		}
	}
	s.reads("lab", "file", "two")

	s.kill()
	e.cut()
	s.unmountPool()
	if _, err := os.Stat(filepath.Join(s.data, "pool", "volumes")); err == nil {
		t.Fatal("the pool is still mounted")
	}
	s.cli("pool", "mount")
	e.boot()
	recovers("the machine")
	s.reads("lab", "file", "two")
	s.fills("lab", "big", "100000000", false)
	s.reverts("lab", one.ID)
	s.reads("lab", "file", "one")
	s.deletesAll()
}

// TestStoragePool_AHomeFromBeforeMovesIn makes a pool on a server that has a sandbox with a snapshot.
func TestStoragePool_AHomeFromBeforeMovesIn(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "old", "image": poolImage, "memory": "128MiB"})
	s.exec("old", map[string]any{"command": "echo one > file"})
	one := s.snapshot("old", "one")
	s.stop()
	if out := s.cli("pool", "create", "600MiB"); !strings.Contains(out, "Restart sandboxd") {
		t.Errorf("it says %q", out)
	}
	s.start()
	s.exec("old", map[string]any{"command": "echo two > file"})
	two := s.snapshot("old", "two")
	if left := s.pooled(); len(left) > 0 {
		t.Errorf("without a restore the pool has %q", left)
	}
	if status, body := s.raw("PATCH", "/sandboxes/old", map[string]any{"disk": "64MiB"}); status != http.StatusConflict {
		t.Errorf("limit of a plain home: %d %s", status, body)
	}
	s.reverts("old", one.ID)
	s.reads("old", "file", "one")
	if in := s.pooled(); len(in) != 1 {
		t.Errorf("after a restore the pool has %q", in)
	}
	if status, body := s.raw("PATCH", "/sandboxes/old", map[string]any{"disk": "64MiB"}); status != http.StatusOK {
		t.Fatalf("limit: %d %s", status, body)
	}
	s.fills("old", "big", "100000000", false)
	s.reverts("old", two.ID)
	s.reads("old", "file", "two")
	s.kill()
	s.start()
	s.reads("old", "file", "two")
	s.fills("old", "big", "100000000", false)
	s.deletesAll()
}

// TestStoragePool_ADamagedOneKeepsSandboxdFromStarting damages the file, grows it, and looks at what the commands say.
func TestStoragePool_ADamagedOneKeepsSandboxdFromStarting(t *testing.T) {
	t.Parallel()
	s := prepare(t, "", "--prebuild", "")
	refused := func(want string, args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), callLimit)
		defer cancel()
		out, err := exec.CommandContext(ctx, binary, s.args(args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v says %q (%v), want %q", args, out, err, want)
		}
	}
	refused("There is no storage pool", "pool", "status")
	refused("sandboxd pool create", "pool", "create")
	refused("no size", "pool", "create", "lots")
	refused("Leave the size out", "pool", "create", "1GiB", "--device", "/dev/null")
	refused("not a block device", "pool", "create", "--device", "/dev/null")
	s.cli("pool", "create", "300MiB")
	refused("already", "pool", "create", "300MiB")
	if out := s.cli("pool", "grow", "400MiB"); !strings.Contains(out, "400 MiB") {
		t.Errorf("grown, it says %q", out)
	}
	s.unmountPool()
	if out := s.cli("pool", "status"); !strings.Contains(out, "pool mount") {
		t.Errorf("unmounted, it says %q", out)
	}
	// A copy is damaged: an engine of another test, which has mounts of its own, may still have the file system of this one mounted.
	image := filepath.Join(s.data, "pool.img")
	if out, err := exec.Command("cp", "--sparse=always", image, image+".damaged").CombinedOutput(); err != nil {
		t.Fatalf("copy: %v %s", err, out)
	}
	f, err := os.OpenFile(image+".damaged", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{64 << 10, 64 << 20} { // its superblocks
		if _, err := f.WriteAt(make([]byte, 4096), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Close(), os.Rename(image+".damaged", image)); err != nil {
		t.Fatal(err)
	}
	refused("sandboxd does not start", "serve", "--listen", s.addr)
}
