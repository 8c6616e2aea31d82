package btrfs

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
)

// Quotas, from linux/btrfs.h and linux/btrfs_tree.h.
const (
	quotaSimple    = 4                 // each subvolume is charged for what was written in it, as long as any has it
	limitUsage     = 1 << 0            // the only one of the limits that we set
	noLimit        = ^uint64(0)        // lifts one
	usageAt        = 8                 // in the item
	limitFlagsAt   = 0                 // in the item
	limitAt        = 8                 // in the item
	firstSubvolume = uint64(rootInode) // the first number that is no tree of the file system's own
	lastSubvolume  = ^uint64(255)
)

// enableQuotas has the kernel count and bound what is written in subvolumes. When it does already, nothing happens. Full quotas, which
// count what subvolumes share, are no choice: removing a subvolume with many files then makes all writers of the pool wait for seconds.
func enableQuotas(in *os.File) error {
	a := struct{ command, status uint64 }{command: quotaSimple}
	err := ioctl(in, ioctlQuota, unsafe.Pointer(&a))
	if errors.Is(err, unix.EINVAL) { // it does not know them
		err = unix.EOPNOTSUPP
	}
	return err
}

// checkQuotas sees that limits hold.
func (p *Pool) checkQuotas() error {
	_, err := p.quotaItem(itemQuotaStatus, 0)
	if errors.Is(err, unix.ENOENT) {
		return fault.New(fault.Invalid, "The storage pool at %s has no quotas. Unmount it, so that sandboxd mounts it itself.", p.dir)
	}
	if err != nil {
		return explain(err, "read its quotas")
	}
	p.dropStale()
	return nil
}

// dropStale removes the counts of subvolumes that are gone, best effort: the kernel refuses those of which others still have something,
// and before 6.10 it removes none by itself.
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

// Limit implements docker.Pool. It bounds only what is written from then on.
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

// Used implements docker.Pool. It is as of the last time that the kernel wrote its changes down, some seconds ago.
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
