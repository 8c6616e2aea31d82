package web

import (
	"bytes"
	"context"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
	"sandboxd/views"
)

// ownLogPath is the page of sandboxd's own log.
const ownLogPath = activityPath + "/log"

// recordShape is a record of sandboxd's own log as programs see it.
type recordShape struct {
	ID      string            `json:"id"`
	Time    time.Time         `json:"time"`
	Level   string            `json:"level"`
	Message string            `json:"message"`
	Fields  map[string]string `json:"fields"` // what is no text is as JSON writes it
}

// recordsShape are records, newest first.
type recordsShape struct {
	Records []recordShape `json:"records"`
	Next    *string       `json:"next"` // continues; null when nothing is left
}

func newRecordShape(l logs.Line) recordShape {
	out := recordShape{ID: l.ID.String(), Time: l.Time, Level: l.Level.String(), Fields: map[string]string{}}
	var fields []logs.Field
	out.Message, fields = logs.RecentFields(l)
	for _, f := range fields {
		out.Fields[f.Name] = f.Value
	}
	return out
}

// ownLevels are the least levels to choose from.
var ownLevels = []views.Option{{Text: "Any"}, {Value: "info", Text: "Info and above"}, {Value: "warn", Text: "Warnings and above"}, {Value: "error", Text: "Errors"}}

// readOwnLog reads what a request asks of sandboxd's own log. Kind: Invalid with the parameter's name.
func readOwnLog(r *request) (q logs.RecentQuery, err error) {
	q.Text = r.query("q")
	if name := r.query("level"); name != "" {
		if q.Least, err = logs.ParseLevel(name); err != nil {
			return q, err
		}
	}
	if next := r.query("next"); next != "" {
		if q.Before, err = logs.ParseID(next); err != nil {
			return q, fault.Field("next", "next must be as an answer gave it.")
		}
	}
	q.Limit, err = r.intQuery("limit", logs.DefaultLimit, 1, logs.MaxLimit)
	return q, err
}

// apiOwnLog answers with the newest records of sandboxd's own log that match, newest first.
func (s *processHandlers) apiOwnLog(_ context.Context, r *request, _ none) (reply, error) {
	q, err := readOwnLog(r)
	if err != nil {
		return reply{}, err
	}
	found, next := s.cfg.OwnLog.Find(q)
	if r.accepts(lineType) {
		out := r.openFlow(lineType)
		for _, l := range found {
			if out.line(newRecordShape(l)) != nil {
				break // the client is gone
			}
		}
		return reply{}, nil
	}
	shape := recordsShape{Records: make([]recordShape, 0, len(found))}
	for _, l := range found {
		shape.Records = append(shape.Records, newRecordShape(l))
	}
	if next != 0 {
		text := next.String()
		shape.Next = &text
	}
	return reply{body: shape}, nil
}

// ownFields are the fields of the page's form.
var ownFields = []string{"q", "level"}

// pageOwnLog shows the newest records of sandboxd's own log.
func (s *processHandlers) pageOwnLog(_ context.Context, r *request) (templ.Component, error) {
	now := s.cfg.Now()
	a := readLogAddress(r.http.URL.Query(), ownFields, now)
	v := views.OwnLog{
		Frame: s.frame(r, "Server log", "activity"),
		Query: views.Field{Value: a.Get("q")}, Level: choiceOf(a.Get("level"), ownLevels),
	}
	v.List = views.LogList{Any: len(a.Values) == 0, Here: r.here()}
	q, err := readOwnLog(r)
	if err != nil {
		if fault.FieldOf(err) != "level" {
			return nil, err
		}
		v.Level.Fault, v.List.Faulty = fault.Message(err), true
		return views.OwnLogPage(v), nil
	}
	found, next := s.cfg.OwnLog.Find(q)
	v.List.Lines = ownLines(found, now)
	if next != 0 {
		v.List.Older = a.url(ownLogPath, "next", next.String())
	}
	if q.Before != 0 {
		v.List.Newest = a.url(ownLogPath)
		return views.OwnLogPage(v), nil
	}
	v.List.Tail = views.LogTail{Topic: a.url(ownLogPath), On: true}
	if len(found) > 0 {
		v.List.Tail.Seen = "after=" + found[0].ID.String()
	}
	return views.OwnLogPage(v), nil
}

// Bytes of a record's text that a page shows: all but of a stack that is very long.
const shownRecord = 16 << 10

// ownLines makes records ready to show.
func ownLines(records []logs.Line, now time.Time) []views.LogLine {
	out := make([]views.LogLine, 0, len(records))
	for _, l := range records {
		message, fields := logs.RecentFields(l)
		v := views.LogLine{ID: l.ID.String(), Time: clockOf(l.Time, now), Level: l.Level.String(), Text: views.Style(message, shownRecord)}
		for _, f := range fields {
			v.Fields = append(v.Fields, views.LogField{Name: views.Plain(f.Name, shownValue), Value: views.Style(f.Value, shownRecord)})
		}
		out = append(out, v)
	}
	return out
}

// openOwnLog follows sandboxd's own log for a page of an admin.
func (s *processHandlers) openOwnLog(_ context.Context, r *request) (pump, func(), error) {
	if err := adminOnly.check(r.who); err != nil {
		return nil, nil, err
	}
	q, err := readOwnLog(r)
	if err != nil {
		return nil, nil, err
	}
	if after := r.query("after"); after != "" {
		if q.After, err = logs.ParseID(after); err != nil {
			return nil, nil, err
		}
	}
	q.Limit = tailMost
	return polled(r, func(ctx context.Context) (templ.Component, error) {
		if q.After == s.cfg.OwnLog.Last() {
			return nil, nil
		}
		found, next := s.cfg.OwnLog.Find(q)
		if len(found) == 0 {
			return nil, nil
		}
		q.After = found[0].ID
		return gapped(views.OwnLogRows(ownLines(found, s.cfg.Now())), next != 0), nil
	}), func() {}, nil
}

// pollEvery is how soon a page shows what is looked at rather than told.
const pollEvery = 2 * time.Second

// polled makes a pump that looks now and then, while the page is seen, for rows that are new: an event "lines" has them, newest
// first.
func polled(r *request, look func(ctx context.Context) (templ.Component, error)) pump {
	return func(ctx context.Context, out events) error {
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			if !r.unseen() {
				rows, err := look(ctx)
				if err != nil {
					return err
				}
				if err := sendRows(ctx, out, rows); err != nil {
					return err
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

func sendRows(ctx context.Context, out events, rows templ.Component) error {
	if rows == nil {
		return nil
	}
	var b bytes.Buffer
	if err := rows.Render(ctx, &b); err != nil {
		return err
	}
	return out.event("lines", b.String())
}

// gapped are rows with a note behind them where some are left out.
func gapped(rows templ.Component, some bool) templ.Component {
	if !some {
		return rows
	}
	return templ.Join(rows, views.LogGap("Some are left out here: they came too fast. The search has them."))
}
