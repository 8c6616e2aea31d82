package web

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// filtersName is the name of the preference that holds a person's saved filters of the list.
const filtersName = "filters"

// Bounds of saved filters.
const (
	maxFilters    = 20
	maxFilterName = 40 // characters
)

// savedFilter is one that a person has saved.
type savedFilter struct {
	Name  string `json:"name"`
	Query string `json:"query"` // of the list's address
}

func (f savedFilter) query() listQuery {
	v, _ := url.ParseQuery(f.Query) // what cannot be read is left out
	return readListQuery(v).first()
}

// kept gives the filters that the asking person has saved. What cannot be read is none: the page matters more.
func (s *filterHandlers) kept(ctx context.Context, r *request) (list []savedFilter) {
	value, err := s.cfg.Preferences.Preference(ctx, r.who.User.ID, filtersName)
	if err == nil && value != "" {
		err = json.Unmarshal([]byte(value), &list)
	}
	if err != nil {
		s.log.Warn("read saved filters", "user", r.who.User.Name, "err", err)
		return nil
	}
	return list
}

func (s *filterHandlers) keep(ctx context.Context, r *request, list []savedFilter) error {
	value, err := json.Marshal(list)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "The filters could not be written.")
	}
	return s.cfg.Preferences.SetPreference(ctx, r.who.User.ID, filtersName, string(value))
}

// saved is the menu of a person's filters beside the list as q narrows it.
func (s *filterHandlers) saved(ctx context.Context, r *request, q listQuery) views.SavedFilters {
	here := q.first().url("/")
	v := views.SavedFilters{Next: q.url("/")}
	known := here == "/"
	for _, f := range s.kept(ctx, r) {
		at := f.query().url("/")
		known = known || at == here
		v.Items = append(v.Items, views.SavedFilter{Name: f.Name, URL: at, Current: at == here})
	}
	if len(v.Items) > 0 {
		v.Count = strconv.Itoa(len(v.Items))
	}
	if !known {
		v.Save = q.first().url("/filters/new")
	}
	return v
}

// pageNewFilter asks what to call the filter that its address has; a script gets it as a sheet.
func (s *filterHandlers) pageNewFilter(_ context.Context, r *request) (templ.Component, error) {
	return s.filterForm(r, wantedList(r).first(), views.Field{}), nil
}

func (s *filterHandlers) filterForm(r *request, q listQuery, name views.Field) templ.Component {
	v := views.FilterForm{Name: name, What: q.words(), Query: strings.TrimPrefix(q.url(""), "?"), Next: q.url("/")}
	if r.byScript() {
		return views.FilterSheet(v)
	}
	v.Frame = s.frame(r, "Save filter", "sandboxes")
	return views.FilterPage(v)
}

// words say what a query narrows the list to, and its order.
func (q listQuery) words() string {
	var list []string
	if q.state != "" {
		list = append(list, stateLooks[q.state].Text)
	}
	if q.text != "" {
		list = append(list, "“"+q.text+"”")
	}
	if q.owner != "" {
		list = append(list, "Owner: "+q.owner)
	}
	for _, part := range []struct {
		word, value string
		of          []namedValue
	}{{"Sort: ", q.sort, listSorts}, {"Group: ", q.group, listGroups}} {
		if at := slices.IndexFunc(part.of, func(n namedValue) bool { return n.value == part.value }); at > 0 {
			list = append(list, part.word+part.of[at].text)
		}
	}
	return strings.Join(list, " · ")
}

// submitFilter saves a filter under a name.
func (s *filterHandlers) submitFilter(ctx context.Context, r *request) (string, error) {
	f := savedFilter{Name: text.OneLine(r.field("name"), 4*maxFilterName), Query: r.form("query")}
	if n := len([]rune(f.Name)); n == 0 || n > maxFilterName {
		return "", fault.Field("name", "Give it a name of at most %d characters.", maxFilterName)
	}
	q := f.query()
	f.Query = strings.TrimPrefix(q.url(""), "?")
	if f.Query == "" {
		return "", fault.Field("name", "This filter shows all sandboxes. Narrow or sort the list first.")
	}
	list := s.kept(ctx, r)
	at := slices.IndexFunc(list, func(old savedFilter) bool { return old.Name == f.Name })
	switch {
	case at >= 0:
		list[at] = f
	case len(list) >= maxFilters:
		return "", fault.Field("name", "There are %d saved filters already. Remove one first.", maxFilters)
	default:
		list = append(list, f)
	}
	return s.changed(ctx, r, q, list)
}

func (s *filterHandlers) againFilter(_ context.Context, r *request, cause error) (templ.Component, error) {
	name := views.Field{Value: r.form("name"), Fault: fault.Message(cause)}
	return s.filterForm(r, savedFilter{Query: r.form("query")}.query(), name), nil
}

// submitRemoveFilter forgets a filter. That of one that is not there is no error.
func (s *filterHandlers) submitRemoveFilter(ctx context.Context, r *request) (string, error) {
	list := slices.DeleteFunc(s.kept(ctx, r), func(f savedFilter) bool { return f.Name == r.form("name") })
	return s.changed(ctx, r, shownList(r), list)
}

// changed keeps the filters, and shows the menu of them anew.
func (s *filterHandlers) changed(ctx context.Context, r *request, q listQuery, list []savedFilter) (string, error) {
	if err := s.keep(ctx, r, list); err != nil {
		return "", err
	}
	if r.byScript() {
		r.head.Set("HX-Reswap", "none")
		r.head.Set("HX-Trigger", "sheet-done")
		r.answer = views.Part("saved", views.Replace, views.SavedPart(s.saved(ctx, r, q)))
	}
	return r.back(q.url("/")), nil
}

// shownList is what the list that the person is on is narrowed to: as the page's script says, else as the form does.
func shownList(r *request) listQuery {
	at := r.back("/")
	if here := r.http.Header.Get("HX-Current-URL"); here != "" {
		at = here
	}
	u, err := url.Parse(at)
	if err != nil || u.Path != "/" {
		return listQuery{}
	}
	q := readListQuery(u.Query())
	if !r.isAdmin() {
		q = q.ofMember()
	}
	return q
}
