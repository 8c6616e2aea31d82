package alert

import (
	"context"
	"sync"
	"time"

	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

const (
	patience         = 3 * time.Second // a slower source is listened to with the next look
	askLimit         = 30 * time.Second
	servicesEvery    = 25 * time.Second // each third look
	certificateEvery = time.Hour
	certificateAgain = 5 * time.Minute // when it could not be told
	certificateLimit = 10 * time.Second
	countedWithin    = 10 * time.Minute
	restartsMany     = 3
	countedMost      = 30 // of one counter
)

// looks is what is known from sources between two looks. What was found stays until it has come to the Store.
type looks struct {
	c       *Config
	running sync.WaitGroup

	sandboxes   poll[[]sandbox.Sandbox]
	services    poll[map[string][]wire.ServiceStatus]
	host        poll[metrics.Host]
	certificate poll[time.Time]
	lines       poll[map[string]lineFinding] // by rule

	restarts map[service]*counter
	up       map[string]bool           // sandboxes that were up with the last look at services, and whether their services were told of since; nil before the first
	hits     map[string]map[string]hit // by rule and sandbox, that are not told of yet
	kills    map[string]int64          // by sandbox, that are told of
	killed   map[string]*counter       // by sandbox
	failures map[string]Failure        // by sandbox, that are not told of yet
	watched  map[string]*watched       // by rule; of the search that is under way, if one is, as is served
	served   map[string]time.Time      // by owner: when the search for its log lines had its last turn
	failing  map[string]bool           // sources
	crowded  map[string]bool           // rules with too many alerts
}

// service names one.
type service struct{ sandbox, name string }

// counter follows a number that grows by one each time something happens: the restarts of a service, or the kills in a sandbox.
type counter struct {
	since time.Time // when it was first seen, where it had grown by then; else zero
	last  int
	times []time.Time
}

// note takes a count.
func (t *counter) note(count int, now time.Time) {
	for range min(max(count-t.last, 0), countedMost) {
		t.times = append(t.times, now)
	}
	if count < t.last { // a service was started by hand
		t.since, t.times = time.Time{}, nil
	}
	t.last = count
	t.times = t.times[max(0, len(t.times)-countedMost):]
}

// recent counts those of the last ten minutes. sure is false when there may be others of them, from before it was first seen.
func (t *counter) recent(now time.Time) (n int, sure bool) {
	if t == nil {
		return 0, true
	}
	for _, at := range t.times {
		if now.Sub(at) < countedWithin {
			n++
		}
	}
	return n, t.since.IsZero() || now.Sub(t.since) >= countedWithin
}

// orMore says with a number of recent that it may be higher.
func orMore(n int) string {
	if n >= countedMost {
		return " or more"
	}
	return ""
}

// look asks the sources, and brings the alerts in step with what they say.
func (s *Service) look(ctx context.Context) {
	v := s.looks.ask(ctx, s.ruleList())
	limited, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	err := s.begin(limited)
	if err == nil {
		err = s.judge(limited, v)
		s.release()
	}
	if err != nil {
		if ctx.Err() == nil {
			s.looks.problem("store", err)
		}
		return
	}
	s.looks.problem("store", nil)
	s.looks.used(v)
}

// ask asks the sources that are to be asked now, and gives what they say.
func (l *looks) ask(ctx context.Context, rules []Rule) *view {
	from := l.c.Sources
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if from.Sandboxes != nil {
		l.sandboxes.ask(ctx, &l.running, askLimit, from.Sandboxes)
		l.await("sandboxes", l.sandboxes.await, waiting, 0, 0)
	}
	if from.Host != nil {
		l.host.ask(ctx, &l.running, askLimit, from.Host)
	}
	if from.Certificate != nil {
		l.certificate.ask(ctx, &l.running, certificateLimit, from.Certificate)
	}
	if from.Services != nil && l.sandboxes.fresh {
		all := l.sandboxes.value
		l.services.ask(ctx, &l.running, askLimit, func(ctx context.Context) (map[string][]wire.ServiceStatus, error) { return from.Services(ctx, all) })
	}
	if from.Lines != nil && l.sandboxes.fresh {
		l.askLines(ctx, rules)
	}
	l.await("host", l.host.await, waiting, 0, 0)
	l.await("certificate", l.certificate.await, waiting, certificateEvery, certificateAgain)
	l.await("services", l.services.await, waiting, servicesEvery, servicesEvery)
	l.await("log lines", l.lines.await, waiting, 0, 0)
	return l.view()
}

// await notes the answer of a source, if it comes in time.
func (l *looks) await(source string, await func(context.Context, time.Duration, time.Duration) (bool, error), ctx context.Context, pause, again time.Duration) {
	if told, err := await(ctx, pause, again); told && ctx.Err() == nil {
		l.problem(source, err)
	}
}

// problem logs that a source fails, or works again, once each.
func (l *looks) problem(source string, err error) {
	before := l.failing[source]
	switch {
	case err != nil && !before:
		l.c.Log.Warn("alerts stay as they are: what they are about cannot be told", "source", source, "error", err)
	case err == nil && before:
		l.c.Log.Info("alerts are up to date again", "source", source)
	}
	if l.failing == nil {
		l.failing = map[string]bool{}
	}
	l.failing[source] = err != nil
}

// view gives what is known now.
func (l *looks) view() *view {
	now := time.Now()
	v := &view{now: now, looks: l, from: &l.c.Sources}
	if l.sandboxes.fresh {
		v.index(l.sandboxes.value)
		l.noteKills(v)
	}
	if l.services.fresh {
		l.noteRestarts(now)
	}
	if l.lines.fresh {
		l.noteHits()
	}
	if l.c.Sources.Failures != nil {
		if l.failures == nil {
			l.failures = map[string]Failure{}
		}
		for _, f := range l.c.Sources.Failures() {
			l.failures[f.SandboxID] = f
		}
	}
	if l.c.Sources.Builds != nil {
		v.builds = l.c.Sources.Builds()
	}
	return v
}

// noteRestarts counts the restarts of services, and forgets those that are not there.
func (l *looks) noteRestarts(now time.Time) {
	before, up := l.restarts, l.up
	l.restarts, l.up = map[service]*counter{}, map[string]bool{}
	for _, b := range l.sandboxes.value {
		if b.State == sandbox.Running || b.State == sandbox.Frozen {
			l.up[b.ID] = up[b.ID]
		}
	}
	for name, t := range before {
		if _, told := l.services.value[name.sandbox]; !told && l.up[name.sandbox] { // it is frozen, or did not answer
			l.restarts[name] = t
		}
	}
	for id, list := range l.services.value {
		told, wasUp := up[id]
		for _, one := range list {
			name := service{id, one.Name}
			t := before[name]
			if t == nil {
				t = &counter{}
				if up == nil || wasUp && !told { // since when, nobody knows
					if t.last = one.Restarts; t.last > 0 {
						t.since = now
					}
				}
			}
			t.note(one.Restarts, now)
			l.restarts[name] = t
		}
		l.up[id] = true
	}
}

// noteKills counts the processes that were killed, and forgets those of sandboxes that are not there.
func (l *looks) noteKills(v *view) {
	before := l.killed
	l.killed = make(map[string]*counter, len(v.kills))
	for id, n := range v.kills {
		t := before[id]
		if t == nil {
			t = &counter{}
		}
		t.note(int(n), v.now)
		l.killed[id] = t
	}
}

// noteHits adds what was found in the logs to what was not told of before.
func (l *looks) noteHits() {
	if l.hits == nil {
		l.hits = map[string]map[string]hit{}
	}
	for rule, found := range l.lines.value {
		l.hits[rule] = addHits(l.hits[rule], found.hits)
	}
}

// used lets go of what has come to the Store.
func (l *looks) used(v *view) {
	if v.known {
		l.kills = v.kills
		clear(l.failures)
	}
	if l.lines.fresh {
		l.hits = nil
	}
	l.sandboxes.fresh, l.services.fresh, l.host.fresh, l.certificate.fresh, l.lines.fresh = false, false, false, false, false
}

// judge brings all alerts in step with a view. It is called with the turn.
func (s *Service) judge(ctx context.Context, v *view) error {
	now := time.Now()
	c := s.state.change(now, now)
	channels := s.channelsNow()
	c.link, c.find = s.c.Link, func(id string) (Channel, bool) { found, ok := channels[id]; return found, ok }
	for i := range s.state.rules {
		r := &s.state.rules[i]
		if r.Disabled {
			continue
		}
		fired, ended := len(c.fired), len(c.ended)
		c.judge(r, v.of(r))
		c.tell(r, c.fired[fired:], c.ended[ended:])
		c.remind(r)
	}
	s.sayCrowded(c)
	return s.keep(ctx, c)
}

// sayCrowded logs that a rule has too many alerts, once.
func (s *Service) sayCrowded(c *change) {
	crowded := map[string]bool{}
	for i := range s.state.rules {
		r := &s.state.rules[i]
		n := c.over[r.ID]
		if n == 0 {
			continue
		}
		if crowded[r.ID] = true; !s.looks.crowded[r.ID] {
			s.c.Log.Warn("a rule has too many alerts; the others are left out until some are over", "rule", r.Name, "most", maxOpen, "left_out", n)
		}
	}
	s.looks.crowded = crowded
}
