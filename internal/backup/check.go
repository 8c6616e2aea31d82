package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/klauspost/compress/zstd"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// readAhead is how much of a file is read at once.
const readAhead = 1 << 20

// endSize is how many zeros end a tar archive.
const endSize = 1024

// maxTail bounds what may follow the end of an archive, such as the filling of a tape's block, in bytes.
const maxTail = 16 << 20

// checked is what an archive was found to be.
type checked struct {
	manifest *Manifest // nil of one that another program has made
	prefix   string    // of what is in the home
	stats    archive.Stats
	sum      [sha256.Size]byte // of the file
	sealed   bool              // and that is what its seal says
}

// check reads a file to its end, and says what it is. It makes nothing. An archive that cannot be restored is Invalid, one that a
// newer sandboxd has made a Conflict. Its content may have most bytes; 0 for no bound.
func check(ctx context.Context, f *os.File, most int64) (c checked, err error) {
	info, err := f.Stat()
	if err != nil {
		return c, err
	}
	sum, sealed, err := readSeal(f, info.Size())
	if err != nil {
		return c, err
	}
	size := info.Size()
	if sealed {
		size -= int64(sealSize)
	}
	hash := sha256.New()
	file := bufio.NewReaderSize(io.TeeReader(io.NewSectionReader(f, 0, size), hash), readAhead)
	content, closeContent, err := decompress(file)
	if err != nil {
		return c, err
	}
	defer closeContent()
	if err := c.read(ctx, content, most); err != nil {
		return c, unreadable(ctx, err)
	}
	if _, err := io.Copy(io.Discard, file); err != nil {
		return c, err
	}
	hash.Sum(c.sum[:0])
	if sealed && c.sum != sum {
		return c, fault.New(fault.Invalid, "The backup is damaged: its checksum is not that of its content. Use another copy of it.")
	}
	c.sealed = sealed
	return c, nil
}

// read reads the content of an archive.
func (c *checked) read(ctx context.Context, content io.Reader, most int64) (err error) {
	all := bufio.NewReaderSize(content, readAhead)
	end := &ending{from: all}
	r := tar.NewReader(end)
	begin, _ := all.Peek(readAhead) // a shorter archive is shorter
	if c.manifest, err = readManifest(bytes.NewReader(begin)); err != nil {
		return err
	}
	if c.manifest != nil {
		c.prefix = homePrefix
	}
	c.stats, err = checkEntries(ctx, r, c.prefix, c.manifest, most)
	if err == nil && !end.ends() {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if n, err := io.CopyN(io.Discard, all, maxTail); err == nil { // what is wrong with the end of it shows now
		return fault.New(fault.Invalid, "The archive is damaged: %d MiB and more follow its end.", n>>20)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	if c.manifest != nil && !same(c.stats, c.manifest.Home) {
		return fault.New(fault.Invalid, "The backup is not complete: its manifest tells of %d files and %s, and it has %d and %s.",
			c.manifest.Home.Files, text.Size(c.manifest.Home.Bytes), c.stats.Files, text.Size(c.stats.Bytes))
	}
	if c.manifest == nil && c.stats.Files+c.stats.Folders == 0 {
		return fault.New(fault.Invalid, "The archive has no files.")
	}
	return nil
}

// ending remembers the last bytes that were read.
type ending struct {
	from io.Reader
	last []byte
}

// Read implements io.Reader.
func (e *ending) Read(b []byte) (int, error) {
	n, err := e.from.Read(b)
	e.last = append(e.last, b[max(0, n-endSize):n]...)
	e.last = e.last[max(0, len(e.last)-endSize):]
	return n, err
}

// ends says whether those end a tar archive, which package tar does not ask for.
func (e *ending) ends() bool {
	return len(e.last) == endSize && bytes.Count(e.last, []byte{0}) == endSize
}

// manifestIn gives that of a backup, of which it reads no more than that. It gives nil when there is none.
func manifestIn(f *os.File) (*Manifest, error) {
	d, err := zstd.NewReader(io.NewSectionReader(f, 0, math.MaxInt64), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return readManifest(d)
}

// readManifest looks whether an archive begins with one of ours. It gives nil when it does not.
func readManifest(r io.Reader) (*Manifest, error) {
	first := tar.NewReader(r)
	h, err := first.Next()
	if err != nil || h.Name != manifestName || h.Typeflag != tar.TypeReg || h.Size > maxManifest {
		return nil, nil // whatever is wrong with it is seen when all is read
	}
	b, err := io.ReadAll(first)
	if err != nil {
		return nil, err
	}
	return parseManifest(b)
}

// parseManifest gives nil for what is none.
func parseManifest(b []byte) (*Manifest, error) {
	var m Manifest
	var known struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	switch err := json.Unmarshal(b, &known); {
	case err != nil || known.Format != formatName:
		return nil, nil
	case known.Version > rootVersion:
		return nil, fault.New(fault.Conflict, "The backup is of a newer sandboxd (its format is %d, this program knows up to %d). Restore it there, or upgrade.",
			known.Version, rootVersion)
	}
	if err := json.Unmarshal(b, &m); err != nil || known.Version < 1 {
		return nil, fault.New(fault.Invalid, "The backup's manifest makes no sense.")
	}
	return &m, nil
}

var (
	magicZstd  = "\x28\xB5\x2F\xFD"
	magicGzip  = "\x1F\x8B"
	magicTar   = "ustar" // at magicTarAt
	magicTarAt = 257
)

// decompress finds out how a file is compressed.
func decompress(file *bufio.Reader) (content io.Reader, closeContent func(), err error) {
	begin, err := file.Peek(magicTarAt + len(magicTar))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	has := func(magic string, at int) bool {
		return len(begin) >= at+len(magic) && string(begin[at:at+len(magic)]) == magic
	}
	switch {
	case has(magicZstd, 0):
		d, err := zstd.NewReader(file, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil, err
		}
		return d, d.Close, nil
	case has(magicGzip, 0):
		d, err := gzip.NewReader(file)
		if err != nil {
			return nil, nil, unreadable(context.Background(), err)
		}
		return d, func() { d.Close() }, nil
	case has(magicTar, magicTarAt):
		return file, func() {}, nil
	case len(begin) == 0:
		return nil, nil, fault.New(fault.Invalid, "The file is empty.")
	}
	return nil, nil, fault.New(fault.Invalid, "The file is no archive that can be restored. Give a backup (.tar.zst), or a .tar or .tar.gz of a home.")
}

// unreadable says what is wrong with an archive.
func unreadable(ctx context.Context, err error) error {
	var known *fault.Error
	var entry *archive.EntryError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &known):
		return err
	case errors.As(err, &entry):
		return fault.Wrap(err, fault.Invalid, "The archive cannot be restored: %s %s.", fmt.Sprintf("%.200q", entry.Name), entry.Err)
	case errors.As(err, new(wire.EntryError)):
		return fault.Wrap(err, fault.Invalid, "The archive cannot be restored: an entry of it %s.", err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fault.Wrap(err, fault.Invalid, "The archive is cut off: its end is missing.")
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fault.Wrap(err, fault.Invalid, "The archive takes more than %d MiB of memory to unpack. Compress it without --long or --ultra.", maxWindow>>20)
	}
	var broken *os.PathError
	if errors.As(err, &broken) {
		return err
	}
	return fault.Wrap(err, fault.Invalid, "The archive is damaged: %s.", text.Excerpt(err.Error(), 100))
}
