package web

import (
	"context"
	"time"

	"sandboxd/internal/activity"
)

// entryShape is an entry as programs see it.
type entryShape struct {
	ID        string    `json:"id"`
	Time      time.Time `json:"time"`
	User      string    `json:"user"`    // its name at that time; "" for nobody who is known
	UserID    string    `json:"user_id"` // likewise
	Token     string    `json:"token"`   // id of the API token; "" for none
	Via       string    `json:"via"`
	From      string    `json:"from"` // IP address; "" when sandboxd did it itself
	Action    string    `json:"action"`
	Text      string    `json:"text"`    // what was done, in words
	Sandbox   string    `json:"sandbox"` // its name at that time; "" for what is about none
	SandboxID string    `json:"sandbox_id"`
	Object    string    `json:"object"`
	Outcome   string    `json:"outcome"`
	Problem   string    `json:"problem"`
	Request   string    `json:"request"`
	Count     int       `json:"count"`
}

// entriesShape are entries, newest first.
type entriesShape struct {
	Entries []entryShape `json:"entries"`
	Next    *string      `json:"next"` // continues; null when nothing is left
}

func newEntryShape(e activity.Entry) entryShape {
	said := sentenceOf(e)
	text := actorOf(e) + " " + said.before + said.box + said.after
	if object := objectOf(e); object != "" {
		text += ": " + object
	}
	if e.Outcome != activity.Done {
		text += " (" + string(e.Outcome) + ")"
	}
	return entryShape{
		ID: e.ID.String(), Time: e.Time.UTC(), User: e.User, UserID: e.UserID, Token: e.Token, Via: string(e.Via), From: e.From,
		Action: string(e.Action), Text: text, Sandbox: e.Sandbox, SandboxID: e.SandboxID, Object: e.Object, Outcome: string(e.Outcome),
		Problem: e.Problem, Request: e.Request, Count: max(e.Count, 1),
	}
}

// apiActivity answers with the newest entries that match, newest first; as lines of JSON with all of them.
func (s *activityHandlers) apiActivity(ctx context.Context, r *request, _ none) (reply, error) {
	if r.accepts(lineType) {
		return reply{}, s.stream(r, s.readActivity, "")
	}
	ctx, cancel := context.WithTimeout(ctx, handlerTime)
	defer cancel()
	q, err := s.readActivity(r)
	if err != nil {
		return reply{}, err
	}
	entries, next, err := s.cfg.Activity.Find(ctx, q)
	if err != nil {
		return reply{}, err
	}
	out := entriesShape{Entries: make([]entryShape, 0, len(entries))}
	for _, e := range entries {
		out.Entries = append(out.Entries, newEntryShape(e))
	}
	if next != 0 {
		text := next.String()
		out.Next = &text
	}
	return reply{body: out}, nil
}

// downloadActivity answers with all entries that match, newest first, as a file of JSON lines.
func (s *activityHandlers) downloadActivity(_ context.Context, r *request, _ none) (reply, error) {
	read := func(r *request) (activity.Query, error) {
		return s.askedOnPage(r, readLogAddress(r.http.URL.Query(), activityFields, s.cfg.Now()))
	}
	return reply{}, s.stream(r, read, "activity-"+s.cfg.Now().UTC().Format("20060102-150405")+".ndjson")
}

// stream sends all entries that a request asks for, newest first, a line of JSON each, page by page. With a limit it sends no more
// than that; with a name it is a file to be kept.
func (s *activityHandlers) stream(r *request, read func(*request) (activity.Query, error), name string) error {
	begin := func(_ context.Context, r *request) (activity.Query, func(), error) {
		q, err := read(r)
		return q, func() {}, err
	}
	return admit(s.live, r, streams, begin, func(ctx context.Context, _ func(), q activity.Query) error {
		ctx, cancel := context.WithTimeout(ctx, downloadTime)
		defer cancel()
		if r.query("limit") == "" {
			q.Limit = activity.MaxLimit
		}
		entries, next, err := s.cfg.Activity.Find(ctx, q)
		if err != nil {
			return err
		}
		if name != "" {
			r.head.Set("Content-Disposition", attachment(name))
		}
		r.head.Set("X-Content-Type-Options", "nosniff")
		out := r.openFlow(lineType)
		for {
			for _, e := range entries {
				if out.line(newEntryShape(e)) != nil {
					return nil // the client is gone
				}
			}
			if next == 0 || r.query("limit") != "" {
				return nil
			}
			q.Before = next
			if entries, next, err = s.cfg.Activity.Find(ctx, q); err != nil {
				s.files.cut(r, err)
			}
		}
	})
}
