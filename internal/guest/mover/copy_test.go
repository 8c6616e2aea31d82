package mover

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandboxd/internal/archive"
	"sandboxd/internal/wire"
)

// snapshotOf is the folder of a snapshot that the movers of a home have in the tests.
func snapshotOf(home string) string { return home + "-snapshot" }

// withSnapshot makes that folder for a home, empty.
func withSnapshot(t *testing.T, home string) string {
	t.Helper()
	if err := os.Mkdir(snapshotOf(home), 0o700); err != nil {
		t.Fatal(err)
	}
	return home
}

// done has a job done without an error.
func done(t *testing.T, home, do string) wire.MoverReport {
	t.Helper()
	got := ask(t, home, do, nil, true)
	if got.err != nil || got.last.Error != "" {
		t.Fatalf("%s: %v %+v", do, got.err, got.last)
	}
	return got.last
}

func TestCopy_OutAndInMakesTheHomeAsItWas(t *testing.T) {
	home := withSnapshot(t, grow(t, 1))
	want := content(t, home)
	hostile(t, snapshotOf(home), "mkdir -p home/older home.part/deep/er other; ln -s $OUT home.part/link; ln -s $OUT home/link")
	out := done(t, home, wire.MoverCopyOut)
	var s archive.Stats
	if err := json.Unmarshal(out.Stats, &s); err != nil || s.Files != 60 || s.Bytes == 0 {
		t.Errorf("%+v %v", s, err)
	}
	hostile(t, home, "rm -r both0; echo more > both1/more; chmod 777 .; setfattr -n user.more -v more . || true; ln -s $OUT .sandboxd-restore")
	for range 2 {
		in := done(t, home, wire.MoverCopyIn)
		if string(in.Stats) != string(out.Stats) {
			t.Errorf("out %s, in %s", out.Stats, in.Stats)
		}
		if d := cmp.Diff(want, content(t, home)); d != "" {
			t.Error(d)
		}
		var buf [10]byte
		if _, err := unix.Lgetxattr(home, "user.more", buf[:]); err != unix.ENODATA && err != unix.EOPNOTSUPP {
			t.Errorf("it keeps an attribute: %v", err)
		}
	}
	if d := cmp.Diff(want, content(t, snapshotOf(home)+"/home")); d != "" {
		t.Errorf("the copy is another one: %s", d)
	}
}

func TestCopyOut_OfAHomeThatWasCutOffIsWhole(t *testing.T) {
	home := withSnapshot(t, grow(t, 1))
	want := content(t, home)
	hostile(t, home, "mkdir -p .sandboxd-restore/new; for f in * .v*; do mv $f .sandboxd-restore/new; done; touch -r . .sandboxd-restore/moving-in; "+
		"mv .sandboxd-restore/new/both0 .; chmod 701 .sandboxd-restore/new")
	done(t, home, wire.MoverCopyOut)
	if d := cmp.Diff(want, content(t, snapshotOf(home)+"/home")); d != "" {
		t.Error(d)
	}
}

