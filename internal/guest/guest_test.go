package guest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

// patience bounds every wait of a test.
const patience = time.Minute

const somePasswd = `root:x:0:0:root:/root:/bin/sh
agent:x:1000:1001:Agent,,,:/home/agent:/no/such/shell
broken line
odd:x:nine:0::/:/bin/sh
# comment
nohome:x:7:7:::/bin/sh
`

const someGroup = `root:x:0:
docker:x:99:agent,other
video:x:44:other
agent:x:1001:agent
broken
`

func someAccounts(t *testing.T) *accounts {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"passwd": somePasswd, "group": someGroup} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return newAccounts(filepath.Join(dir, "passwd"), filepath.Join(dir, "group"))
}

func TestAccounts_AreFoundByNameAndByNumber(t *testing.T) {
	a := someAccounts(t)
	for spec, want := range map[string]account{
		"":        {name: "agent", uid: 1000, gid: 1001, groups: []uint32{99}, home: "/home/agent"},
		"root":    {name: "root", home: "/root"},
		"0":       {name: "root", home: "/root"},
		"1000":    {name: "agent", uid: 1000, gid: 1001, groups: []uint32{99}, home: "/home/agent"},
		"1000:5":  {name: "agent", uid: 1000, gid: 5, groups: []uint32{99}, home: "/home/agent"},
		"nohome":  {name: "nohome", uid: 7, gid: 7, home: "/"},
		"4242":    {name: "4242", uid: 4242, home: "/"},
		"4242:43": {name: "4242", uid: 4242, gid: 43, home: "/"},
	} {
		got, err := a.find(spec)
		if err != nil {
			t.Errorf("%q: %v", spec, err)
			continue
		}
		if got.shell != "" && runnable(got.shell) != nil {
			t.Errorf("%q: shell %q cannot be run", spec, got.shell)
		}
		got.shell = ""
		if got.name != want.name || got.uid != want.uid || got.gid != want.gid || got.home != want.home ||
			!slices.Equal(got.groups, want.groups) {
			t.Errorf("%q: got %+v", spec, got)
		}
	}
	for _, spec := range []string{"nobody", "-1", "99999999999", "1000:x", "odd", ":", "0x0"} {
		if got, err := a.find(spec); err == nil {
			t.Errorf("%q: got %+v", spec, got)
		}
	}
}

