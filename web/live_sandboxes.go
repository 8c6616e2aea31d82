package web

import (
	"context"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/catalog"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// mark is what a row shows of a sandbox besides its progress.
type mark struct {
	state          sandbox.State
	label, problem string
	rest           catalog.Rest
	changed        int64 // nanoseconds: times that were stored and read compare unequal
}

func markOf(box sandbox.Sandbox) mark {
	return mark{state: box.State, label: box.Label, problem: box.Problem, rest: box.Rest, changed: box.Changed.UnixNano()}
}

// drawnRow is what the page shows of a sandbox.
type drawnRow struct {
	box    sandbox.Sandbox
	state  string // print of its state
	badges string // print of them
	used   string // when, as the row has it
	meters views.Meters
}

// liveList keeps the list of sandboxes up to date as one person has narrowed it.
type liveList struct {
	server  *Server
	request *request
	show    *presenter
	list    listing
	drawn   map[string]*drawnRow // by sandbox id
	newest  time.Time            // of the sandboxes that it shows
	pending []sandbox.Event      // the latest of each sandbox, in order
	figures bool                 // there are new ones
	agents  map[string]bool      // by sandbox id: what theirs do has changed

	images map[string]catalog.ImageStatus // new ones, where the page has cards of templates
	cards  map[string]string              // what it says of them, as far as it was told
}

func (s *listHandlers) openLiveList(ctx context.Context, r *request) (livePage, error) {
	q := wantedList(r)
	l := &liveList{
		server: s.Server, request: r, show: s.workspace.presenter(r, "list", q.url("/")),
		images: map[string]catalog.ImageStatus{}, cards: map[string]string{}, agents: map[string]bool{},
	}
	return l, l.load(ctx, q)
}

func (l *liveList) load(ctx context.Context, q listQuery) (err error) {
	if l.list, err = l.server.list.listing(ctx, l.request, q); err != nil {
		return err
	}
	l.drawn, l.newest = map[string]*drawnRow{}, time.Time{}
	for _, box := range l.list.boxes {
		l.draw(box)
	}
	return nil
}

func (l *liveList) draw(box sandbox.Sandbox) {
	l.drawn[box.ID] = &drawnRow{box: box}
	if box.Created.After(l.newest) {
		l.newest = box.Created
	}
}

func (l *liveList) begin(ctx context.Context, out *parts) error {
	if l.request.query("seen") != l.list.print() {
		l.whole(ctx, out)
		return nil
	}
	rows := l.show.rows(ctx, l.list.boxes)
	if l.request.query("reasons") == statesPrint(rows) {
		l.shown(rows...)
	}
	l.look(out)
	return nil
}

// whole draws the list anew.
func (l *liveList) whole(ctx context.Context, out *parts) {
	part := l.list.part(ctx, l.show)
	for _, g := range part.Groups {
		l.shown(g.Rows...)
	}
	out.add("list-body", views.Replace, views.ListBody(part))
	out.add("chips", views.Replace, views.Chips(l.list.chips()))
}

// shown notes which states the page shows.
func (l *liveList) shown(rows ...views.Row) {
	for _, r := range rows {
		if d := l.drawn[r.ID]; d != nil {
			d.state, d.meters, d.badges, d.used = printOf(r.State), r.Meters, printOf(r.Badges), r.Used.Machine
		}
	}
}

// look collects the states, badges and last uses that the page does not show as they are.
func (l *liveList) look(out *parts) {
	for id, d := range l.drawn {
		l.tellState(d, l.server.cfg.Sandboxes.Progress(id), out)
		l.tellBadges(d, out)
		if at, used := l.server.cfg.LastUses.Last(id); used {
			l.tellUsed(d, at, out)
		}
	}
}

// tellBadges collects the badges of a row when they are not those that the page shows.
func (l *liveList) tellBadges(d *drawnRow, out *parts) {
	badges := l.server.list.badges(d.box)
	if now := printOf(badges); now != d.badges {
		d.badges = now
		out.add(views.BadgesID(d.box.ID), views.Replace, views.BadgesPart(d.box.ID, badges))
	}
}

// tellUsed collects when a row's sandbox was used last, when that is news.
func (l *liveList) tellUsed(d *drawnRow, at time.Time, out *parts) {
	now := l.server.cfg.Now()
	if used := timeOf(at, now); used.Machine != d.used {
		d.used = used.Machine
		out.add(views.UsedID(d.box.ID), views.Replace, views.UsedPart(d.box.ID, used, timeOf(d.box.Created, now)))
	}
}

// tellState collects the state of a row when it is not the one that the page shows.
func (l *liveList) tellState(d *drawnRow, p sandbox.Progress, out *parts) {
	state := l.server.workspace.state(d.box, p)
	if now := printOf(state); now != d.state {
		d.state = now
		out.add("state-"+d.box.ID, views.Replace, views.RowState(d.box.ID, state))
	}
}

// tellMeters collects the meters of the rows in which they differ.
func (l *liveList) tellMeters(out *parts) {
	for id, d := range l.drawn {
		if now := metersOf(l.server.cfg.Metrics, d.box); now != d.meters && d.box.State == sandbox.Running {
			d.meters = now
			out.add(views.MetersID(id), views.Replace, views.MetersPart(views.MetersID(id), now))
		}
	}
}

// beside tells when there are new figures.
func (l *liveList) beside(ctx context.Context, hand func(news)) {
	tellFigures(ctx, l.server, l.request, hand)
}

func (l *liveList) take(n news) bool {
	l.figures = l.figures || n.figures
	if n.figures {
		return true
	}
	if n.agent != nil && l.drawn[n.agent.Sandbox] != nil {
		l.agents[n.agent.Sandbox] = true
		return true
	}
	if n.uses != nil {
		return l.drawn[n.uses.ID] != nil
	}
	if n.image != nil && len(l.drawn) == 0 && l.list.query.all() {
		l.images[n.image.Template] = n.image.Status
		return true
	}
	if n.box == nil || !l.request.who.May(n.box.Sandbox.Owner, n.box.Sandbox.ID) {
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

func (l *liveList) tell(ctx context.Context, reasons bool, out *parts) error {
	pending := l.pending
	l.pending = nil
	var changes parts
	counts := false
	for _, e := range pending {
		before, drawn := l.drawn[e.Sandbox.ID]
		if drawn && !e.Deleted && markOf(before.box) == markOf(e.Sandbox) {
			l.tellState(before, e.Progress, &changes)
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
	for id := range l.agents {
		if d := l.drawn[id]; d != nil {
			l.tellBadges(d, out)
		}
	}
	clear(l.agents)
	l.tellCards(out)
	if reasons {
		l.look(out)
	}
	if l.figures {
		l.figures = false
		l.tellMeters(out)
	}
	if counts {
		return l.recount(ctx, out)
	}
	return nil
}

// tellCards collects what the cards of an empty list say of images, when that has changed.
func (l *liveList) tellCards(out *parts) {
	for name, status := range l.images {
		t, err := l.server.cfg.Templates.Template(name)
		if err != nil { // it has no card any more
			continue
		}
		if now := cardImage(t, status, l.server.cfg.Now()); now.Text != l.cards[name] {
			l.cards[name] = now.Text
			out.add(views.CardImageID(name), views.Replace, views.CardImage(now, views.CardImageID(name)))
		}
	}
	clear(l.images)
}

// change collects what one sandbox's change means for the list; false when only the whole list anew will do.
func (l *liveList) change(ctx context.Context, e sandbox.Event, out *parts) bool {
	box := e.Sandbox
	_, drawn := l.drawn[box.ID]
	fits := !e.Deleted && matches(box, l.list.filter)
	switch {
	case fits != drawn && l.list.query.group != "", fits && l.list.query.moves():
		return false // a heading tells how many there are, or the row has another place
	case drawn && fits:
		out.add(views.RowID(box.ID), views.Replace, l.redraw(ctx, e))
	case drawn:
		delete(l.drawn, box.ID)
		out.gone(views.RowID(box.ID))
		return len(l.drawn) > 0 && l.list.total <= pageRows
	case fits && l.list.query.page == 0:
		if !l.list.query.usual() || len(l.drawn) == 0 || len(l.drawn) >= pageRows || box.Created.Before(l.newest) {
			return false // there is no list yet, it is full, or the row's place is not at the top
		}
		out.add("rows", views.Prepend, l.redraw(ctx, e))
	}
	return true
}

// redraw draws the row of a sandbox.
func (l *liveList) redraw(ctx context.Context, e sandbox.Event) templ.Component {
	l.draw(e.Sandbox)
	row := l.show.row(ctx, e.Sandbox, e.Progress)
	l.shown(row)
	return views.RowItem(row, l.show.admin)
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
	if l.list.counts, err = l.server.list.listCounts(ctx, l.list); err != nil {
		return err
	}
	if l.list.print() != before {
		out.add("chips", views.Replace, views.Chips(l.list.chips()))
	}
	return nil
}
