package btrfs

import (
	"cmp"
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
	group          = uint64(1) << 48   // and the number of its first member is that of a group
	lastGroup      = group<<1 - 1
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
	status, err := p.quotaItem(itemQuotaStatus, 0)
	if err == nil && status == nil || errors.Is(err, unix.ENOENT) {
		return fault.New(fault.Invalid, "The storage pool at %s has no quotas. Unmount it, so that sandboxd mounts it itself.", p.dir)
	}
	if err != nil {
		return explain(err, "read its quotas")
	}
	p.dropStale()
	return nil
}

// dropStale removes the counts of subvolumes that are gone, and groups without members, best effort, as long as they count nothing. Before
// Linux 6.10 the kernel removes none by itself, and would also remove those that count something for their group.
func (p *Pool) dropStale() {
	var empty, there []uint64
	err := search(p.volumes, searchKey{tree: treeQuotas, minOffset: firstSubvolume, maxOffset: lastGroup, minType: itemGroupUsage, maxType: itemGroupUsage},
		func(id uint64, item []byte) {
			if len(item) >= usageAt+8 && binary.LittleEndian.Uint64(item[usageAt:]) == 0 {
				empty = append(empty, id)
			}
		})
	for _, id := range empty {
		if err != nil {
			return
		}
		if id < group {
			err = search(p.volumes, searchKey{tree: treeRoots, minObject: id, maxObject: id, maxOffset: noLimit, minType: itemRoot, maxType: itemRoot},
				func(uint64, []byte) { there = append(there, id) })
		}
		if err == nil && !slices.Contains(there, id) {
			_ = p.changeGroup(id, false)
		}
	}
}

func (p *Pool) changeGroup(id uint64, create bool) error {
	a := struct{ create, id uint64 }{id: id}
	if create {
		a.create = 1
	}
	return ioctl(p.volumes, ioctlGroupCreate, unsafe.Pointer(&a))
}

// groupOf gives the group of the subvolume id; 0 when it has none. A group counts what was written in all its members, also after they
// were removed, as long as any subvolume has it. So what a home has of those that it replaced counts for it.
func (p *Pool) groupOf(id uint64) (of uint64, err error) {
	err = search(p.volumes, searchKey{tree: treeQuotas, minObject: id, maxObject: id, minOffset: group, maxOffset: lastGroup, minType: itemMembership, maxType: itemMembership},
		func(parent uint64, _ []byte) { of = parent })
	return of, err
}

// inGroup is groupOf, but makes a group for one that has none.
func (p *Pool) inGroup(id uint64) (uint64, error) {
	of, err := p.groupOf(id)
	if err != nil || of != 0 {
		return of, err
	}
	if err := p.changeGroup(group|id, true); err != nil && !errors.Is(err, unix.EEXIST) {
		return 0, err
	}
	return group | id, p.join(id, group|id)
}

func (p *Pool) join(id, of uint64) error {
	a := struct{ assign, member, group uint64 }{1, id, of}
	return ioctl(p.volumes, ioctlGroupAssign, unsafe.Pointer(&a))
}

// follow puts a subvolume into the group of the one that it replaces, unless it has one.
func (p *Pool) follow(replaced, name string) error {
	id, err := p.idOf(name)
	if err != nil {
		return err
	}
	if of, err := p.groupOf(id); err != nil || of != 0 {
		return err
	}
	old, err := p.idOf(replaced)
	if err != nil {
		return err
	}
	of, err := p.inGroup(old)
	if err != nil {
		return err
	}
	return p.join(id, of)
}

// quotaItem gives what the kernel has written down of a subvolume or a group, nil for nothing.
func (p *Pool) quotaItem(kind uint32, id uint64) (item []byte, err error) {
	err = search(p.volumes, searchKey{tree: treeQuotas, minOffset: id, maxOffset: id, minType: kind, maxType: kind},
		func(_ uint64, b []byte) { item = slices.Clone(b) })
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

// Limit implements docker.Pool. It bounds only what is written from then on. When the limit is that already, nothing is written.
func (p *Pool) Limit(name string, bytes int64) error {
	done, err := p.turn(name)
	if err != nil {
		return err
	}
	defer done()
	if bytes < 0 {
		return fault.New(fault.Invalid, "A limit cannot be below zero.")
	}
	if has, err := p.LimitOf(name); err == nil && has == bytes && bytes > 0 {
		return nil
	}
	return explain(p.limit(name, uint64(bytes)), "limit a folder")
}

func (p *Pool) limit(name string, bytes uint64) error {
	id, err := p.idOf(name)
	if err != nil {
		return err
	}
	of, err := p.inGroup(id)
	if err != nil {
		return err
	}
	a := struct{ id, flags, most, exclusive, reserved, reservedExclusive uint64 }{id: of, flags: limitUsage, most: bytes}
	if bytes == 0 {
		a.most = noLimit
	}
	return ioctl(p.volumes, ioctlGroupLimit, unsafe.Pointer(&a))
}

// LimitOf implements docker.Pool.
func (p *Pool) LimitOf(name string) (int64, error) {
	item, err := p.item(name, itemGroupLimit)
	switch {
	case err != nil:
		return 0, explain(err, "read the limit of a folder")
	case len(item) < limitAt+8 || binary.LittleEndian.Uint64(item[limitFlagsAt:])&limitUsage == 0:
		return 0, nil
	}
	return int64(binary.LittleEndian.Uint64(item[limitAt:])), nil
}

// Used implements docker.Pool. It is as of the last time that the kernel wrote its changes down, some seconds ago.
func (p *Pool) Used(name string) (int64, error) {
	item, err := p.item(name, itemGroupUsage)
	if err == nil && len(item) < usageAt+8 {
		err = unix.EINVAL
	}
	if err != nil {
		return 0, explain(err, "say what a folder takes")
	}
	return int64(binary.LittleEndian.Uint64(item[usageAt:])), nil
}

// Room implements docker.Pool. Never below 0.
func (p *Pool) Room(name string) (int64, error) {
	used, err := p.Used(name)
	if err != nil {
		return 0, err
	}
	limit, err := p.LimitOf(name)
	if err != nil {
		return 0, err
	}
	space, err := p.Space()
	if limit > 0 {
		space.Free = min(space.Free, limit-used)
	}
	return max(0, space.Free), err
}

// item gives what the kernel has written down of a subvolume's group, or of itself when it has none; nil for nothing.
func (p *Pool) item(name string, kind uint32) ([]byte, error) {
	if err := check(name); err != nil {
		return nil, err
	}
	id, err := p.idOf(name)
	if err != nil {
		return nil, err
	}
	of, err := p.groupOf(id)
	if err != nil {
		return nil, err
	}
	return p.quotaItem(kind, cmp.Or(of, id))
}

// cut is text as one line, not too long.
func cut(text string) string {
	lines := strings.Join(strings.Fields(text), " ")
	return lines[max(0, len(lines)-300):]
}
