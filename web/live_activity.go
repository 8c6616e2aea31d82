package web

import (
	"context"
	"slices"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/activity"
	"sandboxd/views"
)

// lateEntry is how late an entry may come for its time, at most: what is summed up comes at the end.
const lateEntry = time.Hour

// openTail follows the activity for a page. "after" says which entry the page had last.
func (s *activityHandlers) openTail(_ context.Context, r *request) (pump, func(), error) {
	q, err := s.askedOnPage(r, readLogAddress(r.http.URL.Query(), activityFields, s.cfg.Now()))
	if err != nil {
		return nil, nil, err
	}
	t := &activityTail{handlers: s, request: r, query: q}
	if after := r.query("after"); after != "" {
		if t.last, err = activity.ParseID(after); err != nil {
			return nil, nil, err
		}
	}
	t.query.Limit, t.query.Before = tailMost, 0
	return polled(r, t.look), func() {}, nil
}

// activityTail is what a page has of the activity. It is used by one goroutine.
type activityTail struct {
	handlers *activityHandlers
	request  *request
	query    activity.Query
	looked   time.Time   // the last time
	last     activity.ID // the newest entry that the page has
	newest   activity.ID // the newest of all when it looked last
}

// look gives the rows that the page does not have, newest first; nil for none.
func (t *activityTail) look(ctx context.Context) (templ.Component, error) {
	top, _, err := t.handlers.cfg.Activity.Find(ctx, activity.Query{Scope: activity.Scope{All: true}, Limit: 1}) // which is cheap
	if err != nil || len(top) == 0 || top[0].ID == t.newest {
		return nil, err
	}
	q := t.query
	if since := t.looked.Add(-lateEntry); t.newest != 0 && since.After(q.Since) {
		q.Since = since
	}
	now := t.handlers.cfg.Now()
	entries, next, err := t.handlers.cfg.Activity.Find(ctx, q)
	if err != nil {
		return nil, err
	}
	t.newest, t.looked = top[0].ID, now
	some := next != 0 && len(entries) > 0 && entries[len(entries)-1].ID > t.last && t.last != 0
	entries = slices.DeleteFunc(entries, func(e activity.Entry) bool { return e.ID <= t.last })
	if len(entries) == 0 {
		return nil, nil
	}
	t.last = entries[0].ID
	rows, err := t.handlers.entryRows(ctx, t.request, entries, now)
	if err != nil {
		return nil, err
	}
	return gapped(views.ActivityRows(rows), some), nil
}
