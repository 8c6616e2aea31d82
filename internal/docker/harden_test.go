package docker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"sandboxd/internal/catalog"
)

func TestStrictSeccomp_AllowsNothingThatIsDenied(t *testing.T) {
	var profile seccomp.Seccomp
	if err := json.Unmarshal([]byte(strictSeccomp()), &profile); err != nil {
		t.Fatal(err)
	}
	if profile.DefaultAction == specs.ActAllow {
		t.Error("what is not named is allowed")
	}
	var allowed []string
	families := map[uint64]bool{}
	for _, rule := range profile.Syscalls {
		if rule.Action != specs.ActAllow {
			continue
		}
		allowed = append(allowed, rule.Names...)
		if slices.Contains(rule.Names, "socket") {
			if len(rule.Args) != 1 || rule.Args[0].Op != specs.OpEqualTo {
				t.Errorf("sockets of any family: %+v", rule)
				continue
			}
			families[rule.Args[0].Value] = true
		}
	}
	for _, name := range deniedStrict {
		if slices.Contains(allowed, name) {
			t.Errorf("%s is allowed", name)
		}
	}
	for _, name := range []string{"read", "write", "execve", "clone", "futex", "openat", "connect", "setuid", "setgroups", "kill"} {
		if !slices.Contains(allowed, name) {
			t.Errorf("%s is not allowed", name)
		}
	}
	if len(families) != len(strictFamilies) {
		t.Errorf("got the families %v", families)
	}
}

// TestSeccomp_RefusesRequestsOfBtrfs asks each rule as the kernel does.
func TestSeccomp_RefusesRequestsOfBtrfs(t *testing.T) {
	for name, text := range map[string]string{"strict": strictSeccomp(), "dev": devSeccomp(false), "namespaces": devSeccomp(true)} {
		var profile seccomp.Seccomp
		if err := json.Unmarshal([]byte(text), &profile); err != nil {
			t.Fatal(err)
		}
		allows := func(request uint64) bool {
			return slices.ContainsFunc(profile.Syscalls, func(rule *seccomp.Syscall) bool {
				return rule.Action == specs.ActAllow && slices.Contains(rule.Names, "ioctl") &&
					!slices.ContainsFunc(rule.Args, func(a specs.LinuxSeccompArg) bool {
						return a.Index != 1 || a.Op != specs.OpMaskedEqual || request&a.Value != a.ValueTwo
					})
			})
		}
		for request, want := range map[uint64]bool{
			0x5000940e: false, 0x15000940e: false, 0x50009401: false, 0x50009417: false, 0x50009418: false, 0x942e: false,
			0x5401: true, 0x541b: true, 0x8912: true, 0xc020660b: true, 0x40086602: true, 0x5421: true,
			clone: true, cloneRange: true, sameRange: true,
		} {
			if allows(request) != want {
				t.Errorf("%s: the request %#x is allowed: %t", name, request, !want)
			}
		}
	}
}

func TestHarden_UnknownProfileIsHeldStrictly(t *testing.T) {
	for _, p := range []catalog.Profile{catalog.Strict, "", "lax"} {
		h := &container.HostConfig{}
		harden(h, p, true)
		if !h.ReadonlyRootfs || !slices.Contains(h.SecurityOpt, "no-new-privileges") || hasNetwork(p) || slices.Contains(h.CapAdd, "SETPCAP") {
			t.Errorf("%q: %+v", p, h)
		}
	}
}

func TestHarden_NoProfileHasWhatLeadsOut(t *testing.T) {
	for _, p := range []catalog.Profile{catalog.Dev, catalog.Strict} {
		h := &container.HostConfig{}
		harden(h, p, true)
		if !slices.Equal(h.CapDrop, []string{"ALL"}) || h.Privileged {
			t.Errorf("%s: %+v", p, h)
		}
		for _, c := range []string{"NET_RAW", "MKNOD", "SYS_ADMIN", "SYS_PTRACE", "NET_ADMIN", "DAC_READ_SEARCH", "SYS_MODULE"} {
			if slices.Contains(h.CapAdd, c) {
				t.Errorf("%s has %s", p, c)
			}
		}
	}
}

func TestOpenFilesLimit_IsTheEnginesSmallest(t *testing.T) {
	proc := t.TempDir()
	process := func(pid, comm, hard string) {
		dir := filepath.Join(proc, pid)
		limits := "Limit                     Soft Limit           Hard Limit           Units     \n" +
			"Max open files            1024                 " + hard + "                files     \n"
		for name, text := range map[string]string{"comm": comm + "\n", "limits": limits} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := openFilesLimit(proc); got != 0 {
		t.Errorf("got %d of no process", got)
	}
	process("1", "systemd", "10")
	process("20", "dockerd", "unlimited")
	if got := openFilesLimit(proc); got != maxOpenFiles {
		t.Errorf("got %d of an unlimited one", got)
	}
	process("21", "containerd", "20000")
	process("22", "dockerd", "not a number")
	if got := openFilesLimit(proc); got != 20000 {
		t.Errorf("got %d", got)
	}
}
