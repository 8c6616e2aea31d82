package btrfs

import (
	"context"
	"errors"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From linux/btrfs.h.
const (
	ioctlBalance        = 0xc4009420
	ioctlBalanceControl = 0x40049421
	balanceCancel       = 2
	balanceData         = 1 << 0
	balanceUsage        = 1 << 1
	balanceLimit        = 1 << 5
)

// packed are how many parts of the disk, of 1 GiB at most, one Pack moves at most.
const packed = 4

// stopAgain is between two tries to stop a balance that has not begun.
const stopAgain = 50 * time.Millisecond

// balance are struct btrfs_ioctl_balance_args, with the data's filter only.
type balance struct {
	flags, state uint64
	profiles     uint64
	usage        uint64
	_            [6]uint64
	filters      uint64
	limit        uint64
	_            [7]uint64
	_            [2][17]uint64 // filters of the rest
	_            [3]uint64     // what was done
	_            [72]uint64
}

var _ [1024]byte = [unsafe.Sizeof(balance{})]byte{}

// Pack moves what little data is left in some parts of the disk after deletes into others, so that those parts are free for anything: see
// reclaim. The kernel does that itself when a part becomes nearly empty, but not while files in it are still being deleted, and then never
// looks at that part again. It waits for the disk, where it writes at most 1.2 GiB; it ends soon after ctx, with its error. When something
// else packs or grows the pool it does nothing.
func (p *Pool) Pack(ctx context.Context) error {
	conn, err := p.volumes.SyscallConn()
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	over, stopped := make(chan struct{}), make(chan struct{})
	unwatched := context.AfterFunc(ctx, func() {
		defer close(stopped)
		stopBalance(conn, over)
	})
	b := balance{flags: balanceData, usage: leastUsed, filters: balanceUsage | balanceLimit, limit: packed}
	err = ioctl(p.volumes, ioctlBalance, unsafe.Pointer(&b))
	close(over)
	if !unwatched() {
		<-stopped
		return ctx.Err()
	}
	if errors.Is(err, unix.EINPROGRESS) {
		return nil
	}
	return explain(err, "pack its data")
}

// stopBalance has a balance end soon. One that has not begun is waited for.
func stopBalance(conn syscall.RawConn, over <-chan struct{}) {
	refused := true
	for refused {
		err := conn.Control(func(fd uintptr) { refused = unix.IoctlSetInt(int(fd), ioctlBalanceControl, balanceCancel) != nil })
		if err != nil {
			return // it is closed
		}
		select {
		case <-over:
			return
		case <-time.After(stopAgain):
		}
	}
}
