package docker

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestKernel_EndsTheProcessesOfOneContainerAlone(t *testing.T) {
	proc, id := t.TempDir(), strings.Repeat("c", 64)
	child := func(group string, args ...string) *exec.Cmd {
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(proc, strconv.Itoa(cmd.Process.Pid))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"cgroup": "1:cpu:/" + group + "\n0::/" + group + "\n", "cmdline": strings.Join(args, "\x00") + "\x00"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return cmd
	}
	shim := []string{"/usr/bin/containerd-shim-runc-v2", "-namespace", "moby", "-id"}
	its, below, other := child("docker/"+id), child("system.slice/docker-"+id+".scope/deeper"), child("docker/"+strings.Repeat("d", 64))
	keeper, others := child("containerd.service", append(shim, id, "-address", "/run")...), child("containerd.service", append(shim, strings.Repeat("d", 64))...)
	person := child("user.slice", "vim", "-id", id)
	k := kernel{proc: proc}
	if n := k.end(id); n != 3 {
		t.Fatalf("%d ended", n)
	}
	for _, cmd := range []*exec.Cmd{its, below, keeper} {
		_ = cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Errorf("it ended with %v", cmd.ProcessState)
		}
	}
	if n := k.end("c"); n != 0 {
		t.Errorf("by an id that is none %d ended", n)
	}
	for _, cmd := range []*exec.Cmd{other, others, person} {
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("another's process: %v", err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func TestKernel_EndsWhatWritesACheckpointAndFindsWhatIsStopped(t *testing.T) {
	proc, id := t.TempDir(), strings.Repeat("c", 64)
	process := func(pid string, files map[string]string) {
		for file, text := range files {
			if err := errors.Join(os.MkdirAll(filepath.Join(proc, pid), 0o700), os.WriteFile(filepath.Join(proc, pid, file), []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	process("1000000", map[string]string{"stat": "1000000 (runc) S 1 1", "cmdline": "runc\x00--root\x00/r\x00checkpoint\x00--image-path\x00/i\x00" + id + "\x00"})
	process("1000001", map[string]string{"stat": "1000001 (runc) S 1 1", "cmdline": "runc\x00start\x00" + id + "\x00"})
	criu, other := exec.Command("sleep", "600"), exec.Command("sleep", "600")
	for cmd, parent := range map[*exec.Cmd]string{criu: "1000000", other: "1000001"} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		process(strconv.Itoa(cmd.Process.Pid), map[string]string{"stat": "1 (a ) b) D " + parent + " 7 7"})
	}
	k := kernel{proc: proc}
	if n := k.endCheckpoint(id); n != 1 {
		t.Errorf("%d are ended", n)
	}
	_ = criu.Wait() // it was killed
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another's process: %v", err)
	}
	_ = other.Process.Kill() // it is of no use any more
	_ = other.Wait()         // it was killed

	process("1000002", map[string]string{"cgroup": "0::/docker/" + id, "wchan": "hrtimer_nanosleep", "comm": "sleep\n"})
	if got := k.stopped(id); got != "" {
		t.Errorf("%q is said to be stopped", got)
	}
	process("1000003", map[string]string{"cgroup": "0::/docker/" + id, "wchan": "do_signal_stop", "comm": "vi\x1bm\n"})
	if got := k.stopped(id); got != "vim" {
		t.Errorf("%q is said to be stopped", got)
	}
}
