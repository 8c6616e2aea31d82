package files

import (
	"archive/tar"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"time"
)

// Bounds of an archive's entries.
const (
	maxPath    = 4096
	maxName    = 255
	maxEntries = 2_000_000
	maxLinks   = 1 << 20 // that are remembered, eight bytes each and the map around them
	maxSize    = 1 << 46 // of one entry: more than any disk that a sandbox gets
)

// modeBits are what an archive may say of an entry's mode: nothing that gives a program its owner's rights.
const modeBits = 0o1777

// roll judges the entries of one archive in the order in which they come, whoever has made it. What it lets pass is safe to
// extract by a program that knows no better: names are relative and inside, nothing is below a link, and a hard link leads
// to something inside. It remembers nothing but links.
type roll struct {
	lead   func(h *tar.Header, name string) error // may refuse where a link leads; nil lets all lead where they like
	rename func(name string) string               // what a plain name becomes before it is judged; nil leaves it
	fixed  bool                                   // what was a link stays one: nothing takes its place
	seed   maphash.Seed
	links  map[uint64]struct{}
	count  int
}

func newRoll(lead func(h *tar.Header, name string) error) *roll {
	return &roll{lead: lead, seed: maphash.MakeSeed(), links: map[uint64]struct{}{}}
}

// newRollOut is for an archive on its way out in that format. Whoever extracts it may go by its list of names rather than by the
// order of its entries, or extract into a folder in which it was extracted before: so nothing has a link's name beside the link.
func newRollOut(f Format) *roll {
	r := newRoll(nil)
	r.fixed = true
	if f == Zip {
		r.rename = zipName
	}
	return r
}

// Why an entry is refused. The words follow the entry's name.
var (
	errNoName   = errors.New("has no name that can be used")
	errAbsolute = errors.New("has an absolute name")
	errUp       = errors.New("leads out of the folder")
	errBelow    = errors.New("is below a link")
	errWasLink  = errors.New("was a link before")
	errKind     = errors.New("is neither a file nor a folder nor a link")
	errSize     = errors.New("has no size that can be")
	errLinkUp   = errors.New("is a link that leads out of the folder")
	errNoTarget = errors.New("is a link to no name that can be used")
	errMany     = fmt.Errorf("is more than the %d that an archive may have", maxEntries)
	errSparse   = errors.New("is written in a way that is not understood (sparse)")
)

// admit judges an entry, writes its names in their plain form, and bounds what it says of itself. A name of "" is the folder
// itself.
func (r *roll) admit(h *tar.Header) error {
	if r.count++; r.count > maxEntries {
		return errMany
	}
	name, err := r.plain(h.Name)
	if err != nil {
		return err
	}
	switch {
	case r.below(name):
		return errBelow
	case h.Size < 0 || h.Size > maxSize:
		return errSize
	}
	if err := r.kind(h, name); err != nil {
		return err
	}
	h.Name = name
	h.Mode &= modeBits
	h.ModTime = boundTime(h.ModTime)
	return nil
}

// plain gives a name as it will be.
func (r *roll) plain(name string) (string, error) {
	name, err := insideName(name)
	if err == nil && r.rename != nil {
		name = r.rename(name)
	}
	return name, err
}

// kind judges what sort of thing an entry is, and where it leads.
func (r *roll) kind(h *tar.Header, name string) error {
	at := maphash.String(r.seed, name)
	if _, linked := r.links[at]; linked && r.fixed {
		return errWasLink
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir:
		delete(r.links, at)
		if name == "" && h.Typeflag == tar.TypeReg {
			return errNoName
		}
		return nil
	case tar.TypeSymlink:
		if name == "" || h.Linkname == "" || len(h.Linkname) > maxPath || strings.IndexByte(h.Linkname, 0) >= 0 {
			return errNoTarget
		}
		if r.lead != nil {
			if err := r.lead(h, name); err != nil {
				return err
			}
		}
		return r.remember(at)
	case tar.TypeLink:
		return r.hardLink(h, name, at)
	}
	return errKind
}

// hardLink lets a hard link lead to something inside that is reached through no link. One to a link is one itself.
func (r *roll) hardLink(h *tar.Header, name string, at uint64) error {
	to, err := r.plain(h.Linkname)
	if err != nil || to == "" || name == "" || to == name || r.below(to) {
		return errLinkUp
	}
	h.Linkname = to
	if _, linked := r.links[maphash.String(r.seed, to)]; linked {
		return r.remember(at)
	}
	delete(r.links, at)
	return nil
}

func (r *roll) remember(at uint64) error {
	if len(r.links) >= maxLinks {
		return errMany
	}
	r.links[at] = struct{}{}
	return nil
}

// below says whether an entry that was a link stands on the way to name.
func (r *roll) below(name string) bool {
	if len(r.links) == 0 {
		return false
	}
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		if _, linked := r.links[maphash.String(r.seed, name[:i])]; linked {
			return true
		}
	}
	return false
}

// insideName gives a relative name in its plain form, "" for the folder itself. It refuses what is not inside.
func insideName(name string) (string, error) {
	switch {
	case name == "" || len(name) > maxPath || strings.IndexByte(name, 0) >= 0:
		return "", errNoName
	case name[0] == '/':
		return "", errAbsolute
	}
	if plainName(name) {
		return name, nil
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			return "", errUp
		case len(part) > maxName:
			return "", errNoName
		default:
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/"), nil
}

// plainName says whether a name has its plain form already, as nearly all have.
func plainName(name string) bool {
	from := 0
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		part := name[from:i]
		if part == "" || part[0] == '.' && (part == "." || part == "..") || len(part) > maxName {
			return false
		}
		from = i + 1
	}
	return true
}

// leadsInside refuses a symbolic link that leads out of the folder. As no entry is below a link, ".." at its beginning
// goes up real folders; one after a name might not, and is refused.
func leadsInside(h *tar.Header, name string) error {
	if h.Linkname[0] == '/' {
		return errLinkUp
	}
	depth, down := strings.Count(name, "/"), false
	for part := range strings.SplitSeq(h.Linkname, "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			down = true
		case down || depth == 0:
			return errLinkUp
		default:
			depth--
		}
	}
	return nil
}

// Times that every format can say.
var (
	firstTime = time.Unix(0, 0)
	lastTime  = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
)

// boundTime gives t, or the nearest time that every format can say.
func boundTime(t time.Time) time.Time {
	switch {
	case t.Before(firstTime):
		return firstTime
	case t.After(lastTime):
		return lastTime
	}
	return t
}

// sparse says whether an entry's content is written with holes: a few bytes could stand for any number of zeros.
func sparse(h *tar.Header) bool {
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
