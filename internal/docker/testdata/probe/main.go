// Command probe asks the kernel for what a sandbox is not to have, and prints what it says to each: a line with the name
// and the error.
package main

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	_, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	say("vsock", err)
	var block [256]byte
	p := uintptr(unsafe.Pointer(&block))
	call("io_uring_setup", unix.SYS_IO_URING_SETUP, 4, p, 0)
	call("io_uring_enter", unix.SYS_IO_URING_ENTER, 0, 0, 0)
	call("io_uring_register", unix.SYS_IO_URING_REGISTER, 0, 0, 0)
	call("keyctl", unix.SYS_KEYCTL, 0, 0, 0)
	call("add_key", unix.SYS_ADD_KEY, p, p, 0)
	call("request_key", unix.SYS_REQUEST_KEY, p, p, 0)
	call("bpf", unix.SYS_BPF, 0, p, 0)
	call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, p, 0, 0)
	call("clone3", unix.SYS_CLONE3, p, 0, 0)
	call("unshare", unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0)
}

func call(name string, number, a, b, c uintptr) {
	_, _, errno := unix.Syscall(number, a, b, c)
	if errno == 0 {
		say(name, nil)
		return
	}
	say(name, errno)
}

func say(name string, err error) {
	errno, failed := err.(syscall.Errno)
	if !failed {
		fmt.Println(name, "OK")
		return
	}
	fmt.Println(name, unix.ErrnoName(errno))
}
