package guest

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A program that writes line by line would wake the guest for each. Its first lines are passed on at once; when they go on, the
// pipe collects some for a pause, until a long pause has brought none. A pause grows as long as what it collects is little beside
// the pipe, which holds 64 KiB, so that a program that writes fast does not wait for us.
const (
	pumpPiece   = 16 << 10 // bytes of a read; as much as that at once means that the pause was too long
	promptReads = 50       // without a pause
	firstRest   = time.Millisecond
	longestRest = 150 * time.Millisecond
)

// pump passes on what comes out of a pipe, which it closes, until its end or that of ctx. Nothing pauses once the program has
// exited. In a pause the runtime's poller does not know the pipe: the kernel would wake it at each write.
func pump(ctx context.Context, to io.Writer, pipe *os.File, exited <-chan struct{}) error {
	fd, err := duplicate(pipe)
	pipe.Close()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	buf := make([]byte, pumpPiece)
	prompt, pause := promptReads, time.Duration(0)
	for ctx.Err() == nil {
		n, err := unix.Read(fd, buf)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			if pause == longestRest {
				prompt, pause = promptReads, 0
			}
			if awaitBytes(ctx, fd) != nil { // there is no descriptor to wait with
				<-time.After(longestRest)
			}
		case err != nil || n == 0:
			return err
		default:
			to.Write(buf[:n])
			switch {
			case n == len(buf):
				pause = 0
			case prompt > 0:
				prompt--
			default:
				pause = min(max(2*pause, firstRest), longestRest)
				doze(pause, exited)
			}
		}
	}
	return nil
}

// doze waits for d, unless over is closed before.
func doze(d time.Duration, over <-chan struct{}) {
	select {
	case <-time.After(d):
	case <-over:
	}
}

// duplicate gives a further descriptor of f, which does not block and is the caller's.
func duplicate(f *os.File) (fd int, err error) {
	c, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	if ctlErr := c.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); ctlErr != nil {
		return 0, ctlErr
	}
	return fd, err
}

// awaitBytes blocks until there are bytes to read, or the pipe or ctx has ended. It takes no thread for that.
func awaitBytes(ctx context.Context, fd int) error {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) // of which the poller knows until it is closed
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(own), "pipe")
	defer f.Close()
	defer context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Now()) })()
	return awaitReadable(f)
}
