package mover

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/archive"
	"sandboxd/internal/wire"
)

// TestMain is a mover itself when a test starts it as one.
func TestMain(m *testing.M) {
	if home := os.Getenv("MOVER_TEST_HOME"); home != "" {
		if n, err := strconv.ParseUint(os.Getenv("MOVER_TEST_FILES"), 10, 64); err == nil {
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
				panic(err)
			}
		}
		c, err := net.FileConn(os.NewFile(3, "conn"))
		if err == nil {
			err = Serve(c, home, snapshotOf(home))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// told is what a mover has said of a job.
type told struct {
	archive []byte
	last    wire.MoverReport
	err     error // of the connection
}

// tell sends a job and what follows it.
func tell(t *testing.T, c net.Conn, do wire.MoverJob, content []byte, whole bool) told {
	t.Helper()
	job, err := json.Marshal(do)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		b := wire.AppendFrame(nil, wire.FrameStart, job)
		for part := range slices.Chunk(content, wire.MaxFrame) {
			b = wire.AppendFrame(b, wire.FrameData, part)
		}
		if whole {
			b = wire.AppendFrame(b, wire.FrameDataDone, nil)
		}
		c.Write(b) // it may be ended before it has all
		if !whole {
			c.(interface{ CloseWrite() error }).CloseWrite()
		}
	}()
	var out told
	for frames := wire.NewFrameReader(c); !out.last.Done; {
		kind, b, err := frames.Next()
		switch {
		case err != nil:
			out.err = err
			return out
		case kind == wire.FrameData:
			out.archive = append(out.archive, b...)
		case kind == wire.FrameReport:
			if err := json.Unmarshal(b, &out.last); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("frame %d", kind)
		}
	}
	return out
}

// pair is the two ends of a connection.
func pair(t *testing.T) (ours net.Conn, theirs *os.File) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "ours")
	defer f.Close()
	if ours, err = net.FileConn(f); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	return ours, os.NewFile(uintptr(fds[1]), "theirs")
}

// ask does a job in this process.
func ask(t *testing.T, home, do string, content []byte, whole bool) told {
	t.Helper()
	return askJob(t, home, wire.MoverJob{Do: do, Prefix: "home/"}, content, whole)
}

func askJob(t *testing.T, home string, do wire.MoverJob, content []byte, whole bool) told {
	t.Helper()
	ours, f := pair(t)
	defer f.Close()
	theirs, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- Serve(theirs, home, snapshotOf(home))
		theirs.Close()
	}()
	got := tell(t, ours, do, content, whole)
	if err := <-served; err != nil {
		t.Error(err)
	}
	return got
}

