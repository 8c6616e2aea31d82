package files

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime/debug"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// Bounds of an archive that comes in.
const (
	maxWindow = 32 << 20 // of what a decompressor must remember
	bombFrom  = 1 << 30  // so much may come of anything
	bombRatio = 200      // beyond that, at most so many times the bytes sent

	maxTrailer = 1 << 20 // of what may follow the end of an archive: padding
)

// How a body is encoded, in HTTP's words.
const (
	encodedGzip = "gzip"
	encodedZstd = "zstd"
)

// Unpack makes what an archive holds in the folder path, which is made if need be: files replace existing ones, folders are
// merged. The archive is tar, plain or compressed with gzip or zstd, as coding says (a body's Content-Encoding, or "") or its
// first bytes. It reads
// body in another goroutine, which has ended when it returns. An entry that would lie outside, a link that would lead there
// (with keepLinks symbolic ones may), and an entry that is neither file, folder nor link is refused by name: Invalid. Entries
// before it stay. TooLarge for a bomb. An error of body comes back as it is.
func (s *Service) Unpack(ctx context.Context, h access.Handle, in Unpacking, body io.Reader) (wire.Unpacked, error) {
	folder, err := CheckPath(in.Folder)
	if err != nil {
		return wire.Unpacked{}, err
	}
	t, err := s.begin(ctx, h, "extract into "+path.Base(folder), true)
	if err != nil {
		return wire.Unpacked{}, err
	}
	defer t.end()
	judge := newSieve(body, in.KeepLinks)
	out, write := io.Pipe()
	passed := make(chan error, 1)
	go func() {
		err := unharmed(func() error { return judge.pass(t.ctx, in.Coding, write) })
		write.CloseWithError(err)
		passed <- err
	}()
	feed := t.to(out)
	defer feed.rest()
	made, err := t.guest.FileUnpack(t.ctx, folder, in.KeepLinks, feed)
	out.CloseWithError(errTaken) // whatever is not read by now is not wanted
	judged := <-passed
	switch {
	case judge.in.err != nil:
		return wire.Unpacked{}, judge.in.err
	case judged != nil && !errors.Is(judged, errTaken):
		return wire.Unpacked{}, why(t.ctx, judged)
	case err != nil:
		return wire.Unpacked{}, why(t.ctx, err)
	case judged != nil:
		return wire.Unpacked{}, fault.Wrap(judged, fault.Unavailable, "The program inside the sandbox did not take the whole archive.")
	}
	return made, nil
}

// unharmed calls f, and makes an error of a panic: a bug in what reads a stranger's archive must not end sandboxd, as one in a
// goroutine of our own would.
func unharmed(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Wrap(fmt.Errorf("panic: %v\n%s", p, debug.Stack()), fault.Internal, "The archive could not be read. The log has the details.")
		}
	}()
	return f()
}

// Unpacking says how an archive is extracted.
type Unpacking struct {
	Folder    string
	Coding    string // of the body: "gzip", "zstd" or ""; see CheckEncoding
	KeepLinks bool   // symbolic links may lead anywhere; they are never followed
}

// errTaken ends sending when the guest has given its final answer.
var errTaken = errors.New("the guest has answered")

// CheckEncoding says whether a body of that content coding can be extracted.
func CheckEncoding(coding string) bool {
	switch strings.ToLower(coding) {
	case "", "identity", encodedGzip, "x-gzip", encodedZstd:
		return true
	}
	return false
}

// measured counts the bytes that pass.
type measured struct {
	r   io.Reader
	n   int64
	err error // why there were no more, but for their end
}

func (m *measured) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.n += int64(n)
	if err != nil && err != io.EOF {
		m.err = err
	}
	return n, err
}

// plain undoes the compression of an archive: the coding that is declared, else the one that its first bytes show. The caller
// must call close.
func plain(coding string, body *bufio.Reader) (r io.Reader, close func(), err error) {
	switch strings.ToLower(coding) {
	case encodedGzip, "x-gzip":
		return gunzip(body)
	case encodedZstd:
		return unzstd(body)
	}
	head, err := body.Peek(4)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, nil, err
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return gunzip(body)
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}), len(head) == 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:], []byte{0x2a, 0x4d, 0x18}):
		return unzstd(body)
	}
	return body, func() {}, nil
}

func gunzip(body io.Reader) (io.Reader, func(), error) {
	z, err := gzip.NewReader(body)
	if err != nil {
		return nil, nil, unpackError(err)
	}
	return z, func() {}, nil
}

func unzstd(body io.Reader) (io.Reader, func(), error) {
	z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, nil, unpackError(err)
	}
	return z, z.Close, nil
}

