package files

import (
	"bytes"
	"encoding/binary"
	"sync"

	"golang.org/x/sys/unix"
)

// dirent is one name in a folder. It is valid until the next one is asked for.
type dirent struct {
	name []byte
	kind byte // unix.DT_*; DT_UNKNOWN where the file system does not tell
}

const direntBuffer = 32 << 10

var direntBuffers = sync.Pool{New: func() any { return new([direntBuffer]byte) }}

// eachName calls f for every name in the open folder but "." and "..", in the file system's order, until f gives an error.
// It holds one buffer, however many there are.
func (a *actor) eachName(fd int, f func(dirent) error) error {
	buf := direntBuffers.Get().(*[direntBuffer]byte)
	defer direntBuffers.Put(buf)
	for {
		end, err := a.oneBuffer(fd, buf, f)
		if end || err != nil {
			return err
		}
	}
}

// someNames calls f for the next names in the open folder, of which it has seen the end when there are none.
func (a *actor) someNames(fd int, f func(dirent) error) error {
	buf := direntBuffers.Get().(*[direntBuffer]byte)
	defer direntBuffers.Put(buf)
	seen := 0
	for {
		end, err := a.oneBuffer(fd, buf, func(d dirent) error { seen++; return f(d) })
		if end || err != nil || seen > 0 {
			return err
		}
	}
}

// oneBuffer asks the kernel once.
func (a *actor) oneBuffer(fd int, buf *[direntBuffer]byte, f func(dirent) error) (end bool, err error) {
	if err := a.ctx.Err(); err != nil {
		return true, err
	}
	n := 0
	if err := again(func() (err error) { n, err = unix.Getdents(fd, buf[:]); return err }); err != nil {
		return true, err
	}
	for b := buf[:n]; len(b) > 0; {
		var d dirent
		if d, b = cutDirent(b); d.name == nil {
			continue
		}
		if err := f(d); err != nil {
			return true, err
		}
	}
	return n == 0, nil
}

// Where the kernel has what in a linux_dirent64.
const (
	direntLength = 16
	direntKind   = 18
	direntName   = 19
)

// cutDirent takes one name off b; it has none when that is "." or "..".
func cutDirent(b []byte) (dirent, []byte) {
	if len(b) < direntName {
		return dirent{}, nil
	}
	n := int(binary.NativeEndian.Uint16(b[direntLength:]))
	if n < direntName || n > len(b) {
		return dirent{}, nil
	}
	name := b[direntName:n]
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	d := dirent{name: name, kind: b[direntKind]}
	if s := string(name); s == "." || s == ".." || s == "" || bytes.IndexByte(name, '/') >= 0 {
		d.name = nil
	}
	return d, b[n:]
}
