package files

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// errTar says that what is read is no tar, or a damaged one.
var errTar = errors.New("no tar")

// The types of a tar's entries that mean something here.
const (
	typeFile     = '0'
	typeHardLink = '1'
	typeLink     = '2'
	typeFolder   = '5'
	typePAX      = 'x' // more about the next entry
	typePAXAll   = 'g' // more about all that follow; passed over
	typeLongName = 'L' // of the next entry, as GNU's tar has it
	typeLongLink = 'K'
)

// tarExtra bounds what an archive may say of an entry beside its header.
const tarExtra = 64 << 10

// tarHeader is one entry of a tar, as it stands there.
type tarHeader struct {
	kind     byte
	name     string
	target   string
	mode     uint32
	size     int64
	modified time.Time
	sparse   bool // the content is not what stands in the archive
}

// tarReader reads a tar. It takes what GNU's tar, POSIX' pax and their older forms write, and holds no more of it than one
// header with what belongs to it. Package tar would do it too, and is larger than the rest of this package.
type tarReader struct {
	r     io.Reader
	left  int64 // of the content
	pad   int64 // behind it
	block [tarBlock]byte
}

// next reads a header, past what is left of the content before it. io.EOF is a proper end.
func (t *tarReader) next() (*tarHeader, error) {
	var longName, longLink string
	var more pax
	for {
		h, err := t.header()
		if err != nil {
			return nil, err
		}
		switch h.kind {
		case typePAXAll:
			continue
		case typePAX, typeLongName, typeLongLink:
			text, err := t.extra(h.size)
			if err != nil {
				return nil, err
			}
			switch h.kind {
			case typeLongName:
				longName = cString(text)
			case typeLongLink:
				longLink = cString(text)
			default:
				if err := more.parse(string(text)); err != nil {
					return nil, err
				}
			}
			continue
		}
		if longName != "" {
			h.name = longName
		}
		if longLink != "" {
			h.target = longLink
		}
		if err := more.apply(h); err != nil {
			return nil, err
		}
		t.expect(h)
		return h, nil
	}
}

// expect makes ready for the content of h.
func (t *tarReader) expect(h *tarHeader) {
	switch {
	case h.kind == 0 || h.kind == '7' || h.kind == typeFile:
		if h.kind = typeFile; strings.HasSuffix(h.name, "/") {
			h.kind = typeFolder
		}
	case h.kind >= typeHardLink && h.kind <= '6': // have none, whatever they say
		h.size = 0
	}
	t.left, t.pad = h.size, -h.size&(tarBlock-1)
}

// header reads one block that is a header, and makes ready for what follows.
func (t *tarReader) header() (*tarHeader, error) {
	if _, err := io.CopyN(io.Discard, t.r, t.left+t.pad); err != nil {
		return nil, cutShort(err)
	}
	t.left, t.pad = 0, 0
	for zeros := 0; ; zeros++ {
		if _, err := io.ReadFull(t.r, t.block[:]); err != nil {
			return nil, err // io.EOF between blocks: some leave the end away
		}
		if t.block != noBytes {
			break
		}
		if zeros > 0 {
			return nil, io.EOF
		}
	}
	h, err := t.parse()
	if err == nil {
		t.left, t.pad = h.size, -h.size&(tarBlock-1)
	}
	return h, err
}

func (t *tarReader) parse() (*tarHeader, error) {
	b := &t.block
	sum, ok := number(b[tarSum : tarSum+8])
	if !ok || !t.sums(sum) {
		return nil, errTar
	}
	h := &tarHeader{kind: b[tarType], name: cString(b[tarName : tarName+tarText]), target: cString(b[tarTarget : tarTarget+tarText])}
	mode, ok1 := number(b[tarMode : tarMode+8])
	size, ok2 := number(b[tarSize : tarSize+12])
	modified, ok3 := number(b[tarModified : tarModified+12])
	if !ok1 || !ok2 || !ok3 || size < 0 || size > 1<<62 {
		return nil, errTar
	}
	h.mode, h.size, h.modified = uint32(mode), size, time.Unix(modified, 0)
	h.sparse = h.kind == 'S'
	if prefix := cString(b[tarPrefix : tarPrefix+tarFolders]); prefix != "" && string(b[tarMagic:tarMagic+6]) == "ustar\x00" {
		h.name = prefix + "/" + h.name
	}
	return h, nil
}

// sums checks the sum of the bytes, which some have taken for signed.
func (t *tarReader) sums(want int64) bool {
	var unsigned, signed int64
	for i, c := range t.block {
		if i >= tarSum && i < tarSum+8 {
			c = ' '
		}
		unsigned += int64(c)
		signed += int64(int8(c))
	}
	return want == unsigned || want == signed
}

// number reads a field: octal digits between blanks, or, with the highest bit set, bytes.
func number(b []byte) (int64, bool) {
	if b[0]&0x80 == 0 {
		text := strings.Trim(string(b), " \x00")
		if text == "" {
			return 0, true
		}
		n, err := strconv.ParseInt(text, 8, 64)
		return n, err == nil && n >= 0
	}
	n := int64(0)
	if b[0]&0x40 != 0 {
		n = -1
	}
	for i, c := range b {
		if i == 0 {
			c &= 0x7f
			if n < 0 {
				c |= 0x80
			}
		}
		if n > 1<<54 || n < -1<<54 {
			return 0, false
		}
		n = n<<8 | int64(c)
	}
	return n, true
}

func cString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// extra reads what is said of the next entry.
func (t *tarReader) extra(size int64) ([]byte, error) {
	if size > tarExtra {
		return nil, errTar
	}
	b := make([]byte, size)
	_, err := io.ReadFull(t, b)
	return b, cutShort(err)
}

// Read reads the content of the entry.
func (t *tarReader) Read(p []byte) (int, error) {
	if t.left == 0 {
		return 0, io.EOF
	}
	n, err := t.r.Read(p[:min(int64(len(p)), t.left)])
	if t.left -= int64(n); err == io.EOF && t.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// pax is what POSIX' extended headers say of the next entry.
type pax struct{ path, link, size, modified, sparse string }

// parse reads records: a length in decimal that counts itself, a blank, a key, "=", a value and a newline.
func (x *pax) parse(text string) error {
	for text != "" {
		digits, _, ok := strings.Cut(text, " ")
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || n <= len(digits)+1 || n > len(text) || text[n-1] != '\n' {
			return errTar
		}
		key, value, ok := strings.Cut(text[len(digits)+1:n-1], "=")
		if !ok {
			return errTar
		}
		text = text[n:]
		switch {
		case key == "path":
			x.path = value
		case key == "linkpath":
			x.link = value
		case key == "size":
			x.size = value
		case key == "mtime":
			x.modified = value
		case strings.HasPrefix(key, "GNU.sparse."):
			x.sparse = key
		}
	}
	return nil
}

func (x *pax) apply(h *tarHeader) error {
	if x.path != "" {
		h.name = x.path
	}
	if x.link != "" {
		h.target = x.link
	}
	if x.size != "" {
		n, err := strconv.ParseInt(x.size, 10, 64)
		if err != nil || n < 0 || n > 1<<62 {
			return errTar
		}
		h.size = n
	}
	if x.modified != "" {
		whole, _, _ := strings.Cut(x.modified, ".")
		if n, err := strconv.ParseInt(whole, 10, 64); err == nil {
			h.modified = time.Unix(n, 0)
		}
	}
	h.sparse = h.sparse || x.sparse != ""
	return nil
}