// unpackError turns what a decompressor or the archive's reader says into a sentence. An error that has a kind keeps it.
func unpackError(err error) error {
	var known *fault.Error
	switch {
	case errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errBetween):
		return fault.Wrap(err, fault.TooLarge, "The archive has more than %d MiB that belong to none of its files. It was refused.", maxBetween>>20)
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return fault.Wrap(err, fault.Invalid, "The archive was compressed with a window above %d MiB. Compress it with less.", maxWindow>>20)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fault.Wrap(err, fault.Invalid, "The archive is cut off.")
	case errors.Is(err, tar.ErrFieldTooLong):
		return fault.Wrap(err, fault.TooLarge, "The name of one of the archive's entries, or another of its headers, is longer than %d MiB. It was refused.", wire.MaxEntryHeader>>20)
	case errors.Is(err, tar.ErrHeader):
		return fault.Wrap(err, fault.Invalid, "This is no tar archive. It may be plain, or compressed with gzip or zstd.")
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, zstd.ErrMagicMismatch), errors.Is(err, zstd.ErrCRCMismatch):
		return fault.Wrap(err, fault.Invalid, "The archive's compressed data is damaged.")
	}
	return fault.Wrap(err, fault.Invalid, "The archive cannot be read.")
}

// sieve lets an archive through to a sandbox, entry by entry, each judged before.
type sieve struct {
	in    *measured // the bytes sent
	out   int64     // what came of it
	judge *entryValidator
	entry string // the one under way, as it was sent
	from  int64  // so much may come of anything
}

func newSieve(body io.Reader, keepLinks bool) *sieve {
	return &sieve{in: &measured{r: body}, judge: newEntryValidator(keepLinks), from: bombFrom}
}

// pass reads the archive and writes it as plain tar to w, until ctx ends. An error of w or ctx comes back as it is; all others are
// Invalid, or TooLarge for a bomb, and name the entry.
func (s *sieve) pass(ctx context.Context, coding string, w io.Writer) error {
	from, close, err := plain(coding, bufio.NewReaderSize(s.in, copyBuffer))
	if err != nil {
		return err
	}
	defer close()
	whole := &countingReader{r: from, ctx: ctx, judge: s.bomb}
	buffered := bufio.NewWriterSize(w, copyBuffer)
	if err := s.entries(whole, tar.NewWriter(buffered)); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	whole.entry()
	if _, err := io.CopyN(io.Discard, whole, maxTrailer); err != nil && err != io.EOF { // a checksum may stand there
		return unpackError(err)
	}
	return nil
}

// entries passes all entries on, and the end of the archive.
func (s *sieve) entries(whole *countingReader, to *tar.Writer) error {
	buf := buffers.Get().(*[copyBuffer]byte)
	defer buffers.Put(buf)
	archive := tar.NewReader(whole)
	for {
		whole.head()
		h, err := archive.Next()
		if err == io.EOF && !whole.over {
			return to.Close()
		}
		if err != nil {
			return unpackError(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader { // what it says of all that follows is not for us
			continue
		}
		whole.entry()
		if err := s.one(h, archive, to, buf[:]); err != nil {
			return err
		}
	}
}

// one passes one entry on.
func (s *sieve) one(h *tar.Header, from io.Reader, to *tar.Writer, buf []byte) error {
	s.entry = h.Name
	if h.Typeflag == tar.TypeGNUSparse || h.Typeflag == tar.TypeCont {
		h.Typeflag = tar.TypeReg // its content is read with its holes filled in
	}
	if err := s.judge.admit(h); err != nil {
		return s.refused(err)
	}
	if h.Name == "" {
		return nil
	}
	s.out += 512 + h.Size
	if err := s.bomb(s.out - h.Size); err != nil {
		return err
	}
	clean := &tar.Header{Typeflag: h.Typeflag, Name: h.Name, Linkname: h.Linkname, Mode: h.Mode, ModTime: h.ModTime}
	if h.Typeflag == tar.TypeReg {
		clean.Size = h.Size
	}
	if err := to.WriteHeader(clean); err != nil {
		return fmt.Errorf("write an entry: %w", err)
	}
	return s.content(clean.Size, from, to, buf)
}

// content passes on a file's content and checks its compression ratio piece by piece.
func (s *sieve) content(size int64, from io.Reader, to io.Writer, buf []byte) error {
	for left := size; left > 0; {
		n, err := from.Read(buf[:min(int64(len(buf)), left)])
		left -= int64(n)
		if err := s.bomb(s.out - left); err != nil { // holes are filled in: more may come than was read
			return err
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil && (err != io.EOF || left > 0) {
			return unpackError(err)
		}
	}
	return nil
}

// bomb refuses content that is too large for the bytes sent so far.
func (s *sieve) bomb(came int64) error {
	if came <= s.from || came/bombRatio <= s.in.n {
		return nil
	}
	return fault.New(fault.TooLarge, "The archive unpacks to more than %d times its size, at %q. It was refused.", bombRatio, text.OneLine(s.entry, 200))
}

func (s *sieve) refused(err error) error {
	return fault.Wrap(err, fault.Invalid, "The archive's entry %q %v. What came before it has been extracted.", text.OneLine(s.entry, 200), err)
}
