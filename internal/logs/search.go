package logs

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/fault"
)

// Search finds the newest lines that match. It takes no longer than the budget, about: then Result.SearchedBackTo and Next say
// where it ended. Kinds: Invalid, Unavailable.
func (k *Keeper) Search(ctx context.Context, q Query) (Result, error) {
	return k.search(ctx, q, k.searches)
}

// SearchApart is Search for one caller that must not wait for the searches of users. A second call waits for the first.
func (k *Keeper) SearchApart(ctx context.Context, q Query) (Result, error) {
	return k.search(ctx, q, k.apart)
}

func (k *Keeper) search(ctx context.Context, q Query, places chan struct{}) (Result, error) {
	m, err := newMatcher(q)
	if err != nil {
		return Result{}, err
	}
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	f := &found{page: Page{min(q.Limit, MaxLimit), MaxPage}}
	for _, l := range k.waiting(q.Scope) {
		if m.match(&l) {
			f.add(l)
		}
	}
	look := Look{Scope: q.Scope, Services: q.Services, Levels: q.Levels, Words: m.words(), Since: q.Since, Until: q.Until, Before: q.Before}
	select { // before the budget begins
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, min(cmp.Or(q.Budget, k.c.Budget), k.c.Budget))
	defer cancel()
	s := &search{ctx: limited, m: m, found: f, reached: k.lastID()}
	if q.Before != 0 {
		s.reached = min(s.reached, q.Before-1)
	}
	err = k.c.Store.Walk(limited, look, s.see)
	if err = cmp.Or(s.err, err); err != nil && (limited.Err() == nil || ctx.Err() != nil) {
		return Result{}, err
	}
	return s.result(err != nil || s.cutOff), nil
}

// search is one under way.
type search struct {
	ctx     context.Context // ends with the budget
	m       *matcher
	found   *found
	reached ID   // lines above it have been looked at
	cutOff  bool // by the budget
	err     error
}

// see looks at one block.
func (s *search) see(b Block) bool {
	s.reached = min(s.reached, b.Bound)
	least, full := s.found.least()
	if full && b.Bound < least {
		return false
	}
	if s.ctx.Err() != nil {
		s.cutOff = true
		return false
	}
	if b.Lines == nil || full && b.Last < least {
		return true
	}
	lines, err := b.Lines()
	if err != nil {
		s.err = err
		return false
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if full && lines[i].ID < least {
			break
		}
		if s.m.match(&lines[i]) {
			s.found.add(lines[i])
			least, full = s.found.least()
		}
	}
	return true
}

// result gives what was found, without what stands beyond lines that were not looked at.
func (s *search) result(cutOff bool) Result {
	lines := s.found.newestFirst()
	least, full := s.found.least()
	if cutOff && (!full || least <= s.reached) {
		lines = slices.DeleteFunc(lines, func(l Line) bool { return l.ID <= s.reached })
		return Result{Lines: lines, SearchedBackTo: min(s.reached, ID(time.Now().UnixMicro())).time(), Next: s.reached + 1}
	}
	if !full {
		return Result{Lines: lines}
	}
	last := lines[len(lines)-1]
	back := last.ID.time()
	if last.Time.Before(back) { // it came late, and is among what was looked at
		back = last.Time.UTC()
	}
	return Result{Lines: lines, SearchedBackTo: back, Next: last.ID}
}

// time is about when a line was appended.
func (i ID) time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// found keeps the newest lines of those that are added.
type found struct {
	page  Page
	lines []Line // at least the newest ones
	text  int    // bytes of their texts
	small ID     // the least ID of a full page; 0 before there is one
}

// add notes a line. It keeps a copy of the text, so that one line does not keep all those in memory that it was read with.
func (f *found) add(l Line) {
	l.Text = strings.Clone(l.Text)
	f.lines = append(f.lines, l)
	f.text += len(l.Text)
	lines, text := f.page.Lines, f.page.Text
	if f.small != 0 {
		lines, text = 2*lines, 2*text
	}
	if len(f.lines) >= lines || f.text >= text {
		f.trim()
	}
}

// trim keeps a page of the newest, each once.
func (f *found) trim() {
	slices.SortFunc(f.lines, func(a, b Line) int { return cmp.Compare(b.ID, a.ID) })
	f.lines = slices.CompactFunc(f.lines, func(a, b Line) bool { return a.ID == b.ID })
	n, full := f.page.fill(f.lines)
	if full {
		f.small = f.lines[n-1].ID
	}
	clear(f.lines[n:])
	f.lines, f.text = f.lines[:n], 0
	for i := range f.lines {
		f.text += len(f.lines[i].Text)
	}
}

// least gives an ID below which no line is wanted any more, once there are enough.
func (f *found) least() (ID, bool) { return f.small, f.small != 0 }

func (f *found) newestFirst() []Line {
	f.trim()
	return f.lines
}

// Line gives the line with an ID. Kinds: NotFound, also when it is outside of the scope; Unavailable.
func (k *Keeper) Line(ctx context.Context, scope Scope, id ID) (Line, error) {
	for _, l := range k.waiting(scope) {
		if l.ID == id {
			return l, nil
		}
	}
	if ids, all := scope.Sandboxes(); !all {
		for _, sandbox := range ids[:min(len(ids), maxEach)] {
			lines, err := k.c.Store.From(ctx, sandbox, id, Page{1, MaxText})
			if err != nil {
				return Line{}, err
			}
			if len(lines) == 1 && lines[0].ID == id {
				return lines[0], nil
			}
		}
		if len(ids) <= maxEach {
			return Line{}, errNoLine
		}
	}
	l, err := k.c.Store.Line(ctx, id)
	if err == nil && !scope.Has(l.Sandbox) {
		return Line{}, errNoLine
	}
	return l, err
}

const maxEach = 8 // sandboxes that are asked one by one for a line, rather than all

var errNoLine = fault.New(fault.NotFound, "There is no such log line. It may have been deleted, as old lines are.")

// Around gives a line with a page of the lines before and one of those after it, of the same sandbox, oldest first. Kinds: NotFound,
// also when the sandbox is outside of the scope; Unavailable.
func (k *Keeper) Around(ctx context.Context, scope Scope, sandbox string, id ID, each Page) ([]Line, error) {
	if !scope.Has(sandbox) {
		return nil, errNoLine
	}
	each = Page{min(each.Lines, MaxLimit), min(each.Text, MaxPage/2)}
	waiting := k.waiting(Only(sandbox)) // before the Store is asked: a line moves from here to there
	before, err := k.c.Store.Before(ctx, sandbox, id, each)
	if err != nil {
		return nil, err
	}
	after, err := k.c.Store.From(ctx, sandbox, id, Page{each.Lines + 1, each.Text + MaxText}) // the line itself too
	if err != nil {
		return nil, err
	}
	lines := slices.Concat(before, after, waiting)
	slices.SortFunc(lines, func(a, b Line) int { return cmp.Compare(a.ID, b.ID) })
	lines = slices.CompactFunc(lines, func(a, b Line) bool { return a.ID == b.ID })
	at, ok := slices.BinarySearchFunc(lines, id, func(l Line, id ID) int { return cmp.Compare(l.ID, id) })
	if !ok {
		return nil, errNoLine
	}
	older := slices.Clone(lines[:at])
	slices.Reverse(older)
	n, _ := each.fill(older)
	m, _ := each.fill(lines[at+1:])
	return lines[at-n : at+1+m], nil
}
