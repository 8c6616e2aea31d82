package btrfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the kernel is asked, from linux/btrfs.h.
const (
	ioctlResize          = 0x50009403
	ioctlSubvolumeCreate = 0x5000940e
	ioctlDestroy         = 0x5000940f
	ioctlTreeSearch      = 0xd0009411
	ioctlInodeLookup     = 0xd0009412
	ioctlSnapshot        = 0x50009417
	ioctlFileSystem      = 0x8400941f
	ioctlQuota           = 0xc0109428
	ioctlGroupAssign     = 0x40189429
	ioctlGroupCreate     = 0x4010942a
	ioctlGroupLimit      = 0x8030942b
	ioctlDestroyByID     = 0x5000943f
)

// Trees and the kinds of items in them, from linux/btrfs_tree.h.
const (
	treeRoots  = 1
	treeQuotas = 8

	itemRoot        = 132
	itemNested      = 156 // of a subvolume: another one is in it
	itemQuotaStatus = 240
	itemGroupUsage  = 242
	itemGroupLimit  = 244
	itemMembership  = 246 // of a group, and of its members
)

const byID = 1 << 4 // a flag of argumentsV2

// arguments are struct btrfs_ioctl_vol_args.
type arguments struct {
	fd   int64
	name [4088]byte
}

// argumentsV2 are struct btrfs_ioctl_vol_args_v2.
type argumentsV2 struct {
	fd          int64
	transaction uint64
	flags       uint64
	_           [4]uint64
	name        [4040]byte // or a number at its beginning
}

// searchKey is struct btrfs_ioctl_search_key.
type searchKey struct {
	tree                       uint64
	minObject, maxObject       uint64
	minOffset, maxOffset       uint64
	minGeneration, generations uint64
	minType, maxType           uint32
	items                      uint32
	_                          uint32
	_                          [4]uint64
}

// searchArguments are struct btrfs_ioctl_search_args.
type searchArguments struct {
	key searchKey
	buf [4096 - unsafe.Sizeof(searchKey{})]byte
}

// searchHeader is struct btrfs_ioctl_search_header: 32 bytes before each item that is found.
const (
	searchHeader = 32
	offsetAt     = 16
	lengthAt     = 28
)

func ioctl(f *os.File, request uintptr, argument unsafe.Pointer) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed unix.Errno
	err = conn.Control(func(fd uintptr) {
		for {
			if _, _, failed = unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(argument)); failed != unix.EINTR {
				return
			}
		}
	})
	if err == nil && failed != 0 {
		return os.NewSyscallError("ioctl", failed)
	}
	return err
}

func createSubvolume(in *os.File, name string) error {
	var a arguments
	copy(a.name[:], name)
	return ioctl(in, ioctlSubvolumeCreate, unsafe.Pointer(&a))
}

// snapshot makes a writable one. The kernel does it in one transaction, which is on the disk afterwards.
func snapshot(of, in *os.File, name string) error {
	conn, err := of.SyscallConn()
	if err != nil {
		return err
	}
	var made error
	err = conn.Control(func(fd uintptr) {
		a := argumentsV2{fd: int64(fd)}
		copy(a.name[:], name)
		made = ioctl(in, ioctlSnapshot, unsafe.Pointer(&a))
	})
	return errors.Join(err, made)
}

func destroySubvolume(in *os.File, name string) error {
	var a arguments
	copy(a.name[:], name)
	return ioctl(in, ioctlDestroy, unsafe.Pointer(&a))
}

func destroyByID(in *os.File, id uint64) error {
	a := argumentsV2{flags: byID}
	binary.NativeEndian.PutUint64(a.name[:], id)
	return ioctl(in, ioctlDestroyByID, unsafe.Pointer(&a))
}

// subvolumeID gives the number of the subvolume that a folder is in.
func subvolumeID(f *os.File) (uint64, error) {
	var a struct {
		tree, object uint64
		_            [4080]byte
	}
	a.object = rootInode
	err := ioctl(f, ioctlInodeLookup, unsafe.Pointer(&a))
	return a.tree, err
}

// childrenOf gives the numbers of the subvolumes directly in one.
func childrenOf(in *os.File, id uint64) (children []uint64, err error) {
	key := searchKey{tree: treeRoots, minObject: id, maxObject: id, maxOffset: ^uint64(0), minType: itemNested, maxType: itemNested}
	err = search(in, key, func(offset uint64, _ []byte) { children = append(children, offset) })
	return children, err
}

// search calls found for each item of one object and one type in a range, with its key's offset and its content.
func search(in *os.File, key searchKey, found func(offset uint64, item []byte)) error {
	key.generations = ^uint64(0)
	for {
		a := searchArguments{key: key}
		a.key.items = ^uint32(0)
		if err := ioctl(in, ioctlTreeSearch, unsafe.Pointer(&a)); err != nil {
			return err
		}
		if a.key.items == 0 {
			return nil
		}
		rest, last := a.buf[:], uint64(0)
		for range a.key.items {
			length := int(binary.NativeEndian.Uint32(rest[lengthAt:]))
			if last = binary.NativeEndian.Uint64(rest[offsetAt:]); length > len(rest)-searchHeader {
				return unix.EOVERFLOW
			}
			found(last, rest[searchHeader:][:length])
			rest = rest[searchHeader+length:]
		}
		if last >= key.maxOffset {
			return nil
		}
		key.minOffset = last + 1
	}
}

// fileSystemID gives the number that the file system was made with.
func fileSystemID(in *os.File) (id [16]byte, err error) {
	var a [1024]byte // struct btrfs_ioctl_fs_info_args
	err = ioctl(in, ioctlFileSystem, unsafe.Pointer(&a))
	copy(id[:], a[16:])
	return id, err
}

func uuid(id [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// resize makes the file system as large as its device.
func resize(in *os.File) error {
	var a arguments
	copy(a.name[:], "max")
	return ioctl(in, ioctlResize, unsafe.Pointer(&a))
}
