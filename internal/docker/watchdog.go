package docker

import (
	"context"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"

	"sandboxd/internal/fault"
)

// How long a watchdog tries to thaw a container, and how often: the engine may be away as well.
const (
	watchdogLimit = 10 * time.Minute
	watchdogEvery = time.Second
)

// watchdogs are processes that each thaw a paused container when this one dies before it does so itself.
type watchdogs struct {
	command []string // to which the container's name is added, and which calls ThawOrphan; empty for none

	mu     sync.Mutex
	byName map[string]io.WriteCloser // their standard inputs
}

// begin starts one, which watches the container until end.
func (w *watchdogs) begin(container string) error {
	if len(w.command) == 0 {
		return nil
	}
	w.end(container)
	cmd := exec.Command(w.command[0], append(w.command[1:len(w.command):len(w.command)], container)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in a terminal is for this process alone
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fault.Wrap(err, fault.Unavailable, "The process that would thaw the sandbox does not start, so it is not frozen.")
	}
	go cmd.Wait() // it ends soon after its input; how is of no interest
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byName == nil {
		w.byName = map[string]io.WriteCloser{}
	}
	w.byName[container] = in
	return nil
}

// end dismisses that of a container, if there is one.
func (w *watchdogs) end(container string) {
	w.mu.Lock()
	in := w.byName[container]
	delete(w.byName, container)
	w.mu.Unlock()
	if in != nil {
		_, _ = in.Write([]byte{0}) // one that has died needs no word
		in.Close()
	}
}

// ThawOrphan is a watchdog: it waits for the end of in, and thaws the container unless a byte came before. It tries for ten minutes.
func ThawOrphan(ctx context.Context, container string, in io.Reader) error {
	if word, err := io.ReadAll(in); err != nil || len(word) > 0 {
		return err
	}
	cli, err := dial("")
	if err != nil {
		return err
	}
	defer cli.Close()
	ctx, cancel := context.WithTimeout(ctx, watchdogLimit)
	defer cancel()
	for {
		err := cli.ContainerUnpause(ctx, container)
		if err == nil || errdefs.IsNotFound(err) || errdefs.IsConflict(err) || errdefs.IsInternal(err) { // the latter say that it is not paused
			return nil
		}
		select {
		case <-time.After(watchdogEvery):
		case <-ctx.Done():
			return err
		}
	}
}
