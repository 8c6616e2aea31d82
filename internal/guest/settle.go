package guest

import (
	"bufio"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// settleAfter is how long after the last piece of work unused memory is given back. The runtime would keep it for
// minutes, in every sandbox.
const settleAfter = 2 * time.Second

// tidyEvery is how often, at most, memory is given back while work goes on and on.
const tidyEvery = 5 * time.Second

// settler gives memory back when there has been work and then none was begun or ended for a while.
type settler struct {
	timer   *time.Timer
	started func() // gives back, once, what only the start has needed; it takes half a millisecond
}

func newSettler(settle, started func()) settler {
	return settler{timer: time.AfterFunc(settleAfter, settle), started: sync.OnceFunc(started)}
}

// worked puts the moment off.
func (s settler) worked() { s.timer.Reset(settleAfter) }

func (s settler) stop() { s.timer.Stop() }

// tidy is giveBack for one that goes on.
func tidy() {
	debug.FreeOSMemory()
	unmapProgram()
}

// giveBack lets go of memory that an idle guest does not need.
func giveBack() {
	debug.FreeOSMemory() // buffers that are pooled survive the first round
	debug.FreeOSMemory()
	unmapProgram()
}

// unmapProgram lets go of the pages of our own program, which are most of what an idle guest has: they stay in the
// kernel's page cache, once for all sandboxes, and those that are needed again are mapped again. Only mappings that
// nothing has written to are touched: a written page would be lost.
func unmapProgram() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for _, m := range programMappings(exe) { // the last thing done, because what is used again comes back
		unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
}

// mapping is addresses of our memory.
type mapping struct{ from, to uintptr }

// programMappings gives where the program is mapped from its file and was not written to. It is at the lowest addresses, and the
// kernel takes long to tell of the others: it does not read further.
func programMappings(exe string) (found []mapping) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil
	}
	defer f.Close()
	var at mapping // that the lines are about; zero when it is none of ours
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		switch {
		case len(f) >= 5 && strings.Contains(f[0], "-"): // 00400000-00707000 r-xp 00000000 fe:00 9986164 /.sandboxd/guest
			if at = (mapping{}); len(f) < 6 || f[5] != exe {
				return found
			}
			if f[1] == "r-xp" || f[1] == "r--p" {
				low, high, _ := strings.Cut(f[0], "-")
				from, _ := strconv.ParseUint(low, 16, 64) // the kernel wrote them; 0 for both is left out below
				to, _ := strconv.ParseUint(high, 16, 64)
				at = mapping{uintptr(from), uintptr(to)}
			}
		case len(f) >= 2 && f[0] == "Anonymous:" && f[1] == "0" && at.to > at.from:
			found = append(found, at)
		}
	}
	return found
}
