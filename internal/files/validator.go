package files

import (
	"archive/tar"
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"sandboxd/internal/wire"
)

// Bounds of an archive's entries.
const (
	maxEntries = wire.MaxUnpacked
	maxLinks   = 1 << 20 // that are remembered, eight bytes each and the map around them
	maxSize    = 1 << 46 // of one entry: more than any disk that a sandbox gets
)

// modeBits are what an archive may say of an entry's mode: nothing that gives a program its owner's rights.
const modeBits = 0o1777

// entryValidator judges the entries of one untrusted archive in the order in which they come. What it lets pass is safe
// to extract by a program that knows no better: names are relative and inside, nothing is below a link, and a hard link leads
// to something inside. It remembers nothing but links.
type entryValidator struct {
	anywhere bool                     // symbolic links may lead where they like
	rename   func(name string) string // what a plain name becomes before it is judged; nil leaves it
	fixed    bool                     // a link stays a link: nothing takes its place
	seed     maphash.Seed
	links    map[uint64]struct{}
	count    int
}

func newEntryValidator(anywhere bool) *entryValidator {
	return &entryValidator{anywhere: anywhere, seed: maphash.MakeSeed(), links: map[uint64]struct{}{}}
}

// newPackValidator checks an archive that leaves a sandbox in format f. Some programs extract by the list of names instead of the
// order of entries, or over an earlier extraction, so no other entry may have a link's name.
func newPackValidator(f Format) *entryValidator {
	v := newEntryValidator(true)
	v.fixed = true
	if f == Zip {
		v.rename = zipName
	}
	return v
}

// Why an entry is refused, beside its names.
const (
	errBelow   wire.EntryError = "is below a link"
	errWasLink wire.EntryError = "was a link before"
	errKind    wire.EntryError = "is neither a file nor a folder nor a link"
	errSize    wire.EntryError = "has no size that can be"
	errSparse  wire.EntryError = "is written in a way that is not understood (sparse)"
)

var errMany = wire.EntryError(fmt.Sprintf("is more than the %d that an archive may have", maxEntries))

// admit judges an entry, writes its names in their plain form, and bounds what it says of itself. A name of "" is the folder
// itself.
func (v *entryValidator) admit(h *tar.Header) error {
	if v.count++; v.count > maxEntries {
		return errMany
	}
	name, err := v.plain(h.Name)
	if err != nil {
		return err
	}
	switch {
	case v.below(name):
		return errBelow
	case h.Size < 0 || h.Size > maxSize:
		return errSize
	}
	if err := v.kind(h, name); err != nil {
		return err
	}
	h.Name = name
	h.Mode &= modeBits
	h.ModTime = boundTime(h.ModTime)
	return nil
}

// plain gives a name as it will be.
func (v *entryValidator) plain(name string) (string, error) {
	name, err := wire.EntryName(name)
	if err == nil && v.rename != nil {
		name = v.rename(name)
	}
	return name, err
}

// kind judges what sort of thing an entry is, and where it leads.
func (v *entryValidator) kind(h *tar.Header, name string) error {
	at := maphash.String(v.seed, name)
	if _, linked := v.links[at]; linked && v.fixed {
		return errWasLink
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir:
		delete(v.links, at)
		if name == "" && h.Typeflag == tar.TypeReg {
			return wire.ErrEntryName
		}
		return nil
	case tar.TypeSymlink:
		if name == "" {
			return wire.ErrEntryTarget
		}
		if err := wire.CheckEntryLink(strings.Count(name, "/"), h.Linkname, v.anywhere); err != nil {
			return err
		}
		return v.remember(at)
	case tar.TypeLink:
		return v.hardLink(h, name, at)
	}
	return errKind
}

// hardLink lets a hard link lead to something inside that is reached through no link. One to a link is one itself.
func (v *entryValidator) hardLink(h *tar.Header, name string, at uint64) error {
	to, err := v.plain(h.Linkname)
	if err != nil || to == "" || name == "" || to == name || v.below(to) {
		return wire.ErrEntryLinkUp
	}
	h.Linkname = to
	if _, linked := v.links[maphash.String(v.seed, to)]; linked {
		return v.remember(at)
	}
	delete(v.links, at)
	return nil
}

func (v *entryValidator) remember(at uint64) error {
	if len(v.links) >= maxLinks {
		return errMany
	}
	v.links[at] = struct{}{}
	return nil
}

// below says whether an entry that was a link stands on the way to name.
func (v *entryValidator) below(name string) bool {
	if len(v.links) == 0 {
		return false
	}
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		if _, linked := v.links[maphash.String(v.seed, name[:i])]; linked {
			return true
		}
	}
	return false
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
