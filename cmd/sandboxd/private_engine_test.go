//go:build e2e

package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// privateEngine is a real engine of a test's own, which may be killed and started again: a containerd and a dockerd in
// namespaces of their own for network, mounts and processes, with their own data. The machine's engine, its networks and
// its processes are out of their reach, and nothing in there but what is frozen outlives the process that holds the
// namespaces, which ends with the test however that ends. Its methods are for the test's own goroutine, but for those that
// say otherwise.
type privateEngine struct {
	t    testing.TB
	name string
	dir  string
	host string // for DOCKER_HOST

	mu     sync.Mutex
	holder int // the process that holds the namespaces; 0 when there is none

	space, containerd, dockerd *engineProcess
}

// engineProcess is one that a private engine consists of, started by way of a program that waits for it.
type engineProcess struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// The space of a private engine: a /run of its own, and an init that reaps orphans.
const engineSpace = `mount -t tmpfs tmpfs /run && ip link set lo up && echo ready && while :; do sleep 3600; done`

// containerdConfig keeps everything of it in the test's folder, but for what a restart of the machine takes.
const containerdConfig = `version = 2
root = "DIR/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "/run/containerd/containerd.sock"
`

// newPrivateEngine starts one that has the machine's debian:trixie-slim, and makes it the engine that the test's programs
// find (DOCKER_HOST). config is the content of its daemon.json.
func newPrivateEngine(t *testing.T, config string) *privateEngine {
	t.Helper()
	unique := make([]byte, 4)
	if _, err := rand.Read(unique); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "sbx-engine-")
	if err != nil {
		t.Fatal(err)
	}
	e := &privateEngine{t: t, name: "sbx-engine-" + hex.EncodeToString(unique), dir: dir, host: "unix://" + filepath.Join(dir, "docker.sock")}
	t.Cleanup(e.destroy)
	for file, text := range map[string]string{"containerd.toml": strings.ReplaceAll(containerdConfig, "DIR", dir), "daemon.json": config} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e.boot()
	e.await()
	image := filepath.Join(dir, "image.tar")
	engine(t, "save", "-o", image, "debian:trixie-slim")
	t.Setenv("DOCKER_HOST", e.host)
	engine(t, "load", "-i", image)
	if err := os.Remove(image); err != nil {
		t.Fatal(err)
	}
	return e
}

// boot makes the namespaces, as a machine that is switched on, and starts the engine in them.
func (e *privateEngine) boot() {
	e.t.Helper()
	e.space = e.run(exec.Command("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private",
		"sh", "-c", engineSpace), "space.log")
	e.until("its namespaces are there", func() bool {
		text, err := os.ReadFile(filepath.Join(e.dir, "space.log"))
		return err == nil && strings.HasPrefix(string(text), "ready")
	})
	e.mu.Lock()
	e.holder = child(e.t, e.space)
	e.mu.Unlock()
	e.start()
}

// start starts what the engine consists of, as far as it does not run. It does not wait until the engine answers.
func (e *privateEngine) start() {
	e.t.Helper()
	if e.containerd == nil {
		e.containerd = e.run(e.inside("containerd", "--config", filepath.Join(e.dir, "containerd.toml")), "containerd.log")
		e.until("containerd answers", func() bool { return e.inside("test", "-S", "/run/containerd/containerd.sock").Run() == nil })
	}
	if e.dockerd == nil {
		e.dockerd = e.run(e.inside("dockerd", "--config-file", filepath.Join(e.dir, "daemon.json"), "--data-root", filepath.Join(e.dir, "docker"),
			"--exec-root", "/run/docker", "--pidfile", "/run/docker.pid", "-H", e.host, "--containerd", "/run/containerd/containerd.sock",
			"--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", "/"+e.name), "dockerd.log")
	}
}

// await waits until the engine answers.
func (e *privateEngine) await() {
	e.t.Helper()
	e.until("the engine answers", func() bool { return exec.Command("docker", "-H", e.host, "version").Run() == nil })
}

// kill ends dockerd as a crash would, and with it containerd when that is wished. The containers' processes go on.
func (e *privateEngine) kill(containerd bool) {
	e.t.Helper()
	e.end(&e.dockerd)
	if containerd {
		e.end(&e.containerd)
	}
}

// cut switches the machine off, as far as it is ours: every process in the namespaces is gone at once, and so are the
// networks, the mounts and what was in /run. What was written stays.
func (e *privateEngine) cut() {
	e.t.Helper()
	e.mu.Lock()
	e.holder = 0
	e.mu.Unlock()
	if e.space == nil {
		return
	}
	_ = e.space.cmd.Process.Kill()
	e.until("its processes have ended", func() bool {
		e.thaw()
		return e.space.over() && e.containerd.over() && e.dockerd.over()
	})
	e.until("its control groups are gone", e.sweep)
	e.space, e.containerd, e.dockerd = nil, nil, nil
}

