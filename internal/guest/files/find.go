package files

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// finding is a search under way.
type finding struct {
	wire.Search
	reply *reply
	found int
	begun bool // ripgrep has said something
	buf   []byte
}

// tell sends a result; errEnough when it was the last that is wanted.
func (f *finding) tell(x *wire.Found) error {
	if x.Check() != nil {
		return nil // a path that is too long, say
	}
	f.buf = wire.AppendFound(f.buf[:0], x)
	if err := f.reply.record(wire.RecordFound, f.buf); err != nil {
		return err
	}
	if f.found++; f.found >= f.Limit {
		return errEnough
	}
	return nil
}

// each goes through everything below the folder where w is, which is called below, without following anything. What cannot be
// entered is passed over.
func (w *walk) each(below string, from int, skip func(name string) bool, f func(p, name string, kind wire.FileType) error) error {
	fd, err := openFolder(w.fd(), "")
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	return w.actor.eachName(fd, func(d dirent) error {
		name := string(d.name)
		if len(w.levels) == 1 && name == hiddenTop {
			return nil
		}
		kind, ok := w.kindOf(name, d.kind)
		if !ok {
			return nil
		}
		p := path.Join(below, name)
		if err := f(p, name, kind); err != nil {
			return err
		}
		if kind != wire.TypeFolder || skip(name) || len(p) > wire.MaxPath {
			return nil
		}
		depth := len(w.levels)
		if w.deeper(name, from) != nil {
			return nil
		}
		defer w.cut(depth)
		return w.each(p, from, skip, f)
	})
}

func (w *walk) kindOf(name string, kind byte) (wire.FileType, bool) {
	if kind != unix.DT_UNKNOWN {
		return typeOf(uint32(kind) << 12), true // S_IFMT's bits are DT's
	}
	var st unix.Stat_t
	if lstatAt(w.fd(), name, &st) != nil {
		return "", false
	}
	return typeOf(st.Mode), true
}

// skipNothing goes everywhere.
func skipNothing(string) bool { return false }

// byName finds names.
func (f *finding) byName(w *walk) error {
	query := f.Query
	if !f.Case {
		query = strings.ToLower(query)
	}
	glob := strings.ContainsAny(query, "*?[")
	if _, err := path.Match(query, ""); err != nil {
		return problem(wire.CodeInvalid, "That pattern cannot be read.")
	}
	return w.each("", len(w.levels), skipNothing, func(p, name string, kind wire.FileType) error {
		if !f.Case {
			name = foldName(name)
		}
		if hit, _ := path.Match(query, name); hit || !glob && strings.Contains(name, query) {
			return f.tell(&wire.Found{Path: p, Type: kind})
		}
		return nil
	})
}
