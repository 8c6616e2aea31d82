//go:build engine

package docker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/docker/docker/api/types/container"

	"sandboxd/internal/catalog"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// mask is the set of capabilities as /proc shows it.
func mask(names []string) string {
	bits := map[string]int{"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7,
		"SETPCAP": 8, "NET_BIND_SERVICE": 10, "SYS_CHROOT": 18, "AUDIT_WRITE": 29, "SETFCAP": 31}
	var m uint64
	for _, n := range names {
		m |= 1 << bits[n]
	}
	return fmt.Sprintf("%016x", m)
}

// check is a shell command in a sandbox and what must come of it.
type check struct {
	what    string
	user    string
	command string
	code    int    // -1 for any but 0
	has     string // part of the output
}

func checkAll(t *testing.T, e *Engine, id string, checks []check) {
	t.Helper()
	for _, c := range checks {
		code, out := inside(t, e, id, c.user, c.command)
		if (c.code < 0) != (code != 0) || !strings.Contains(out, c.has) {
			t.Errorf("%s: %q gave %d and %q", c.what, c.command, code, out)
		}
	}
}

// everywhere holds for every profile.
func everywhere(b sandbox.ContainerSpec) []check {
	return []check{
		{"host name", "0", "cat /etc/hostname", 0, b.Name},
		{"no engine socket", "0", "test -e /var/run/docker.sock || test -e /run/docker.sock", -1, ""},
		{"no device nodes", "0", "mknod /tmp/sda b 8 0", -1, ""},
		{"no raw device", "0", "ls /dev | grep -E '^(sd|vd|nvme|kvm|fuse|mem)'", -1, ""},
		{"guest cannot be changed", "0", "echo x >> " + wire.GuestPath, -1, ""},
		{"link folder cannot be changed", "0", "touch /.sandboxd/link/x", -1, ""},
		{"home can be written to", "0", "touch " + wire.HomePath + "/x", 0, ""},
		{"kernel memory is masked", "0", "cat /proc/kcore 2>/dev/null | head -c 9 | wc -c", 0, "0"},
		{"kernel keys are masked", "0", "wc -c < /proc/keys", 0, "0"},
		{"kernel switches are read-only", "0", "echo 1 > /proc/sys/kernel/panic", -1, ""},
		{"reboot trigger is read-only", "0", "echo b > /proc/sysrq-trigger", -1, ""},
		{"cgroup is read-only", "0", "echo 1 > $(find /sys/fs/cgroup -name cgroup.procs | head -1)", -1, ""},
		{"no mounts", "0", "mount -t tmpfs none /mnt", -1, ""},
		{"no user namespaces", "1000", "unshare -U true", -1, ""},
		{"no namespaces for root", "0", "unshare -n true", -1, ""},
		{"process 1 is an init", "0", "cat /proc/1/comm", 0, "docker-init"},
		{"limit on open files", "0", "ulimit -Hn", 0, fmt.Sprint(min(openFilesLimit("/proc"), maxOpenFiles))},
		{"no core files", "0", "ulimit -c", 0, "0"},
		{"goes first when memory runs out", "0", "cat /proc/self/oom_score_adj", 0, "500"},
		{"behaviour comes through", "0", "cat /proc/1/environ | tr '\\0' '\\n' | grep BEHAVIOUR", 0, "patient"},
		{"no stranger's processes", "0", "ls /proc | grep -cE '^[0-9]+$' | grep -xE '[3-6]'", 0, ""},
		{"no IPv6", "0", "wc -l < /proc/net/if_inet6 || echo 0", 0, "0"},
	}
}

func TestHarden_DevLetsRootInstallButNotLeave(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient")
	checkAll(t, e, b.ID, append(everywhere(b), []check{
		{"capabilities", "0", "grep CapBnd /proc/self/status", 0, mask(devCapabilities)},
		{"no raw sockets", "0", "grep CapEff /proc/self/status", 0, mask(devCapabilities)},
		{"root is writable", "0", "touch /usr/x && rm /usr/x", 0, ""},
		{"root can change users", "0", "setpriv --reuid=1000 --regid=1000 --clear-groups id -u", 0, "1000"},
		{"root can change owners", "0", "touch /tmp/y && chown 1000:1000 /tmp/y", 0, ""},
		{"set-uid programs work", "0", "grep NoNewPrivs /proc/self/status", 0, "0"},
		{"seccomp is on", "0", "grep Seccomp: /proc/self/status", 0, "2"},
		{"has a network", "0", "grep -c : /proc/net/dev", 0, "2"},
	}...))
}

