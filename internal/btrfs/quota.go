package btrfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
)

// rescanWait bounds the wait for a new count of what subvolumes take.
const rescanWait = 10 * time.Second

// Quotas, from linux/btrfs.h and linux/btrfs_tree.h.
const (
	quotaOn        = 1
	limitUsage     = 1 << 0            // the only one of the limits that we set: on all that a subvolume has, shared or not
	noLimit        = ^uint64(0)        // lifts one
	inconsistent   = 1 << 2            // of the status: a new count is needed
	statusFlagsAt  = 16                // in the item
	usageAt        = 8                 // in the item
	limitFlagsAt   = 0                 // in the item
	limitAt        = 8                 // in the item
	maxTreeLevels  = "8"               // of any tree, so that none is too high to be counted when it is removed
	firstSubvolume = uint64(rootInode) // the first number that is no tree of the file system's own
	lastSubvolume  = ^uint64(255)
)

// enableQuotas has the kernel count and bound what subvolumes take. When it does already, nothing happens.
func enableQuotas(in *os.File) error {
	a := struct{ command, status uint64 }{command: quotaOn}
	return ioctl(in, ioctlQuota, unsafe.Pointer(&a))
}

// checkQuotas sees that limits hold, and has what subvolumes take counted anew if need be.
func (p *Pool) checkQuotas() error {
	status, err := p.quotaItem(itemQuotaStatus, 0)
	if errors.Is(err, unix.ENOENT) || err == nil && len(status) < statusFlagsAt+8 {
		return fault.New(fault.Invalid, "The storage pool at %s has no quotas. Unmount it, so that sandboxd mounts it itself.", p.dir)
	}
	if err != nil {
		return explain(err, "read its quotas")
	}
	p.countAll()
	p.dropStale()
	if binary.LittleEndian.Uint64(status[statusFlagsAt:])&inconsistent == 0 {
		return nil
	}
	var a [64]byte
	if err := ioctl(p.volumes, ioctlRescan, unsafe.Pointer(&a)); err != nil && !errors.Is(err, unix.EINPROGRESS) && !errors.Is(err, unix.EROFS) {
		return explain(err, "count what its folders take")
	}
	return p.awaitCount()
}

// awaitCount waits for a count, but not for ever: limits hold again when it ends.
func (p *Pool) awaitCount() error {
	fd, err := unix.FcntlInt(p.volumes.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return explain(err, "count what its folders take")
	}
	f, done := os.NewFile(uintptr(fd), folder), make(chan struct{})
	go func() {
		defer close(done)
		defer f.Close()
		_ = ioctl(f, ioctlRescanWait, nil)
	}()
	select {
	case <-done:
	case <-time.After(rescanWait):
	}
	return nil
}

// countAll keeps the kernel from giving up its count when a large subvolume is removed, which later kernels do to be quicker. Kernels
// before 6.1 always count.
func (p *Pool) countAll() {
	id, err := fileSystemID(p.volumes)
	if err != nil {
		return
	}
	_ = os.WriteFile(filepath.Join("/sys/fs/btrfs", uuid(id), "qgroups", "drop_subtree_threshold"), []byte(maxTreeLevels), 0)
}

func uuid(id [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// dropStale removes the counts of subvolumes that are gone, best effort: kernels before 6.10 leave them.
func (p *Pool) dropStale() {
	var counted, there []uint64
	add := func(list *[]uint64) func(uint64, []byte) {
		return func(id uint64, _ []byte) { *list = append(*list, id) }
	}
	err := search(p.volumes, searchKey{tree: treeQuotas, minOffset: firstSubvolume, maxOffset: lastSubvolume >> 16, minType: itemGroupUsage, maxType: itemGroupUsage}, add(&counted))
	for _, id := range counted {
		if err != nil {
			return
		}
		err = search(p.volumes, searchKey{tree: treeRoots, minObject: id, maxObject: id, maxOffset: noLimit, minType: itemRoot, maxType: itemRoot},
			func(uint64, []byte) { there = append(there, id) })
		if err == nil && !slices.Contains(there, id) {
			a := struct{ create, id uint64 }{id: id}
			_ = ioctl(p.volumes, ioctlGroupCreate, unsafe.Pointer(&a))
		}
	}
}

// quotaItem gives what the kernel has written down of a subvolume, or ENOENT.
func (p *Pool) quotaItem(kind uint32, id uint64) (item []byte, err error) {
	err = search(p.volumes, searchKey{tree: treeQuotas, minOffset: id, maxOffset: id, minType: kind, maxType: kind},
		func(_ uint64, b []byte) { item = slices.Clone(b) })
	if err == nil && item == nil {
		err = unix.ENOENT
	}
	return item, err
}

// idOf gives the number of a subvolume.
func (p *Pool) idOf(name string) (uint64, error) {
	f, err := p.open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return subvolumeID(f)
}

// Limit implements docker.Pool. It counts what is shared with others, too, and bounds only what is written from then on.
func (p *Pool) Limit(name string, bytes int64) error {
	done, err := p.turn(name)
	if err != nil {
		return err
	}
	defer done()
	if bytes < 0 {
		return fault.New(fault.Invalid, "A limit cannot be below zero.")
	}
	id, err := p.idOf(name)
	if err == nil {
		err = p.limit(id, uint64(bytes))
	}
	return explain(err, "limit a folder")
}

// limit takes 0 for none.
func (p *Pool) limit(id, bytes uint64) error {
	a := struct{ id, flags, most, exclusive, reserved, reservedExclusive uint64 }{id: id, flags: limitUsage, most: bytes}
	if bytes == 0 {
		a.most = noLimit
	}
	return ioctl(p.volumes, ioctlGroupLimit, unsafe.Pointer(&a))
}

// LimitOf implements docker.Pool.
func (p *Pool) LimitOf(name string) (int64, error) {
	if err := check(name); err != nil {
		return 0, err
	}
	most, err := p.limitOf(name)
	return int64(most), explain(err, "read the limit of a folder")
}

func (p *Pool) limitOf(name string) (uint64, error) {
	id, err := p.idOf(name)
	if err != nil {
		return 0, err
	}
	item, err := p.quotaItem(itemGroupLimit, id)
	switch {
	case errors.Is(err, unix.ENOENT):
		return 0, nil
	case err != nil:
		return 0, err
	case len(item) < limitAt+8 || binary.LittleEndian.Uint64(item[limitFlagsAt:])&limitUsage == 0:
		return 0, nil
	}
	return binary.LittleEndian.Uint64(item[limitAt:]), nil
}

// keepLimit gives a subvolume the limit of another one.
func (p *Pool) keepLimit(of, to string) error {
	most, err := p.limitOf(of)
	if err != nil {
		return err
	}
	id, err := p.idOf(to)
	if err != nil {
		return err
	}
	return p.limit(id, most)
}

// Used implements docker.Pool. It is as of the last time that the kernel wrote its changes down, half a minute ago at most.
func (p *Pool) Used(name string) (int64, error) {
	if err := check(name); err != nil {
		return 0, err
	}
	id, err := p.idOf(name)
	if err != nil {
		return 0, explain(err, "say what a folder takes")
	}
	item, err := p.quotaItem(itemGroupUsage, id)
	if err == nil && len(item) < usageAt+8 {
		err = unix.EINVAL
	}
	if err != nil {
		return 0, explain(err, "say what a folder takes")
	}
	return int64(binary.LittleEndian.Uint64(item[usageAt:])), nil
}

// cut is text as one line, not too long.
func cut(text string) string {
	lines := strings.Join(strings.Fields(text), " ")
	return lines[max(0, len(lines)-300):]
}
