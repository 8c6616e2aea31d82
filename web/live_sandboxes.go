package web

import (
	"context"
	"time"

	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// mark is what a row shows of a sandbox besides its progress.
type mark struct {
	state          sandbox.State
	label, problem string
	changed        int64 // nanoseconds: times that were stored and read compare unequal
}

func markOf(box sandbox.Sandbox) mark {
	return mark{state: box.State, label: box.Label, problem: box.Problem, changed: box.Changed.UnixNano()}
}

// liveList keeps the list of sandboxes up to date as one person has narrowed it.
type liveList struct {
	server  *Server
	request *request
	show    *presenter
	list    listing
	drawn   map[string]mark // by sandbox id: what the page shows
	newest  time.Time       // of the sandboxes that it shows
	pending []sandbox.Event // the latest of each sandbox, in order
}

func (s *Server) openLiveList(ctx context.Context, r *request) (livePage, error) {
	q := readListQuery(r)
	l := &liveList{server: s, request: r, show: s.presenter(r, "list", q.url("/"))}
	return l, l.load(ctx, q)
}

func (l *liveList) load(ctx context.Context, q listQuery) (err error) {
	if l.list, err = l.server.listing(ctx, l.request, q); err != nil {
		return err
	}
	l.drawn, l.newest = map[string]mark{}, time.Time{}
	for _, box := range l.list.boxes {
		l.draw(box)
	}
	return nil
}

func (l *liveList) draw(box sandbox.Sandbox) {
	l.drawn[box.ID] = markOf(box)
	if box.Created.After(l.newest) {
		l.newest = box.Created
	}
}

func (l *liveList) begin(ctx context.Context, out *parts) error {
	if l.request.query("seen") != l.list.print() {
		l.whole(ctx, out)
	}
	return nil
}

// whole draws the list anew.
func (l *liveList) whole(ctx context.Context, out *parts) {
	out.add("list-body", views.Replace, views.ListBody(l.list.part(ctx, l.show)))
	out.add("chips", views.Replace, views.Chips(l.list.chips()))
}

func (l *liveList) take(n news) bool {
	if n.box == nil || !l.request.who.May(n.box.Sandbox.Owner, n.box.Sandbox.Name) {
		return false
	}
	for i, e := range l.pending {
		if e.Sandbox.ID == n.box.Sandbox.ID {
			l.pending[i] = *n.box
			return true
		}
	}
	l.pending = append(l.pending, *n.box)
	return true
}

func (l *liveList) tell(ctx context.Context, out *parts) error {
	pending := l.pending
	l.pending = nil
	var changes parts
	counts := false
	for _, e := range pending {
		before, drawn := l.drawn[e.Sandbox.ID]
		if drawn && !e.Deleted && before == markOf(e.Sandbox) {
			changes.add("state-"+e.Sandbox.ID, views.Replace, views.RowState(e.Sandbox.ID, stateOf(e.Sandbox, e.Progress, l.server.cfg.Now())))
			continue
		}
		counts = true
		if !l.change(ctx, e, &changes) {
			if err := l.load(ctx, l.list.query); err != nil {
				return err
			}
			l.whole(ctx, out)
			return nil
		}
	}
	out.list = append(out.list, changes.list...)
	if counts {
		return l.recount(ctx, out)
	}
	return nil
}

// change collects what one sandbox's change means for the list; false when only the whole list anew will do.
func (l *liveList) change(ctx context.Context, e sandbox.Event, out *parts) bool {
	box := e.Sandbox
	_, drawn := l.drawn[box.ID]
	fits := !e.Deleted && matches(box, l.list.filter)
	switch {
	case drawn && fits:
		l.draw(box)
		out.add(views.RowID(box.ID), views.Replace, views.RowItem(l.show.row(ctx, box, e.Progress), l.show.admin))
	case drawn:
		delete(l.drawn, box.ID)
		out.gone(views.RowID(box.ID))
		return len(l.drawn) > 0 && l.list.total <= pageRows
	case fits && l.list.query.page == 0:
		if len(l.drawn) == 0 || len(l.drawn) >= pageRows || box.Created.Before(l.newest) {
			return false // there is no list yet, it is full, or the row's place is not at the top
		}
		l.draw(box)
		out.add("rows", views.Prepend, views.RowItem(l.show.row(ctx, box, e.Progress), l.show.admin))
	}
	return true
}

// recount collects the chips when their counts have changed.
func (l *liveList) recount(ctx context.Context, out *parts) error {
	before := l.list.print()
	f := l.list.filter
	f.Offset, f.Limit = 0, 1
	_, total, err := l.server.cfg.Sandboxes.List(ctx, f)
	if err != nil {
		return err
	}
	l.list.total = total
	if l.list.counts, err = l.server.listCounts(ctx, l.list); err != nil {
		return err
	}
	if l.list.print() != before {
		out.add("chips", views.Replace, views.Chips(l.list.chips()))
	}
	return nil
}