// over says whether the process has ended, or was never started.
func (p *engineProcess) over() bool {
	if p == nil {
		return true
	}
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// groups gives the files and folders of its control groups that are wanted, parents first.
func (e *privateEngine) groups(wanted func(path string, d fs.DirEntry) bool) (found []string) {
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		roots, _ := filepath.Glob(pattern + e.name)
		for _, root := range roots {
			_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err == nil && wanted(path, d) {
					found = append(found, path)
				}
				return nil
			})
		}
	}
	return found
}

// thaw lets what is frozen go on, so that it can end.
func (e *privateEngine) thaw() {
	words := map[string]string{"freezer.state": "THAWED", "cgroup.freeze": "0"}
	for _, path := range e.groups(func(path string, _ fs.DirEntry) bool { return words[filepath.Base(path)] != "" }) {
		_ = os.WriteFile(path, []byte(words[filepath.Base(path)]), 0) // it may be gone already
	}
}

// sweep removes the control groups that are left, which no process is in, and says whether none is.
func (e *privateEngine) sweep() bool {
	left := false
	for _, path := range slices.Backward(e.groups(func(_ string, d fs.DirEntry) bool { return d.IsDir() })) {
		if err := syscall.Rmdir(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			left = true
		}
	}
	return !left
}

// killGuest kills the first process of a container by its number, and says whether it was there.
func (e *privateEngine) killGuest(container string) bool {
	e.t.Helper()
	pid := engine(e.t, "inspect", "-f", "{{.State.Pid}}", container)
	if n, err := strconv.Atoi(pid); err != nil || n < 2 {
		return false
	}
	return e.inside("sh", "-c", `kill -9 "$0"`, pid).Run() == nil
}

// destroy removes everything.
func (e *privateEngine) destroy() {
	if e.t.Failed() {
		for _, name := range []string{"containerd.log", "dockerd.log"} {
			text, _ := os.ReadFile(filepath.Join(e.dir, name))
			e.t.Logf("%s:\n%s", name, text[max(0, len(text)-8_000):])
		}
	}
	e.cut()
	if err := os.RemoveAll(e.dir); err != nil {
		e.t.Error(err)
	}
}

// place is in the engine's network, from where the addresses of containers can be reached; all else is the machine's. What
// runs there ends with the test.
func (e *privateEngine) place() place {
	return place{
		enter: func(name string, args ...string) *exec.Cmd {
			return exec.Command("nsenter", append([]string{"--net=" + e.network(), "setpriv", "--pdeathsig", "KILL", name}, args...)...)
		},
		reach: e.reach,
	}
}

// network is the file of the network namespace.
func (e *privateEngine) network() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return "/proc/" + strconv.Itoa(e.holder) + "/ns/net"
}

// reach connects to an address in the engine's network. Safe for concurrent use.
func (e *privateEngine) reach(ctx context.Context, network, address string) (conn net.Conn, err error) {
	there, err := os.Open(e.network())
	if err != nil {
		return nil, err
	}
	defer there.Close()
	// The thread comes back: were it to end, all that it has started would end with it (Pdeathsig).
	runtime.LockOSThread()
	here, err := os.Open("/proc/thread-self/ns/net") // that of /proc/self is the main thread's, which may be over there itself
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	defer here.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
	if backErr := unix.Setns(int(here.Fd()), unix.CLONE_NEWNET); backErr != nil {
		panic(backErr) // nobody else may find itself over there
	}
	runtime.UnlockOSThread()
	return conn, err
}

// inside is a command in all of the engine's namespaces.
func (e *privateEngine) inside(name string, args ...string) *exec.Cmd {
	e.mu.Lock()
	defer e.mu.Unlock()
	return exec.Command("nsenter", append([]string{"--target", strconv.Itoa(e.holder), "--net", "--mount", "--pid", name}, args...)...)
}

// run starts a process whose output goes to a file in the engine's folder. It ends with the test.
func (e *privateEngine) run(cmd *exec.Cmd, log string) *engineProcess {
	e.t.Helper()
	out, err := os.OpenFile(filepath.Join(e.dir, log), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		e.t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	p := &engineProcess{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait()
	}()
	return p
}

// end kills a part of the engine.
func (e *privateEngine) end(part **engineProcess) {
	e.t.Helper()
	p := *part
	if err := syscall.Kill(child(e.t, p), syscall.SIGKILL); err != nil {
		e.t.Fatal(err)
	}
	<-p.ended
	*part = nil
}

// child gives the process that another was started for: the one that waits is told to begin it in a namespace.
func child(t testing.TB, p *engineProcess) int {
	t.Helper()
	id := strconv.Itoa(p.cmd.Process.Pid)
	text, err := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatalf("%v has not one child: %q", p.cmd.Args, text)
	}
	return pid
}

// until waits for an event.
func (e *privateEngine) until(what string, cond func() bool) {
	e.t.Helper()
	deadline := time.Now().Add(eventLimit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			e.t.Fatalf("within %s it was not so that %s", eventLimit, what)
		}
		<-tick.C
	}
}
