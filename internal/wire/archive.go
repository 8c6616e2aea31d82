package wire

import (
	"archive/tar"
	"path"
	"strings"
)

// MaxEntryHeader bounds each header before an entry of an archive, such as one with a long name, in bytes. Package tar has the bound,
// and tar.ErrFieldTooLong says that one is larger.
const MaxEntryHeader = 1 << 20

// EntryError says why an entry of an archive is refused, in words that follow the entry's name.
type EntryError string

// Error implements error.
func (e EntryError) Error() string { return string(e) }

// Problems with an entry's names.
const (
	ErrEntryName     EntryError = "has no name that can be used"
	ErrEntryAbsolute EntryError = "has an absolute name"
	ErrEntryUp       EntryError = "leads out of the folder"
	ErrEntryLinkUp   EntryError = "is a link that leads out of the folder"
	ErrEntryTarget   EntryError = "is a link to no name that can be used"
)

// EntryName gives the name of an archive's entry in its plain form: relative, and "" for the folder itself. It refuses what leads
// anywhere but down: ErrEntryName, ErrEntryAbsolute or ErrEntryUp.
func EntryName(name string) (string, error) {
	switch {
	case name == "" || len(name) > MaxPath || strings.IndexByte(name, 0) >= 0:
		return "", ErrEntryName
	case name[0] == '/':
		return "", ErrEntryAbsolute
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "..":
			return "", ErrEntryUp
		case len(part) > MaxFileName:
			return "", ErrEntryName
		}
	}
	if name = path.Clean(name); name == "." {
		name = ""
	}
	return name, nil
}

// CheckEntryLink refuses the target of a symbolic link in so many folders: as ErrEntryTarget what can be none, and, unless it may
// lead anywhere, as ErrEntryLinkUp what leads out of the folder. As no entry is below a link, ".." at its beginning goes up real
// folders; one after a name might not, and is refused.
func CheckEntryLink(depth int, target string, anywhere bool) error {
	switch {
	case target == "" || len(target) > MaxPath || strings.IndexByte(target, 0) >= 0:
		return ErrEntryTarget
	case anywhere:
		return nil
	case target[0] == '/':
		return ErrEntryLinkUp
	}
	down := false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			down = true
		case down || depth == 0:
			return ErrEntryLinkUp
		default:
			depth--
		}
	}
	return nil
}

// HasHoles says whether an entry's content is written with holes: a few bytes could stand for any number of zeros.
func HasHoles(h *tar.Header) bool {
	if h.Typeflag == tar.TypeGNUSparse {
		return true
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}
