package alert

import (
	"context"
	"maps"
	"slices"
	"time"

	"sandboxd/internal/logs"
	"sandboxd/internal/sandbox"
)

const (
	linesWithin = 5 * time.Minute
	linesLate   = time.Minute     // a line that comes later than this is not seen
	linesRounds = 5               // searches for one rule, where one sandbox has so many lines that others could not be seen
	linesLimit  = 2 * time.Second // for all rules; those that it is too short for are the first ones the next time
	linesKept   = 1000            // of one sandbox and rule; no threshold is above
)

// hit is what a search found in one sandbox's log.
type hit struct {
	count int // within the last five minutes
	last  string
}

// watched is what is known of one rule about log lines.
type watched struct {
	pattern string
	until   time.Time // up to which all was searched
	tried   time.Time // when the last search began
	seen    logs.ID   // the newest line that was counted
	times   map[string][]time.Time
}

// lineRule is a rule with its sandboxes.
type lineRule struct {
	id, pattern string
	ids         []string
	all         bool
}

// askLines searches for the lines of all rules that want some.
func (l *looks) askLines(ctx context.Context, all []Rule) {
	if l.lines.answer != nil {
		return // watched is of the one under way
	}
	v := &view{from: &Sources{}}
	v.index(l.sandboxes.value)
	var rules []lineRule
	for _, r := range all {
		if r.Kind != LogLine || r.Disabled {
			continue
		}
		one := lineRule{id: r.ID, pattern: r.Pattern, all: r.Owner == "" && r.SandboxID == "" && r.Template == ""}
		v.each(&r, func(b *sandbox.Sandbox) { one.ids = append(one.ids, b.ID) })
		rules = append(rules, one)
	}
	if len(rules) == 0 {
		l.watched = nil
		return
	}
	watchedNow := map[string]*watched{}
	for _, r := range rules {
		w := l.watched[r.id]
		if w == nil || w.pattern != r.pattern {
			w = &watched{pattern: r.pattern, until: time.Now(), times: map[string][]time.Time{}}
		}
		watchedNow[r.id] = w
	}
	l.watched = watchedNow
	slices.SortStableFunc(rules, func(a, b lineRule) int { return watchedNow[a.id].tried.Compare(watchedNow[b.id].tried) })
	search := l.c.Sources.Lines
	l.lines.ask(ctx, &l.running, linesLimit, func(ctx context.Context) (map[string]map[string]hit, error) {
		return searchAll(ctx, search, rules, watchedNow)
	})
}

// searchAll gives the sandboxes with new lines, by rule. A rule whose search failed is missing; the error is that of one of them, when
// all have failed.
func searchAll(ctx context.Context, search func(context.Context, logs.Query) (logs.Result, error), rules []lineRule, watched map[string]*watched) (map[string]map[string]hit, error) {
	found := map[string]map[string]hit{}
	var failed error
	for _, r := range rules {
		if ctx.Err() != nil {
			break // the rest has its turn the next time
		}
		hits, err := watched[r.id].search(ctx, search, r)
		if err != nil {
			failed = err
			continue
		}
		found[r.id] = hits
	}
	if len(found) > 0 {
		failed = nil
	}
	return found, failed
}

// search counts the lines that came since the last search.
func (w *watched) search(ctx context.Context, search func(context.Context, logs.Query) (logs.Result, error), r lineRule) (map[string]hit, error) {
	now := time.Now()
	w.tried = now
	left := map[string]bool{}
	for _, id := range r.ids {
		left[id] = true
	}
	q := logs.Query{Scope: logs.Only(r.ids...), Filter: logs.Filter{Text: r.pattern}, Limit: logs.MaxLimit,
		Since: now.Round(0).Add(-now.Sub(w.until) - linesLate)}
	if r.all {
		q.Scope = logs.All()
	}
	counts, last, newest := map[string]int{}, map[string]string{}, w.seen
	for range linesRounds {
		found, err := search(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, line := range found.Lines {
			newest = max(newest, line.ID)
			if line.ID <= w.seen || !left[line.Sandbox] {
				continue
			}
			if counts[line.Sandbox]++; counts[line.Sandbox] == 1 {
				last[line.Sandbox] = line.Text
			}
		}
		if found.Next == 0 || found.Next <= w.seen {
			break
		}
		q.Before, q.Scope = found.Next, logs.Only(slices.Collect(quietOnes(left, counts))...)
	}
	w.until, w.seen = now, newest
	return w.count(now, left, counts, last), nil
}

// quietOnes gives those that have few lines, whose others may not have been seen.
func quietOnes(left map[string]bool, counts map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for id := range left {
			if counts[id] < logs.MaxLimit/2 && !yield(id) {
				return
			}
		}
	}
}

// count adds new lines to those of the last five minutes, and gives the sandboxes that have new ones.
func (w *watched) count(now time.Time, left map[string]bool, counts map[string]int, last map[string]string) map[string]hit {
	maps.DeleteFunc(w.times, func(id string, _ []time.Time) bool { return !left[id] })
	for id, t := range w.times {
		t = slices.DeleteFunc(t, func(at time.Time) bool { return now.Sub(at) >= linesWithin })
		if w.times[id] = t; len(t) == 0 {
			delete(w.times, id)
		}
	}
	hits := map[string]hit{}
	for id, n := range counts {
		for range min(n, linesKept) {
			w.times[id] = append(w.times[id], now)
		}
		w.times[id] = w.times[id][max(0, len(w.times[id])-linesKept):]
		hits[id] = hit{count: len(w.times[id]), last: last[id]}
	}
	return hits
}
