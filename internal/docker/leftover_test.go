package docker

import (
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
	if n, err := k.end(id); n != 3 || err != nil {
		t.Fatalf("%d ended, %v", n, err)
	}
	for _, cmd := range []*exec.Cmd{its, below, keeper} {
		_ = cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Errorf("it ended with %v", cmd.ProcessState)
		}
	}
	if n, err := k.end("c"); n != 0 || err != nil {
		t.Errorf("by an id that is none %d ended, %v", n, err)
	}
	for _, cmd := range []*exec.Cmd{other, others, person} {
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("another's process: %v", err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
