package web

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/url"
	"strconv"

	"github.com/a-h/templ"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// pageRows is how many sandboxes a page of the list has.
const pageRows = 50

// listQuery is what a person narrowed the list to, as the address carries it.
type listQuery struct {
	text  string
	state sandbox.State
	page  int // from 0
}

// maxFilter bounds the text of a filter, in bytes: nothing that it could match is longer.
const maxFilter = 256

// maxListPage bounds the page number, so that no address makes an offset that overflows.
const maxListPage = 1 << 20

func readListQuery(r *request) listQuery {
	q := listQuery{text: text.OneLine(r.query("q"), maxFilter), state: sandbox.State(r.query("state"))}
	if !knownState(q.state) {
		q.state = ""
	}
	if n, err := strconv.Atoi(r.query("page")); err == nil && n > 1 && n < maxListPage {
		q.page = n - 1
	}
	return q
}

// url is the address of the list so narrowed; path is that of the page or of its stream.
func (q listQuery) url(path string) string {
	v := url.Values{}
	if q.text != "" {
		v.Set("q", q.text)
	}
	if q.state != "" {
		v.Set("state", string(q.state))
	}
	if q.page > 0 {
		v.Set("page", strconv.Itoa(q.page+1))
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// all says whether nothing is narrowed.
func (q listQuery) all() bool { return q.text == "" && q.state == "" }

// listing is the list as the store has it now.
type listing struct {
	query  listQuery
	filter sandbox.Filter
	boxes  []sandbox.Sandbox
	total  int // that match
	counts map[sandbox.State]int
}

// chipStates are the states that can be picked, in order; "" is all.
var chipStates = []sandbox.State{"", sandbox.Running, sandbox.Frozen, sandbox.Asleep, sandbox.Stopped, sandbox.Failed}

func (s *sandboxHandlers) listing(ctx context.Context, r *request, q listQuery) (listing, error) {
	l := listing{query: q, filter: sandbox.Filter{
		Query: q.text, State: q.state, Offset: q.page * pageRows, Limit: pageRows,
	}}
	if !r.isAdmin() {
		l.filter.Owner = r.who.User.ID
	}
	var err error
	if l.boxes, l.total, err = s.cfg.Sandboxes.List(ctx, l.filter); err != nil {
		return l, err
	}
	l.counts, err = s.listCounts(ctx, l)
	return l, err
}

// listCounts counts what each chip would show.
func (s *sandboxHandlers) listCounts(ctx context.Context, l listing) (map[sandbox.State]int, error) {
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
	f := views.Filter{Query: l.query.text, State: string(l.query.state)}
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
		at := listQuery{text: l.query.text, state: state}
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
	v := views.List{Rows: p.rows(ctx, l.boxes), Owners: p.admin}
	v.Live = views.Live{Topic: l.query.url("/sandboxes"), Seen: "seen=" + l.print() + "&reasons=" + statesPrint(v.Rows)}
	if len(l.boxes) == 0 {
		v.None = true
		if l.query.all() && l.query.page == 0 {
			v.None, v.Gallery = false, p.server.creation.cards(ctx)
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

// pageSandboxes is the front page. A script that filters gets the list alone, with the chips out of band.
func (s *sandboxHandlers) pageSandboxes(ctx context.Context, r *request) (templ.Component, error) {
	q := readListQuery(r)
	l, err := s.listing(ctx, r, q)
	if err != nil {
		return nil, err
	}
	p := s.workspace.presenter(r, "list", q.url("/"))
	part := l.part(ctx, p)
	if r.byScript() {
		return templ.Join(views.ListPart(part), views.Part("chips", views.Replace, views.Chips(l.chips()))), nil
	}
	frame := s.frame(r, "Sandboxes", "sandboxes")
	frame.Followed = true
	if len(part.Gallery) == 0 { // whose cards do the same
		frame.New = s.creation.menuCards()
	}
	return views.SandboxesPage(views.Sandboxes{
		Frame: frame, Filter: l.chips(), List: part, Orphans: s.orphans.notice(r),
	}), nil
}
