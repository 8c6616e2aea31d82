package web

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
)

// logShape is a line of the log as programs see it.
type logShape struct {
	ID      string    `json:"id"`
	Time    time.Time `json:"time"`
	Sandbox string    `json:"sandbox"` // its name; its id when it was deleted
	Service string    `json:"service"` // "" for what has none
	Level   string    `json:"level"`
	Text    string    `json:"text"` // may have control characters and terminal escapes
}

// logsEnd is what stands behind the lines that a search has found.
type logsEnd struct {
	SearchedBackTo *time.Time `json:"searched_back_to"` // null when all was searched
	Next           *string    `json:"next"`             // continues the search; null when nothing is left
}

func newLogShape(l logs.Line, boxes logBoxes) logShape {
	return logShape{ID: l.ID.String(), Time: l.Time.UTC(), Sandbox: boxes.param(l.Sandbox), Service: l.Service, Level: l.Level.String(), Text: l.Text}
}

// logsBody is what was found as an answer, which is not held as a whole: as JSON a text may take six times its bytes.
func logsBody(found logs.Result, boxes logBoxes) pieces {
	var end logsEnd
	if !found.SearchedBackTo.IsZero() {
		at := found.SearchedBackTo.UTC()
		end.SearchedBackTo = &at
	}
	if found.Next != 0 {
		next := found.Next.String()
		end.Next = &next
	}
	return elements([]byte(`{"lines":[`), len(found.Lines), func(b []byte, i int) []byte {
		return appendJSON(b, newLogShape(found.Lines[i], boxes))
	}, append([]byte("],"), appendJSON(nil, end)[1:]...))
}

// appendJSON writes a shape that has only texts and times of this age, which cannot fail.
func appendJSON(b []byte, shape any) []byte {
	text, _ := json.Marshal(shape)
	return append(b, text...)
}

// apiLogs answers with the newest lines that match, newest first; with follow it sends lines as they come, one JSON object each,
// oldest first.
func (s *logHandlers) apiLogs(ctx context.Context, r *request, _ none) (reply, error) {
	follow, err := r.boolQuery("follow")
	if err != nil {
		return reply{}, err
	}
	if follow {
		err := admit(s.live, r, streams, s.beginFollow, func(ctx context.Context, end func(), f *logFollow) error {
			return s.sendFollow(ctx, end, r, f)
		})
		return reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, handlerTime)
	defer cancel()
	q, err := s.readLogsQuery(ctx, r)
	if err != nil {
		return reply{}, err
	}
	found, leave, err := s.search(ctx, r, q.Query)
	if err != nil {
		return reply{}, err
	}
	r.atEnd(leave)
	if !r.accepts(lineType) {
		return reply{body: logsBody(found, q.boxes)}, nil
	}
	_ = r.openFlow(lineType).lines(len(found.Lines), func(b []byte, i int) []byte { // it fails only when the client is gone
		return append(appendJSON(b, newLogShape(found.Lines[i], q.boxes)), '\n')
	})
	return reply{}, nil
}

// apiLogsAround answers with a line and those before and after it, of the same sandbox, oldest first.
func (s *logHandlers) apiLogsAround(ctx context.Context, r *request, _ none) (reply, error) {
	id, err := logs.ParseID(r.param("id"))
	if err != nil {
		return reply{}, err
	}
	n, err := r.intQuery("lines", 20, 0, logs.MaxLimit)
	if err != nil {
		return reply{}, err
	}
	scope, boxes, err := s.logsScope(ctx, r)
	if err != nil {
		return reply{}, err
	}
	lines, err := s.around(ctx, r, scope, id, logs.Page{Lines: n, Text: logs.MaxPage / 2})
	if err != nil {
		return reply{}, err
	}
	return reply{body: logsBody(logs.Result{Lines: lines}, boxes)}, nil
}

// scopeEvery is how often one who follows the log is given the lines of sandboxes that are new.
const scopeEvery = 5 * time.Second

// logFollow is a live tail.
type logFollow struct {
	query    logsQuery
	follower *logs.Follower
	looked   time.Time // when it was last looked which sandboxes there are
}

// beginFollow begins a live tail.
func (s *logHandlers) beginFollow(ctx context.Context, r *request) (*logFollow, func(), error) {
	q, err := s.readLogsQuery(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	f := &logFollow{query: q, looked: time.Now()}
	if f.follower, err = s.cfg.Logs.Follow(q.Scope, q.Filter); err != nil {
		return nil, nil, err
	}
	return f, func() { f.follower.Close() }, nil
}

// next waits for lines, and now and then looks which sandboxes there are. No lines means that none came for a while.
func (s *logHandlers) next(ctx context.Context, r *request, f *logFollow) ([]logs.Line, error) {
	waiting, cancel := context.WithTimeout(ctx, scopeEvery)
	defer cancel()
	lines, err := f.follower.Next(waiting)
	if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return nil, err
	}
	if now := time.Now(); now.Sub(f.looked) >= scopeEvery {
		f.looked = now
		scope, boxes, err := s.logsScope(ctx, r)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Gone) {
			return nil, err // the sandbox that was asked for was deleted
		}
		if err == nil && !maps.Equal(boxes, f.query.boxes) {
			f.follower.Rescope(scope)
			f.query.Scope, f.query.boxes = scope, boxes
		}
	}
	return lines, nil
}

// sendFollow sends lines as JSON until the reader leaves.
func (s *logHandlers) sendFollow(ctx context.Context, end func(), r *request, f *logFollow) error {
	r.head.Set("X-Content-Type-Options", "nosniff")
	out := r.openFlow(lineType)
	defer s.live.keepBeating(ctx, end, func() error { return out.write([]byte("\n")) })()
	for {
		lines, err := s.next(ctx, r, f)
		if err != nil {
			if ctx.Err() == nil { // the head is out: the last line tells of it
				p := problemOf(err)
				p.RequestID = r.id
				_ = out.line(map[string]any{"type": "error", "problem": p})
			}
			return nil
		}
		for _, l := range lines {
			if out.line(newLogShape(l, f.query.boxes)) != nil {
				return nil // the reader has left
			}
		}
	}
}
