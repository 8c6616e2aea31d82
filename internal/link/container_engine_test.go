//go:build engine

package link_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"

	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

const (
	testImage  = "debian:trixie-slim"
	testPrefix = "sbxguest-"
)

// guestBinary builds the real guest once.
var guestBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", testPrefix)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "guest")
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "nethttpomithttp2", "-ldflags", "-s -w", "-o", path, "sandboxd/cmd/guest")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the guest: %w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := guestBinary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// box is a container with a guest, and a hub that expects it.
type engineBox struct {
	docker *client.Client
	id     string
	name   string
	root   string
	hub    *link.Hub
	stop   func() // of the hub
}

// startBox starts a container of the image; change may alter it before.
func startBox(t testing.TB, s wire.Setup, change func(*container.Config, *container.HostConfig)) *engineBox {
	t.Helper()
	docker, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	binary, err := guestBinary()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("%s%d-%d", testPrefix, os.Getpid(), time.Now().UnixNano()%1e9)
	b := &engineBox{docker: docker, name: name, root: filepath.Join(t.TempDir(), "link")}
	b.openHub(t, s)
	yes := true
	config := &container.Config{Image: testImage, Entrypoint: []string{wire.GuestPath}, User: "0:0", WorkingDir: "/"}
	host := &container.HostConfig{Init: &yes, NetworkMode: "none", Mounts: []mount.Mount{
		{Type: mount.TypeBind, Source: binary, Target: wire.GuestPath, ReadOnly: true},
		{Type: mount.TypeBind, Source: filepath.Join(b.root, name), Target: filepath.Dir(wire.SocketPath), ReadOnly: true},
		{Type: mount.TypeTmpfs, Target: wire.HomePath}}}
	if change != nil {
		change(config, host)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	made, err := docker.ContainerCreate(ctx, config, host, nil, nil, name)
	if err != nil {
		t.Fatal(err)
	}
	b.id = made.ID
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		docker.ContainerRemove(ctx, b.id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		docker.Close()
	})
	if err := docker.ContainerStart(ctx, b.id, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *engineBox) openHub(t testing.TB, s wire.Setup) {
	t.Helper()
	b.hub = link.NewHub(b.root, nil)
	if _, err := b.hub.Expect(b.name, s); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.hub.Run(ctx)
	}()
	b.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(b.stop)
}

func (b *engineBox) session(t testing.TB) *link.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := b.hub.Session(ctx, b.name)
	if err != nil {
		logs, lerr := b.docker.ContainerLogs(ctx, b.id, container.LogsOptions{ShowStderr: true, ShowStdout: true})
		if lerr == nil {
			text, _ := io.ReadAll(logs)
			t.Logf("container: %s", text)
		}
		t.Fatal(err)
	}
	return s
}

// strict holds a container as the profile "strict" does.
func strict(_ *container.Config, h *container.HostConfig) {
	h.CapDrop = []string{"ALL"}
	h.CapAdd = []string{"SETUID", "SETGID", "KILL", "DAC_OVERRIDE", "CHOWN"}
	h.SecurityOpt = []string{"no-new-privileges"}
	h.ReadonlyRootfs = true
	h.Tmpfs = map[string]string{"/tmp": "", "/run": ""}
}

