package files

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"
)

// How long parts of a ZIP archive are, as PKWARE's APPNOTE has them.
const (
	zipRecord = 46 // of an entry in the directory, without its name and its extra
	zipEnd    = 22
	zipEnd64  = 56 + 20 // before the end, where that has no room for a number: more figures, and where they are
)

var zipRecordMagic = []byte("PK\x01\x02")

// Times that ZIP can say.
var (
	firstZipTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	lastZipTime  = time.Date(2106, 1, 1, 0, 0, 0, 0, time.UTC)
)

// zipWriter writes a ZIP archive to a stream. A zip.Writer would keep in memory what must come at the end, which is about a hundred
// bytes and the name of each entry. So each entry has a zip.Writer of its own, and the directory that comes of it is kept in a spool.
type zipWriter struct {
	w       io.Writer
	at      int64
	spool   *spool
	entries uint64
	deflate *flate.Writer
	through *bufio.Writer // of an entry's zip.Writer, to the archive or to tail
	ending  bool          // to tail
	tail    bytes.Buffer
}

func newZipWriter(w io.Writer, s *spool) (*zipWriter, error) {
	z := &zipWriter{w: w, spool: s}
	deflate, err := flate.NewWriter(io.Discard, flate.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("make a compressor: %w", err)
	}
	z.deflate, z.through = deflate, bufio.NewWriter(z)
	return z, nil
}

// Write implements io.Writer, for an entry's zip.Writer.
func (z *zipWriter) Write(p []byte) (int, error) {
	if z.ending {
		return z.tail.Write(p)
	}
	n, err := z.w.Write(p)
	z.at += int64(n)
	return n, err
}

// add implements out. ZIP knows no hard links: they become links beside each other.
func (z *zipWriter) add(h *tar.Header, content io.Reader, buf []byte) error {
	entry := &zip.FileHeader{Name: h.Name, Method: zip.Deflate, Modified: h.ModTime.UTC()}
	switch {
	case h.Typeflag == tar.TypeDir:
		entry.Name += "/"
		content = strings.NewReader("")
	case h.Typeflag == tar.TypeSymlink:
		content = strings.NewReader(h.Linkname)
	case h.Typeflag == tar.TypeLink:
		content = strings.NewReader(relative(h.Name, h.Linkname))
		h.Typeflag, h.Mode = tar.TypeSymlink, 0o777
	}
	if entry.Modified.Before(firstZipTime) {
		entry.Modified = firstZipTime
	} else if entry.Modified.After(lastZipTime) {
		entry.Modified = lastZipTime
	}
	entry.SetMode(h.FileInfo().Mode())
	one := zip.NewWriter(z.through)
	one.SetOffset(z.at)
	one.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { z.deflate.Reset(w); return z.deflate, nil })
	w, err := one.CreateHeader(entry)
	if err != nil {
		return fmt.Errorf("write an entry: %w", err)
	}
	if _, err := io.CopyBuffer(w, content, buf); err != nil {
		return err
	}
	if err := one.Flush(); err != nil {
		return err
	}
	return z.finish(one, entry)
}

// finish ends the archive of one entry: it passes on the rest of the content, keeps the directory, and drops the end.
func (z *zipWriter) finish(one *zip.Writer, entry *zip.FileHeader) error {
	z.tail.Reset()
	z.ending = true
	err := one.Close()
	z.ending = false
	if err != nil {
		return err
	}
	tail := z.tail.Bytes()
	record := len(tail) - zipEnd
	if binary.LittleEndian.Uint32(tail[record+16:]) == math.MaxUint32 { // where the directory is
		record -= zipEnd64
	}
	end := record
	record -= zipRecord + len(entry.Name) + len(entry.Extra)
	if record < 0 || !bytes.HasPrefix(tail[record:], zipRecordMagic) {
		return errors.New("archive/zip writes something else than was expected at the end")
	}
	if _, err := z.Write(tail[:record]); err != nil {
		return err
	}
	z.entries++
	_, err = z.spool.Write(tail[record:end])
	return err
}

// end writes the directory, and the end of the archive.
func (z *zipWriter) end() error {
	at := uint64(z.at)
	if err := z.spool.copyTo(z); err != nil {
		return err
	}
	end, order := uint64(z.at), binary.LittleEndian
	size, entries := end-at, z.entries
	var b []byte
	if entries >= math.MaxUint16 || at >= math.MaxUint32 || size >= math.MaxUint32 {
		b = append(b, "PK\x06\x06\x2c\x00\x00\x00\x00\x00\x00\x00\x2d\x00\x2d\x00\x00\x00\x00\x00\x00\x00\x00\x00"...) // its length, of version 4.5, on one disk
		for _, n := range []uint64{entries, entries, size, at} {
			b = order.AppendUint64(b, n)
		}
		b = order.AppendUint64(append(b, "PK\x06\x07\x00\x00\x00\x00"...), end)
		b = order.AppendUint32(b, 1)
	}
	b = append(b, "PK\x05\x06\x00\x00\x00\x00"...)
	for range 2 {
		b = order.AppendUint16(b, uint16(min(entries, math.MaxUint16)))
	}
	b = order.AppendUint32(b, uint32(min(size, math.MaxUint32)))
	b = order.AppendUint32(b, uint32(min(at, math.MaxUint32)))
	_, err := z.Write(append(b, 0, 0)) // no comment
	return err
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

// relative gives the link text by which name, both inside the archive, leads to target.
func relative(name, target string) string {
	from, to := strings.Split(name, "/"), strings.Split(target, "/")
	from = from[:len(from)-1]
	for len(from) > 0 && len(to) > 1 && from[0] == to[0] {
		from, to = from[1:], to[1:]
	}
	return strings.Repeat("../", len(from)) + strings.Join(to, "/")
}
