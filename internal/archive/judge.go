package archive

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"math"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// entry is one of an archive that can be made as it is.
type entry struct {
	*tar.Header
	kind    byte
	folders []string // that it is in
	name    string   // in the last of them; "" for the folder that all is made in
	target  []string // of a hard link
}

func (e *entry) permissions() uint32 { return uint32(e.Mode & 0o7777) }

// judge checks what a header says, and takes the prefix off its names. It is not mine when it is beside the prefix, or is skipped.
func judge(h *tar.Header, o Options) (e *entry, mine bool, err error) {
	if h.Typeflag == tar.TypeXGlobalHeader { // what it says of all that follows is not for us
		return nil, false, nil
	}
	within, mine := strings.CutPrefix(h.Name, o.Prefix)
	if !mine {
		return nil, false, nil
	}
	e = &entry{Header: h, kind: h.Typeflag}
	if o.Owner != nil {
		h.Uid, h.Gid = o.Owner.UID, o.Owner.GID
	}
	if within == "" {
		within = "."
	}
	name, err := wire.EntryName(within)
	if err != nil {
		return nil, true, err
	}
	if name == "" && h.Typeflag != tar.TypeDir {
		return nil, true, ErrTwice
	}
	if name != "" {
		parts := strings.Split(name, "/")
		e.folders, e.name = parts[:len(parts)-1], parts[len(parts)-1]
		if parts[0] == o.Skip {
			return nil, false, nil
		}
	}
	if h.Uid < 0 || h.Gid < 0 || h.Uid >= math.MaxUint32 || h.Gid >= math.MaxUint32 { // the largest means "as it is"
		return nil, true, ErrOwner
	}
	switch h.Typeflag {
	case tar.TypeGNUSparse, tar.TypeCont:
		e.kind = tar.TypeReg // its content is read with its holes filled in
	case tar.TypeReg, tar.TypeDir, tar.TypeFifo, tar.TypeChar, tar.TypeBlock:
	case tar.TypeSymlink:
		return e, true, wire.CheckEntryLink(0, h.Linkname, true)
	case tar.TypeLink:
		return e, true, e.aim(h.Linkname, o.Prefix)
	default:
		return nil, true, ErrKind
	}
	return e, true, nil
}

// aim notes the target of a hard link.
func (e *entry) aim(target, prefix string) error {
	within, ok := strings.CutPrefix(target, prefix)
	if !ok {
		return ErrTarget
	}
	name, err := wire.EntryName(within)
	if err != nil || name == "" {
		return ErrTarget
	}
	e.target = strings.Split(name, "/")
	return nil
}

// modified is its time.
func (e *entry) modified() unix.Timespec { return modified(e.Header) }

func modified(h *tar.Header) unix.Timespec {
	return unix.Timespec{Sec: h.ModTime.Unix(), Nsec: int64(h.ModTime.Nanosecond())}
}

// times leaves the time of access as it is.
func times(modified unix.Timespec) []unix.Timespec {
	return []unix.Timespec{{Nsec: unix.UTIME_OMIT}, modified}
}

// Check reads an archive to its end as Extract would, and makes nothing. It calls beside for each entry that is not under the
// prefix, which may read its content. Errors are as for Extract, and those of beside.
func Check(ctx context.Context, r *tar.Reader, o Options, beside func(*tar.Header, io.Reader) error) (s Stats, err error) {
	p := progress{ctx: ctx, tell: o.Progress}
	for {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return s, nil
		case err != nil:
			return s, err
		}
		e, mine, err := judge(h, o)
		switch {
		case err != nil:
			return s, &EntryError{h.Name, err}
		case !mine:
			err = beside(h, r)
		default:
			err = s.see(e, r, &p, o.MaxBytes)
		}
		if err == nil {
			err = p.count(entryCost, &s)
		}
		if err != nil {
			return s, err
		}
	}
}

// see counts an entry as Extract would, and reads its content.
func (s *Stats) see(e *entry, r io.Reader, p *progress, most int64) error {
	switch {
	case e.kind == tar.TypeDir:
		if e.name != "" {
			s.Folders++
		}
		return nil
	case e.kind == tar.TypeChar || e.kind == tar.TypeBlock:
		return nil
	}
	s.Files++
	if e.kind != tar.TypeReg {
		return nil
	}
	data := []extent{{0, e.Size}}
	if text, ok := e.PAXRecords[recordData]; ok {
		var err error
		if data, err = parseExtents(text, e.Size); err != nil {
			return &EntryError{e.Name, err}
		}
	}
	s.Bytes += lengthFrom(0, data)
	p.holes += e.Size - lengthFrom(0, data)
	switch {
	case most > 0 && s.Bytes > most:
		return &EntryError{e.Name, ErrLarge}
	case p.holes > maxHoles:
		return &EntryError{e.Name, ErrSparse}
	}
	for left := e.Size; left > 0; {
		n, err := io.CopyN(io.Discard, r, min(left, progressStep))
		if err != nil {
			return err
		}
		left -= n
		if err := p.count(n, s); err != nil {
			return err
		}
	}
	return nil
}
