package serverbackup

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// Check reads all of a backup, and gives its manifest. Invalid when the passphrase is wrong, or it is damaged or not whole; Conflict when
// a newer sandboxd has made it.
func Check(ctx context.Context, from io.Reader, passphrase string) (Manifest, error) {
	return read(ctx, from, passphrase, func(Manifest) error { return nil }, keepNothing{})
}

// Extract puts the files of a backup into folder, which is empty, for their owner alone, and has the disk keep them. accept may refuse
// the backup, by its manifest, before anything is made. Kinds as for Check, that of accept, and Unavailable when the folder cannot be written to. After
// an error the folder may have a part of them.
func Extract(ctx context.Context, from io.Reader, passphrase, folder string, accept func(Manifest) error) (Manifest, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Manifest{}, unwritable(err)
	}
	defer root.Close()
	to := &rootFolder{root: root, made: map[string]bool{".": true}}
	m, err := read(ctx, from, passphrase, accept, to)
	if err == nil {
		err = unwritable(to.flush(folder))
	}
	return m, err
}

// keeper is where files are put.
type keeper interface {
	// put makes a file. An error of its Close counts.
	put(f File) (io.WriteCloser, error)
}

func read(ctx context.Context, from io.Reader, passphrase string, accept func(Manifest) error, to keeper) (m Manifest, err error) {
	plain, err := open(&cancelled{ctx, from}, passphrase)
	if err != nil {
		return m, unreadable(ctx, err)
	}
	unpacked, err := zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return m, unreadable(ctx, err)
	}
	defer unpacked.Close()
	entries := tar.NewReader(unpacked)
	if m, err = readManifest(entries); err != nil {
		return m, unreadable(ctx, err)
	}
	if err := accept(m); err != nil {
		return m, err
	}
	for _, f := range m.Files {
		if err := readFile(entries, f, to); err != nil {
			return m, unreadable(ctx, err)
		}
	}
	if _, err := entries.Next(); !errors.Is(err, io.EOF) {
		return m, unreadable(ctx, errors.Join(err, errors.New("it has more files than it lists")))
	}
	// Only the last piece of the file says that it is whole.
	_, err = io.Copy(io.Discard, unpacked)
	if err == nil {
		_, err = io.Copy(io.Discard, plain)
	}
	return m, unreadable(ctx, err)
}

// intro is what a file of age's begins with.
const intro = "age-encryption.org/v1\n"

func open(from io.Reader, passphrase string) (io.Reader, error) {
	who, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, fault.Field("passphrase", "The passphrase is empty.")
	}
	who.SetMaxWorkFactor(maxWork)
	sealed := bufio.NewReader(from)
	if start, err := sealed.Peek(len(intro)); string(start) != intro && (err == nil || errors.Is(err, io.EOF)) {
		return nil, fault.New(fault.Invalid, "This is no server backup of sandboxd's, or its beginning is damaged. Name a file that 'sandboxd backup --server' has made.")
	}
	plain, err := age.Decrypt(sealed, who)
	if errors.Is(err, age.ErrIncorrectIdentity) {
		return nil, fault.Wrap(err, fault.Invalid, "The passphrase is not that of this backup, or the beginning of the file is damaged.")
	}
	return plain, err
}

// unreadable says what an error while reading means.
func unreadable(ctx context.Context, err error) error {
	var known *fault.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	why := strings.Trim(strconv.QuoteToASCII(text.Excerpt(err.Error(), 200)), `"`) // it may have bytes of the file
	return fault.Wrap(err, fault.Invalid, "This server backup is damaged or not whole: %s. Use another copy of it.", strings.ReplaceAll(why, `\"`, `"`))
}

func unwritable(err error) error {
	return fault.Wrap(err, fault.Unavailable, "The data folder cannot be written to: %v.", err)
}

func readManifest(entries *tar.Reader) (m Manifest, err error) {
	h, err := entries.Next()
	if err != nil {
		return m, err
	}
	if h.Name != manifestName || h.Size > maxManifest {
		return m, errors.New("it has no manifest")
	}
	if err := json.NewDecoder(io.LimitReader(entries, maxManifest)).Decode(&m); err != nil {
		return m, err
	}
	switch {
	case m.Format != formatName:
		return m, errors.New("its manifest is of something else")
	case m.Version > formatVersion:
		return m, fault.New(fault.Conflict, "This server backup was made by a newer sandboxd, %.60s. Restore it with that one.", m.By)
	case len(m.Files) > maxFiles:
		return m, errors.New("it has too many files")
	}
	for n, f := range m.Files {
		if f.PathBytes != "" {
			name, err := base64.StdEncoding.DecodeString(f.PathBytes)
			if err != nil {
				return m, fmt.Errorf("the name of %.80q cannot be read: %w", f.Path, err)
			}
			f.Path = string(name)
			m.Files[n] = f
		}
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) || f.Size < 0 {
			return m, fmt.Errorf("it has a file called %.80q", f.Path)
		}
	}
	return m, nil
}

// readFile reads the next file, which must be f.
func readFile(entries *tar.Reader, f File, to keeper) (err error) {
	h, err := entries.Next()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if h.Name != f.Path || h.Size != f.Size || h.Typeflag != tar.TypeReg {
		return fmt.Errorf("it has %.80q in the place of %.80q", h.Name, f.Path)
	}
	out, err := to.put(f)
	if err != nil {
		return unwritable(err)
	}
	sum := sha256.New()
	if _, err := io.Copy(&writing{out}, io.TeeReader(entries, sum)); err != nil {
		return errors.Join(err, out.Close())
	}
	if err := out.Close(); err != nil {
		return unwritable(err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("the checksum of %.80q is another one", f.Path)
	}
	return nil
}

// writing tells errors of writing from those of reading.
type writing struct{ to io.Writer }

// Write implements io.Writer.
func (w *writing) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	return n, unwritable(err)
}

// keepNothing is a keeper for a look.
type keepNothing struct{}

func (keepNothing) put(File) (io.WriteCloser, error) { return nothing{}, nil }

type nothing struct{}

// Write implements io.Writer.
func (nothing) Write(b []byte) (int, error) { return len(b), nil }

// Close implements io.Closer.
func (nothing) Close() error { return nil }

// rootFolder keeps files in a folder, and never outside of it.
type rootFolder struct {
	root *os.Root
	made map[string]bool // folders
}

func (r *rootFolder) put(f File) (io.WriteCloser, error) {
	dir := path.Dir(f.Path)
	if err := r.root.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for ; !r.made[dir]; dir = path.Dir(dir) {
		r.made[dir] = true
	}
	mode := os.FileMode(0o600)
	if f.Executable {
		mode = 0o700
	}
	out, err := r.root.OpenFile(f.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return nil, err
	}
	return &flushed{out}, nil
}

// flush has the disk keep the folders.
func (r *rootFolder) flush(folder string) (err error) {
	for dir := range r.made {
		err = errors.Join(err, flushFolder(filepath.Join(folder, filepath.FromSlash(dir))))
	}
	return err
}

// flushed is a file that the disk has once it is closed.
type flushed struct{ *os.File }

// Close implements io.Closer.
func (f *flushed) Close() error { return errors.Join(f.Sync(), f.File.Close()) }

func flushFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