func TestContainer_ExecInEveryProfile(t *testing.T) {
	no := false
	for name, change := range map[string]func(*container.Config, *container.HostConfig){
		"dev": nil, "strict": strict,
		"no init": func(_ *container.Config, h *container.HostConfig) { h.Init = &no },
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
	limit := int64(200)
	s := startBox(t, wire.Setup{}, func(_ *container.Config, h *container.HostConfig) { h.PidsLimit = &limit }).session(t)
	ctx, cancel := context.WithCancel(testContext(t))
	p, err := s.Exec(ctx, sh(`echo go; f() { f | f & }; f; f; sleep 300`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Next(); err != nil {
		t.Fatal(err)
	}
	cancel()
	for {
		again, err := s.Exec(testContext(t), sh(`set -- /proc/[0-9]*; echo $#`))
		if err != nil {
			continue // still full
		}
		r := collect(t, again)
		again.Close()
		if n := strings.TrimSpace(r.stdout.String()); n == "3" { // init, guest, this shell
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("the bomb goes on")
		}
	}
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
	if log, err := s.ServiceLog(testContext(t), "steady"); string(log) != "up\n" || err != nil {
		t.Errorf("log %q, %v", log, err)
	}
	if st := awaitService(t, s, "asleep", func(wire.ServiceStatus) bool { return true }); st.State != wire.ServiceStopped {
		t.Errorf("got %+v", st)
	}
}

func TestContainer_StopsQuickly(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*container.Config, *container.HostConfig)
		leave  string
		limit  time.Duration
	}{
		"idle":           {nil, "", time.Second},
		"idle, strict":   {strict, "", time.Second},
		"polite process": {nil, "sleep 1000 >/dev/null 2>&1 & true", time.Second},
		"deaf process":   {nil, "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' >/dev/null 2>&1 & true", 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := startBox(t, wire.Setup{}, c.change)
			s := b.session(t)
			if c.leave != "" {
				run(t, s, sh(c.leave))
			}
			grace := 10
			began := time.Now()
			if err := b.docker.ContainerStop(testContext(t), b.id, container.StopOptions{Timeout: &grace}); err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			t.Logf("stopped after %v", took)
			if took > c.limit {
				t.Errorf("stop took %v", took)
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

func TestContainer_SpeedAndSize(t *testing.T) {
	b := startBox(t, wire.Setup{}, nil)
	s := b.session(t)
	t.Logf("guest, fresh: %d KiB resident", b.resident(t))
	const n = 200
	var through, raw []time.Duration
	for range n {
		began := time.Now()
		if r := run(t, s, wire.ExecStart{Command: []string{"true"}}); r.code != 0 {
			t.Fatal("true is false")
		}
		through = append(through, time.Since(began))
	}
	for range 40 {
		began := time.Now()
		b.rawExec(t, "true")
		raw = append(raw, time.Since(began))
	}
	link50, raw50 := percentile(through, 50), percentile(raw, 50)
	t.Logf("exec true through the link: p50 %v p95 %v; raw: p50 %v p95 %v; ratio %.3f", link50, percentile(through, 95),
		raw50, percentile(raw, 95), float64(link50)/float64(raw50))
	b.throughput(t, s)
	t.Logf("guest, at work: %d KiB resident", b.resident(t))
	b.awaitSmall(t)
	if st, err := os.Stat(must(guestBinary())); err != nil || st.Size() > 8<<20 {
		t.Errorf("binary %v, %v", st.Size(), err)
	} else {
		t.Logf("binary %d bytes", st.Size())
	}
	if link50 > 5*time.Millisecond {
		t.Errorf("exec p50 %v", link50)
	}
}

func must(s string, err error) string {
	if err != nil {
		panic(err)
	}
	return s
}

// awaitSmall waits until the idle guest is as small as it must be.
func (b *engineBox) awaitSmall(t *testing.T) {
	t.Helper()
	const limit = 8 << 10 // KiB
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		kib := b.resident(t)
		if kib <= limit {
			t.Logf("guest, idle: %d KiB resident", kib)
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("the idle guest has %d KiB resident", kib)
		}
	}
}

// resident gives the guest's resident memory in KiB, as the host sees it.
func (b *engineBox) resident(t *testing.T) int {
	t.Helper()
	top, err := b.docker.ContainerTop(testContext(t), b.id, []string{"-eo", "pid,rss,args"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range top.Processes {
		if row[2] == wire.GuestPath {
			kib, _ := strconv.Atoi(row[1])
			return kib
		}
	}
	t.Fatalf("no guest among %v", top.Processes)
	return 0
}

// throughput measures a port and an exec's output.
func (b *engineBox) throughput(t *testing.T, s *link.Session) {
	const size = 512 << 20
	server := fmt.Sprintf(`use IO::Socket::INET; $s=IO::Socket::INET->new(LocalAddr=>"127.0.0.1",LocalPort=>8123,Listen=>5) or die;
$|=1; print "up\n"; $c=$s->accept; $b="x"x65536; for(1..%d){ syswrite $c,$b } close $c`, size/65536)
	p, err := s.Exec(testContext(t), wire.ExecStart{Command: []string{"perl", "-e", server}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Next(); err != nil {
		t.Fatal(err)
	}
	c, err := s.DialPort(testContext(t), 8123)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	began := time.Now()
	n, err := io.Copy(io.Discard, c)
	if n != size || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	t.Logf("port: %.0f MiB/s", float64(n>>20)/time.Since(began).Seconds())
	began = time.Now()
	out, err := s.Exec(testContext(t), sh("head -c 536870912 /dev/zero"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for n = 0; ; {
		f, err := out.Next()
		if err != nil {
			break
		}
		n += int64(len(f.Data))
	}
	t.Logf("exec output: %.0f MiB/s", float64(n>>20)/time.Since(began).Seconds())
}

func (b *engineBox) rawExec(t *testing.T, command ...string) {
	t.Helper()
	ctx := testContext(t)
	made, err := b.docker.ContainerExecCreate(ctx, b.id, container.ExecOptions{Cmd: command, AttachStdout: true, AttachStderr: true})
	if err != nil {
		t.Fatal(err)
	}
	att, err := b.docker.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer att.Close()
	var out bytes.Buffer
	stdcopy.StdCopy(&out, &out, att.Reader)
	if st, err := b.docker.ContainerExecInspect(ctx, made.ID); err != nil || st.ExitCode != 0 {
		t.Fatalf("raw exec: %+v, %v", st, err)
	}
}

func percentile(d []time.Duration, p int) time.Duration {
	slices.Sort(d)
	return d[(len(d)-1)*p/100]
}
