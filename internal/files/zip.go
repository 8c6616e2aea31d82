package files

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"
)

// The parts of a ZIP archive, as PKWARE's APPNOTE has them.
const (
	zipLocal      = 0x04034b50
	zipDescriptor = 0x08074b50
	zipCentral    = 0x02014b50
	zipEnd        = 0x06054b50
	zipEnd64      = 0x06064b50
	zipEnd64At    = 0x07064b50

	zipStored   = 0
	zipDeflated = 8

	zipLater    = 1 << 3  // checksum and sizes follow the content
	zipUTF8     = 1 << 11 // the name is
	zip20       = 20
	zip45       = 45 // with 64-bit sizes
	zipUnix     = 3 << 8
	zipFolder   = 0x10 // in DOS's attributes
	zipTimeID   = 0x5455
	zipWideID   = 0x0001
	zipMost32   = 1<<32 - 1
	zipMost16   = 1<<16 - 1
	zipWideFrom = zipMost32 - 1<<24 // compressing may add a little
)

// The kinds of files in a Unix mode.
const (
	unixFile   = 0o100000
	unixFolder = 0o040000
	unixLink   = 0o120000
)

// zipWriter writes a ZIP archive to a stream. What must come at its end (46 bytes and the name of each entry) it keeps in a
// spool and not in memory, which archive/zip does.
type zipWriter struct {
	w       io.Writer
	at      int64
	spool   *spool
	deflate *flate.Writer
	entries int64
	buf     []byte
}

// zipEntry is an entry under way.
type zipEntry struct {
	name     string
	mode     uint32 // with the kind
	modified time.Time
	size     int64 // of the content, which is known before
	offset   int64
	packed   int64
	crc      uint32
	method   uint16
	flags    uint16
	wide     bool
}

func newZipWriter(w io.Writer, s *spool) (*zipWriter, error) {
	z := &zipWriter{w: w, spool: s}
	deflate, err := flate.NewWriter(io.Discard, flate.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("make a compressor: %w", err)
	}
	z.deflate = deflate
	return z, nil
}

// Write passes bytes on and counts them.
func (z *zipWriter) Write(p []byte) (int, error) {
	n, err := z.w.Write(p)
	z.at += int64(n)
	return n, err
}

// small adds an entry whose content is at hand: a folder, a link's target.
func (z *zipWriter) small(name string, mode uint32, modified time.Time, content []byte) error {
	e := z.begin(name, mode, modified, int64(len(content)))
	e.method, e.crc, e.packed = zipStored, crc32.ChecksumIEEE(content), int64(len(content))
	if err := z.local(e); err != nil {
		return err
	}
	if _, err := z.Write(content); err != nil {
		return err
	}
	return z.list(e)
}

// file adds a file whose content copy writes; size is how much that will be.
func (z *zipWriter) file(name string, mode uint32, modified time.Time, size int64, copy func(io.Writer) error) error {
	if size == 0 {
		return z.small(name, mode, modified, nil)
	}
	e := z.begin(name, mode, modified, size)
	e.method, e.flags, e.wide = zipDeflated, e.flags|zipLater, size >= zipWideFrom
	if err := z.local(e); err != nil {
		return err
	}
	from := z.at
	sum := &summed{w: z.deflate}
	z.deflate.Reset(z)
	if err := copy(sum); err != nil {
		return err
	}
	if err := z.deflate.Close(); err != nil {
		return err
	}
	e.packed, e.crc, e.size = z.at-from, sum.crc, sum.n
	if err := z.descriptor(e); err != nil {
		return err
	}
	return z.list(e)
}

// summed counts and sums up what passes.
type summed struct {
	w   io.Writer
	crc uint32
	n   int64
}

// Write implements io.Writer.
func (s *summed) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.crc = crc32.Update(s.crc, crc32.IEEETable, p[:n])
	s.n += int64(n)
	return n, err
}

func (z *zipWriter) begin(name string, mode uint32, modified time.Time, size int64) *zipEntry {
	e := &zipEntry{name: name, mode: mode, modified: modified, size: size, offset: z.at}
	if mode&unixFolder == unixFolder && mode&0o170000 == unixFolder {
		e.name += "/"
	}
	if utf8.ValidString(e.name) {
		e.flags |= zipUTF8
	}
	return e
}

