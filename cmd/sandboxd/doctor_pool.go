package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/btrfs"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// fullPool is the used share of the storage pool, in percent, from which on doctor warns.
const fullPool = 90

// poolGain is what a storage pool is for.
const poolGain = "With one, snapshots and clones take milliseconds, and limits on the size of homes hold"

// lookPool looks at the storage pool; where there is none, at whether this machine can have one.
func lookPool(_ context.Context, c *Config) finding {
	disk, err := poolDisk(c)
	has := false
	if err == nil {
		has, err = disk.Exists()
	}
	if err != nil {
		return problem("", "the storage pool cannot be looked at: %s", fault.Message(err))
	}
	lacks := poolHost{"/"}.lacks()
	switch {
	case has:
		return lookMountedPool(disk, lacks)
	case lostPool(disk) != nil:
		return problem("", "%s", fault.Message(lostPool(disk)))
	case lacks != nil:
		return finding{Level: good, Saw: "no storage pool, and this machine cannot have one: " + lacks.saw, Mend: poolGain + ". " + lacks.mend}
	}
	return finding{Level: good, Saw: "no storage pool; this machine can have one", Mend: poolGain + ": sandboxd pool create"}
}

func lookMountedPool(disk btrfs.Disk, lacks *lack) finding {
	is, err := disk.Mounted()
	switch {
	case err != nil:
		return problem("", "the storage pool cannot be looked at: %s", fault.Message(err))
	case !is && lacks != nil:
		return problem(lacks.mend, "the storage pool on %s cannot be mounted: %s", disk, lacks.saw)
	case !is && disk.Formatted() != nil:
		return problem("", "%s", fault.Message(disk.Formatted()))
	case !is:
		return ok("the storage pool on %s is not mounted; 'sandboxd serve' does that", disk)
	}
	space, err := disk.Space()
	if err != nil {
		return problem("", "the storage pool cannot be looked at: %s", fault.Message(err))
	}
	return judgePool(disk, space)
}

func judgePool(disk btrfs.Disk, space btrfs.Space) finding {
	used := space.Size - space.Free
	switch {
	case space.ReadOnly:
		return problem("The kernel's log (dmesg) says why. Back up the sandboxes, and check the disk.", "the storage pool on %s is read-only", disk)
	case percentOf(used, space.Size) >= fullPool:
		return warn("Delete snapshots or sandboxes, or make it larger: sandboxd pool grow SIZE", "the storage pool on %s is nearly full: %s of %s are free", disk, text.Size(space.Free), text.Size(space.Size))
	}
	return ok("there is a storage pool on %s: %s of %s are free", disk, text.Size(space.Free), text.Size(space.Size))
}

// btrfsFeatures has a file for each thing that the kernel's btrfs can do, once that is loaded.
const btrfsFeatures = "/sys/fs/btrfs/features"

// lack is what keeps a machine from having a storage pool.
type lack struct{ saw, mend string }

// poolHost is the machine; root is where its files are.
type poolHost struct{ root string }

// lacks gives the first thing that this machine lacks, or nil.
func (h poolHost) lacks() *lack {
	_, noProgram := exec.LookPath("mkfs.btrfs")
	switch {
	case !h.knows("btrfs"):
		return &lack{"its kernel has no btrfs", "Install a kernel with btrfs, and load the module: modprobe btrfs"}
	case h.exists(btrfsFeatures) && !h.exists(btrfsFeatures+"/simple_quota"):
		return &lack{"its kernel is older than Linux 6.7", "Install a newer kernel"}
	case noProgram != nil:
		return &lack{"the program mkfs.btrfs is missing", "Install it (apt install btrfs-progs, dnf install btrfs-progs), and run: sandboxd pool create"}
	case !h.exists("/dev/loop-control") && !h.module("loop"):
		return &lack{"it has no loop devices", "Load the module (modprobe loop), or give the pool a block device: sandboxd pool create --device PATH"}
	case !h.mayMount():
		return &lack{"this process may mount nothing", "Run sandboxd, and this check, as root and outside of a container (docs/server.md)."}
	}
	return nil
}

func (h poolHost) exists(path string) bool {
	_, err := os.Stat(filepath.Join(h.root, path))
	return !errors.Is(err, fs.ErrNotExist)
}

// mayMount says whether this process has CAP_SYS_ADMIN, which root lacks in most containers.
func (h poolHost) mayMount() bool {
	status, err := os.ReadFile(filepath.Join(h.root, "/proc/self/status"))
	if err != nil {
		return true // it cannot be told
	}
	for line := range strings.Lines(string(status)) {
		if mask, is := strings.CutPrefix(line, "CapEff:"); is {
			has, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err != nil || has>>unix.CAP_SYS_ADMIN&1 == 1
		}
	}
	return true
}

// knows says whether the kernel has a file system, or can load it.
func (h poolHost) knows(system string) bool {
	known, err := os.ReadFile(filepath.Join(h.root, "/proc/filesystems"))
	if err != nil {
		return true // it cannot be told
	}
	for line := range strings.Lines(string(known)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[len(fields)-1] == system {
			return true
		}
	}
	return h.module(system)
}

// module says whether the running kernel has a module.
func (h poolHost) module(name string) bool {
	var names unix.Utsname
	if unix.Uname(&names) != nil {
		return false
	}
	list, err := os.ReadFile(filepath.Join(h.root, "/lib/modules", unix.ByteSliceToString(names.Release[:]), "modules.dep"))
	return err == nil && bytes.Contains(list, []byte("/"+name+".ko"))
}
