package web

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// logsPath is the page of what all sandboxes write.
const logsPath = "/logs"

// logsURL is that page for one sandbox.
func logsURL(box sandbox.Sandbox) string { return logsPath + "?sandbox=" + url.QueryEscape(box.Name) }

// logRanges are the stretches of time to choose from, up to now.
var logRanges = []struct {
	value, text string
	span        time.Duration
}{
	{"15m", "Last 15 minutes", 15 * time.Minute}, {"1h", "Last hour", time.Hour},
	{"24h", "Last 24 hours", 24 * time.Hour}, {"7d", "Last 7 days", 7 * 24 * time.Hour},
}

// customRange is the choice that since and until belong to.
const customRange = "custom"

// logLevels are the levels to choose from.
var logLevels = []views.Option{
	{Text: "Any"}, {Value: "error,fatal", Text: "Errors and above"}, {Value: "warn,error,fatal", Text: "Warnings and above"},
	{Value: "fatal", Text: "Fatal"}, {Value: "error", Text: "Error"}, {Value: "warn", Text: "Warning"}, {Value: "info", Text: "Info"}, {Value: "debug", Text: "Debug"},
	{Value: "unknown", Text: "Unknown"},
}

// logFields are the fields of the form, which an address of the page carries.
var logFields = []string{"q", "sandbox", "owner", "service", "level", "range", "since", "until"}

// logAddress is what an address of a page asks for, each field at most once.
type logAddress struct {
	url.Values
	fields       []string  // that it may have
	since, until time.Time // of a range that is no named one
}

// readLogAddress reads the fields of a form from a query. What is no time is left for the search to refuse.
func readLogAddress(v url.Values, fields []string, now time.Time) logAddress {
	a := logAddress{Values: url.Values{}, fields: fields}
	for _, name := range fields {
		values := v[name]
		if name == "q" {
			values = values[:min(len(values), 1)]
		}
		if value := strings.TrimSpace(strings.Join(slices.DeleteFunc(slices.Clone(values), func(s string) bool { return s == "" }), ",")); value != "" {
			a.Set(name, value)
		}
	}
	if name := a.Get("range"); name != "" && name != customRange {
		a.Del("since")
		a.Del("until")
	}
	a.since, a.until = a.moment("since", now), a.moment("until", now)
	if a.Get("since")+a.Get("until") == "" && a.Get("range") == customRange {
		a.Del("range")
	} else if a.Get("since")+a.Get("until") != "" {
		a.Set("range", customRange)
	}
	return a
}

// moment reads a time, and writes it in full. A browser's field has no zone: it is UTC then.
func (a logAddress) moment(name string, now time.Time) time.Time {
	text := a.Get(name)
	t, err := time.Parse(time.RFC3339Nano, text)
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if err != nil {
			t, err = time.Parse(layout, text)
		}
	}
	if back, notBack := parseSpan(text); err != nil && notBack == nil && back >= 0 {
		t, err = now.Add(-back), nil
	}
	if err != nil {
		return time.Time{}
	}
	t = t.UTC().Truncate(time.Second)
	a.Set(name, t.Format(time.RFC3339))
	return t
}

