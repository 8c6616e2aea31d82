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
	"sandboxd/internal/sandbox"
)

const (
	linesLimit = 2 * time.Second // for all rules of one look; owners whose turn did not come are the first ones the next time
	linesShare = linesLimit / 4  // of it for the rules of one owner, while other owners wait
)

// hit is what a search found in one sandbox's log.
type hit struct {
	count int // within five minutes
	last  string
}

// addHits adds new hits to those of before. Of two in one sandbox's log, that with more lines stays.
func addHits(before, found map[string]hit) map[string]hit {
	if before == nil {
		before = map[string]hit{}
	}
	for id, h := range found {
		if h.count >= before[id].count {
			before[id] = h
		}
	}
	return before
}

// lineFinding is what a look found for one rule.
type lineFinding struct {
	hits  map[string]hit // by sandbox
	whole bool           // otherwise there may be more: the search was cut off
}

// lineLook searches for the lines of all rules once. While it is under way, what it has is its own.
type lineLook struct {
	search func(context.Context, logs.Query) (logs.Result, error)
	log    *slog.Logger
	owners []string // in the order of their turns
	rules  map[string][]*watched
	served map[string]time.Time // by owner: when its last turn began

	found  map[string]lineFinding // by rule
	failed error                  // of a rule
}

// askLines searches for the lines of all rules that want some.
func (l *looks) askLines(ctx context.Context, all []Rule) {
	if l.lines.answer != nil {
		return // watched and served are of the one under way
	}
	v := &view{from: &Sources{}}
	v.index(l.sandboxes.value)
	now := time.Now()
	before, served := l.watched, map[string]time.Time{}
	l.watched = map[string]*watched{}
	look := &lineLook{search: l.c.Sources.Lines, log: l.c.Log, rules: map[string][]*watched{}, served: served, found: map[string]lineFinding{}}
	for _, r := range all {
		if r.Kind != LogLine || r.Disabled {
			continue
		}
		w := before[r.ID]
		if w == nil || w.rule.Pattern != r.Pattern {
			w = &watched{until: now, lines: map[string][]noted{}}
		}
		w.begin(r)
		v.each(&r, func(b *sandbox.Sandbox) { w.ids[b.ID] = true })
		l.watched[r.ID] = w
		look.rules[r.Owner] = append(look.rules[r.Owner], w)
		if served[r.Owner] = l.served[r.Owner]; served[r.Owner].IsZero() {
			served[r.Owner] = now // so that a new owner does not come first
		}
	}
	l.served = served
	if len(look.rules) == 0 {
		return
	}
	look.order()
	l.lines.ask(ctx, &l.running, askLimit, look.run)
}

// order puts first the owners, and of each the rules, that have waited the longest.
func (l *lineLook) order() {
	l.owners = slices.SortedFunc(maps.Keys(l.rules), func(a, b string) int { return cmp.Or(l.served[a].Compare(l.served[b]), cmp.Compare(a, b)) })
	for _, rules := range l.rules {
		slices.SortStableFunc(rules, func(a, b *watched) int { return a.tried.Compare(b.tried) })
	}
}

// run gives what is found for each rule that was searched for. A rule whose search failed is missing; the error is that of one of them,
// when all have failed.
func (l *lineLook) run(ctx context.Context) (map[string]lineFinding, error) {
	end := time.Now().Add(linesLimit)
	left := maps.Clone(l.rules)
	for queue := l.owners; len(queue) > 0; {
		now, owner := time.Now(), queue[0]
		queue = queue[1:]
		if ctx.Err() != nil || !now.Before(end) {
			break
		}
		until := end
		if share := now.Add(linesShare); len(queue) > 0 && share.Before(end) {
			until = share
		}
		l.served[owner] = now
		if left[owner] = l.turn(ctx, left[owner], until); len(left[owner]) > 0 {
			queue = append(queue, owner)
		}
	}
	if len(l.found) == 0 && l.failed != nil {
		return nil, l.failed
	}
	for _, rules := range l.rules {
		for _, w := range rules {
			w.say(l.log)
		}
	}
	return l.found, nil
}

// turn searches for the lines of one owner's rules until a time, and gives the rules that are left. One that was cut off is the last of
// them.
func (l *lineLook) turn(ctx context.Context, rules []*watched, until time.Time) []*watched {
	for i, w := range rules {
		if ctx.Err() != nil || !time.Now().Before(until) {
			return rules[i:]
		}
		hits, err := w.search(ctx, l.search, until)
		if w.problem = err; err != nil && !errors.Is(err, errSlow) {
			l.failed = err
			continue
		}
		l.found[w.rule.ID] = lineFinding{hits: addHits(l.found[w.rule.ID].hits, hits), whole: err == nil}
		if err != nil {
			return append(slices.Clone(rules[i+1:]), w)
		}
	}
	return nil
}
