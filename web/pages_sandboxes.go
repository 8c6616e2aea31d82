package web

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// listing is the list as the store has it now.
type listing struct {
	query  listQuery
	filter sandbox.Filter
	boxes  []sandbox.Sandbox
	groups []listGroup
	total  int // that match
	counts map[sandbox.State]int
}

// chipStates are the states that can be picked, in order; "" is all.
var chipStates = []sandbox.State{"", sandbox.Running, sandbox.Frozen, sandbox.Asleep, sandbox.Stopped, sandbox.Failed}

func (s *listHandlers) listing(ctx context.Context, r *request, q listQuery) (l listing, err error) {
	l = listing{query: q, filter: sandbox.Filter{Query: q.text, State: q.state, Offset: q.page * pageRows, Limit: pageRows}}
	if l.filter.Owner, err = s.ownerOf(ctx, r, q); err != nil {
		return l, err
	}
	if q.usual() {
		l.boxes, l.total, err = s.cfg.Sandboxes.List(ctx, l.filter)
	} else {
		every := l.filter
		every.Offset, every.Limit = 0, 0
		if l.boxes, l.total, err = s.cfg.Sandboxes.List(ctx, every); err == nil {
			l.boxes, l.groups, err = s.order(ctx, q, l.boxes)
		}
	}
	if err != nil {
		return l, err
	}
	l.counts, err = s.listCounts(ctx, l)
	return l, err
}

// nobody is no user's id.
const nobody = "-"

// ownerOf is the id of the user whose sandboxes are shown; "" for all.
func (s *listHandlers) ownerOf(ctx context.Context, r *request, q listQuery) (string, error) {
	if !r.isAdmin() {
		return r.who.User.ID, nil
	}
	if q.owner == "" {
		return "", nil
	}
	u, err := s.cfg.Accounts.UserByName(ctx, q.owner)
	if fault.Is(err, fault.NotFound) {
		return nobody, nil
	}
	return u.ID, err
}

// listCounts counts what each chip would show.
func (s *listHandlers) listCounts(ctx context.Context, l listing) (map[sandbox.State]int, error) {
	counts := map[sandbox.State]int{l.query.state: l.total}
	for _, state := range chipStates {
		if _, known := counts[state]; known {
			continue
		}
		f := l.filter
		f.State, f.Offset, f.Limit = state, 0, 1
		_, n, err := s.cfg.Sandboxes.List(ctx, f)
		if err != nil {
			return nil, err
		}
		counts[state] = n
	}
	return counts, nil
}

// print is a fingerprint of what the list shows. A stream that begins later compares it and sends the list anew only
// if something has changed in between.
func (l listing) print() string {
	h := fnv.New64a()
	for _, box := range l.boxes {
		fmt.Fprintf(h, "%s %s %s %d %q %q %v\n", box.ID, box.Owner, box.State, box.Changed.UnixNano(), box.Label, box.Problem, box.Rest)
	}
	for _, state := range chipStates {
		fmt.Fprintln(h, l.counts[state])
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// chips shows the states with their counts. The chips of those at rest show when there are any.
func (l listing) chips() views.Filter {
	f := views.Filter{Query: l.query.text, State: string(l.query.state), Owner: l.query.owner}
	first := l.query.first()
	if all := first; f.Owner != "" {
		all.owner = ""
		f.All = all.url("/")
	}
	known := false
	for _, state := range chipStates {
		current := state == l.query.state
		known = known || current
		if state.Resting() && l.counts[state] == 0 && !current {
			continue
		}
		text := "All"
		if state != "" {
			text = stateLooks[state].Text
		}
		at := first
		at.state = state
		f.Chips = append(f.Chips, views.Chip{
			Text: text, Value: string(state), Count: l.counts[state], URL: at.url("/"), Current: current,
		})
	}
	if !known {
		f.Chips = append(f.Chips, views.Chip{
			Text: stateLooks[l.query.state].Text, Value: f.State, Count: l.total, URL: l.query.url("/"), Current: true,
		})
	}
	return f
}

// part is the list ready to show.
func (l listing) part(ctx context.Context, p *presenter) views.List {
	rows := p.rows(ctx, l.boxes)
	v := views.List{Groups: l.grouped(rows), Owners: p.admin, Sorts: choices(listSorts, l.query.sort)}
	groups := listGroups
	if !p.admin {
		groups = groups[:len(groups)-1]
	}
	v.Groupings = choices(groups, l.query.group)
	v.Live = views.Live{Topic: l.query.url("/sandboxes"), Seen: "seen=" + l.print() + "&reasons=" + statesPrint(rows)}
	if len(l.boxes) == 0 {
		v.None = true
		if l.query.all() && l.query.page == 0 {
			v.None, v.Gallery, v.First = false, p.server.creation.cards(ctx), p.neverCreated(ctx)
		}
	}
	if l.total <= pageRows {
		return v
	}
	v.Span = fmt.Sprintf("%d–%d of %d", l.filter.Offset+1, l.filter.Offset+len(l.boxes), l.total)
	at := l.query
	if at.page--; at.page >= 0 {
		v.Earlier = at.url("/")
	}
	if at.page += 2; at.page*pageRows < l.total {
		v.Later = at.url("/")
	}
	return v
}

// pageSandboxes is the front page. A script that filters gets the list alone, with what else depends on the filter out of band.
func (s *listHandlers) pageSandboxes(ctx context.Context, r *request) (templ.Component, error) {
	q := wantedList(r)
	if r.byScript() {
		l, err := s.listing(ctx, r, q)
		if err != nil {
			return nil, err
		}
		keepAddress(r, q)
		return templ.Join(views.ListPart(l.part(ctx, s.workspace.presenter(r, "list", q.url("/")))),
			views.Part("chips", views.Replace, views.Chips(l.chips())),
			views.Part("saved", views.Replace, views.SavedPart(s.filters.saved(ctx, r, q)))), nil
	}
	return s.listPage(ctx, r, q, nil)
}

// keepAddress gives the page the address of what it shows now. While a person types there is one for all, so that the way back is short.
func keepAddress(r *request, q listQuery) {
	how := "HX-Push-Url"
	if r.http.Header.Get("HX-Trigger") == "filter" {
		how = "HX-Replace-Url"
	}
	r.head.Set(how, q.url("/"))
}

// listPage is the whole page. done says what was just done with several sandboxes; it may be nil.
func (s *listHandlers) listPage(ctx context.Context, r *request, q listQuery, done *views.ManyDone) (templ.Component, error) {
	l, err := s.listing(ctx, r, q)
	if err != nil {
		return nil, err
	}
	part, frame := l.part(ctx, s.workspace.presenter(r, "list", q.url("/"))), s.frame(r, "Sandboxes", "sandboxes")
	frame.Followed, frame.Here = true, q.url("/")
	if len(part.Gallery) == 0 { // whose cards do the same
		frame.New = s.creation.menuCards()
	}
	return views.SandboxesPage(views.Sandboxes{
		Frame: frame, Filter: l.chips(), List: part,
		Saved: s.filters.saved(ctx, r, q), Done: done, Orphans: s.orphans.notice(r),
	}), nil
}
