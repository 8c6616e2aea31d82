package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sandboxd/internal/logs"
	"sandboxd/views"
)

// Bounds of a page's live tail.
const (
	tailPace = 150 * time.Millisecond // the least time between two events
	tailMost = 200                    // lines in one event: nobody reads more
	tailBack = 5 * time.Minute        // how late a line may come that a page has missed
)

// openTail follows the log for a page: an event "lines" has rows, newest first. "after" says which line the page had last.
func (s *logHandlers) openTail(ctx context.Context, r *request) (pump, func(), error) {
	a := readLogAddress(r.http.URL.Query(), logFields, s.cfg.Now())
	q, err := s.read(ctx, r, a)
	if err != nil {
		return nil, nil, err
	}
	t := &logTail{handlers: s, request: r, logFollow: &logFollow{query: q, looked: time.Now()}}
	if after := r.query("after"); after != "" {
		if t.last, err = logs.ParseID(after); err != nil {
			return nil, nil, err
		}
	}
	if t.follower, err = s.cfg.Logs.Follow(q.Scope, q.Filter); err != nil {
		return nil, nil, err
	}
	return t.run, func() { t.follower.Close() }, nil
}

// logTail is a page's live tail. It is used by one goroutine.
type logTail struct {
	*logFollow
	handlers *logHandlers
	request  *request
	last     logs.ID // the newest line that the page has
	sent     time.Time
}

// run sends what the page has missed, and then what comes.
func (t *logTail) run(ctx context.Context, out events) error {
	if t.last != 0 {
		if err := t.catchUp(ctx, out); err != nil {
			return err
		}
	}
	for {
		lines, left, err := t.gather(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if sendErr := t.send(ctx, out, lines, leftOut(left)); sendErr != nil {
			return sendErr
		}
		if err != nil {
			return err
		}
	}
}

func leftOut(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 line is left out here. The search has it."
	}
	return fmt.Sprintf("%d lines are left out here: they came too fast. The search has them.", n)
}

// catchUp sends the lines since the last one that the page has.
func (t *logTail) catchUp(ctx context.Context, out events) error {
	q := t.query.Query
	q.Limit, q.Before = tailMost, 0
	if since := time.UnixMicro(int64(t.last)).Add(-tailBack); since.After(q.Since) {
		q.Since = since
	}
	found, leave, err := t.handlers.search(ctx, t.request, q)
	if err != nil {
		return err
	}
	defer leave()
	note := ""
	if n := len(found.Lines); n == tailMost && found.Lines[n-1].ID > t.last {
		note = "Some lines are left out here. The search has them."
	}
	slices.Reverse(found.Lines)
	return t.send(ctx, out, found.Lines, note)
}

// gather waits for lines, and then for more of them until the next event is due. It gives the newest, oldest first, and how many it
// has left out.
func (t *logTail) gather(ctx context.Context) (lines []logs.Line, left int, err error) {
	lines, err = t.handlers.next(ctx, t.request, t.logFollow)
	due, cancel := context.WithDeadline(ctx, t.sent.Add(tailPace))
	defer cancel()
	for err == nil && len(lines) > 0 && due.Err() == nil {
		var more []logs.Line
		more, err = t.follower.Next(due)
		lines = append(lines, more...)
		if n := len(lines) - tailMost; n > 0 {
			lines, left = slices.Clone(lines[n:]), left+n
		}
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil
	}
	if n := len(lines) - tailMost; n > 0 {
		lines, left = lines[n:], left+n
	}
	return lines, left, err
}

// send sends lines that the page does not have, oldest first, unless nobody sees it: then it asks for them when it is seen again.
func (t *logTail) send(ctx context.Context, out events, lines []logs.Line, note string) error {
	lines = slices.DeleteFunc(lines, func(l logs.Line) bool { return l.ID <= t.last })
	if len(lines) == 0 || t.request.unseen() {
		return nil
	}
	t.last, t.sent = lines[len(lines)-1].ID, time.Now()
	if slices.ContainsFunc(lines, func(l logs.Line) bool { return t.query.boxes[l.Sandbox].name == "" }) {
		if scope, boxes, err := t.handlers.logsScope(ctx, t.request); err == nil { // one of them is new
			t.query.Scope, t.query.boxes = scope, boxes
		}
	}
	slices.Reverse(lines)
	var b bytes.Buffer
	if err := views.LogRows(logLines(lines, t.query.boxes, t.handlers.cfg.Now())).Render(ctx, &b); err != nil {
		return err
	}
	if note != "" {
		if err := views.LogGap(note).Render(ctx, &b); err != nil {
			return err
		}
	}
	return out.event("lines", b.String())
}