// probe builds the program of that name for arch into the folder that b's sandbox sees, and gives its path in there.
func probe(t *testing.T, b sandbox.ContainerSpec, arch string) string {
	t.Helper()
	name := "probe-" + arch
	cmd := exec.Command("go", "build", "-o", filepath.Join(b.LinkPath, name), "./testdata/probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the probe: %v\n%s", err, text)
	}
	return path.Join(path.Dir(wire.SocketPath), name)
}

// runsOn reports whether this host's kernel runs programs for arch. Where it does not, there must be no way to run one in b either.
func runsOn(t *testing.T, e *Engine, b sandbox.ContainerSpec, arch string) bool {
	t.Helper()
	program := probe(t, b, arch)
	err := exec.Command(filepath.Join(b.LinkPath, path.Base(program))).Run()
	if !errors.Is(err, syscall.ENOEXEC) {
		return true
	}
	if code, out := inside(t, e, b.ID, "0", program); code != 126 {
		t.Errorf("a program for %s, which this host cannot run, ended in a sandbox with %d: %s", arch, code, out)
	}
	return false
}

func TestHarden_DevRefusesCornersOfTheKernel(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient")
	arches := []string{runtime.GOARCH}
	if runtime.GOARCH == "amd64" && runsOn(t, e, b, "386") {
		arches = append(arches, "386") // its sockets come by another call
	}
	for _, arch := range arches {
		program := probe(t, b, arch)
		for _, user := range []string{"0", "1000"} {
			code, out := inside(t, e, b.ID, user, program)
			if code != 0 {
				t.Fatalf("the probe ended with %d: %s", code, out)
			}
			for line := range strings.Lines(out) {
				want := "EPERM"
				switch {
				case strings.HasPrefix(line, "clone3 "): // whereupon programs take clone
					want = "ENOSYS"
				case strings.HasPrefix(line, "vsock ") && arch == "386":
					want = "ENOSYS"
				}
				if strings.Fields(line)[1] != want {
					t.Errorf("%s, user %s: %s", arch, user, line)
				}
			}
			if n := strings.Count(out, "\n"); n != 11 {
				t.Errorf("it asked %d times: %s", n, out)
			}
		}
	}
}

func TestHarden_StrictRefusesForeignSocketsTo32BitPrograms(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient", strictly)
	for arch, want := range map[string]string{"amd64": "vsock EPERM\n", "386": "vsock ENOSYS\n"} {
		if runtime.GOARCH == "amd64" && !runsOn(t, e, b, arch) {
			continue
		}
		if code, out := inside(t, e, b.ID, "0", probe(t, b, arch)); runtime.GOARCH == "amd64" && (code != 0 || !strings.HasPrefix(out, want)) {
			t.Errorf("%s: got %d and %s", arch, code, out)
		}
	}
}

func TestHarden_UserNamespacesAreForTemplatesThatAsk(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient", func(b *sandbox.ContainerSpec) { b.Namespaces = true })
	checkAll(t, e, b.ID, []check{
		{"a namespace of its own", "1000", "unshare --user --map-root-user --net --uts sh -c 'hostname inner && id -u'", 0, "0"},
		{"by clone", "1000", "unshare --user --map-root-user --fork --pid id -u", 0, "0"},
		{"the sandbox's own stay as they are", "0", "hostname other", -1, ""},
		{"no mounts outside one", "0", "mount -t tmpfs none /mnt", -1, ""},
	})
	code, out := inside(t, e, b.ID, "1000", probe(t, b, runtime.GOARCH))
	if code != 0 || !strings.Contains(out, "vsock EPERM\n") || !strings.Contains(out, "io_uring_setup EPERM\n") || !strings.Contains(out, "bpf EPERM\n") {
		t.Errorf("got %d and %s", code, out)
	}
}

