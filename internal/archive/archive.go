// Package archive writes a folder as a tar archive, and makes the folder of it again, bit by bit: owners, permissions, access
// lists, extended attributes, times to the nanosecond, hard links, holes, and names of any bytes.
//
// It does not compress, and knows nothing of where archives are kept (see internal/backup). The archives of the file browser are
// another thing: they carry what people want to see of files (see internal/files).
//
// Invariant: it follows no symbolic link, and no name leads it out of the folder, whatever the tree or the archive says.
package archive

import (
	"archive/tar"
	"context"
	"strings"
	"unicode/utf8"

	"sandboxd/internal/wire"
)

// Bounds.
const (
	bufferSize    = 256 << 10
	namesAtOnce   = 16 << 10  // of a folder, in memory
	maxExtents    = 2000      // of a file with holes that are noted; what follows is stored as data
	maxHoles      = 256 << 30 // bytes of the holes of all files, which are zeros in an archive: a few blocks may claim to be exabytes
	maxAttributes = 512 << 10 // bytes of the attributes of one file; the reader's bound on a header is twice that
	maxLinks      = 200_000   // files with further names to come that are remembered
	maxLosses     = 1000      // that are listed
	progressStep  = 8 << 20   // bytes between two reports
	entryCost     = 4 << 10   // bytes that an entry counts as, in these
)

// What is written into the headers of entries beside what tar has for it.
const (
	recordData     = "SANDBOXD.data"     // the parts of a file that are no holes: "offset:length" in bytes, with spaces between
	recordXattr    = "SCHILY.xattr."     // and the attribute's name; the value is as it is
	recordEscaped  = "LIBARCHIVE.xattr." // the same with the name escaped as in a URL and the value in base64
	recordCharset  = "hdrcharset"        // says of names that are not UTF-8 that they are bytes
	charsetBinary  = "BINARY"
	recordListPart = "SCHILY.acl." // an access list as text, as other tools write it
)

// Stats says what an archive holds, or how far it has been written or read.
type Stats struct {
	Files    int64  `json:"files"`   // and all else that is no folder
	Folders  int64  `json:"folders"` // below the one that was archived
	Bytes    int64  `json:"bytes"`   // of content, without holes
	Lost     []Loss `json:"lost,omitempty"`
	MoreLost int64  `json:"more_lost,omitempty"` // beyond the list
}

// Loss is something that the archive, or the folder made of it, lacks.
type Loss struct {
	Path   string `json:"path"` // what is no UTF-8 in it is replaced
	Reason string `json:"reason"`
}

// Lose adds something that is lost.
func (s *Stats) Lose(path, reason string) {
	if len(s.Lost) == maxLosses {
		s.MoreLost++
		return
	}
	s.Lost = append(s.Lost, Loss{strings.ToValidUTF8(path, "\uFFFD"), reason})
}

// Options say how a folder is written or made.
type Options struct {
	Prefix   string      // of the entries' names: "" or one that ends with a slash
	Skip     string      // a name in the folder that is left out; "" for none
	Owner    *Owner      // of all that Extract makes; nil for that of the entries
	MaxBytes int64       // of content without holes, for Check; 0 for no bound
	Progress func(Stats) // called now and then from the same goroutine; nil for none
}

// Owner is a user and a group, by their numbers.
type Owner struct{ UID, GID int }

// progress counts down to the next report, and the holes.
type progress struct {
	holes int64 // bytes
	ctx   context.Context
	tell  func(Stats)
	until int64
}

// count counts n bytes, reports, and gives an error when the work is to stop.
func (p *progress) count(n int64, s *Stats) error {
	if p.until -= n; p.until > 0 {
		return nil
	}
	p.until = progressStep
	if p.tell != nil {
		p.tell(*s)
	}
	return p.ctx.Err()
}

// extent is a part of a file.
type extent struct{ offset, length int64 }

// lengthFrom is how many bytes of some parts are at an offset or after it.
func lengthFrom(at int64, parts []extent) (n int64) {
	for _, p := range parts {
		n += max(0, p.offset+p.length-max(at, p.offset))
	}
	return n
}

// charset marks a header whose names are not UTF-8.
func charset(h *tar.Header) {
	if !utf8.ValidString(h.Name) || !utf8.ValidString(h.Linkname) {
		note(h, recordCharset, charsetBinary)
	}
}

func note(h *tar.Header, key, value string) {
	if h.PAXRecords == nil {
		h.PAXRecords = map[string]string{}
	}
	h.PAXRecords[key] = value
}

// EntryError says which entry of an archive cannot be taken, and why.
type EntryError struct {
	Name string
	Err  error
}

// Error implements error.
func (e *EntryError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *EntryError) Unwrap() error { return e.Err }

// Reasons beside those of wire.EntryName.
const (
	ErrHoles  wire.EntryError = "has a list of its holes that makes no sense"
	ErrTwice  wire.EntryError = "is there twice, as a folder and as something else"
	ErrBelow  wire.EntryError = "is below something that is no folder"
	ErrTarget wire.EntryError = "is another name of a file that is not there"
	ErrKind   wire.EntryError = "is of a kind that is not known"
	ErrOwner  wire.EntryError = "has an owner with an impossible number"
	ErrLarge  wire.EntryError = "makes the content larger than the disk"
	ErrSparse wire.EntryError = "makes the holes of all files larger than 256 GiB"
)
