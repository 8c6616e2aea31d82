package mover

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandboxd/internal/archive"
	"sandboxd/internal/wire"
)

// inTheWay are things that a sandbox may have put where a replace works. kept says that they are set aside.
var inTheWay = map[string]struct {
	put  string // a shell script, run in the home
	kept bool
}{
	"a link to elsewhere":       {"ln -s $OUT .sandboxd-restore", false},
	"a link that leads nowhere": {"ln -s nowhere .sandboxd-restore", false},
	"a file":                    {"echo > .sandboxd-restore", false},
	"a pipe":                    {"mkfifo .sandboxd-restore", false},
	"a folder of its own":       {"mkdir -p .sandboxd-restore/some/thing; echo > .sandboxd-restore/new", false},
	"links within":              {"mkdir .sandboxd-restore; cd .sandboxd-restore; ln -s $OUT new; ln -s $OUT old", false},
	"a marked link":             {"mkdir .sandboxd-restore; cd .sandboxd-restore; ln -s $OUT new; echo > moving-in", true},
	"an old link":               {"mkdir -p .sandboxd-restore/new; cd .sandboxd-restore; ln -s $OUT old; echo > moving-out", true},
	"both marks":                {"mkdir -p .sandboxd-restore/new; cd .sandboxd-restore; echo > moving-in; echo > moving-out", true},
	"a mark that is a folder":   {"mkdir -p .sandboxd-restore/new .sandboxd-restore/moving-in", true},
	"names that clash":          {"mkdir -p .sandboxd-restore/new/both0; echo > .sandboxd-restore/moving-in", true},
	"old names that clash":      {"mkdir -p .sandboxd-restore/new .sandboxd-restore/old/both0; echo > .sandboxd-restore/moving-out", true},
	"itself in the new home":    {"mkdir -p .sandboxd-restore/new/.sandboxd-restore; echo > .sandboxd-restore/moving-in", true},
	"names that are taken": {"mkdir -p .sandboxd-restore/new/both0 .sandboxd-restore-1; echo > .sandboxd-restore/moving-in; " +
		"mkdir -p .sandboxd-restore/new/lifted-1/a/b", true},
}

// hostile runs a script in a home. The folder that it knows as OUT must not change.
func hostile(t *testing.T, home, script string) {
	t.Helper()
	out := t.TempDir()
	if err := os.WriteFile(out+"/precious", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("/bin/sh", "-ec", script)
	c.Dir, c.Env = home, append(os.Environ(), "OUT="+out)
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	t.Cleanup(func() {
		if _, err := os.Stat(out + "/precious"); err != nil {
			t.Error(err)
		}
	})
}

func TestReplace_TakesNoticeOfNothingInItsWay(t *testing.T) {
	b := packed(t, grow(t, 1))
	want := content(t, grow(t, 1))
	for name, c := range inTheWay {
		t.Run(name, func(t *testing.T) {
			home := grow(t, 2)
			hostile(t, home, c.put)
			if got := ask(t, home, wire.MoverReplace, b, true); got.err != nil || got.last.Error != "" {
				t.Fatalf("%v %+v", got.err, got.last)
			}
			if d := cmp.Diff(want, content(t, home)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestSettle_LosesNothingOfWhatMakesNoSense(t *testing.T) {
	for name, c := range inTheWay {
		t.Run(name, func(t *testing.T) {
			home := grow(t, 2)
			hostile(t, home, c.put)
			before := content(t, home)
			if got := ask(t, home, wire.MoverSettle, nil, true); got.err != nil || got.last.Error != "" {
				t.Fatalf("%v %+v", got.err, got.last)
			}
			after, want := content(t, home), map[string]string{}
			aside := staging + "-1"
			if _, taken := before[aside]; taken {
				aside = staging + "-2"
			}
			for name, what := range before {
				switch rest, ours := strings.CutPrefix(name, staging); {
				case !ours || strings.HasPrefix(rest, "-"):
					want[name] = what
				case c.kept:
					want[aside+rest] = what
				}
			}
			if d := cmp.Diff(want, after); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestReplace_RemovesAHomeOfAnyDepth has a mover that may open fewer files than the home has levels.
func TestReplace_RemovesAHomeOfAnyDepth(t *testing.T) {
	b, want := packed(t, grow(t, 1)), content(t, grow(t, 1))
	home := grow(t, 2)
	fd, err := unix.Open(home, unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		if err := unix.Mkdirat(fd, "lifted-1", 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, "lifted-1", unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkdirat(next, "empty", 0o700); err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
	t.Setenv("MOVER_TEST_FILES", "64")
	run(t, home, b, 0)
	if d := cmp.Diff(want, content(t, home)); d != "" {
		t.Error(d)
	}
}

// TestRead_OfManyLossesWithLongPathsIsReported has paths that take six times as many bytes in JSON.
func TestRead_OfManyLossesWithLongPathsIsReported(t *testing.T) {
	home := t.TempDir()
	dir, err := unix.Open(home, unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 15 {
		name := strings.Repeat("\x01", 250)
		if err := unix.Mkdirat(dir, name, 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(dir, name, unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(dir)
		dir = next
	}
	defer unix.Close(dir)
	short := fmt.Sprint("/proc/self/fd/", dir, "/")
	for i := range 500 {
		l, err := net.Listen("unix", fmt.Sprint(short, "\x01\x01\x01", i))
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		l.Close()
	}
	got := ask(t, home, wire.MoverRead, nil, true)
	if got.err != nil || got.last.Error != "" {
		t.Fatalf("%v %+v", got.err, got.last)
	}
	var s archive.Stats
	if err := json.Unmarshal(got.last.Stats, &s); err != nil || len(s.Lost) == 0 || int64(len(s.Lost))+s.MoreLost != 500 {
		t.Errorf("%d are listed, %d are not (%v)", len(s.Lost), s.MoreLost, err)
	}
}

func TestRead_OfAHomeThatWasCutOffIsWhole(t *testing.T) {
	home := grow(t, 1)
	want := content(t, home)
	hostile(t, home, "mkdir -p .sandboxd-restore/new; for f in * .v*; do mv $f .sandboxd-restore/new; done; touch -r . .sandboxd-restore/moving-in; "+
		"mv .sandboxd-restore/new/both0 .; chmod 701 .sandboxd-restore/new")
	b := packed(t, home)
	again := filepath.Join(t.TempDir())
	if got := ask(t, again, wire.MoverReplace, b, true); got.err != nil || got.last.Error != "" {
		t.Fatalf("%v %+v", got.err, got.last)
	}
	if d := cmp.Diff(want, content(t, again)); d != "" {
		t.Error(d)
	}
}

// TestServe_IsNotSilentWhileItWaits has a source that pauses for long.
func TestServe_IsNotSilentWhileItWaits(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- Serve(theirs, home, snapshotOf(home)) }()
		job, err := json.Marshal(wire.MoverJob{Do: wire.MoverReplace})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ours.Write(wire.AppendFrame(nil, wire.FrameStart, job)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		frames := wire.NewFrameReader(ours)
		for n := range 10 {
			ours.SetReadDeadline(time.Now().Add(time.Minute))
			if kind, _, err := frames.Next(); err != nil || kind != wire.FrameReport {
				t.Fatalf("the %dth report: type %d, %v", n, kind, err)
			}
		}
		if time.Since(began) < time.Minute {
			t.Errorf("ten reports in %s", time.Since(began))
		}
		ours.Close()
		<-served // that the connection has gone
	})
}
