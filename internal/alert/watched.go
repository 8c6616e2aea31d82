package alert

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"sandboxd/internal/logs"
)

const (
	linesWithin = 5 * time.Minute // lines are counted together within it; no search looks back further
	linesLate   = time.Minute     // a line that comes later than this is not seen
	linesRounds = 5               // searches for one rule, where one sandbox has so many lines that others could not be seen
	linesKept   = 1000            // of one sandbox and rule; no threshold is above
)

// errSlow is why a search did not see all lines.
var errSlow = errors.New("the search takes longer than the rules of one owner may")

// watched is what is known of one rule about log lines.
type watched struct {
	rule Rule
	ids  map[string]bool // sandboxes

	until   time.Time          // up to which all was searched, or was left out
	tried   time.Time          // when the last search began
	seen    logs.ID            // no line up to it is new
	lines   map[string][]noted // of the last minutes, by sandbox, oldest first
	problem error              // of the last search
	failing time.Time          // when there was a problem last; zero when the log says that there is none
}

// noted is a line that was found.
type noted struct {
	id  logs.ID
	at  time.Time
	new bool
}

// fresh are the lines of one sandbox that a search found.
type fresh struct {
	lines []noted
	last  string
}

// begin prepares for the next look. What a search that was too slow did not reach is left out, so that the next one is no slower.
func (w *watched) begin(r Rule) {
	if errors.Is(w.problem, errSlow) {
		w.until = w.tried
	}
	w.rule, w.ids = r, map[string]bool{}
}

// search finds the lines that came since the last search, until a time at most. When that is not enough, the error is errSlow, and there
// are hits among the newest lines.
func (w *watched) search(ctx context.Context, search func(context.Context, logs.Query) (logs.Result, error), until time.Time) (map[string]hit, error) {
	now := time.Now()
	w.tried = now
	q := logs.Query{Scope: logs.Only(slices.Collect(maps.Keys(w.ids))...), Filter: logs.Filter{Text: w.rule.Pattern}, Limit: logs.MaxLimit,
		Since: now.Round(0).Add(-min(now.Sub(w.until)+linesLate, linesWithin))}
	if w.rule.Owner == "" && w.rule.SandboxID == "" && w.rule.Template == "" {
		q.Scope = logs.All()
	}
	found, newest := map[string]*fresh{}, w.seen
	for range linesRounds {
		if q.Budget = time.Until(until); q.Budget <= 0 {
			return w.count(now, found), errSlow
		}
		r, err := search(ctx, q)
		if err != nil {
			return nil, err
		}
		newest = max(newest, w.take(r.Lines, found))
		if r.Next == 0 || r.Next <= w.seen {
			break
		}
		if !time.Now().Before(until) {
			return w.count(now, found), errSlow
		}
		q.Before, q.Scope = r.Next, logs.Only(slices.Collect(w.quiet(found))...)
	}
	w.until, w.seen = now, newest
	return w.count(now, found), nil
}

// take notes lines that may be new, newest first, and gives the ID of the newest.
func (w *watched) take(lines []logs.Line, found map[string]*fresh) (newest logs.ID) {
	for _, line := range lines {
		newest = max(newest, line.ID)
		if line.ID <= w.seen || !w.ids[line.Sandbox] {
			continue
		}
		f := found[line.Sandbox]
		if f == nil {
			f = &fresh{last: line.Text}
			found[line.Sandbox] = f
		}
		f.lines = append(f.lines, noted{line.ID, line.Time, true})
	}
	return newest
}

// quiet gives the sandboxes that have few lines, whose others may not have been seen.
func (w *watched) quiet(found map[string]*fresh) func(func(string) bool) {
	return func(yield func(string) bool) {
		for id := range w.ids {
			if f := found[id]; (f == nil || len(f.lines) < logs.MaxLimit/2) && !yield(id) {
				return
			}
		}
	}
}

// count adds lines to those of the last minutes, and gives the sandboxes that have new ones. Those of before are kept for twice as long as
// they count, for a search that comes late.
func (w *watched) count(now time.Time, found map[string]*fresh) map[string]hit {
	old := func(c noted) bool { return now.Round(0).Sub(c.at) >= 2*linesWithin }
	for id, lines := range w.lines {
		if lines = slices.DeleteFunc(lines, old); len(lines) == 0 || !w.ids[id] {
			delete(w.lines, id)
		} else {
			w.lines[id] = lines
		}
	}
	hits := map[string]hit{}
	for id, f := range found {
		lines := append(w.lines[id], f.lines...)
		slices.SortStableFunc(lines, func(a, b noted) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
		lines = slices.CompactFunc(lines, func(a, b noted) bool { return a.id == b.id }) // the first stays, which is not new
		w.lines[id] = lines[max(0, len(lines)-linesKept):]
		if n := most(w.lines[id]); n > 0 {
			hits[id] = hit{count: n, last: f.last}
		}
	}
	return hits
}

// most gives the largest number of lines within five minutes, a new one among them; 0 when none is new. No line is new afterwards.
func most(lines []noted) (n int) {
	start, last := 0, -1
	for i := range lines {
		for lines[i].at.Sub(lines[start].at) >= linesWithin {
			start++
		}
		if lines[i].new {
			last, lines[i].new = i, false
		}
		if last >= start {
			n = max(n, i-start+1)
		}
	}
	return n
}

// say logs that not all lines of a rule are searched, or that they are again, once each.
func (w *watched) say(log *slog.Logger) {
	now := time.Now()
	switch {
	case w.problem != nil:
		if w.failing.IsZero() {
			log.Warn("not all log lines are searched for an alert rule", "rule", w.rule.Name, "owner", w.rule.Owner, "error", w.problem)
		}
		w.failing = now
	case !w.failing.IsZero() && now.Sub(w.failing) >= linesWithin: // a search that is only just quick enough may be too slow again
		log.Info("all log lines are searched for an alert rule again", "rule", w.rule.Name, "owner", w.rule.Owner)
		w.failing = time.Time{}
	}
}