// zipName gives a plain name as it is safe on every system: some take a backslash for a slash, and a letter with a colon for a
// disk.
func zipName(name string) string {
	name = strings.ReplaceAll(name, `\`, "_")
	if len(name) > 1 && name[1] == ':' {
		name = name[:1] + "_" + name[2:]
	}
	return name
}

// local writes what comes before an entry's content.
func (z *zipWriter) local(e *zipEntry) error {
	crc, packed, size := e.crc, e.packed, e.size
	if e.flags&zipLater != 0 {
		crc, packed, size = 0, 0, 0
	}
	extra := e.timeExtra(nil)
	if e.wide {
		packed, size = zipMost32, zipMost32
		extra = le16(extra, zipWideID, 16)
		extra = le64(extra, 0, 0)
	}
	b := le32(z.buf[:0], zipLocal)
	b = le16(b, e.version(), e.flags, e.method)
	b = e.when(b)
	b = le32(b, crc, uint32(packed), uint32(size))
	b = le16(b, uint16(len(e.name)), uint16(len(extra)))
	b = append(append(b, e.name...), extra...)
	z.buf = b
	_, err := z.Write(b)
	return err
}

// descriptor writes what comes after the content of an entry whose checksum was not known before.
func (z *zipWriter) descriptor(e *zipEntry) error {
	b := le32(z.buf[:0], zipDescriptor, e.crc)
	if e.wide {
		b = le64(b, uint64(e.packed), uint64(e.size))
	} else {
		b = le32(b, uint32(e.packed), uint32(e.size))
	}
	z.buf = b
	_, err := z.Write(b)
	return err
}

// list keeps what is said of an entry at the archive's end.
func (z *zipWriter) list(e *zipEntry) error {
	z.entries++
	packed, size, offset := uint64(e.packed), uint64(e.size), uint64(e.offset)
	var wide []byte
	for _, v := range []*uint64{&size, &packed, &offset} {
		if e.wide && v != &offset || *v >= zipMost32 {
			wide = le64(wide, *v)
			*v = zipMost32
		}
	}
	extra := e.timeExtra(nil)
	if len(wide) > 0 {
		extra = append(le16(extra, zipWideID, uint16(len(wide))), wide...)
	}
	outside := e.mode << 16
	if strings.HasSuffix(e.name, "/") {
		outside |= zipFolder
	}
	b := le32(z.buf[:0], zipCentral)
	b = le16(b, zipUnix|zip45, e.version(), e.flags, e.method)
	b = e.when(b)
	b = le32(b, e.crc, uint32(packed), uint32(size))
	b = le16(b, uint16(len(e.name)), uint16(len(extra)), 0, 0, 0)
	b = le32(b, outside, uint32(offset))
	b = append(append(b, e.name...), extra...)
	z.buf = b
	_, err := z.spool.Write(b)
	return err
}

// close writes the archive's end.
func (z *zipWriter) close() error {
	at := z.at
	if err := z.spool.copyTo(z); err != nil {
		return err
	}
	size, end := z.at-at, z.at
	b := z.buf[:0]
	if z.entries >= zipMost16 || at >= zipMost32 || size >= zipMost32 {
		b = le64(le32(b, zipEnd64), 44)
		b = le16(b, zipUnix|zip45, zip45)
		b = le32(b, 0, 0)
		b = le64(b, uint64(z.entries), uint64(z.entries), uint64(size), uint64(at))
		b = le64(le32(b, zipEnd64At, 0), uint64(end))
		b = le32(b, 1)
	}
	n := uint16(min(z.entries, zipMost16))
	b = le16(le32(b, zipEnd), 0, 0, n, n)
	b = le32(b, uint32(min(size, zipMost32)), uint32(min(at, zipMost32)))
	b = le16(b, 0)
	_, err := z.Write(b)
	return err
}

func (e *zipEntry) version() uint16 {
	if e.wide {
		return zip45
	}
	return zip20
}

// when writes the time as DOS has it: in steps of two seconds, from 1980 to 2107.
func (e *zipEntry) when(b []byte) []byte {
	t := e.modified.UTC()
	if t.Year() < 1980 {
		t = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if t.Year() > 2107 {
		t = time.Date(2107, 12, 31, 23, 59, 58, 0, time.UTC)
	}
	clock := t.Second()/2 | t.Minute()<<5 | t.Hour()<<11
	day := t.Day() | int(t.Month())<<5 | (t.Year()-1980)<<9
	return le16(b, uint16(clock), uint16(day))
}

// timeExtra writes the time as Unix has it, where four bytes can say it.
func (e *zipEntry) timeExtra(b []byte) []byte {
	at := e.modified.Unix()
	if at < 0 || at > 1<<31-1 {
		return b
	}
	return le32(append(le16(b, zipTimeID, 5), 1), uint32(at))
}

func le16(b []byte, values ...uint16) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return b
}

func le32(b []byte, values ...uint32) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func le64(b []byte, values ...uint64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}
