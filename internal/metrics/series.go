package metrics

import (
	"context"
	"slices"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// niceSteps are those that a Series has when none was asked for.
var niceSteps = []time.Duration{
	FineStep, 10 * time.Second, MediumStep, 30 * time.Second, time.Minute, CoarseStep, 5 * time.Minute, 10 * time.Minute,
	15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour,
}

// usualPoints is how many points a Series has at most when no step was asked for.
const usualPoints = 480

// stretch is a checked Range: from and to are multiples of step.
type stretch struct {
	since, until time.Time
	step         time.Duration
}

// resolve checks r against now. What lies in the future, or is older than anything kept, is left out.
func (r Range) resolve(now time.Time) (stretch, error) {
	until := r.Until
	if until.IsZero() || until.After(now) {
		until = now
	}
	since := r.Since
	if since.IsZero() {
		since = until.Add(-time.Hour)
	}
	if !since.Before(until) {
		return stretch{}, fault.Field("since", "The time to begin at (since) must be before the time to end at (until), and not in the future.")
	}
	if oldest := now.Add(-CoarseLife); since.Before(oldest) {
		since = oldest
	}
	if !since.Before(until) {
		return stretch{}, fault.Field("until", "Figures are kept for 30 days; this range is older.")
	}
	step := r.Step
	if step == 0 {
		for _, step = range niceSteps {
			if until.Sub(since) <= usualPoints*step {
				break
			}
		}
	}
	step = max(min(step, until.Sub(since)), FineStep).Round(time.Second)
	if until.Sub(since)/step > MaxPoints {
		return stretch{}, fault.Field("step", "A step of %s gives more than %d points. Choose a longer step or a shorter range.", step, MaxPoints)
	}
	return stretch{since.Truncate(step), until, step}, nil
}

// Series gives a stretch of the history of a sandbox, or of the host, by id; one without points for an id that is not
// known. It reads the Store. Kinds: Invalid with the field since, until or step; Unavailable, Timeout.
func (r *Recorder) Series(ctx context.Context, id string, asked Range) (Series, error) {
	now := time.Now()
	q, err := asked.resolve(now.Round(0))
	if err != nil {
		return Series{}, err
	}
	m := r.memory(id, q.since)
	tier := Medium
	if q.step >= CoarseStep {
		tier = Coarse
	}
	fine := m.fineFrom(now, q.step)
	b := newBuckets(q)
	if tier == Medium { // older than what it keeps there is only the coarse one
		turn := now.Add(-MediumLife).Truncate(CoarseStep)
		if err := r.fill(ctx, b, m, id, fillRange{Coarse, q.since, earlier(turn, fine)}); err != nil {
			return Series{}, err
		}
		err = r.fill(ctx, b, m, id, fillRange{Medium, later(turn, q.since), fine})
	} else {
		err = r.fill(ctx, b, m, id, fillRange{Coarse, q.since, fine})
	}
	if err != nil {
		return Series{}, err
	}
	for _, s := range m.fine {
		b.put(s, s.from+s.took, fine.UnixNano(), q.until.UnixNano())
	}
	kept, seq, err := r.c.Store.Changes(ctx, id, q.since, q.until)
	if err != nil {
		return Series{}, err
	}
	changes := m.changes(kept, seq, q)
	return Series{Step: q.step, Points: b.points(changes), Changes: changes}, nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// memory is what is known of one id besides the Store, at one moment.
type memory struct {
	id      string
	fine    []span
	pending []Batch
	open    []tierSpan
}

func (r *Recorder) memory(id string, since time.Time) memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := memory{id: id}
	next := r.next
	next.Seq = r.seq + 1
	for _, b := range append(slices.Clone(r.pending), next) {
		mine := Batch{Seq: b.Seq}
		for _, row := range b.Rows {
			if row.ID == id {
				mine.Rows = append(mine.Rows, row)
			}
		}
		for _, c := range b.Changes {
			if c.ID == id {
				mine.Changes = append(mine.Changes, c)
			}
		}
		m.pending = append(m.pending, mine)
	}
	t := r.tracks[id]
	if t == nil {
		return m
	}
	m.fine = t.spans(since.UnixNano())
	if t.medium.open {
		m.open = append(m.open, tierSpan{Medium, t.medium.span})
	}
	if t.coarse.open {
		m.open = append(m.open, tierSpan{Coarse, t.coarse.span})
	}
	return m
}

// fineFrom is the time from which on the readings themselves are used: a boundary of all tiers' buckets, before which they
// would not be whole. With a step as long as a tier's there is no need of them.
func (m memory) fineFrom(now time.Time, step time.Duration) time.Time {
	if step >= MediumStep || len(m.fine) == 0 {
		return now.Add(CoarseStep)
	}
	first := now.Add(-FineLife)
	if from := time.Unix(0, m.fine[0].from); from.After(first) {
		first = from
	}
	return first.Truncate(MediumStep).Add(MediumStep)
}

// fillRange is a part of the history, and the tier to take it from.
type fillRange struct {
	tier         Tier
	since, until time.Time
}

// fill puts what a tier has of a range into b.
func (r *Recorder) fill(ctx context.Context, b *buckets, m memory, id string, f fillRange) error {
	if !f.since.Before(f.until) {
		return nil
	}
	step := time.Duration(f.tier)
	rows, seq, err := r.c.Store.Rows(ctx, id, f.tier, f.since.Truncate(step), f.until)
	if err != nil {
		return err
	}
	put := func(s span) { b.put(s, s.from+int64(step), f.since.UnixNano(), f.until.UnixNano()) }
	for _, row := range rows {
		put(row.span())
	}
	for _, batch := range m.pending {
		for _, row := range batch.Rows {
			if batch.Seq > seq && row.Tier == f.tier {
				put(row.Row.span())
			}
		}
	}
	for _, o := range m.open {
		if o.tier == f.tier {
			put(o.span)
		}
	}
	return nil
}

// changes adds those that are in memory to those of the Store, which has them up to seq.
func (m memory) changes(kept []Change, seq int64, q stretch) []Change {
	for _, b := range m.pending {
		for _, c := range b.Changes {
			if b.Seq <= seq || c.Change.Time.After(q.until) {
				continue
			}
			for len(kept) > 0 && kept[len(kept)-1].Time.After(c.Change.Time) { // the clock was put back
				kept = kept[:len(kept)-1]
			}
			kept = append(kept, c.Change)
		}
	}
	first := 0 // of those before the stretch only the last one counts
	for first+1 < len(kept) && kept[first+1].Time.Before(q.since) {
		first++
	}
	return kept[first:]
}

// buckets are the steps of a Series.
type buckets struct {
	stretch
	spans []span
}

func newBuckets(q stretch) *buckets {
	n := int((q.until.Sub(q.since) + q.step - 1) / q.step)
	b := &buckets{q, make([]span, n)}
	for i := range b.spans {
		b.spans[i].from = q.since.Add(time.Duration(i) * q.step).UnixNano()
	}
	return b
}

// put shares s, which covers [s.from, to), out to the steps, as far as it is within [since, until).
func (b *buckets) put(s span, to, since, until int64) {
	begin, step := b.since.UnixNano(), int64(b.step)
	from := max(s.from, since, begin)
	for i := (from - begin) / step; i < int64(len(b.spans)); i++ {
		at := begin + i*step
		if at >= to {
			return
		}
		if part, ok := s.cut(to, max(at, since), min(at+step, until)); ok {
			b.spans[i].add(part)
		}
	}
}

// points gives the steps with the states at their ends.
func (b *buckets) points(changes []Change) []Point {
	out := make([]Point, len(b.spans))
	var state sandbox.State
	next := 0
	for i, s := range b.spans {
		for next < len(changes) && changes[next].Time.UnixNano() < s.from+int64(b.step) {
			state = changes[next].State
			next++
		}
		out[i] = s.point(state)
	}
	return out
}
