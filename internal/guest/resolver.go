package guest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// engineResolver is where a container engine answers questions for names, in the container's own network: also for the names and
// addresses of all other containers.
var engineResolver = [4]byte{127, 0, 0, 11}

// CloseResolver makes the engine's resolver unreachable if the engine has given this program the capability for that, and
// gives the capability up for good, for itself and all that it will ever start. It must come before anything else
// runs in the sandbox. An error means that the capability is still there. Where the kernel will not have the route, which is
// logged, programs still find other servers in resolv.conf.
func CloseResolver(log *slog.Logger) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	const bit = uint32(1) << unix.CAP_NET_ADMIN
	if sets[0].Effective&bit == 0 {
		return nil
	}
	if err := refuseRoute(engineResolver); err != nil {
		log.Warn("the engine's resolver stays reachable", "err", err)
	}
	sets[0].Effective &^= bit
	sets[0].Permitted &^= bit
	sets[0].Inheritable &^= bit
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, unix.CAP_NET_ADMIN, 0)
	if errno == 0 {
		_, _, errno = syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets)), 0)
	}
	if errno != 0 {
		return fmt.Errorf("give up a capability: %w", errno)
	}
	return nil
}

// refuseRoute makes everything that is sent to an address fail at once: a route of its own in the table that the kernel
// looks at first.
func refuseRoute(to [4]byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer unix.Close(fd)
	order := binary.NativeEndian
	m := order.AppendUint32(nil, unix.SizeofNlMsghdr+unix.SizeofRtMsg+unix.SizeofRtAttr+4)
	m = order.AppendUint16(m, unix.RTM_NEWROUTE)
	m = order.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	m = append(m, make([]byte, 8)...) // sequence and port
	m = append(m, unix.AF_INET, 32, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNREACHABLE, 0, 0, 0, 0)
	m = order.AppendUint16(m, unix.SizeofRtAttr+4)
	m = order.AppendUint16(m, unix.RTA_DST)
	m = append(m, to[:]...)
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("ask for a route: %w", err)
	}
	var answer [1024]byte
	n, _, err := unix.Recvfrom(fd, answer[:], 0)
	if err != nil {
		return fmt.Errorf("ask for a route: %w", err)
	}
	if n < unix.SizeofNlMsghdr+4 || order.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return errors.New("ask for a route: no answer to it")
	}
	if code := int32(order.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return fmt.Errorf("ask for a route: %w", syscall.Errno(-code))
	}
	return nil
}
