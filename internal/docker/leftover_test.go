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
	child := func(group string) *exec.Cmd {
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(proc, strconv.Itoa(cmd.Process.Pid))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup"), []byte("1:cpu:/"+group+"\n0::/"+group+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	its, below, other := child("docker/"+id), child("system.slice/docker-"+id+".scope/deeper"), child("docker/"+strings.Repeat("d", 64))
	k := kernel{proc: proc}
	if n, err := k.end(id); n != 2 || err != nil {
		t.Fatalf("%d ended, %v", n, err)
	}
	for _, cmd := range []*exec.Cmd{its, below} {
		_ = cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Errorf("it ended with %v", cmd.ProcessState)
		}
	}
	if n, err := k.end("c"); n != 0 || err != nil {
		t.Errorf("by an id that is none %d ended, %v", n, err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another container's process: %v", err)
	}
	_ = other.Process.Kill()
	_ = other.Wait()
}
