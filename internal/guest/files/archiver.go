package files

import (
	"bufio"
	"strconv"
	"strings"

	"sandboxd/internal/wire"
)

const tarBlock = 512

// archiver writes a tar, of plain old headers where they will do, and with POSIX' extended ones before them where not.
type archiver struct {
	out   *bufio.Writer
	view  viewer
	block [tarBlock]byte
}

// The fields of a plain old header: where they begin, and what fits.
const (
	tarName     = 0
	tarMode     = 100
	tarUID      = 108
	tarGID      = 116
	tarSize     = 124
	tarModified = 136
	tarSum      = 148
	tarType     = 156
	tarTarget   = 157
	tarMagic    = 257
	tarOwner    = 265
	tarGroup    = 297
	tarPrefix   = 345

	tarText     = 100     // longest name and target
	tarWho      = 31      // longest owner and group
	tarFolders  = 155     // longest prefix of a name
	tarSmallest = 1 << 21 // from which on a number does not fit into seven octal digits
	tarLargest  = 1 << 33 // likewise eleven
)

// add writes the header of x, whose content follows.
func (a *archiver) add(x *packed) error {
	if more := extended(x); more != "" {
		clear(a.block[:])
		copy(a.block[tarName:], "PaxHeaders/entry")
		if err := a.finish(typePAX, 0o644, int64(len(more)), x.st.Mtim.Sec); err != nil {
			return err
		}
		if err := a.padded(more); err != nil {
			return err
		}
	}
	clear(a.block[:])
	prefix, name := splitName(x.as)
	copy(a.block[tarName:tarName+tarText], name)
	copy(a.block[tarPrefix:tarPrefix+tarFolders], prefix)
	copy(a.block[tarTarget:tarTarget+tarText], x.target)
	copy(a.block[tarOwner:tarOwner+tarWho], nameOf(a.view.users, x.st.Uid))
	copy(a.block[tarGroup:tarGroup+tarWho], nameOf(a.view.groups, x.st.Gid))
	a.octal(tarUID, 7, int64(x.st.Uid))
	a.octal(tarGID, 7, int64(x.st.Gid))
	kind, size := x.kind()
	return a.finish(kind, x.st.Mode, size, x.st.Mtim.Sec)
}

// kind is the type of x in a tar, and the size of its content.
func (x *packed) kind() (kind byte, size int64) {
	switch {
	case x.file:
		return typeFile, x.st.Size
	case isFolder(&x.st):
		return typeFolder, 0
	}
	return typeLink, 0
}

// finish writes the block with what every header has.
func (a *archiver) finish(kind byte, mode uint32, size, modified int64) error {
	copy(a.block[tarMagic:], "ustar\x0000")
	a.block[tarType] = kind
	a.octal(tarMode, 7, int64(mode&wire.MaxFileMode))
	a.octal(tarSize, 11, size)
	a.octal(tarModified, 11, modified)
	sum := int64(8 * ' ') // its own field counts as blanks
	for _, c := range a.block {
		sum += int64(c)
	}
	a.octal(tarSum, 6, sum)
	a.block[tarSum+7] = ' '
	_, err := a.out.Write(a.block[:])
	return err
}

// octal writes a number with so many digits, and a zero byte behind it; zero when it does not fit.
func (a *archiver) octal(at, digits int, n int64) {
	if n < 0 || n >= 1<<(3*digits) {
		n = 0
	}
	for i := at + digits - 1; i >= at; i-- {
		a.block[i] = '0' + byte(n&7)
		n >>= 3
	}
}

// extended is what does not fit into the plain header of x, as the records of an extended one.
func extended(x *packed) string {
	more := ""
	prefix, name := splitName(x.as)
	if !plain(name, tarText) || !plain(prefix, tarFolders) {
		more += record("path", x.as)
	}
	if !plain(x.target, tarText) {
		more += record("linkpath", x.target)
	}
	if _, size := x.kind(); size >= tarLargest {
		more += record("size", strconv.FormatInt(size, 10))
	}
	if x.st.Mtim.Sec < 0 || x.st.Mtim.Sec >= tarLargest {
		more += record("mtime", strconv.FormatInt(x.st.Mtim.Sec, 10))
	}
	if x.st.Uid >= tarSmallest {
		more += record("uid", strconv.FormatUint(uint64(x.st.Uid), 10))
	}
	if x.st.Gid >= tarSmallest {
		more += record("gid", strconv.FormatUint(uint64(x.st.Gid), 10))
	}
	return more
}

// record is one of an extended header: its length, which counts itself, and what it says.
func record(key, value string) string {
	rest := " " + key + "=" + value + "\n"
	n := len(rest)
	for n != len(rest)+len(strconv.Itoa(n)) {
		n = len(rest) + len(strconv.Itoa(n))
	}
	return strconv.Itoa(n) + rest
}

// plain says whether s fits and is text that every tar reads the same.
func plain(s string, limit int) bool {
	if len(s) > limit {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// splitName cuts a name that is too long for one field at a slash, if that helps.
func splitName(name string) (prefix, rest string) {
	if len(name) <= tarText {
		return "", name
	}
	from := len(name) - tarText - 1
	i := strings.IndexByte(name[from:], '/') + from
	if i <= 0 || i < from || i == len(name)-1 {
		return "", name
	}
	return name[:i], name[i+1:]
}

func (a *archiver) content(b []byte) error {
	_, err := a.out.Write(b)
	return err
}

// padded writes the content of an extended header.
func (a *archiver) padded(s string) error {
	if _, err := a.out.WriteString(s); err != nil {
		return err
	}
	_, err := a.out.Write(noBytes[:-len(s)&(tarBlock-1)])
	return err
}

var noBytes [tarBlock]byte

// pad fills the last block of x.
func (a *archiver) pad(x *packed) error {
	if x.gone || !x.file {
		return nil
	}
	_, err := a.out.Write(noBytes[:-x.st.Size&(tarBlock-1)])
	return err
}

// end writes what a tar ends with.
func (a *archiver) end() error {
	for range 2 {
		if _, err := a.out.Write(noBytes[:]); err != nil {
			return err
		}
	}
	return nil
}
