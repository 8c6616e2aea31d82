// Package descent marks processes started in a sandbox so that all their descendants can be found, wherever they went.
//
// The mark is the soft limit on file locks (RLIMIT_LOCKS), which Linux has ignored since 2.4.25: a process gives it to
// its children, and neither a fork, nor a session of its own, nor another environment or user takes it away. It is no
// guard: a process that sets that limit by hand gets rid of the mark. It does not decide which processes are ended.
//
// Invariant: the mark is the guest's own for as long as a start takes, so every start in the guest goes through this
// package. Otherwise a terminal could be born with the mark of a command, and die with it.
package descent

import (
	"bytes"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// starts is held while something is started; it guards the limit of this process.
var starts sync.Mutex

// Mark names the ancestor of processes. 0 is none.
type Mark uint64

// NewMark makes a mark of 64 random bits. It never is the value that means "unlimited".
func NewMark(bits uint64) Mark { return Mark(bits >> 1) }

// Start calls start, which starts a process, so that it and all that comes of it carry the mark. Where the kernel does
// not allow that it only calls start. Safe for concurrent use.
func Start(m Mark, start func() error) error {
	starts.Lock()
	defer starts.Unlock()
	var had unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_LOCKS, &had) == nil {
		marked := unix.Rlimit{Cur: uint64(m), Max: had.Max}
		if m != 0 && had.Max == unix.RLIM_INFINITY && unix.Setrlimit(unix.RLIMIT_LOCKS, &marked) == nil {
			defer unix.Setrlimit(unix.RLIMIT_LOCKS, &had) // back to the old limit
		}
	}
	return start()
}

// StartPlain calls start, which starts a process, so that it carries no mark. Safe for concurrent use.
func StartPlain(start func() error) error { return Start(0, start) }

// Of gives the mark that a process carries; 0 when it has none or has ended.
func Of(pid int) Mark {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(b, []byte("Max file locks"))
	f := bytes.Fields(rest)
	if !ok || len(f) == 0 {
		return 0
	}
	n, err := strconv.ParseUint(string(f[0]), 10, 64) // or "unlimited"
	if err != nil {
		return 0
	}
	return Mark(n)
}
