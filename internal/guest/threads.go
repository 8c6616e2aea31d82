package guest

import (
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// spareThreads is how many threads the guest makes while it can: more than it was seen to use, and still few
// of the 32 processes that the smallest sandbox may have. The Go runtime
// ends a program that needs a thread and gets none, and the guest's end is the sandbox's.
const spareThreads = 12

// reserveThreads makes threads, which the runtime keeps for ever, so that a sandbox that is full of processes does not
// lose its guest.
func reserveThreads() {
	var met, done sync.WaitGroup
	met.Add(spareThreads)
	for range spareThreads {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			met.Done()
			met.Wait() // so that no thread serves two
		})
	}
	done.Wait()
}

// awaitExit blocks until pid, a child that is not reaped yet, has ended. It takes no thread for that; where the kernel
// cannot, it returns at once, and reaping blocks instead.
func awaitExit(pid int) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	awaitReadable(f)
}

// awaitReadable blocks until f has something to read or has ended, and reads nothing. f must not block by itself.
func awaitReadable(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return c.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}
