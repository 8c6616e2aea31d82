//go:build engine

package link_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"

	"sandboxd/internal/fault"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// strict holds a container as the profile "strict" does.
func strict(_ *container.Config, h *container.HostConfig) {
	h.CapDrop = []string{"ALL"}
	h.CapAdd = []string{"SETUID", "SETGID", "KILL", "DAC_OVERRIDE", "CHOWN"}
	h.SecurityOpt = []string{"no-new-privileges"}
	h.ReadonlyRootfs = true
	h.Tmpfs = map[string]string{"/tmp": "", "/run": ""}
}

// withoutInit leaves the guest to be PID 1.
func withoutInit(_ *container.Config, h *container.HostConfig) {
	no := false
	h.Init = &no
}

func TestContainer_ExecInEveryProfile(t *testing.T) {
	for name, change := range map[string]func(*container.Config, *container.HostConfig){
		"dev": nil, "strict": strict,
		"no init": withoutInit,
	} {
		t.Run(name, func(t *testing.T) {
			s := startBox(t, wire.Setup{Name: "box"}, change).session(t)
			r := run(t, s, sh("id -un; pwd; echo $HOME $SHELL; exit 4"))
			if r.stdout.String() != "root\n/home/agent\n/root /bin/bash\n" || r.code != 4 {
				t.Errorf("got %q, %q, %d", r.stdout.String(), r.stderr.String(), r.code)
			}
			r = run(t, s, wire.ExecStart{Command: []string{"id"}, User: "www-data"})
			if r.stdout.String() != "uid=33(www-data) gid=33(www-data) groups=33(www-data)\n" {
				t.Errorf("got %q, %q", r.stdout.String(), r.stderr.String())
			}
			if got := s.Hello(); got.User != "root" || got.Shell != "/bin/bash" || got.HasTTYD || got.HasTmux {
				t.Errorf("hello %+v", got)
			}
		})
	}
}

// asAgent is strict for an image whose user is agent.
func asAgent(t *testing.T) func(*container.Config, *container.HostConfig) {
	t.Helper()
	passwd := filepath.Join(t.TempDir(), "passwd")
	if err := os.WriteFile(passwd, []byte("root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/bash\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return func(c *container.Config, h *container.HostConfig) {
		strict(c, h)
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: passwd, Target: "/etc/passwd", ReadOnly: true})
	}
}

func TestContainer_AgentIsTheUserAndGetsTheHome(t *testing.T) {
	s := startBox(t, wire.Setup{}, asAgent(t)).session(t)
	if got := s.Hello(); got.User != "agent" || got.Home != "/home/agent" {
		t.Errorf("hello %+v", got)
	}
	r := run(t, s, sh("id -u; pwd; echo hi > file && stat -c %U . file"))
	if r.stdout.String() != "1000\n/home/agent\nagent\nagent\n" {
		t.Errorf("got %q, %q", r.stdout.String(), r.stderr.String())
	}
	if r := run(t, s, wire.ExecStart{Command: []string{"id", "-u"}, User: "root"}); r.stdout.String() != "0\n" {
		t.Errorf("got %q", r.stdout.String())
	}
}

// An image with nothing but one program: no shell, no users, no /tmp.
func TestContainer_WorksInAnEmptyImage(t *testing.T) {
	docker, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer docker.Close()
	ref := emptyImage(t, docker)
	s := startBox(t, wire.Setup{}, func(c *container.Config, h *container.HostConfig) { c.Image = ref }).session(t)
	if got := s.Hello(); got.User != "root" || got.Shell != "" {
		t.Errorf("hello %+v", got)
	}
	r := run(t, s, wire.ExecStart{Command: []string{"/hello", "there"}})
	if r.stdout.String() != "hello there 0 /home/agent\n" || r.code != 6 {
		t.Errorf("got %q, %q, %d", r.stdout.String(), r.stderr.String(), r.code)
	}
	if _, err := s.Exec(testContext(t), sh("true")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("got %v", err)
	}
	if _, err := s.Terminals(testContext(t)); err != nil {
		t.Error(err)
	}
}

// emptyImage imports an image that holds one static program.
func emptyImage(t *testing.T, docker *client.Client) string {
	t.Helper()
	dir := t.TempDir()
	source := `package main
import ("fmt"; "os")
func main() { d, _ := os.Getwd(); fmt.Println("hello", os.Args[1], os.Getuid(), d); os.Exit(6) }`
	if err := os.WriteFile(filepath.Join(dir, "hello.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", "hello", "hello.go")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, "hello"))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	w.WriteHeader(&tar.Header{Name: "hello", Mode: 0o755, Size: int64(len(program))})
	w.Write(program)
	w.Close()
	ref := fmt.Sprintf("%sempty:%d", testPrefix, os.Getpid())
	out, err := docker.ImageImport(testContext(t), image.ImportSource{Source: &archive, SourceName: "-"}, ref, image.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, out)
	out.Close()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		docker.ImageRemove(ctx, ref, image.RemoveOptions{Force: true})
	})
	return ref
}

