package web

import (
	"context"
	"errors"
	"slices"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
)

// apiServiceLog answers with the newest lines of a service, oldest first, and with those that come when the caller follows it.
func (s *serviceHandlers) apiServiceLog(ctx context.Context, r *request, _ none) (reply, error) {
	follow, err := r.boolQuery("follow")
	if err != nil {
		return reply{}, err
	}
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	err = admit(s.live, r, streams, func(ctx context.Context, r *request) (*serviceTail, func(), error) {
		t, err := s.beginTail(ctx, r, h, r.param("service"))
		return t, t.close, err
	}, func(ctx context.Context, _ func(), t *serviceTail) error {
		t.send(ctx, r, follow)
		return nil
	})
	return reply{}, err
}

// serviceTail is the newest lines of a service, and those that come.
type serviceTail struct {
	*serviceHandlers
	h        access.Handle
	query    logs.Query
	follower *logs.Follower
	newest   []logs.Line      // oldest first, until they are sent
	leave    func()           // the place of the search for them
	sent     map[logs.ID]bool // those of newest, which the follower may give again
}

// beginTail reads the newest lines of a declared service. Kinds: NotFound, Unavailable; Limited when too many searches are under way.
func (s *serviceHandlers) beginTail(ctx context.Context, r *request, h access.Handle, service string) (*serviceTail, error) {
	t := &serviceTail{serviceHandlers: s, h: h, sent: map[logs.ID]bool{}, leave: func() {}}
	if _, err := s.cfg.Services.Find(ctx, h, service); err != nil {
		return t, err
	}
	t.query = logs.Query{Scope: logs.Only(h.Sandbox().ID), Filter: logs.Filter{Services: []string{service}}, Limit: logs.MaxLimit}
	var err error
	if t.follower, err = s.cfg.Logs.Follow(t.query.Scope, t.query.Filter); err != nil {
		return t, err
	}
	found, leave, err := s.logs.search(ctx, r, t.query)
	if err != nil {
		t.close()
		return t, err
	}
	t.leave = leave
	slices.Reverse(found.Lines)
	for _, l := range found.Lines {
		t.sent[l.ID] = true
	}
	t.newest = found.Lines
	return t, nil
}

func (t *serviceTail) close() {
	t.leave()
	if t.follower != nil {
		t.follower.Close()
	}
}

// send writes lines as text that no browser takes for anything else, until the reader leaves or the service is not declared any more.
func (t *serviceTail) send(ctx context.Context, r *request, follow bool) {
	r.guard()
	out := r.openFlow("text/plain; charset=utf-8")
	err := sendTexts(out, t.newest)
	t.newest = nil
	t.leave()
	for follow && err == nil {
		var lines []logs.Line
		if lines, err = t.next(ctx); err == nil {
			err = sendTexts(out, lines)
		}
	}
}

// next waits for lines, and now and then looks whether the service is declared. No lines means neither came.
func (t *serviceTail) next(ctx context.Context) ([]logs.Line, error) {
	waiting, cancel := context.WithTimeout(ctx, scopeEvery)
	defer cancel()
	lines, err := t.follower.Next(waiting)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		if _, err = t.cfg.Services.Find(ctx, t.h, t.query.Services[0]); fault.Is(err, fault.NotFound) || fault.Is(err, fault.Gone) {
			return nil, err
		}
		return nil, nil
	case fault.Is(err, fault.Limited):
		t.close()
		t.follower, err = t.cfg.Logs.Follow(t.query.Scope, t.query.Filter)
		return []logs.Line{{Text: "[sandboxd] Lines came faster than they were read. Some are missing here; a search of the log has them."}}, err
	}
	return slices.DeleteFunc(lines, func(l logs.Line) bool { return t.sent[l.ID] }), err
}

func sendTexts(out *flow, lines []logs.Line) error {
	return out.lines(len(lines), func(b []byte, i int) []byte { return append(append(b, lines[i].Text...), '\n') })
}
