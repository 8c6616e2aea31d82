package tty

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// openPTY makes a pseudo-terminal. The master is non-blocking, so that closing it ends a read or write under way (which
// is why creack/pty, that makes it blocking, is not used). The slave belongs to uid where that is allowed.
func openPTY(s wire.TTYSize, uid int) (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open pty: %w", err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	if slave, err = openSlave(fd, uid); err != nil {
		master.Close()
		return nil, nil, err
	}
	if err := setSize(master, s); err != nil {
		master.Close()
		slave.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

func openSlave(fd, uid int) (*os.File, error) {
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, fmt.Errorf("unlock pty: %w", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, fmt.Errorf("number pty: %w", err)
	}
	name := "/dev/pts/" + strconv.Itoa(n)
	slave, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("open pty: %w", err)
	}
	if uid >= 0 {
		_ = os.Chown(name, uid, -1) // only a program that opens it by name would miss it
	}
	return slave, nil
}

// setSize tells the terminal's wire.TTYSize; the kernel signals the foreground processes if it changed.
func setSize(master *os.File, s wire.TTYSize) error {
	raw, err := master.SyscallConn()
	if err != nil {
		return fmt.Errorf("size pty: %w", err)
	}
	var inner error
	err = raw.Control(func(fd uintptr) {
		inner = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(s.Rows), Col: uint16(s.Columns)})
	})
	if err == nil {
		err = inner
	}
	if err != nil {
		return fmt.Errorf("size pty: %w", err)
	}
	return nil
}
