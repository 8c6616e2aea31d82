package docker

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/text"
)

// How long a container's remaining processes may take to end, and the pause between looks.
const (
	clearLimit = 5 * time.Second
	clearPause = 100 * time.Millisecond
)

// vacate ends what an engine that was killed in the middle of a start has left of a container: processes, and a shim of
// containerd's, that the engine does not know of. Docker before 23 refuses to start such a container ("id already in
// use", "task … already exists"), however often it is asked or restarted. Then it starts it again by start. It takes seeing
// the host's processes; where none of the container's is seen it gives cause, which the start was refused for while the
// container did not run.
func (e *Engine) vacate(ctx context.Context, containerID string, cause error, start func() error) error {
	ctx, cancel := context.WithTimeout(ctx, clearLimit)
	defer cancel()
	ended := 0
	for {
		n := e.reclaims.kernel.end(containerID)
		if ended += n; ended == 0 {
			return cause
		}
		if n == 0 {
			if cause = start(); cause == nil {
				e.c.Log.Info("ended what an engine that was killed had left of a container", "container", containerID, "processes", ended)
				return nil
			}
		}
		select {
		case <-time.After(clearPause): // until containerd has noticed
		case <-ctx.Done():
			return cause
		}
	}
}

// end kills all processes of a container that are seen from here, and the shims that look after it, and gives how many.
func (k kernel) end(containerID string) (killed int) {
	return k.kill(containerID, belongs)
}

// endCheckpoint kills what writes a checkpoint of a container, and gives how many processes that were. The engine then says that it failed.
func (k kernel) endCheckpoint(containerID string) (killed int) {
	return k.kill(containerID, func(dir, containerID string) bool {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // a name may have spaces
		if err != nil || len(fields) < 2 {
			return false
		}
		args, err := os.ReadFile(filepath.Join(k.proc, string(fields[1]), "cmdline")) // of its parent
		return err == nil && bytes.Contains(args, []byte("\x00checkpoint\x00")) && bytes.HasSuffix(args, []byte("\x00"+containerID+"\x00"))
	})
}

// stopped gives the name of a program of a frozen container that was stopped by a signal before; "" for none.
func (k kernel) stopped(containerID string) string {
	for _, dir := range k.processes(containerID, belongs) {
		at, err := os.ReadFile(filepath.Join(dir, "wchan"))
		if err != nil || string(at) != "do_signal_stop" {
			continue
		}
		if name, err := os.ReadFile(filepath.Join(dir, "comm")); err == nil {
			return text.Excerpt(strings.TrimSpace(string(name)), longestComm)
		}
	}
	return ""
}

// longestComm is how long the kernel lets a name of a process be.
const longestComm = 16

// processes gives the folders in /proc of a container's processes, by what belongs to it.
func (k kernel) processes(containerID string, belongs func(dir, containerID string) bool) (dirs []string) {
	if len(containerID) < minContainerID {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(k.proc, "[1-9]*"))
	if err != nil { // of the pattern only
		return nil
	}
	for _, dir := range found {
		if belongs(dir, containerID) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// kill kills processes of a container.
func (k kernel) kill(containerID string, belongs func(dir, containerID string) bool) (killed int) {
	for _, dir := range k.processes(containerID, belongs) {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		p, err := os.FindProcess(pid) // the very process from here on, and not another one of that number
		if err != nil {
			continue
		}
		if belongs(dir, containerID) && p.Kill() == nil {
			killed++
		}
		_ = p.Release()
	}
	return killed
}

// belongs reports whether a process, by its folder in /proc, is in the control group of a container, or its shim.
func belongs(dir, containerID string) bool {
	groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err == nil && bytes.Contains(groups, []byte(containerID)) {
		return true
	}
	args, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	program, rest, _ := bytes.Cut(args, []byte{0})
	return err == nil && bytes.HasPrefix([]byte(filepath.Base(string(program))), []byte("containerd-shim")) &&
		bytes.Contains(rest, []byte("-id\x00"+containerID+"\x00"))
}
