package web

import (
	"context"
	"slices"
	"strings"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
	"sandboxd/internal/sandbox"
)

// logsQuery is what a request asks of the log, and the names of the sandboxes that it may see.
type logsQuery struct {
	logs.Query
	names map[string]string // by id
}

// readLogsQuery reads what a request asks for. Kinds: Invalid with the parameter's name; NotFound for a sandbox that the caller
// cannot see.
func (s *logHandlers) readLogsQuery(ctx context.Context, r *request) (q logsQuery, err error) {
	now := s.cfg.Now()
	if q.Since, err = r.momentQuery("since", now); err != nil {
		return q, err
	}
	if q.Until, err = r.momentQuery("until", now); err != nil {
		return q, err
	}
	if q.Limit, err = r.intQuery("limit", logs.DefaultLimit, 1, logs.MaxLimit); err != nil {
		return q, err
	}
	if next := r.query("next"); next != "" {
		if q.Before, err = logs.ParseID(next); err != nil {
			return q, fault.Field("next", "next must be as an answer gave it.")
		}
	}
	q.Text = r.query("q")
	q.Services = r.listQuery("service")
	for _, name := range r.listQuery("level") {
		level, err := logs.ParseLevel(name)
		if err != nil {
			return q, err
		}
		q.Levels = append(q.Levels, level)
	}
	q.Scope, q.names, err = s.logsScope(ctx, r)
	return q, err
}

// listQuery gives the values of a parameter that may be there several times, or have commas.
func (r *request) listQuery(name string) (out []string) {
	for _, values := range r.http.URL.Query()[name] {
		for _, v := range strings.Split(values, ",") {
			if v = strings.TrimSpace(v); v != "" && !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

// logsScope gives the sandboxes whose lines a request may see and asks for, with their names.
func (s *logHandlers) logsScope(ctx context.Context, r *request) (logs.Scope, map[string]string, error) {
	names := map[string]string{}
	wanted := r.listQuery("sandbox")
	for _, name := range wanted {
		h, err := s.resolve(ctx, r.who, name)
		if err != nil {
			return logs.Scope{}, nil, err
		}
		names[h.ID()] = h.Name()
	}
	if len(wanted) > 0 {
		return scopeOf(names), names, nil
	}
	f := sandbox.Filter{}
	if owner := r.query("owner"); owner != "" {
		u, err := s.cfg.Accounts.UserByName(ctx, owner)
		if fault.Is(err, fault.NotFound) || err == nil && !r.isAdmin() && u.ID != r.who.User.ID {
			return logs.Scope{}, nil, fault.Field("owner", "There is no user %.40q whose sandboxes you can see.", owner)
		}
		if err != nil {
			return logs.Scope{}, nil, err
		}
		f.Owner = u.ID
	}
	everything := r.isAdmin() && r.who.SandboxID == "" && f.Owner == ""
	if r.who.User.Role != auth.Admin {
		f.Owner = r.who.User.ID
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, f)
	if err != nil {
		return logs.Scope{}, nil, err
	}
	for _, box := range boxes {
		if r.who.May(box.Owner, box.ID) {
			names[box.ID] = box.Name
		}
	}
	if everything {
		return logs.All(), names, nil
	}
	return scopeOf(names), names, nil
}

func scopeOf(names map[string]string) logs.Scope {
	ids := make([]string, 0, len(names))
	for id := range names {
		ids = append(ids, id)
	}
	return logs.Only(ids...)
}
