package docker

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// How long what is left of a container may take to end, and how often that is looked at.
const (
	clearLimit = 5 * time.Second
	clearPause = 100 * time.Millisecond
)

// occupied says whether a start was refused because of what an engine that was killed in the middle of an earlier start
// has left: containerd has processes of the container that the engine does not know of. Docker before 23 does not end
// them itself, however often it is asked or restarted.
func occupied(cause error) bool {
	return cause != nil && strings.Contains(cause.Error(), "id already in use")
}

// vacate ends what is left of a container that does not run, and starts it again by start until that succeeds. It takes
// seeing the host's processes; where it sees none of the container's it gives cause.
func (e *Engine) vacate(ctx context.Context, containerID string, cause error, start func() error) error {
	ctx, cancel := context.WithTimeout(ctx, clearLimit)
	defer cancel()
	ended := 0
	for {
		n, err := e.reclaims.kernel.end(containerID)
		if ended += n; err != nil || ended == 0 {
			return cause
		}
		if n == 0 {
			if cause = start(); !occupied(cause) {
				e.c.Log.Info("ended what an engine that was killed had left of a container", "container", containerID, "processes", ended)
				return cause
			}
		}
		select {
		case <-time.After(clearPause): // until containerd has noticed
		case <-ctx.Done():
			return cause
		}
	}
}

// end kills all processes of a container that are seen from here, and gives how many.
func (k kernel) end(containerID string) (killed int, err error) {
	if len(containerID) < minContainerID {
		return 0, nil
	}
	found, err := filepath.Glob(filepath.Join(k.proc, "[1-9]*", "cgroup"))
	for _, path := range found {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || !mentions(path, containerID) {
			continue
		}
		p, err := os.FindProcess(pid) // the very process from here on, and not another one of that number
		if err != nil {
			continue
		}
		if mentions(path, containerID) && p.Kill() == nil {
			killed++
		}
		_ = p.Release()
	}
	return killed, err
}

func mentions(path, text string) bool {
	b, err := os.ReadFile(path)
	return err == nil && bytes.Contains(b, []byte(text))
}