func TestAccounts_WithoutAnyFileThereIsWhoWeAre(t *testing.T) {
	a := newAccounts("/no/passwd", "/no/group")
	got, err := a.find("")
	if err != nil || int(got.uid) != os.Getuid() {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := a.find("root"); err != nil || got.uid != 0 || got.home != "/root" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAccounts_FollowTheFile(t *testing.T) {
	a := someAccounts(t)
	if _, err := a.find("late"); err == nil {
		t.Fatal("late is there early")
	}
	f, err := os.OpenFile(a.passwd, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("late:x:5:5::/:/bin/sh\n")
	f.Close()
	if u, err := a.find("late"); err != nil || u.uid != 5 {
		t.Errorf("got %+v, %v", u, err)
	}
}

func FuzzAccounts(f *testing.F) {
	f.Add(somePasswd, someGroup)
	f.Add("::::::\n", ":::")
	f.Fuzz(func(t *testing.T, passwd, group string) {
		for _, u := range parseAccounts(passwd, group) {
			if u.name == "" || u.home == "" {
				t.Fatalf("got %+v", u)
			}
		}
	})
}

func TestLookPath_FindsAsAShellDoes(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"tool": 0o755, "text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	tool := filepath.Join(dir, "tool")
	for name, c := range map[string]struct{ name, path, cwd, want string }{
		"in PATH":        {"tool", "/no:" + dir, "/", tool},
		"relative":       {"./tool", "", dir, tool},
		"absolute":       {tool, "", "/", tool},
		"PATH with dot":  {"tool", ".", dir, tool},
		"empty PATH dir": {"tool", ":", dir, tool},
	} {
		if got, err := lookPath(c.name, c.path, c.cwd); got != c.want || err != nil {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if _, err := lookPath("text", dir, "/"); !os.IsPermission(err) {
		t.Errorf("got %v", err)
	}
	if _, err := lookPath("none", dir, "/"); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

func TestEnviron_LaterWordsWin(t *testing.T) {
	t.Setenv("FROM_IMAGE", "image")
	t.Setenv("BOTH", "image")
	t.Setenv(marker, "ours")
	g := New(Config{Home: "/"})
	g.setup.Store(&wire.Setup{Env: map[string]string{"BOTH": "setup", "HOME": "/wrong", "ASKED": "setup"}})
	env := g.environ(account{name: "agent", home: "/home/agent", shell: "/bin/sh"}, map[string]string{"ASKED": "exec"}, true)
	for k, want := range map[string]string{"FROM_IMAGE": "image", "BOTH": "setup", "ASKED": "exec", "HOME": "/home/agent",
		"USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/sh", "TERM": "xterm-256color", marker: ""} {
		if env[k] != want {
			t.Errorf("%s is %q", k, env[k])
		}
	}
	if !slices.Contains(env.list(), "BOTH=setup") {
		t.Errorf("got %q", env.list())
	}
}

func TestRing_KeepsTheNewestWholeLines(t *testing.T) {
	var r ring
	line := strings.Repeat("x", 99) + "\n"
	for i := range 5000 {
		r.Write([]byte(strconv.Itoa(i) + line))
	}
	b := r.bytes()
	if len(b) > ringSize || len(b) < ringSize-200 || !bytes.HasSuffix(b, []byte("4999"+line)) {
		t.Errorf("%d bytes, ending in %q", len(b), b[len(b)-110:])
	}
	if first, _, _ := strings.Cut(string(b), "x"); first < "4300" {
		t.Errorf("the first line is %q", first)
	}
	r.Write(bytes.Repeat([]byte("y"), 10*ringSize))
	if b := r.bytes(); len(b) > ringSize || cap(r.buf) > 4*ringSize {
		t.Errorf("%d bytes, %d held", len(b), cap(r.buf))
	}
}

// within waits until f holds.
func within(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !f() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s does not come", what)
		}
	}
}

// supervise gives a supervisor with a quick pace.
func supervise(t *testing.T) *supervisor {
	t.Helper()
	g := New(Config{Home: t.TempDir()})
	g.services.pace = pace{first: 5 * time.Millisecond, longest: 20 * time.Millisecond, healthy: time.Minute}
	t.Cleanup(func() { g.services.stop(time.Second) })
	return g.services
}

func status(s *supervisor, name string) wire.ServiceStatus {
	for _, st := range s.list() {
		if st.Name == name {
			return st
		}
	}
	return wire.ServiceStatus{}
}

// said gives what services have written, without lines of our own.
func said(t *testing.T, s *supervisor) []string {
	t.Helper()
	return slices.DeleteFunc(kept(t, s.lines), func(l string) bool { return strings.Contains(l, " [sandboxd] ") })
}

func shell(name, script string) wire.Service {
	return wire.Service{Name: name, Command: []string{"/bin/sh", "-c", script}, Autostart: true}
}

func TestServices_EndedOneIsStartedAgainMoreAndMoreSlowly(t *testing.T) {
	s := supervise(t)
	s.apply([]wire.Service{shell("flaky", "echo run; exit 3")})
	within(t, "the fifth run", func() bool { return status(s, "flaky").Restarts >= 5 })
	within(t, "a pause", func() bool {
		st := status(s, "flaky")
		return st.State == wire.ServiceWaiting && st.ExitCode == 3 && st.Retry.Sub(st.Since) >= 19*time.Millisecond
	})
	if all := said(t, s); len(all) < 5 || all[4] != "flaky run" {
		t.Errorf("log %q", all)
	}
}

func TestServices_HealthyRunMakesThePauseShortAgain(t *testing.T) {
	s := supervise(t)
	s.pace = pace{first: time.Millisecond, longest: time.Hour, healthy: 0} // every run is healthy
	s.apply([]wire.Service{shell("flaky", "exit 1")})
	within(t, "the thirtieth run", func() bool { return status(s, "flaky").Restarts >= 30 }) // 2^30 ms would be weeks
}

func TestServices_SameSetUpAgainChangesNothingAndAnotherReplaces(t *testing.T) {
	s := supervise(t)
	same := shell("same", "exec sleep 1000")
	s.apply([]wire.Service{same, shell("other", "exec sleep 1000"), shell("gone", "exec sleep 1000")})
	for _, name := range []string{"same", "other", "gone"} {
		within(t, name, func() bool { return status(s, name).State == wire.ServiceRunning })
	}
	before, otherBefore, gone := status(s, "same").PID, status(s, "other").PID, status(s, "gone").PID
	s.apply([]wire.Service{same, shell("other", "exec sleep 2000")})
	within(t, "the replacement", func() bool {
		st := status(s, "other")
		return st.State == wire.ServiceRunning && st.PID != otherBefore
	})
	if st := status(s, "same"); st.PID != before || st.State != wire.ServiceRunning {
		t.Errorf("got %+v", st)
	}
	for _, pid := range []int{otherBefore, gone} {
		within(t, "the end of the old ones", func() bool { return syscall.Kill(pid, 0) != nil })
	}
	if len(s.list()) != 2 {
		t.Errorf("got %+v", s.list())
	}
}

func TestServices_StopEndsDeafOnesWithTheirChildrenAndForGood(t *testing.T) {
	s := supervise(t)
	s.apply([]wire.Service{shell("deaf", `trap "" TERM; setsid sleep 1001 & echo $!; while :; do sleep 0.01; done`)})
	sv, _ := s.find("deaf")
	within(t, "its child", func() bool { return len(said(t, s)) > 0 })
	child, err := strconv.Atoi(strings.TrimPrefix(said(t, s)[0], "deaf "))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.stop(50 * time.Millisecond)
	if d := time.Since(began); d > patience {
		t.Errorf("took %v", d)
	}
	within(t, "the child's end", func() bool { p, ok := readStat(child); return !ok || p.zombie })
	s.apply([]wire.Service{shell("late", "exec sleep 1000")})
	sv.start()
	if st := sv.now(); st.State != wire.ServiceStopped {
		t.Errorf("got %+v", st)
	}
}

func TestServices_StartSkipsThePause(t *testing.T) {
	s := supervise(t)
	s.pace = pace{first: time.Hour, longest: time.Hour, healthy: time.Hour}
	s.apply([]wire.Service{shell("flaky", "echo run; exit 3")})
	within(t, "the pause", func() bool { st := status(s, "flaky"); return st.State == wire.ServiceWaiting && st.Restarts > 0 })
	sv, _ := s.find("flaky")
	sv.start()
	within(t, "the second run", func() bool { return slices.Equal(said(t, s), []string{"flaky run", "flaky run"}) })
}

func TestServices_AreListedAsWaitingFromTheFirstMomentOn(t *testing.T) {
	s := supervise(t)
	s.apply([]wire.Service{shell("auto", "exec sleep 1000"), {Name: "manual", Command: []string{"sleep", "1000"}}})
	if st := status(s, "auto"); st.State == wire.ServiceStopped || !st.Retry.IsZero() {
		t.Errorf("got %+v", st)
	}
	if st := status(s, "manual"); st.State != wire.ServiceStopped {
		t.Errorf("got %+v", st)
	}
	within(t, "the start", func() bool { return status(s, "auto").State == wire.ServiceRunning })
	s.apply([]wire.Service{shell("auto", "exec sleep 2000")}) // waits for the end of the old one
	if st := status(s, "auto"); st.State == wire.ServiceStopped {
		t.Errorf("got %+v", st)
	}
}

func TestServices_StoppedAndStartedAtOnceIsNeverListedAsStopped(t *testing.T) {
	s := supervise(t)
	s.apply([]wire.Service{shell("auto", `trap "sleep 0.05; exit" TERM; while :; do sleep 0.01; done`)})
	within(t, "the start", func() bool { return status(s, "auto").State == wire.ServiceRunning })
	before := status(s, "auto").PID
	sv, _ := s.find("auto")
	sv.stop(time.Second)
	sv.start()
	within(t, "the next run", func() bool {
		st := status(s, "auto")
		if st.State == wire.ServiceStopped {
			t.Fatalf("got %+v", st)
		}
		return st.State == wire.ServiceRunning && st.PID != before
	})
	sv.stop(time.Second)
	within(t, "the end", func() bool { return status(s, "auto").State == wire.ServiceStopped })
}

func TestEnvirons_FindTheMarkerAcrossReads(t *testing.T) {
	mark := []byte(marker + "=abc")
	for name, c := range map[string]struct {
		environ string
		want    bool
	}{
		"alone":         {string(mark) + "\x00", true},
		"last, no zero": {"A=b\x00" + string(mark), true},
		"behind much":   {strings.Repeat("A=0123456789\x00", 10000) + string(mark) + "\x00", true},
		"behind long":   {"A=" + strings.Repeat("x", 200000) + "\x00" + string(mark) + "\x00", true},
		"as a suffix":   {"X" + string(mark) + "\x00", false},
		"as a prefix":   {string(mark) + "d\x00", false},
		"within long":   {"A=" + strings.Repeat("x", 64<<10-2) + string(mark) + "\x00", false},
		"empty":         {"", false},
	} {
		file := filepath.Join(t.TempDir(), "environ")
		if err := os.WriteFile(file, []byte(c.environ), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		e := &environs{buf: make([]byte, 64<<10)}
		if got := e.scan(f, mark); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
		f.Close()
	}
}

func TestDrain_DeadlineDoesNotEndItBeforeWhatIsOwedHasBeenRead(t *testing.T) {
	for name, c := range map[string]struct {
		rest  drain
		err   error
		ended bool
		over  bool
	}{
		"read on":                  {drain{}, nil, true, false},
		"woken by the end":         {drain{}, os.ErrDeadlineExceeded, false, false},
		"still":                    {drain{pending: 5, read: 5}, os.ErrDeadlineExceeded, true, true},
		"frozen before it is read": {drain{pending: 5, read: 4}, os.ErrDeadlineExceeded, true, false},
		"closed":                   {drain{pending: 5, read: 4}, io.EOF, true, true},
	} {
		if got := c.rest.over(c.err, c.ended); got != c.over {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestStartProblem_LackOfProcessesOrMemoryPasses(t *testing.T) {
	for _, cause := range []error{syscall.EAGAIN, syscall.ENOMEM} {
		err := startProblem("sh", "/", &os.PathError{Op: "fork/exec", Path: "/bin/sh", Err: cause})
		var p *wire.Problem
		if !errors.As(err, &p) || p.Code != wire.CodeUnavailable {
			t.Errorf("%v: got %v", cause, err)
		}
	}
}
