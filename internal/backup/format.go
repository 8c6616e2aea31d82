package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"sandboxd/internal/archive"
	"sandboxd/internal/sandbox"
)

// A backup is a tar archive in Zstandard frames, which GNU tar and bsdtar unpack as it is: first manifest.json, in a frame of its
// own, then root.tar if it was asked for, then the home below home/. Frames that every decoder passes over fill the room that the
// manifest is given before its length is known, and hold the seal at the end: a checksum of all that is before it.
const (
	manifestName  = "manifest.json"
	homePrefix    = "home/"
	formatName    = "sandboxd backup"
	formatVersion = 1

	frameSkipped = 0x184D2A50 // the magic number of a frame to pass over; little endian, as is the length that follows
	skippedHead  = 8
	sealText     = "sandboxd sha256 "
	sealSize     = skippedHead + len(sealText) + sha256.Size

	headStep    = 4 << 10
	headSpare   = 64 << 10  // for what is known of the home only when it was read
	maxManifest = 768 << 10 // bytes
	maxListed   = 32 << 10  // bytes of the losses that a manifest lists
	maxWindow   = 64 << 20  // bytes that a decoder must remember
)

// Manifest is what a backup says of itself.
type Manifest struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	ID      string    `json:"id"`
	Made    time.Time `json:"made"`
	By      string    `json:"by"` // version of sandboxd
	Sandbox Settings  `json:"sandbox"`

	Schedule string `json:"schedule,omitempty"` // id of the one that asked for it

	Consistent  bool          `json:"consistent"` // nothing in the sandbox ran while its home was read
	Home        archive.Stats `json:"home"`       // what is in it, and what of it is not
	Root        *RootManifest `json:"root,omitempty"`
	NotIncluded []string      `json:"not_included"` // for people
}

// Settings are those of a sandbox, for a new one like it. They hold its environment, secrets included.
type Settings struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Label       string            `json:"label,omitempty"`
	Owner       string            `json:"owner"` // user id
	Template    string            `json:"template,omitempty"`
	Image       string            `json:"image,omitempty"`
	CPUs        float64           `json:"cpus"`
	Memory      int64             `json:"memory"`
	Pids        int64             `json:"pids"`
	Disk        int64             `json:"disk,omitempty"` // bytes that the home may take; 0 for no limit
	Env         map[string]string `json:"env,omitempty"`
	FreezeAfter string            `json:"freeze_after,omitempty"`
	StopAfter   string            `json:"stop_after,omitempty"`
	Overrides   sandbox.Overrides `json:"overrides"`
}

// notIncluded is what no backup has.
var notIncluded = []string{
	"running programs, their memory and open terminals",
	"what was changed outside of the home, such as installed packages",
}

func manifestOf(c sandbox.Capture, e *entry, version string) *Manifest {
	b := c.Sandbox
	return &Manifest{
		Format: formatName, Version: formatVersion, ID: e.ID, Schedule: e.Schedule, Made: e.Created, By: version, Consistent: c.Still, NotIncluded: notIncluded,
		Sandbox: Settings{
			ID: b.ID, Name: b.Name, Label: b.Label, Owner: b.Owner, Template: b.Spec.Template, Image: b.Spec.Image,
			CPUs: b.Spec.Limits.CPUs, Memory: b.Spec.Limits.Memory, Pids: b.Spec.Limits.Pids, Disk: b.Spec.Limits.Disk, Env: b.Spec.Env,
			FreezeAfter: b.Rest.FreezeAfter.String(), StopAfter: b.Rest.StopAfter.String(), Overrides: b.Overrides,
		},
	}
}

// note takes in what was read of the home. A long list of losses is cut.
func (m *Manifest) note(s archive.Stats) {
	listed := s.Lost
	s.Lost = nil
	room := maxListed
	for i, l := range listed {
		if room -= len(l.Path) + len(l.Reason); room < 0 {
			s.MoreLost += int64(len(listed) - i)
			break
		}
		s.Lost = append(s.Lost, l)
	}
	m.Home = s
}

