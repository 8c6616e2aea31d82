// Package serverbackup writes what a server knows into one file that a passphrase opens, and puts it into a data folder again.
//
// It does not say what belongs into such a file, makes no copies of databases, and asks no person: cmd/sandboxd does. Homes of sandboxes
// are package backup's.
//
// Invariant: a folder that was restored has all of a backup, and just that, or is as it was before; whatever is killed in between is
// finished by the next Finish.
package serverbackup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// A server backup is a file of age's (https://age-encryption.org), for a passphrase, that holds a tar archive in Zstandard: first the
// manifest, then the files that it lists, in that order. "age -d FILE | tar --zstd -x" unpacks it.
const (
	formatName    = "sandboxd server backup"
	formatVersion = 1
	manifestName  = "manifest.json"
	maxManifest   = 16 << 20 // bytes; Write refuses what would be longer
	maxFiles      = 50_000
	maxWindow     = 64 << 20 // bytes that a decoder must remember

	work    = 18 // of scrypt, as the logarithm of its cost: a second, and 256 MiB
	maxWork = 20
)

// MinPassphrase is the least length of a passphrase, in bytes.
const MinPassphrase = 10

// Manifest is what a server backup says of itself.
type Manifest struct {
	Format   string    `json:"format"`
	Version  int       `json:"version"`
	Made     time.Time `json:"made"`
	By       string    `json:"by"`       // version of sandboxd
	Database int       `json:"database"` // version of the database
	Host     string    `json:"host"`     // where it was made
	LeftOut  []LeftOut `json:"left_out"` // for people
	Files    []File    `json:"files"`
}

// LeftOut is something that is not in a backup.
type LeftOut struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// File is a file of a backup.
type File struct {
	Path       string `json:"path"`                  // below the folder, with slashes
	PathBytes  string `json:"path_base64,omitempty"` // the same in Base64, where it is not UTF-8, which JSON cannot have
	Size       int64  `json:"size"`                  // bytes
	Executable bool   `json:"executable,omitempty"`
	SHA256     string `json:"sha256"`
}

// Sealer writes backups. The zero value is what to use; tests make it quicker.
type Sealer struct {
	Work int // of scrypt, see work; 0 for the usual
}

// Write writes all regular files below folder, which must not change meanwhile, with a manifest, of which it fills in the format and the
// files. It gives that. Invalid when the passphrase is too short, TooLarge when the list of files is: then nothing is written. An error of to
// comes back as it is.
func (s Sealer) Write(ctx context.Context, to io.Writer, passphrase string, m Manifest, folder string) (Manifest, error) {
	m.Format, m.Version = formatName, formatVersion
	var err error
	if m.Files, err = list(ctx, folder); err != nil {
		return m, err
	}
	manifest, err := m.encode()
	if err != nil {
		return m, err
	}
	sealed, err := s.seal(to, passphrase)
	if err != nil {
		return m, err
	}
	packed, err := zstd.NewWriter(sealed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return m, err
	}
	err = writeArchive(ctx, packed, manifest, m, folder)
	err = errors.Join(err, packed.Close())
	if err == nil {
		err = sealed.Close() // without which the file is never taken for whole
	}
	return m, err
}

func (s Sealer) seal(to io.Writer, passphrase string) (io.WriteCloser, error) {
	if len(passphrase) < MinPassphrase {
		return nil, fault.Field("passphrase", "The passphrase is too short: it must have at least %d characters.", MinPassphrase)
	}
	who, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, err
	}
	who.SetWorkFactor(work)
	if s.Work > 0 {
		who.SetWorkFactor(s.Work)
	}
	return age.Encrypt(to, who)
}

// encode gives the text of a manifest.
func (m Manifest) encode() ([]byte, error) {
	content, err := json.MarshalIndent(m, "", "  ")
	if err == nil && len(content) > maxManifest {
		err = fault.New(fault.TooLarge, "The list of the backup's %d files, and of %d that are left out, takes %s. It can take %s. Have fewer files, or shorter names, in the folders of your own templates.",
			len(m.Files), len(m.LeftOut), text.Size(int64(len(content))), text.Size(maxManifest))
	}
	return content, err
}

func writeArchive(ctx context.Context, to io.Writer, manifest []byte, m Manifest, folder string) error {
	w := tar.NewWriter(to)
	err := w.WriteHeader(&tar.Header{Name: manifestName, Mode: 0o600, Size: int64(len(manifest)), ModTime: m.Made, Format: tar.FormatPAX})
	if err == nil {
		_, err = w.Write(manifest)
	}
	for _, f := range m.Files {
		if err != nil {
			return err
		}
		err = writeFile(ctx, w, f, m.Made, filepath.Join(folder, filepath.FromSlash(f.Path)))
	}
	return errors.Join(err, w.Close())
}

func writeFile(ctx context.Context, w *tar.Writer, f File, made time.Time, path string) error {
	mode := int64(0o600)
	if f.Executable {
		mode = 0o700
	}
	if err := w.WriteHeader(&tar.Header{Name: f.Path, Mode: mode, Size: f.Size, ModTime: made, Format: tar.FormatPAX}); err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(w, &cancelled{ctx, in})
	return err
}

// list lists the files below a folder, with their checksums.
func list(ctx context.Context, folder string) (all []File, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		f, err := describe(ctx, path, filepath.ToSlash(name))
		all = append(all, f)
		if err == nil && len(all) > maxFiles {
			err = fault.New(fault.TooLarge, "A server backup can have %d files. Have fewer in the folders of your own templates.", maxFiles)
		}
		return err
	})
	return all, err
}

func describe(ctx context.Context, path, name string) (File, error) {
	in, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return File{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, &cancelled{ctx, in})
	f := File{Path: name, Size: n, Executable: st.Mode()&0o100 != 0, SHA256: hex.EncodeToString(sum.Sum(nil))}
	if !utf8.ValidString(name) {
		f.PathBytes = base64.StdEncoding.EncodeToString([]byte(name))
	}
	return f, err
}

// cancelled is a reader that ends with ctx.
type cancelled struct {
	ctx  context.Context
	from io.Reader
}

// Read implements io.Reader.
func (c *cancelled) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.from.Read(b)
}
