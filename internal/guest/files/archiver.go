package files

import (
	"archive/tar"
	"bufio"
	"strconv"
	"strings"

	"sandboxd/internal/wire"
)

const tarBlock = 512

// archiver writes a tar. Headers that fit into the plain old form, which nearly all do, it writes by itself, the others
// package tar.
type archiver struct {
	out   *bufio.Writer
	view  viewer
	block [tarBlock]byte
}

// The fields of a plain old header: where they begin.
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
	h := a.view.header(x)
	prefix, name := splitName(h.Name)
	if !plain(name, tarText) || !plain(prefix, tarFolders) || !plain(h.Linkname, tarText) || !plain(h.Uname, tarWho) || !plain(h.Gname, tarWho) ||
		h.Uid >= tarSmallest || h.Gid >= tarSmallest || h.Size >= tarLargest || x.st.Mtim.Sec < 0 || x.st.Mtim.Sec >= tarLargest {
		return a.addSlowly(h)
	}
	clear(a.block[:])
	copy(a.block[tarName:], name)
	copy(a.block[tarPrefix:], prefix)
	copy(a.block[tarTarget:], h.Linkname)
	copy(a.block[tarMagic:], "ustar\x0000")
	copy(a.block[tarOwner:], h.Uname)
	copy(a.block[tarGroup:], h.Gname)
	a.block[tarType] = h.Typeflag
	a.octal(tarMode, 7, uint64(x.st.Mode&wire.MaxFileMode))
	a.octal(tarUID, 7, uint64(h.Uid))
	a.octal(tarGID, 7, uint64(h.Gid))
	a.octal(tarSize, 11, uint64(h.Size))
	a.octal(tarModified, 11, uint64(x.st.Mtim.Sec))
	sum := uint64(8 * ' ') // its own field counts as blanks
	for _, c := range a.block {
		sum += uint64(c)
	}
	a.octal(tarSum, 6, sum)
	a.block[tarSum+7] = ' '
	_, err := a.out.Write(a.block[:])
	return err
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

// octal writes a number with so many digits, and a zero byte behind it.
func (a *archiver) octal(at, digits int, n uint64) {
	var room [24]byte
	text := strconv.AppendUint(room[:0], n, 8)
	for i := range digits - len(text) {
		a.block[at+i] = '0'
	}
	copy(a.block[at+digits-len(text):], text)
}

// splitName cuts a name that is too long for one field at a slash, if that helps.
func splitName(name string) (prefix, rest string) {
	if len(name) <= tarText {
		return "", name
	}
	i := strings.IndexByte(name[len(name)-tarText-1:], '/')
	if i < 0 {
		return "", name
	}
	i += len(name) - tarText - 1
	if i == 0 || i == len(name)-1 {
		return "", name
	}
	return name[:i], name[i+1:]
}

// addSlowly lets package tar write a header. Its writer does not see the content, and so is of no further use.
func (a *archiver) addSlowly(h *tar.Header) error { return tar.NewWriter(a.out).WriteHeader(h) }

func (a *archiver) content(b []byte) error {
	_, err := a.out.Write(b)
	return err
}

var noBytes [tarBlock]byte

// pad fills the last block of x.
func (a *archiver) pad(x *packed) error {
	if x.gone || !x.file {
		return nil
	}
	over := int(x.st.Size % tarBlock)
	if over == 0 {
		return nil
	}
	_, err := a.out.Write(noBytes[over:])
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