func TestHarden_StrictGivesNothing(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient", strictly)
	checkAll(t, e, b.ID, append(everywhere(b), []check{
		{"capabilities", "0", "grep CapBnd /proc/self/status", 0, mask(strictCapabilities)},
		{"root is read-only", "0", "touch /usr/x || touch /x || touch /var/tmp/x", -1, "Read-only"},
		{"scratch can be written to and run from", "1000", "printf '#!/bin/sh\necho ran' > /tmp/x && chmod +x /tmp/x && /tmp/x", 0, "ran"},
		{"run can be written to", "0", "touch /run/x", 0, ""},
		{"root can become the user", "0", "setpriv --reuid=1000 --regid=1000 --clear-groups id -u", 0, "1000"},
		{"no new privileges", "1000", "grep NoNewPrivs /proc/self/status", 0, "1"},
		{"no way back to root", "0", "cp /usr/bin/id /home/agent/id && chmod u+s /home/agent/id && setpriv --reuid=1000 --regid=1000 --clear-groups /home/agent/id -u", 0, "1000"},
		{"seccomp is on", "0", "grep Seccomp: /proc/self/status", 0, "2"},
		{"no network but its own loopback", "0", "grep : /proc/net/dev | grep -v lo: | wc -l", 0, "0"},
		{"no names", "0", "getent hosts localhost.example", -1, ""},
		{"personality cannot be changed", "0", "setarch -R true", -1, ""},
	}...))
}

func TestHarden_LimitsAreApplied(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient", func(b *sandbox.ContainerSpec) {
		b.Limits = sandbox.Limits{CPUs: 0.5, Memory: 80 << 20, Pids: 40}
	})
	checks := []check{
		{"memory", "0", "cat /sys/fs/cgroup/memory/memory.limit_in_bytes", 0, fmt.Sprint(80 << 20)},
		{"memory and swap", "0", "cat /sys/fs/cgroup/memory/memory.memsw.limit_in_bytes || cat /sys/fs/cgroup/memory/memory.limit_in_bytes", 0, fmt.Sprint(80 << 20)},
		{"cpu", "0", "echo $(cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us) of $(cat /sys/fs/cgroup/cpu/cpu.cfs_period_us)", 0, "50000 of 100000"},
		{"processes", "0", "cat /sys/fs/cgroup/pids/pids.max", 0, "40"},
	}
	if e.Info().Cgroup == "2" {
		checks = []check{
			{"memory", "0", "cat /sys/fs/cgroup/memory.max", 0, fmt.Sprint(80 << 20)},
			{"swap", "0", "cat /sys/fs/cgroup/memory.swap.max || echo 0", 0, "0"},
			{"cpu", "0", "cat /sys/fs/cgroup/cpu.max", 0, "50000 100000"},
			{"processes", "0", "cat /sys/fs/cgroup/pids.max", 0, "40"},
		}
	}
	checkAll(t, e, b.ID, checks)
}

// A fork bomb and a hoarder end inside; the sandbox and its neighbour keep running.
func TestHarden_ABombStaysInside(t *testing.T) {
	e := openTest(t)
	b, neighbour := running(t, e, "patient"), running(t, e, "patient")
	checkAll(t, e, b.ID, []check{
		{"fork bomb", "1000", "i=0; while [ $i -lt 200 ]; do sleep 5 & i=$((i+1)); done", -1, ""},
		{"hoarder", "1000", "head -c 300m /dev/zero | tail", -1, ""},
	})
	all, err := e.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if !i.Running {
			t.Errorf("it has ended: %+v", i)
		}
	}
	checkAll(t, e, neighbour.ID, []check{{"neighbour", "0", "sleep 0 & wait", 0, ""}})
}

