package web

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/semaphore"
)

// logsQuery is what a request asks of the log, and the sandboxes that it may see.
type logsQuery struct {
	logs.Query
	boxes logBoxes
}

// logBox is a sandbox that has a log.
type logBox struct {
	name    string
	deleted bool // its log was kept
}

// logBoxes are those that a request may see, by id.
type logBoxes map[string]logBox

// param is how the parameter sandbox names one: its name, or its id once it was deleted, as its name may be another's by then.
func (b logBoxes) param(id string) string {
	if box := b[id]; !box.deleted && box.name != "" {
		return box.name
	}
	return id
}

// title names one for people.
func (b logBoxes) title(id string) string {
	switch box := b[id]; {
	case box.name == "":
		return id
	case box.deleted:
		return box.name + " (deleted)"
	default:
		return box.name
	}
}

func (b logBoxes) scope() logs.Scope { return logs.Only(slices.Collect(maps.Keys(b))...) }

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
	q.Scope, q.boxes, err = s.logsScope(ctx, r)
	return q, err
}

// Searches of one user: each may take all of its time budget, and a reader of the store.
const (
	searchesAtOnce  = 2
	searchesWaiting = 8
)

// place takes one of the places for a caller's searches, those by tokens for one sandbox apart from the others. The caller leaves it
// once what was found is written: so long it is in memory. Kind: Limited when too many of theirs wait already.
func (s *logHandlers) place(ctx context.Context, r *request) (leave func(), err error) {
	key := r.who.User.ID
	if r.who.LimitedToken() {
		key += " by limited tokens"
	}
	leave, err = s.searching.Acquire(ctx, key, searchesAtOnce, searchesWaiting)
	if errors.Is(err, semaphore.ErrFull) {
		err = fault.Later(fault.Limited, time.Second, "Too many of your searches are under way. Try again in a moment.")
	}
	return leave, err
}

// search searches the log for a caller, who leaves the place once what was found is written. Kinds: those of place and of logs.Keeper.
func (s *logHandlers) search(ctx context.Context, r *request, q logs.Query) (found logs.Result, leave func(), err error) {
	if leave, err = s.place(ctx, r); err != nil {
		return logs.Result{}, nil, err
	}
	if found, err = s.cfg.Logs.Search(ctx, q); err != nil {
		leave()
		return logs.Result{}, nil, err
	}
	return found, leave, nil
}

// around gives a line with those before and after it, each page as bounded, and takes a place until the request has ended. Kinds:
// NotFound; those of place and of logs.Keeper.
func (s *logHandlers) around(ctx context.Context, r *request, scope logs.Scope, id logs.ID, each logs.Page) ([]logs.Line, error) {
	leave, err := s.place(ctx, r)
	if err != nil {
		return nil, err
	}
	r.atEnd(leave)
	line, err := s.cfg.Logs.Line(ctx, scope, id)
	if err != nil {
		return nil, err
	}
	return s.cfg.Logs.Around(ctx, scope, line.Sandbox, id, each)
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

// logsScope gives the sandboxes whose lines a request may see and asks for. Kinds: Invalid; NotFound and Gone for a sandbox.
func (s *logHandlers) logsScope(ctx context.Context, r *request) (logs.Scope, logBoxes, error) {
	kept, err := s.keptLogs(ctx, r)
	if err != nil {
		return logs.Scope{}, nil, err
	}
	if wanted := r.listQuery("sandbox"); len(wanted) > 0 {
		boxes, err := s.namedLogs(ctx, r, wanted, kept)
		return boxes.scope(), boxes, err
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
	list, _, err := s.cfg.Sandboxes.List(ctx, f)
	if err != nil {
		return logs.Scope{}, nil, err
	}
	boxes := logBoxes{}
	for _, k := range kept {
		if f.Owner == "" || f.Owner == k.Owner {
			boxes[k.Sandbox] = logBox{k.Name, true}
		}
	}
	for _, box := range list {
		if r.who.May(box.Owner, box.ID) {
			boxes[box.ID] = logBox{box.Name, false}
		}
	}
	if everything {
		return logs.All(), boxes, nil
	}
	return boxes.scope(), boxes, nil
}

// namedLogs finds sandboxes by name, and those whose logs were kept also by id. A name of one that there is means that one.
func (s *logHandlers) namedLogs(ctx context.Context, r *request, wanted []string, kept []logs.Kept) (logBoxes, error) {
	boxes := logBoxes{}
	for _, name := range wanted {
		h, err := s.resolve(ctx, r.who, name)
		if err == nil {
			boxes[h.ID()] = logBox{h.Name(), false}
			continue
		}
		found := false
		for _, k := range kept {
			if k.Name == name || k.Sandbox == name {
				boxes[k.Sandbox], found = logBox{k.Name, true}, true
			}
		}
		if !found {
			return nil, err
		}
	}
	return boxes, nil
}

// keptLogs gives the logs that were kept and that a request may see, newest first. A sandbox whose delete was asked for may still be
// there.
func (s *logHandlers) keptLogs(ctx context.Context, r *request) ([]logs.Kept, error) {
	kept, err := s.cfg.Logs.Kept(ctx)
	return slices.DeleteFunc(kept, func(k logs.Kept) bool { return !r.who.May(k.Owner, k.Sandbox) }), err
}
