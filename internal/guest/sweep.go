package guest

import (
	"syscall"
	"time"

	"sandboxd/internal/guest/thaw"
)

// sweepPace is how often a sweep looks whether everything has ended.
const sweepPace = 5 * time.Millisecond

// sweep ends every other process of the PID namespace but the first: it asks, and kills after grace. Processes from
// exec and terminals may have lost their parents, so the whole namespace is the only complete list.
func sweep(grace time.Duration) {
	if !others() {
		return
	}
	syscall.Kill(-1, syscall.SIGTERM)
	for _, p := range processes() {
		if p.terminal { // interactive shells do not hear TERM; of others HUP would cut the end short
			syscall.Kill(p.pid, syscall.SIGHUP)
		}
	}
	syscall.Kill(-1, syscall.SIGCONT) // stopped processes hear neither
	for left := thaw.NewBudget(grace); others() && !left.Spent(); {
		time.Sleep(sweepPace)
	}
	for left := thaw.NewBudget(time.Second); others() && !left.Spent(); {
		syscall.Kill(-1, syscall.SIGKILL)
		time.Sleep(sweepPace)
	}
}

// others says whether anything else is alive.
func others() bool {
	for _, p := range processes() {
		if !p.zombie {
			return true
		}
	}
	return false
}
