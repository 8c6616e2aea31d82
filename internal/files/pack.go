package files

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/klauspost/compress/zstd"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// Format is a format of archives.
type Format string

// The formats that folders can be had in.
const (
	Tar     Format = "tar"
	TarZstd Format = "tar.zst"
	Zip     Format = "zip"
)

// Formats are all of them.
var Formats = []Format{Tar, TarZstd, Zip}

// zstdWindow bounds what a compressor keeps of what it has seen.
const zstdWindow = 4 << 20

// Archive is a folder on its way out of a sandbox, as an archive. The caller must Close it.
type Archive struct {
	Name   string // of the file that it makes, such as "home.tar.zst"; bytes of the sandbox's own
	Format Format

	owner  string          // of the sandbox
	stream io.Reader       // a plain tar, of the guest
	ctx    context.Context // of the transfer
	spools *spools
	close  func()
}

// Close ends the packing in the sandbox. It may be called more than once.
func (a *Archive) Close() { a.close() }

// Pack opens a folder, or those names in it, as an archive. The archive is judged while it is copied.
func (s *Service) Pack(ctx context.Context, h access.Handle, folder string, names []string, format Format) (*Archive, error) {
	clean, err := CheckPath(folder)
	if err != nil {
		return nil, err
	}
	if err := checkNames("name", names); err != nil {
		return nil, err
	}
	if !slices.Contains(Formats, format) {
		return nil, fault.Field("archive", "An archive is one of %q, not %q.", Formats, text.OneLine(string(format), 20))
	}
	t, err := s.begin(ctx, h, "pack "+path.Base(clean), true)
	if err != nil {
		return nil, err
	}
	body, err := t.guest.FilePack(t.ctx, clean, once(names))
	if err != nil {
		err = why(t.ctx, err)
		t.end()
		return nil, err
	}
	return &Archive{
		Name: archiveName(clean, names, format), Format: format, owner: t.owner, stream: t.from(body), ctx: t.ctx, spools: &s.spools,
		close: func() { body.Close(); t.end() },
	}, nil
}

// once gives each of the names once, in their order.
func once(names []string) []string {
	seen := make(map[string]bool, len(names))
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
}

// archiveName names the archive of a folder or of entries in it; a single entry gives its own name.
func archiveName(folder string, names []string, f Format) string {
	base := path.Base(folder)
	if len(names) == 1 {
		base = names[0]
	}
	switch base {
	case "/":
		base = "root"
	case ".":
		base = "home"
	}
	return base + "." + string(f)
}

// Copy writes the archive to w, whole or not: after an error what w has got is cut off and must not look complete. It holds
// some hundred kilobytes, and a few megabytes to compress, whatever the sandbox sends; it takes no more of that than w does.
// Entries are checked before they are sent, so that extracting the archive blindly does no harm.
func (a *Archive) Copy(w io.Writer) error {
	buffered := bufio.NewWriterSize(w, copyBuffer)
	if err := a.write(buffered); err != nil {
		return err
	}
	return buffered.Flush()
}

func (a *Archive) write(w io.Writer) error {
	switch a.Format {
	case TarZstd:
		z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(zstdWindow),
			zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return fmt.Errorf("make a compressor: %w", err)
		}
		if err := a.pass(tarOut{tar.NewWriter(z)}); err != nil {
			return err
		}
		return z.Close()
	case Zip:
		return a.zip(w)
	}
	return a.pass(tarOut{tar.NewWriter(w)})
}

func (a *Archive) zip(w io.Writer) (err error) {
	z, err := newZipWriter(w, &spool{of: a.spools, owner: a.owner})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, z.spool.close()) }() // also when what reads the archive panics
	return a.pass(z)
}

// out takes the entries of an archive.
type out interface {
	// add adds an entry that has been judged; it may read h.Size bytes of content through buf.
	add(h *tar.Header, content io.Reader, buf []byte) error
	// end writes the archive's end.
	end() error
}

// pass reads the guest's archive to its end, judges each entry and hands it on.
func (a *Archive) pass(to out) error {
	buf := buffers.Get().(*[copyBuffer]byte)
	defer buffers.Put(buf)
	whole := &countingReader{r: bufio.NewReaderSize(a.stream, copyBuffer), ctx: a.ctx}
	from := tar.NewReader(whole)
	judge := newPackValidator(a.Format)
	for {
		whole.head()
		h, err := from.Next()
		switch {
		case err == io.EOF && whole.over:
			return cutOff(io.ErrUnexpectedEOF)
		case err == io.EOF:
			return to.end()
		case err != nil:
			return cutOff(err)
		}
		whole.entry()
		if err := a.one(judge, h, to, from, buf[:]); err != nil {
			return err
		}
	}
}

func (a *Archive) one(judge *entryValidator, h *tar.Header, to out, from io.Reader, buf []byte) error {
	if wire.HasHoles(h) {
		return strange(h.Name, errSparse)
	}
	if err := judge.admit(h); err != nil {
		return strange(h.Name, err)
	}
	if h.Name == "" { // the folder itself
		return nil
	}
	content := &measured{r: from}
	err := to.add(h, content, buf)
	if content.err != nil {
		return cutOff(content.err)
	}
	return err
}

// strange says that a guest has sent what none of ours sends.
func strange(name string, err error) error {
	return fault.Wrap(err, fault.Unavailable, "The sandbox sent an archive that is not safe to pass on: %q %v.", text.OneLine(name, 200), err)
}

// cutOff says that a guest's archive is no archive, or only the beginning of one. An error that has a kind keeps it.
func cutOff(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fault.Wrap(err, fault.Unavailable, "The sandbox did not send the archive to its end.")
}

// tarOut writes tar.
type tarOut struct{ w *tar.Writer }

func (o tarOut) add(h *tar.Header, content io.Reader, buf []byte) error {
	clean := &tar.Header{
		Typeflag: h.Typeflag, Name: h.Name, Linkname: h.Linkname, Size: h.Size, Mode: h.Mode, ModTime: h.ModTime,
		Uid: boundID(h.Uid), Gid: boundID(h.Gid), Uname: text.OneLine(h.Uname, 32), Gname: text.OneLine(h.Gname, 32),
	}
	if clean.Typeflag == tar.TypeDir {
		clean.Name += "/"
	}
	if clean.Typeflag != tar.TypeReg {
		clean.Size = 0
	}
	if err := o.w.WriteHeader(clean); err != nil {
		return fmt.Errorf("write an entry: %w", err)
	}
	if clean.Size == 0 {
		return nil
	}
	_, err := io.CopyBuffer(o.w, content, buf)
	return err
}

func (o tarOut) end() error { return o.w.Close() }

// boundID gives a user's or group's number, or that of nobody.
func boundID(id int) int {
	const nobody = 65534
	if id < 0 || id > 1<<31-1 {
		return nobody
	}
	return id
}
