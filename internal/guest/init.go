package guest

import (
	"os"
	"os/signal"
	"syscall"

	"sandboxd/internal/wire"
)

// workspacePath is the name under which people also find their volume.
const workspacePath = "/workspace"

// LinkWorkspace makes /workspace lead to the volume where the image does not have it. Where it cannot, on a read-only
// root, nothing is lost but a name.
func LinkWorkspace() {
	if _, err := os.Lstat(workspacePath); os.IsNotExist(err) {
		os.Symlink(wire.HomePath, workspacePath)
	}
}

// Init is PID 1 where the engine gave none: it starts the guest as its child, passes signals on, reaps orphaned processes,
// and gives the guest's exit code when that ends. The guest cannot do so itself, because reaping everything
// would take the exit codes from their waiters.
func Init() int {
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	child, err := syscall.ForkExec("/proc/self/exe", os.Args, &syscall.ProcAttr{Env: os.Environ(),
		Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 126
	}
	go func() { // ends with the process
		for s := range caught {
			syscall.Kill(child, s.(syscall.Signal))
		}
	}()
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return 125
		}
		if pid == child && ws.Signaled() {
			return 128 + int(ws.Signal())
		}
		if pid == child {
			return ws.ExitStatus()
		}
	}
}