func TestHarden_SandboxesDoNotReachEachOther(t *testing.T) {
	e := openTest(t)
	server, client := running(t, e, "serve"), running(t, e, "serve")
	found, err := e.client.Load().ContainerInspect(t.Context(), e.resource(server.ID))
	if err != nil {
		t.Fatal(err)
	}
	addr := found.NetworkSettings.Networks[e.network.name].IPAddress
	c, err := net.Dial("tcp", addr+":8000") // the host does, so the server is there
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	checkAll(t, e, client.ID, []check{
		{"its own port", "1000", "timeout 3 bash -c 'cat < /dev/tcp/127.0.0.1/8000'", 0, "here"},
		{"the neighbour's port", "1000", "timeout 2 bash -c 'cat < /dev/tcp/" + addr + "/8000'", -1, ""},
	})
}

func TestHarden_ImageCannotDecideHowItRuns(t *testing.T) {
	e := openTest(t)
	tag := buildTest(t, e, "FROM "+testImage+"\nRUN useradd -m someone && echo hi > /home/note\nUSER someone\nWORKDIR /var/tmp\nENTRYPOINT [\"/bin/false\"]\nCMD [\"x\"]\nHEALTHCHECK --interval=1s CMD touch /healthy\nSTOPSIGNAL SIGKILL\nVOLUME /data\n")
	b := running(t, e, "patient", func(b *sandbox.ContainerSpec) { b.Image = tag })
	checkAll(t, e, b.ID, []check{
		{"runs as root", "", "id -u", 0, "0"},
		{"guest is the command", "", "tr '\\0' ' ' < /proc/1/cmdline", 0, wire.GuestPath},
	})
	found, err := e.client.Load().ContainerInspect(t.Context(), e.resource(b.ID))
	if err != nil {
		t.Fatal(err)
	}
	if found.State.Health != nil && found.State.Health.Status != container.NoHealthcheck {
		t.Errorf("the image's health check runs: %+v", found.State.Health)
	}
	if err := e.Stop(t.Context(), b.ID, 1e9); err != nil {
		t.Fatal(err)
	}
	if all, err := e.List(t.Context()); err != nil || all[0].ExitCode != 0 {
		t.Errorf("it was not asked to end politely: %+v %v", all, err)
	}
}

func TestHarden_NothingOfTheHostIsMounted(t *testing.T) {
	ca := t.TempDir() + "/ca.pem"
	if err := os.WriteFile(ca, []byte("bundle"), 0o644); err != nil {
		t.Fatal(err)
	}
	ide := t.TempDir()
	e := openTest(t, func(c *Config) { c.CAFile, c.IDEFolder = ca, ide })
	for _, profile := range []catalog.Profile{catalog.Dev, catalog.Strict} {
		b := running(t, e, "patient", func(b *sandbox.ContainerSpec) { b.Profile = profile })
		found, err := e.client.Load().ContainerInspect(t.Context(), e.resource(b.ID))
		if err != nil {
			t.Fatal(err)
		}
		ours := []string{e.c.GuestBinary, b.LinkPath, ca, ide}
		for _, m := range found.Mounts {
			if m.Type == "bind" && (!slices.Contains(ours, m.Source) || m.RW) {
				t.Errorf("%s: the host's %s is mounted at %s, writable %t", profile, m.Source, m.Destination, m.RW)
			}
		}
		h := found.HostConfig
		if h.Privileged || h.PidMode != "" || h.NetworkMode == "host" || h.IpcMode != "private" || len(h.Devices) > 0 || len(h.PortBindings) > 0 {
			t.Errorf("%s: %+v", profile, h)
		}
		if l := found.Config.Labels; l[labelInstance] != e.c.Instance || l["traefik.enable"] != "true" || l[labelName] != b.Name {
			t.Errorf("%s: labels %v", profile, l)
		}
		later := filepath.Join(ide, string(profile))
		if err := os.WriteFile(later, []byte("later"), 0o644); err != nil { // what comes when the sandbox runs
			t.Fatal(err)
		}
		checkAll(t, e, b.ID, []check{
			{"CA bundle", "1000", "cat $SSL_CERT_FILE $NODE_EXTRA_CA_CERTS", 0, "bundlebundle"},
			{"VS Code", "1000", "cat " + wire.IDEPath + "/" + string(profile), 0, "later"},
			{"VS Code is not changed", "0", "echo x > " + wire.IDEPath + "/x", -1, ""},
		})
	}
}