// The tree runs as another user, without capabilities and hence with an environment that root may not simply read.
func TestContainer_KillsTheTreeOfAnotherUser(t *testing.T) {
	for name, change := range map[string]func(*container.Config, *container.HostConfig){"dev": nil, "strict": strict} {
		t.Run(name, func(t *testing.T) {
			s := startBox(t, wire.Setup{}, change).session(t)
			start := sh(treeScript)
			start.User = "www-data"
			p, err := s.Exec(testContext(t), start)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			tree(t, p)
			if err := p.Signal("KILL"); err != nil {
				t.Fatal(err)
			}
			if r := collect(t, p); r.code != 137 {
				t.Errorf("exit code %d", r.code)
			}
			left := run(t, s, sh(`for p in /proc/[0-9]*; do tr '\0' ' ' < $p/cmdline; echo; done 2>/dev/null | grep '^sleep'`))
			if left.stdout.Len() > 0 {
				t.Errorf("left: %q", left.stdout.String())
			}
		})
	}
}

func TestContainer_KillsAForkBomb(t *testing.T) {
	for name, script := range map[string]string{
		"in its group":                 `f() { f | f & }; (f; f) & exec sleep 300`,
		"each in a session of its own": `export B='setsid sh -c "$B" & setsid sh -c "$B" & wait'; sh -c "$B" & exec sleep 300`,
	} {
		t.Run(name, func(t *testing.T) { killABomb(t, script) })
	}
}

// killABomb starts a script that forks for ever, ends it, and waits until nothing of it is left. The first process of the script
// never ends by itself: what it had started would stay then.
func killABomb(t *testing.T, script string) {
	limit := int64(200)
	s := startBox(t, wire.Setup{}, func(_ *container.Config, h *container.HostConfig) { h.PidsLimit = &limit }).session(t)
	ctx, cancel := context.WithCancel(testContext(t))
	p, err := s.Exec(ctx, sh(script))
	if err != nil {
		t.Fatal(err)
	}
	var seen bytes.Buffer // until the bomb is as large as it may become
	for !strings.Contains(seen.String(), "Cannot fork") {
		frame, err := p.Next()
		if err != nil {
			t.Fatal(err, seen.String())
		}
		seen.Write(frame.Data)
	}
	cancel()
	tick := time.NewTicker(100 * time.Millisecond) // each try needs the guest, which is busy
	defer tick.Stop()
	for deadline := time.Now().Add(3 * patience); time.Now().Before(deadline); <-tick.C {
		if n, err := countProcesses(t, s); err == nil && n == 3 { // init, guest and the shell that counts
			return
		}
	}
	t.Fatal("the bomb still runs")
}

// countProcesses counts the processes of a box.
func countProcesses(t *testing.T, s *link.Session) (int, error) {
	p, err := s.Exec(testContext(t), sh(`set -- /proc/[0-9]*; echo $#`))
	if err != nil {
		return 0, err
	}
	defer p.Close()
	return strconv.Atoi(strings.TrimSpace(collect(t, p).stdout.String()))
}