func TestCopyIn_OfACopyThatIsNotWholeIsAbsent(t *testing.T) {
	for name, put := range map[string]string{"nothing": "true", "a part": "mkdir -p home.part/some/thing"} {
		t.Run(name, func(t *testing.T) {
			home := withSnapshot(t, grow(t, 1))
			want := content(t, home)
			hostile(t, snapshotOf(home), put)
			if got := ask(t, home, wire.MoverCopyIn, nil, true); got.last.Kind != wire.MoverAbsent {
				t.Errorf("%v %+v", got.err, got.last)
			}
			if d := cmp.Diff(want, content(t, home)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestCopyOut_AfterAKillAtAnyMoment kills movers while they copy: the copy is there or not, and is whole.
func TestCopyOut_AfterAKillAtAnyMoment(t *testing.T) {
	t.Parallel()
	homes := []string{withSnapshot(t, grow(t, 1)), withSnapshot(t, grow(t, 2))}
	if err := os.RemoveAll(snapshotOf(homes[1])); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(snapshotOf(homes[0]), snapshotOf(homes[1])); err != nil { // two homes are copied to one place
		t.Fatal(err)
	}
	wants := []map[string]string{content(t, homes[0]), content(t, homes[1])}
	job := wire.MoverJob{Do: wire.MoverCopyOut}
	took := runJob(t, homes[0], job, nil, 0)
	outcomes := map[string]int{}
	for i := range 60 {
		runJob(t, homes[i%2], job, nil, 1+rand.N(took+took/4))
		copy := snapshotOf(homes[0]) + "/home"
		if _, err := os.Lstat(copy); err != nil {
			outcomes["none"]++
			continue
		}
		now := content(t, copy)
		if !cmp.Equal(now, wants[0]) && !cmp.Equal(now, wants[1]) {
			t.Fatalf("neither one home nor the other: %s", cmp.Diff(wants[i%2], now))
		}
		outcomes["whole"]++
	}
	t.Log(outcomes)
}

// TestCopyIn_AfterAKillAtAnyMoment kills movers while they copy: the home is the old one or the new one then, and a settle says which.
func TestCopyIn_AfterAKillAtAnyMoment(t *testing.T) {
	t.Parallel()
	home := withSnapshot(t, grow(t, 1))
	done(t, home, wire.MoverCopyOut)
	snapshot, old := content(t, home), packed(t, grow(t, 2))
	took := runJob(t, home, wire.MoverJob{Do: wire.MoverCopyIn}, nil, 0)
	outcomes := map[string]int{}
	for range 60 {
		if got := ask(t, home, wire.MoverReplace, old, true); got.last.Error != "" {
			t.Fatal(got.last.Error)
		}
		before := content(t, home)
		runJob(t, home, wire.MoverJob{Do: wire.MoverCopyIn}, nil, 1+rand.N(took+took/4))
		settled := done(t, home, wire.MoverSettle)
		now := content(t, home)
		switch {
		case cmp.Equal(now, snapshot):
			outcomes[fmt.Sprintf("new, finished %t", settled.Finished)]++
		case cmp.Equal(now, before) && !settled.Finished:
			outcomes["old"]++
		default:
			t.Fatalf("neither the old home nor the new one (finished %t): %s", settled.Finished, cmp.Diff(snapshot, now))
		}
	}
	t.Log(outcomes)
}

func TestSettle_SaysWhetherItHasFinishedOne(t *testing.T) {
	for name, c := range map[string]struct {
		put  string
		want bool
	}{
		"nothing":         {"true", false},
		"not complete":    {"mkdir -p .sandboxd-restore/new/x", false},
		"moving out":      {"mkdir -p .sandboxd-restore/new/x; touch .sandboxd-restore/moving-out", true},
		"moving in":       {"mkdir -p .sandboxd-restore/new/x; touch .sandboxd-restore/moving-in", true},
		"being tidied":    {"mkdir -p .sandboxd-restore/old/x/y; touch .sandboxd-restore/moved", true},
		"makes no sense":  {"mkdir -p .sandboxd-restore/new/x; touch .sandboxd-restore/moving-in .sandboxd-restore/moved", false},
		"nor does this":   {"mkdir -p .sandboxd-restore/new/x .sandboxd-restore/moved; touch .sandboxd-restore/moving-out", false},
		"no folder at it": {"touch .sandboxd-restore", false},
	} {
		t.Run(name, func(t *testing.T) {
			home := grow(t, 1)
			hostile(t, home, c.put)
			if got := done(t, home, wire.MoverSettle); got.Finished != c.want {
				t.Errorf("%+v", got)
			}
			if got := done(t, home, wire.MoverSettle); got.Finished {
				t.Errorf("again: %+v", got)
			}
			if _, err := os.Lstat(filepath.Join(home, staging)); err == nil {
				t.Error("something is left")
			}
		})
	}
}

// small mounts a file system of 64 KiB there. It is false where only root may.
func small(t *testing.T, at string) bool {
	t.Helper()
	err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=64k,mode=700")
	if errors.Is(err, unix.EPERM) {
		t.Logf("not tested here: mount a tmpfs: %v", err)
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Error(err)
		}
	})
	return true
}

func TestCopyOut_ToAFullDiskLeavesNoCopyAndTheHomeAsItIs(t *testing.T) {
	home := withSnapshot(t, grow(t, 1))
	if !small(t, snapshotOf(home)) {
		return
	}
	want := content(t, home)
	for range 2 {
		if got := ask(t, home, wire.MoverCopyOut, nil, true); got.last.Kind != wire.MoverFull {
			t.Errorf("%v %+v", got.err, got.last)
		}
		if left, err := os.ReadDir(snapshotOf(home)); err != nil || len(left) > 0 {
			t.Errorf("%d things are left (%v)", len(left), err)
		}
		if got := ask(t, home, wire.MoverCopyIn, nil, true); got.last.Kind != wire.MoverAbsent {
			t.Errorf("%v %+v", got.err, got.last)
		}
	}
	if d := cmp.Diff(want, content(t, home)); d != "" {
		t.Error(d)
	}
}

func TestCopyIn_ToAFullDiskLeavesTheOldHome(t *testing.T) {
	from, home := withSnapshot(t, grow(t, 1)), t.TempDir()
	done(t, from, wire.MoverCopyOut)
	if !small(t, home) {
		return
	}
	if err := os.Symlink(snapshotOf(from), snapshotOf(home)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(home+"/old", []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := content(t, home)
	for range 2 {
		if got := ask(t, home, wire.MoverCopyIn, nil, true); got.last.Kind != wire.MoverFull {
			t.Errorf("%v %+v", got.err, got.last)
		}
		if d := cmp.Diff(want, content(t, home)); d != "" {
			t.Error(d)
		}
	}
}