// grow makes a home that a version number tells from others.
func grow(t *testing.T, version int) string {
	t.Helper()
	home := t.TempDir()
	for i := range 30 {
		dir := filepath.Join(home, fmt.Sprintf("both%d", i%3), fmt.Sprintf("v%d-%d", version, i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/file", []byte(strings.Repeat(fmt.Sprint(version, i), 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, fmt.Sprintf(".v%d-%d", version, i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(home, os.FileMode(0o700+version)); err != nil {
		t.Fatal(err)
	}
	return home
}

// packed is a home as an archive, with its end.
func packed(t *testing.T, home string) []byte {
	t.Helper()
	got := ask(t, home, wire.MoverRead, nil, true)
	if got.err != nil || got.last.Error != "" {
		t.Fatalf("%v %+v", got.err, got.last)
	}
	return append(got.archive, make([]byte, 1024)...)
}

// content says what is in a home, and its own permissions.
func content(t *testing.T, home string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(home, path)
		all[name] = info.Mode().String()
		if d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all[name] += " " + string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestReplace_MakesTheArchivesHome(t *testing.T) {
	one, two := grow(t, 1), grow(t, 2)
	want := content(t, one)
	b := packed(t, one)
	got := ask(t, two, wire.MoverReplace, b, true)
	if got.err != nil || got.last.Error != "" {
		t.Fatalf("%v %+v", got.err, got.last)
	}
	if d := cmp.Diff(want, content(t, two)); d != "" {
		t.Error(d)
	}
	var s archive.Stats
	if err := json.Unmarshal(got.last.Stats, &s); err != nil || s.Files != 60 {
		t.Errorf("%+v %v", s, err)
	}
	if again := packed(t, two); !bytes.Equal(b, again) {
		t.Error("another archive comes of it")
	}
}

func TestReplace_LeavesTheOldHomeWhenTheArchiveIsNoGood(t *testing.T) {
	whole := packed(t, grow(t, 1))
	out := new(bytes.Buffer)
	w := tar.NewWriter(out)
	if err := w.WriteHeader(&tar.Header{Name: "home/../../out", Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	for name, c := range map[string]struct {
		content []byte
		whole   bool
		kind    string
	}{
		"cut off within":    {whole[:len(whole)/2], true, wire.MoverInvalid},
		"sandboxd has gone": {whole, false, wire.MoverInternal},
		"gone early":        {whole[:10_000], false, wire.MoverInternal},
		"no archive":        {bytes.Repeat([]byte("x"), 5000), true, wire.MoverInvalid},
		"leads out":         {out.Bytes(), true, wire.MoverInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			home := grow(t, 2)
			want := content(t, home)
			got := ask(t, home, wire.MoverReplace, c.content, c.whole)
			if got.last.Kind != c.kind || got.last.Error == "" {
				t.Errorf("%+v %v", got.last, got.err)
			}
			if d := cmp.Diff(want, content(t, home)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestSettle_AfterAKillAtAnyMoment kills movers while they replace homes: each is the old one or the new one then.
func TestSettle_AfterAKillAtAnyMoment(t *testing.T) {
	t.Parallel()
	one, two := grow(t, 1), grow(t, 2)
	archives, wants := [][]byte{packed(t, one), packed(t, two)}, []map[string]string{content(t, one), content(t, two)}
	home := one
	took := run(t, home, archives[0], 0)
	outcomes := map[int]int{}
	for i := range 60 {
		before := content(t, home)
		run(t, home, archives[i%2], 1+rand.N(took+took/4))
		if got := ask(t, home, wire.MoverSettle, nil, true); got.err != nil || got.last.Error != "" {
			t.Fatalf("%v %+v", got.err, got.last)
		}
		now := content(t, home)
		switch {
		case cmp.Equal(now, wants[i%2]):
			outcomes[1]++
		case cmp.Equal(now, before):
			outcomes[0]++
		default:
			t.Fatalf("neither the old home nor the new one: %s", cmp.Diff(wants[i%2], now))
		}
	}
	t.Logf("%d times the old home, %d times the new one", outcomes[0], outcomes[1])
}

// run replaces a home in a process that is killed after a while, unless that is 0, and says how long it took.
func run(t *testing.T, home string, b []byte, after time.Duration) time.Duration {
	t.Helper()
	return runJob(t, home, wire.MoverJob{Do: wire.MoverReplace, Prefix: "home/"}, b, after)
}

func runJob(t *testing.T, home string, do wire.MoverJob, b []byte, after time.Duration) time.Duration {
	t.Helper()
	ours, theirs := pair(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "MOVER_TEST_HOME="+home)
	cmd.ExtraFiles = []*os.File{theirs}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	if after > 0 {
		defer time.AfterFunc(after, func() { cmd.Process.Kill() }).Stop()
	}
	got := tell(t, ours, do, b, true)
	cmd.Wait()
	if after == 0 && (got.err != nil || got.last.Error != "") {
		t.Fatalf("%v %+v", got.err, got.last)
	}
	return time.Since(begun)
}

// TestReplace_OfAForeignArchive gives what it has to the home's owner, and leaves the home's own permissions when it says nothing of
// them.
func TestReplace_OfAForeignArchive(t *testing.T) {
	home := grow(t, 2)
	if err := os.Chown(home, 1000, 1001); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{{Name: "a", Uid: 5, Mode: 0o600}, {Name: "d/e/f", Uid: 6, Mode: 0o600}, {Name: "l", Linkname: "a", Typeflag: tar.TypeSymlink}} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := askJob(t, home, wire.MoverJob{Do: wire.MoverReplace, Own: true}, b.Bytes(), true)
	if got.err != nil || got.last.Error != "" {
		t.Fatalf("%v %+v", got.err, got.last)
	}
	for _, name := range []string{".", "a", "d", "d/e", "d/e/f", "l"} {
		var st syscall.Stat_t
		if err := syscall.Lstat(filepath.Join(home, name), &st); err != nil || st.Uid != 1000 || st.Gid != 1001 {
			t.Errorf("%s belongs to %d:%d, %v", name, st.Uid, st.Gid, err)
		}
		if name == "." && st.Mode&0o777 != 0o702 {
			t.Errorf("the home has %o", st.Mode&0o777)
		}
	}
}
