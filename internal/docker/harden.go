package docker

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/docker/docker/api/types/container"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"

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

// harden holds h as tightly as p says. A profile that is not known is held strictly.
func harden(h *container.HostConfig, p catalog.Profile) {
	h.CapDrop = []string{"ALL"}
	if p == catalog.Dev {
		h.CapAdd = devCapabilities // the engine's own seccomp and AppArmor profiles apply
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
	"quotactl", "quotactl_fd", "acct", "adjtimex", "clock_adjtime", "clock_adjtime64", "socketcall",
}

// The socket families of a strict sandbox: local, IPv4 and IPv6 (it has its own loopback), and netlink, which
// programs ask for the list of interfaces.
var strictFamilies = []uint64{1, 2, 10, 16}

// strictSeccomp is the profile of strict sandboxes, as the engine takes it.
var strictSeccomp = sync.OnceValue(func() string {
	denied := map[string]bool{"socket": true} // allowed anew below, by family
	for _, name := range deniedStrict {
		denied[name] = true
	}
	profile := seccomp.DefaultProfile()
	var kept []*seccomp.Syscall
	for _, rule := range profile.Syscalls {
		if rule.Action == specs.ActAllow {
			rule.Names = without(rule.Names, denied)
		}
		if len(rule.Names) > 0 {
			kept = append(kept, rule)
		}
	}
	for _, family := range strictFamilies {
		kept = append(kept, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{
			Names: []string{"socket"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: family, Op: specs.OpEqualTo}},
		}})
	}
	profile.Syscalls = kept
	text, err := json.Marshal(profile)
	if err != nil {
		panic(fmt.Sprintf("encode the strict profile: %v", err)) // constant input: a test would see it
	}
	return string(text)
})

func without(names []string, denied map[string]bool) []string {
	var out []string
	for _, name := range names {
		if !denied[name] {
			out = append(out, name)
		}
	}
	return out
}