// url is an address with all that this one asks for, and more: names and values.
func (a logAddress) url(path string, more ...string) string {
	v := url.Values{}
	for name, values := range a.Values {
		v[name] = values
	}
	for i := 0; i+1 < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// request is r with the query that the search knows. cursor names the parameter that continues one.
func (a logAddress) request(r *request, cursor string, now time.Time) (*request, error) {
	v := url.Values{}
	for _, name := range a.fields {
		if value := a.Get(name); value != "" && name != "range" {
			v.Set(name, value)
		}
	}
	if at := r.query(cursor); at != "" {
		v.Set(cursor, at)
	}
	if name := a.Get("range"); name != "" && name != customRange {
		at := slices.IndexFunc(logRanges, func(one struct {
			value, text string
			span        time.Duration
		}) bool {
			return one.value == name
		})
		if at < 0 {
			return nil, fault.Field("range", "There is no time range %.40q.", name)
		}
		v.Set("since", now.Add(-logRanges[at].span).UTC().Format(time.RFC3339))
	}
	asked := *r
	asked.http = r.http.WithContext(r.http.Context()) // a copy
	u := *r.http.URL
	u.RawQuery = v.Encode()
	asked.http.URL = &u
	return &asked, nil
}

// read reads what the address asks of the log. Kinds: as readLogsQuery.
func (s *logHandlers) read(ctx context.Context, r *request, a logAddress) (logsQuery, error) {
	asked, err := a.request(r, "next", s.cfg.Now())
	if err != nil {
		return logsQuery{}, err
	}
	if !a.since.IsZero() && !a.until.IsZero() && !a.since.Before(a.until) {
		return logsQuery{}, fault.Field("until", "The end must be after the beginning.")
	}
	return s.readLogsQuery(ctx, asked)
}

// pageLogs shows the newest lines that match.
func (s *logHandlers) pageLogs(ctx context.Context, r *request) (templ.Component, error) {
	now := s.cfg.Now()
	a := readLogAddress(r.http.URL.Query(), logFields, now)
	v := views.Logs{Frame: s.frame(r, "Logs", "logs")}
	kept, err := s.deletedLogs(ctx, r)
	if err != nil && !fault.Is(err, fault.Unavailable) { // else the search will say so
		return nil, err
	}
	if v.Form, err = s.logForm(ctx, r, a, kept); err != nil {
		return nil, err
	}
	var found logs.Result
	q, err := s.read(ctx, r, a)
	if err == nil {
		var leave func()
		if found, leave, err = s.search(ctx, r, q.Query); err == nil {
			r.atEnd(leave)
		}
	}
	v.List.Here = r.here()
	switch {
	case fault.Is(err, fault.Unavailable), fault.Is(err, fault.Limited):
		v.List.Problem = fault.Message(err)
	case err != nil && blame(&v.Form, err):
		v.List.Faulty = true
	case err != nil:
		return nil, err
	default:
		v.List, v.Kept = s.logList(r, a, q, found, now), keptNotice(q.boxes, kept, now)
		if v.Kept.ID != "" { // nothing comes any more
			v.List.Tail = views.LogTail{}
		}
		v.Form.Services = servicesIn(found.Lines)
		if len(found.Lines) == 0 && v.Kept.ID == "" {
			v.List.Only = s.onlyBox(ctx, r, a)
		}
	}
	return views.LogsPage(v), nil
}

// onlyBox is the sandbox that is all that the address narrows the log to; else it is empty. It wakes nothing.
func (s *logHandlers) onlyBox(ctx context.Context, r *request, a logAddress) views.LogBox {
	name := a.Get("sandbox")
	if name == "" || len(a.Values) > 1 {
		return views.LogBox{}
	}
	h, err := s.resolve(ctx, r.who, name)
	if err != nil { // several, or one that is gone
		return views.LogBox{}
	}
	v := views.LogBox{Name: boxTitle(h.Sandbox()), Services: sameURL(h.Sandbox(), "/services")}
	if list, err := s.cfg.Services.List(ctx, h); err == nil && len(list.Services) == 0 {
		v.Add = sameURL(h.Sandbox(), "/services/new")
	}
	return v
}

// logList makes what was found ready to show.
func (s *logHandlers) logList(r *request, a logAddress, q logsQuery, found logs.Result, now time.Time) views.LogList {
	l := views.LogList{
		Lines: logLines(found.Lines, q.boxes, now), Any: len(a.Values) == 0, Here: r.here(),
		Text: a.url(logsPath+"/download", "format", "text"), JSON: a.url(logsPath+"/download", "format", "json"),
	}
	if found.Next != 0 {
		l.Older = a.url(logsPath, "next", found.Next.String())
		if len(found.Lines) < logs.DefaultLimit {
			l.Back = clockOf(found.SearchedBackTo, now)
		}
	}
	if q.Before != 0 {
		l.Newest = a.url(logsPath)
	}
	if q.Before == 0 && a.Get("until") == "" {
		seen := logs.ID(now.UnixMicro())
		if len(found.Lines) > 0 {
			seen = found.Lines[0].ID
		}
		l.Tail = views.LogTail{Topic: a.url(logsPath), Seen: "after=" + seen.String(), On: a.Get("q")+a.Get("range") == ""}
	}
	return l
}

// blame puts an error beside the field that it is about.
func blame(f *views.LogForm, err error) bool {
	field := fault.FieldOf(err)
	if field == "" && (fault.Is(err, fault.NotFound) || fault.Is(err, fault.Gone)) {
		field = "sandbox"
	}
	at := map[string]*views.Field{
		"q": &f.Query, "sandbox": &f.Sandbox.Field, "service": &f.Service, "level": &f.Level.Field, "range": &f.Range.Field, "since": &f.Since, "until": &f.Until,
	}[field]
	switch {
	case field == "owner" && len(f.Owner.Options) > 0:
		at = &f.Owner.Field
	case field == "owner":
		at = new(views.Field)
		f.Fault = fault.Message(err)
	case at == nil:
		return false
	}
	at.Fault = fault.Message(err)
	return true
}

// mostOptions bounds the values of one field.
const mostOptions = 1000

// logForm is the form with what may be chosen.
func (s *logHandlers) logForm(ctx context.Context, r *request, a logAddress, kept []logs.Kept) (views.LogForm, error) {
	f := views.LogForm{
		Query: views.Field{Value: a.Get("q")}, Service: views.Field{Value: a.Get("service")}, Clear: len(a.Values) > 0,
		Level: choiceOf(a.Get("level"), logLevels),
	}
	f.Range = rangeChoice(a)
	f.Since, f.Until = views.Field{Value: localText(a.since, a.Get("since"))}, views.Field{Value: localText(a.until, a.Get("until"))}
	var filter sandbox.Filter
	if r.who.User.Role == auth.Admin {
		users, err := s.cfg.Accounts.Users(ctx)
		if err != nil {
			return f, err
		}
		owners := []views.Option{{Text: "Anybody"}}
		for _, u := range users[:min(len(users), mostOptions)] {
			owners = append(owners, views.Option{Value: u.Name, Text: u.Name})
		}
		f.Owner = choiceOf(a.Get("owner"), owners)
	} else {
		filter.Owner = r.who.User.ID
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, filter)
	if err != nil {
		return f, err
	}
	slices.SortFunc(boxes, func(x, y sandbox.Sandbox) int { return strings.Compare(x.Name, y.Name) })
	names := []views.Option{{Text: "All"}}
	for _, box := range boxes[:min(len(boxes), mostOptions)] {
		text := box.Name
		if box.Label != "" {
			text = box.Label + " (" + box.Name + ")"
		}
		names = append(names, views.Option{Value: box.Name, Text: text})
	}
	f.Sandbox = choiceOf(a.Get("sandbox"), append(names, keptOptions(kept, s.cfg.Now())...))
	return f, nil
}

// rangeChoice is the choice of the stretch of time.
func rangeChoice(a logAddress) views.LogChoice {
	ranges := []views.Option{{Text: "All"}}
	for _, one := range logRanges {
		ranges = append(ranges, views.Option{Value: one.value, Text: one.text})
	}
	return choiceOf(a.Get("range"), append(ranges, views.Option{Value: customRange, Text: "From … to …"}))
}

// choiceOf is a choice that also has the value that the address names.
func choiceOf(value string, options []views.Option) views.LogChoice {
	if !slices.ContainsFunc(options, func(o views.Option) bool { return o.Value == value }) {
		options = append(slices.Clone(options), views.Option{Value: value, Text: value})
	}
	return views.LogChoice{Field: views.Field{Value: value}, Options: options}
}

// localText is a time as a browser's field has it.
func localText(t time.Time, otherwise string) string {
	if t.IsZero() {
		return otherwise
	}
	return t.UTC().Format("2006-01-02T15:04:05")
}

// servicesIn are the services of lines, sorted.
func servicesIn(lines []logs.Line) (names []string) {
	for _, l := range lines {
		if l.Service != "" {
			names = append(names, l.Service)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Bytes of a line's text, of the name or value of a field, and of all fields of a line, that a list shows.
const (
	shownText   = 600
	shownValue  = 400
	shownFields = 2000
)

// logLines makes lines ready to show.
func logLines(lines []logs.Line, boxes logBoxes, now time.Time) []views.LogLine {
	out := make([]views.LogLine, 0, len(lines))
	for _, l := range lines {
		out = append(out, logLine(l, boxes, now, false))
	}
	return out
}

// logLine makes a line ready to show, all of it or its beginning.
func logLine(l logs.Line, boxes logBoxes, now time.Time, whole bool) views.LogLine {
	v := views.LogLine{ID: l.ID.String(), Time: clockOf(l.Time, now), Box: boxes.title(l.Sandbox), Service: l.Service, Whole: whole}
	if boxes[l.Sandbox].name != "" {
		v.BoxURL = logsPath + "?sandbox=" + url.QueryEscape(boxes.param(l.Sandbox))
	}
	if l.Level != logs.Unknown {
		v.Level = l.Level.String()
	}
	most, mostValue := shownText, shownValue
	if whole {
		most, mostValue = 0, 0
	}
	message, fields, ok := logs.Fields(l.Text)
	if !ok || message == "" {
		message = l.Text
	}
	v.Text = views.Style(message, most)
	shown := 0
	for _, f := range fields {
		if !whole && shown >= shownFields {
			v.Text.More = true
			break
		}
		shown += min(len(f.Name), shownValue) + min(len(f.Value), shownValue)
		value := views.Style(f.Value, mostValue)
		v.Fields = append(v.Fields, views.LogField{Name: views.Plain(f.Name, shownValue), Value: value})
		v.Text.More = v.Text.More || value.More
	}
	return v
}

// clockOf is a moment as the time of day, with the date when that is another. A script writes it in the reader's own zone.
func clockOf(t, now time.Time) views.Time {
	v := timeOf(t, now)
	if v.Machine == "" {
		return v
	}
	t = t.UTC()
	v.Machine = t.Format("2006-01-02T15:04:05.000Z07:00")
	layout := "15:04:05.000"
	if t.Format(time.DateOnly) != now.UTC().Format(time.DateOnly) {
		layout = "2 Jan 15:04:05"
	}
	v.Relative = t.Format(layout)
	return v
}