// tarEntry gives the manifest as the first entry of an archive, without an archive's end.
func (m *Manifest) tarEntry() ([]byte, error) {
	text, err := m.text()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h := &tar.Header{Name: manifestName, Mode: 0o600, Size: int64(len(text)), ModTime: m.Made, Format: tar.FormatPAX}
	if err := w.WriteHeader(h); err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	err = errors.Join(err, w.Flush())
	return b.Bytes(), err
}

// output is where a backup is written to.
type output interface {
	io.Writer
	io.WriterAt
	io.Seeker
}

// writer compresses the entries of a home that are written to it.
type writer struct {
	out  output
	zstd *compressor
	head int // bytes of the file that are for the manifest
}

// newWriter begins a backup whose manifest is m, but for what is noted of the home later.
func newWriter(out output, m *Manifest) (*writer, error) {
	text, err := m.tarEntry()
	if err != nil {
		return nil, err
	}
	w := &writer{out: out, head: (len(text)+headSpare)/headStep*headStep + headStep}
	if _, err := out.Seek(int64(w.head), io.SeekStart); err != nil {
		return nil, err
	}
	w.zstd, err = newCompressor(out)
	return w, err
}

// Write implements io.Writer.
func (w *writer) Write(b []byte) (int, error) { return w.zstd.Write(b) }

// close ends the archive and puts the manifest before it. The seal is for later.
func (w *writer) close(m *Manifest) error {
	_, err := w.zstd.Write(make([]byte, endSize))
	if err := errors.Join(err, w.zstd.Close()); err != nil {
		return err
	}
	text, err := m.tarEntry()
	if err != nil {
		return err
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		return err
	}
	head := encoder.EncodeAll(text, nil)
	fill := w.head - len(head) - skippedHead
	if fill < 0 {
		return errors.New("the manifest is larger than its place")
	}
	head = appendSkipped(head, make([]byte, fill))
	_, err = w.out.WriteAt(head, 0)
	return err
}

// export writes a whole file, of a manifest and the entries of a home with the end of the archive.
func export(to io.Writer, m *Manifest, home io.Reader) error {
	text, err := m.tarEntry()
	if err != nil {
		return err
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		return err
	}
	sum := sha256.New()
	out := io.MultiWriter(to, sum)
	if _, err := out.Write(encoder.EncodeAll(text, nil)); err != nil {
		return err
	}
	content, err := newCompressor(out)
	if err != nil {
		return err
	}
	_, err = io.Copy(content, home)
	if err := errors.Join(err, content.Close()); err != nil {
		return err
	}
	_, err = to.Write(sealFrame([sha256.Size]byte(sum.Sum(nil))))
	return err
}

// appendSkipped appends a frame that decoders pass over.
func appendSkipped(to, content []byte) []byte {
	to = binary.LittleEndian.AppendUint32(to, frameSkipped)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(content)))
	return append(to, content...)
}

// seal ends a file with the checksum of what is in it.
func seal(f io.WriteSeeker, sum [sha256.Size]byte) error {
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	_, err := f.Write(sealFrame(sum))
	return err
}

func sealFrame(sum [sha256.Size]byte) []byte {
	return appendSkipped(nil, append([]byte(sealText), sum[:]...))
}

// readSeal gives the checksum at the end of a file of that size; ok is false when there is none.
func readSeal(f io.ReaderAt, size int64) (sum [sha256.Size]byte, ok bool, err error) {
	if size < int64(sealSize) {
		return sum, false, nil
	}
	b := make([]byte, sealSize)
	if _, err := f.ReadAt(b, size-int64(sealSize)); err != nil {
		return sum, false, err
	}
	want := appendSkipped(nil, append([]byte(sealText), make([]byte, sha256.Size)...))
	at := sealSize - sha256.Size
	return [sha256.Size]byte(b[at:]), bytes.Equal(b[:at], want[:at]), nil
}
