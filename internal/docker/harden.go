package docker

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/docker/docker/api/types/container"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"sandboxd/internal/catalog"
)

// devCapabilities let root in a sandbox install packages and change users. They are the engine's own set without raw
// sockets and device nodes.
var devCapabilities = []string{"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE",
	"SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}

// strictCapabilities are what the guest needs to prepare the home, to become the sandbox's user and to end its
// processes.
var strictCapabilities = []string{"CHOWN", "DAC_OVERRIDE", "KILL", "SETGID", "SETUID"}

// strictScratch is what can be written to in a strict sandbox beside its home. It is memory, within the limit.
var strictScratch = map[string]string{
	"/tmp": "rw,exec,nosuid,nodev,mode=1777,size=256m",
	"/run": "rw,noexec,nosuid,nodev,mode=755,size=16m",
}

// harden holds h as tightly as p says, and namespaces lets programs of a dev sandbox make user namespaces. A profile that
// is not known is held strictly.
func harden(h *container.HostConfig, p catalog.Profile, namespaces bool) {
	h.CapDrop = []string{"ALL"}
	if p == catalog.Dev {
		h.CapAdd = devCapabilities
		h.SecurityOpt = []string{"seccomp=" + devSeccomp(namespaces)} // the engine's own AppArmor profile applies
		return
	}
	h.CapAdd = strictCapabilities
	h.SecurityOpt = []string{"no-new-privileges", "seccomp=" + strictSeccomp()}
	h.ReadonlyRootfs = true
	h.Tmpfs = strictScratch
}

// hasNetwork reports whether sandboxes of p have one.
func hasNetwork(p catalog.Profile) bool { return p == catalog.Dev }

// deniedStrict are system calls that the engine's own profile allows and programs in a strict sandbox can do without:
// looking into other processes, creating what only namespaces and mounts need, and corners of the kernel that have
// been ways out before. What the profile ties to capabilities (mount, setns, bpf, …) is denied with those anyway.
var deniedStrict = []string{
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
	"unshare", "setns", "mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen",
	"fsconfig", "fsmount", "fspick", "mount_setattr", "listmount", "statmount",
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
	"keyctl", "add_key", "request_key", "name_to_handle_at", "open_by_handle_at", "fanotify_init", "fanotify_mark",
	"modify_ldt", "remap_file_pages", "vmsplice", "memfd_secret", "uretprobe", "personality", "syslog", "lookup_dcookie",
	"quotactl", "quotactl_fd", "acct", "adjtimex", "clock_adjtime", "clock_adjtime64",
}

// The socket families of a strict sandbox: local, IPv4 and IPv6 (it has its own loopback), and netlink, which
// programs ask for the list of interfaces.
var strictFamilies = []uint64{1, 2, 10, 16}

// strictSeccomp is the profile of strict sandboxes, as the engine takes it.
var strictSeccomp = sync.OnceValue(func() string {
	var sockets []*seccomp.Syscall
	for _, family := range strictFamilies {
		sockets = append(sockets, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{
			Names: []string{"socket"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: family, Op: specs.OpEqualTo}},
		}})
	}
	return derive(slices.Concat(deniedStrict, []string{"socket"}), sockets...)
})

// deniedDev are system calls that dev sandboxes do without whatever the engine's version allows: corners of the kernel that
// have been ways out before, and keys, which no namespace holds apart. The sockets that lead past the network's namespace
// (AF_VSOCK, to a hypervisor's services) are refused by the default profile's rules for socket.
var deniedDev = []string{
	"bpf", "perf_event_open", "io_uring_setup", "io_uring_enter", "io_uring_register", "keyctl", "add_key", "request_key",
	"userfaultfd",
}

// namespaceCalls are what programs that hold others apart need within a user namespace of theirs.
var namespaceCalls = []string{
	"clone", "clone3", "unshare", "setns", "mount", "umount", "umount2", "pivot_root", "chroot", "sethostname", "setdomainname",
}

// devSeccomp is the profile of dev sandboxes. Without namespaces nothing makes one: the default profile refuses clone and
// unshare that would, and says of clone3, whose arguments no filter sees, that there is none.
func devSeccomp(namespaces bool) string {
	if namespaces {
		return devNamespaces()
	}
	return devAlone()
}

var (
	devAlone      = sync.OnceValue(func() string { return derive(deniedDev) })
	devNamespaces = sync.OnceValue(func() string {
		return derive(slices.Concat(deniedDev, namespaceCalls),
			&seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{Names: namespaceCalls, Action: specs.ActAllow}})
	})
)

// The requests of ioctl that btrfs answers have this type, the second byte of their number. A sandbox could make subvolumes in a home in
// the storage pool with them, which its quota would not count. Those that share blocks between files are of that type, too.
const (
	typeShift   = 8
	typeOfBtrfs = 0x94

	clone      = 0x40049409
	cloneRange = 0x4020940d
	sameRange  = 0xc0189436
)

// ioctlRules allow all requests but those that btrfs alone answers. A filter cannot say "another one than", so there is a rule for each
// bit that the type of another one may have otherwise.
func ioctlRules() (rules []*seccomp.Syscall) {
	allow := func(mask, is uint64) {
		rules = append(rules, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{
			Names: []string{"ioctl"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 1, Value: mask, ValueTwo: is, Op: specs.OpMaskedEqual}},
		}})
	}
	for bit := range typeShift {
		mask := uint64(1) << (typeShift + bit)
		allow(mask, ^uint64(typeOfBtrfs<<typeShift)&mask)
	}
	for _, request := range []uint64{clone, cloneRange, sameRange} {
		allow(math.MaxUint32, request)
	}
	return rules
}

// derive gives the library's default profile without its rules for the calls denied, and with more. Requests of btrfs are refused. 32-bit programs on x86 have no
// sockets with it, unless they ask for them as 64-bit ones do: by the call socketcall they get any family, since no filter
// sees which, and a rule that allows some families of socket allows that call too.
func derive(denied []string, more ...*seccomp.Syscall) string {
	profile := seccomp.DefaultProfile()
	denied = slices.Concat(denied, []string{"socketcall", "ioctl"})
	var kept []*seccomp.Syscall
	for _, rule := range profile.Syscalls {
		rule.Names = slices.DeleteFunc(slices.Clone(rule.Names), func(name string) bool { return slices.Contains(denied, name) })
		if len(rule.Names) > 0 {
			kept = append(kept, rule)
		}
	}
	nosys := uint(unix.ENOSYS) // another answer than the default one: a rule that gives that is no rule
	profile.Syscalls = slices.Concat(kept, more, ioctlRules(), []*seccomp.Syscall{{LinuxSyscall: specs.LinuxSyscall{
		Names: []string{"socketcall"}, Action: specs.ActErrno, ErrnoRet: &nosys,
	}}})
	text, err := json.Marshal(profile)
	if err != nil {
		panic(fmt.Sprintf("encode a seccomp profile: %v", err)) // constant input: a test would see it
	}
	return string(text)
}
