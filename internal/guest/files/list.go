package files

import (
	"cmp"
	"encoding/base64"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// row is a name in its place: folders first, then without regard to case, then by bytes.
type row struct {
	other bool // no folder
	fold  string
	name  string
}

func rowOf(name string, folder bool) row { return row{!folder, foldName(name), name} }

// foldName is a name without regard to case.
func foldName(name string) string {
	upper := false
	for i := range len(name) {
		if c := name[i]; c >= utf8.RuneSelf {
			return strings.ToLower(name)
		} else if c >= 'A' && c <= 'Z' {
			upper = true
		}
	}
	if !upper {
		return name // the same string: nothing is copied
	}
	return strings.ToLower(name)
}

func compareRows(a, b row) int {
	if a.other != b.other {
		if a.other {
			return 1
		}
		return -1
	}
	if c := cmp.Compare(a.fold, b.fold); c != 0 {
		return c
	}
	return cmp.Compare(a.name, b.name)
}

// cursor says where a page ends.
func (r row) cursor() string {
	kind := "d"
	if r.other {
		kind = "o"
	}
	return kind + base64.RawURLEncoding.EncodeToString([]byte(r.name))
}

func rowOfCursor(s string) (row, error) {
	if s == "" {
		return row{}, nil
	}
	name, err := base64.RawURLEncoding.DecodeString(s[1:])
	if err != nil || s[0] != 'd' && s[0] != 'o' || wire.CheckFileName(string(name)) != nil {
		return row{}, problem(wire.CodeInvalid, "That page is none of this folder's.")
	}
	return rowOf(string(name), s[0] == 'd'), nil
}

// bare is the entry of what cannot be looked at.
func (r row) bare() wire.Entry {
	e := wire.Entry{Name: r.name, Type: wire.TypeFolder, Modified: time.Unix(0, 0)}
	if r.other {
		e.Type = wire.TypeDevice
	}
	return e
}

// page keeps the first rows of those it is given, in room for twice as many.
type page struct {
	after row // only rows behind it; the zero row for all
	limit int
	rows  []row
	more  bool // some were dropped
	last  row  // when there are more: nothing behind it is on the page
}

// rowRoom has room for the rows of pages, for the reason that partRoom has.
var rowRoom = sync.Pool{New: func() any { return new([]row) }}

// newPage makes an empty one. The caller frees it.
func newPage(after row, limit int) *page {
	return &page{after: after, limit: limit, rows: (*rowRoom.Get().(*[]row))[:0]}
}

func (p *page) free() {
	clear(p.rows[:cap(p.rows)])
	rowRoom.Put(&p.rows)
}

// add takes a row. Only close settles the page.
func (p *page) add(r row) {
	if p.after.name != "" && compareRows(r, p.after) <= 0 {
		return
	}
	if p.more && compareRows(r, p.last) >= 0 {
		return
	}
	p.rows = append(p.rows, r)
	if len(p.rows) >= 2*p.limit+64 {
		p.close()
	}
}

func (p *page) close() {
	sort.Slice(p.rows, func(i, j int) bool { return compareRows(p.rows[i], p.rows[j]) < 0 }) // slices.SortFunc is 12 KB of code
	if len(p.rows) > p.limit {
		clear(p.rows[p.limit:])
		p.rows, p.more = p.rows[:p.limit], true
		p.last = p.rows[p.limit-1]
	}
}

func (q *ask) list() error {
	p, err := q.path("path")
	if err != nil {
		return err
	}
	limit, err := q.number("limit", 10)
	if err != nil {
		return err
	}
	after, err := rowOfCursor(q.v.Get("after"))
	if err != nil {
		return err
	}
	view := newPage(after, int(min(max(limit, 1), wire.MaxListing)))
	defer view.free()
	err = q.tree.act(q.Context(), func(a *actor) error { return a.list(p, view, q.reply) })
	if err != nil {
		return about(p, err)
	}
	l := wire.Listing{Path: p}
	if view.more {
		l.Next = view.last.cursor()
	}
	q.reply.end(wire.AppendListed(nil, &l))
	return nil
}

// list fills the page and sends it.
func (a *actor) list(p string, view *page, to *reply) error {
	s, err := a.find(p, true)
	if err != nil {
		return err
	}
	defer s.walk.close()
	if s.name != "" {
		if err := s.walk.enter(s.name); err != nil {
			return err
		}
	}
	var stale []string
	if err := s.walk.names(func(name string, folder bool) {
		if isTemporary(name) {
			stale = append(stale, name)
			return
		}
		view.add(rowOf(name, folder))
	}); err != nil {
		return err
	}
	view.close()
	s.walk.sweep(stale)
	done, err := tellAll(s.walk, p, view.rows, to)
	if err == nil {
		view.end(done)
	}
	return err
}

// end ends the page behind that many rows.
func (p *page) end(rows int) {
	if rows < len(p.rows) {
		p.more, p.last = true, p.rows[rows-1]
	}
}

// names calls f for every entry in the folder where w is, but for ours.
func (w *walk) names(f func(name string, folder bool)) error {
	fd, err := openFolder(w.fd(), "")
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return w.actor.eachName(fd, func(d dirent) error {
		if len(w.levels) == 1 && string(d.name) == hiddenTop {
			return nil
		}
		name := string(d.name)
		if d.kind == unix.DT_UNKNOWN {
			var st unix.Stat_t
			if lstatAt(fd, name, &st) != nil {
				return nil // gone already
			}
			f(name, isFolder(&st))
			return nil
		}
		f(name, d.kind == unix.DT_DIR)
		return nil
	})
}