func TestContainer_DialsALoopbackListener(t *testing.T) {
	s := startBox(t, wire.Setup{}, strict).session(t)
	// The image has no server, but perl has sockets.
	server := `use IO::Socket::INET; $s=IO::Socket::INET->new(LocalAddr=>"127.0.0.1",LocalPort=>8123,Listen=>5) or die;
$|=1; print "up\n"; while($c=$s->accept){ $l=<$c>; print $c "you said $l"; close $c }`
	p, err := s.Exec(testContext(t), wire.ExecStart{Command: []string{"perl", "-e", server}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if f, err := p.Next(); err != nil || string(f.Data) != "up\n" {
		t.Fatalf("got %q, %v", f.Data, err)
	}
	c, err := s.DialPort(testContext(t), 8123)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintln(c, "hello")
	if b, err := io.ReadAll(c); string(b) != "you said hello\n" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
	if _, err := s.DialPort(testContext(t), 8124); err == nil {
		t.Error("a port where nothing listens was reached")
	}
}

func TestContainer_ServiceIsRestartedAndSurvivesTheHub(t *testing.T) {
	setup := wire.Setup{Name: "box", Services: []wire.Service{
		{Name: "flaky", Command: []string{"sh", "-c", "echo run; sleep 0.05; exit 9"}, Autostart: true},
		{Name: "steady", Command: []string{"sh", "-c", "echo up; exec sleep 1000"}, Autostart: true},
		{Name: "asleep", Command: []string{"sleep", "1000"}}}}
	b := startBox(t, setup, nil)
	s := b.session(t)
	first := awaitService(t, s, "flaky", func(st wire.ServiceStatus) bool { return st.Restarts >= 2 })
	if first.ExitCode != 9 {
		t.Errorf("got %+v", first)
	}
	pid := awaitService(t, s, "steady", func(st wire.ServiceStatus) bool { return st.State == wire.ServiceRunning }).PID
	b.stop()
	began := time.Now()
	b.openHub(t, setup)
	s = b.session(t)
	t.Logf("reconnected after %v", time.Since(began))
	again := awaitService(t, s, "steady", func(st wire.ServiceStatus) bool { return st.State == wire.ServiceRunning })
	if again.PID != pid || again.Restarts != 0 {
		t.Errorf("the service was restarted: %d, %+v", pid, again)
	}
	awaitLine(t, s, "steady", "up")
	if st := awaitService(t, s, "asleep", func(wire.ServiceStatus) bool { return true }); st.State != wire.ServiceStopped {
		t.Errorf("got %+v", st)
	}
}

func TestContainer_StopsQuickly(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*container.Config, *container.HostConfig)
		leave  string
	}{
		"idle":           {nil, ""},
		"idle, strict":   {strict, ""},
		"idle, no init":  {withoutInit, ""},
		"polite process": {nil, "sleep 1000 >/dev/null 2>&1 & true"},
		"deaf process":   {nil, "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' >/dev/null 2>&1 & true"},
	} {
		t.Run(name, func(t *testing.T) {
			b := startBox(t, wire.Setup{}, c.change)
			s := b.session(t)
			if c.leave != "" {
				run(t, s, sh(c.leave))
			}
			const grace = 120 // in seconds
			began := time.Now()
			if err := b.docker.ContainerStop(testContext(t), b.id, container.StopOptions{Timeout: new(grace)}); err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			t.Logf("stopped after %v", took)
			if took > grace*time.Second/2 {
				t.Errorf("stop took %v, of %d s that it has", took, grace)
			}
			state, err := b.docker.ContainerInspect(testContext(t), b.id)
			if err != nil || state.State.ExitCode != 0 {
				t.Errorf("exit code %d, %v", state.State.ExitCode, err)
			}
		})
	}
}

func TestContainer_TerminalWorksWithoutTTYD(t *testing.T) {
	for name, change := range map[string]func(*container.Config, *container.HostConfig){"dev": nil, "strict": strict} {
		t.Run(name, func(t *testing.T) {
			s := startBox(t, wire.Setup{}, change).session(t)
			c, err := s.DialTerminal(testContext(t), "main")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(patience))
			fmt.Fprint(c, "GET /token HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			line, err := bufio.NewReader(c).ReadString('\n')
			if err != nil || !strings.Contains(line, "200") {
				t.Errorf("got %q, %v", line, err)
			}
			if _, err := s.Terminals(testContext(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestContainer_WorkspaceLeadsToTheVolume(t *testing.T) {
	s := startBox(t, wire.Setup{}, nil).session(t)
	if r := run(t, s, sh("readlink /workspace")); r.stdout.String() != "/home/agent\n" {
		t.Errorf("got %q", r.stdout.String())
	}
}

func TestContainer_FullOfProcessesIsUnavailable(t *testing.T) {
	limit := int64(32) // the least that there is
	s := startBox(t, wire.Setup{}, func(_ *container.Config, h *container.HostConfig) { h.PidsLimit = &limit }).session(t)
	fill := `$|=1; for(;;){ $p = fork; if(!defined $p){ print "full\n"; sleep 300 } elsif(!$p){ sleep 300; exit } }`
	p, err := s.Exec(testContext(t), wire.ExecStart{Command: []string{"perl", "-e", fill}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if f, err := p.Next(); err != nil || string(f.Data) != "full\n" {
		t.Fatalf("got %q, %v", f.Data, err)
	}
	for range 20 { // the guest lives on
		_, err = s.Exec(testContext(t), sh("true"))
		if fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Message(err), "as many processes") {
			t.Fatalf("got %v: %v", fault.KindOf(err), err)
		}
	}
}

func TestContainer_KillsWhatLeftSessionEnvironmentAndParents(t *testing.T) {
	for name, change := range map[string]func(*container.Config, *container.HostConfig){"dev": nil, "strict": strict} {
		t.Run(name, func(t *testing.T) {
			s := startBox(t, wire.Setup{}, change).session(t)
			start := sh("setsid -f env -i sleep 4321; echo gone; sleep 300")
			start.User = "www-data"
			p, err := s.Exec(testContext(t), start)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if _, err := p.Next(); err != nil {
				t.Fatal(err)
			}
			if err := p.Signal("KILL"); err != nil {
				t.Fatal(err)
			}
			collect(t, p)
			left := run(t, s, sh(`for p in /proc/[0-9]*; do tr '\0' ' ' < $p/cmdline; echo; done 2>/dev/null | grep '^sleep'`))
			if left.stdout.Len() > 0 {
				t.Errorf("left: %q", left.stdout.String())
			}
		})
	}
}
