package idle_test

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/idle"
)

// FuzzTracker plays any sequence of uses, and holds the tracker to what it promises at each moment.
func FuzzTracker(f *testing.F) {
	f.Add([]byte{0, 1, 9, 200, 4, 9, 255, 2, 3, 9, 250, 5, 6, 9, 100, 7})
	f.Add([]byte{1, 9, 255, 9, 255, 9, 255, 3, 8, 9, 255, 0, 4, 4, 9, 30})
	f.Add([]byte{6, 9, 240, 6, 9, 240, 2, 9, 240, 9, 240, 4, 5, 9, 10, 3})
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 200 {
			return
		}
		synctest.Test(t, func(t *testing.T) { play(t, program) })
	})
}

// player is what the test itself knows of a program that it plays.
type player struct {
	tracker  *idle.Tracker
	open     map[string]*idle.Lease
	moments  map[string]time.Time
	attended time.Time // the last attended use that the test knows of
	count    int
}

func play(t *testing.T, program []byte) {
	p := &player{tracker: idle.New(), open: map[string]*idle.Lease{}, moments: map[string]time.Time{}}
	for i := 0; i < len(program); i++ {
		op := program[i] % 10
		if op == 9 {
			i++
			if i < len(program) {
				elapse(time.Duration(program[i]) * 20 * time.Second)
			}
		} else {
			p.do(op)
		}
		p.check(t)
	}
}

func (p *player) do(op byte) {
	p.count++
	name := strconv.Itoa(p.count)
	use := idle.Use{Kind: idle.Web, Detail: name, Unattended: op%2 == 1}
	switch op {
	case 0, 1:
		p.open[name] = p.tracker.Begin(box, use)
	case 2, 3:
		p.open[name] = p.tracker.Watch(box, use)
	case 4, 5:
		for _, l := range p.open {
			l.Touch(use.Unattended)
		}
		use.Unattended = use.Unattended || len(p.open) == 0
	case 6, 7:
		p.tracker.Touch(box, use)
		p.moments[name] = time.Now()
	case 8:
		for name, l := range p.open {
			l.End()
			delete(p.open, name)
			break
		}
		use.Unattended = true // whose it was the test does not know
	}
	if !use.Unattended {
		p.attended = time.Now()
	}
}

func (p *player) check(t *testing.T) {
	t.Helper()
	now, got := time.Now(), p.tracker.Status(box)
	if (len(got.Because) == 0) == got.Idle.IsZero() {
		t.Fatalf("in use and idle, or neither: %+v", got)
	}
	if len(got.Because) == 0 && (got.Idle.Before(p.attended) || got.Idle.After(now)) {
		t.Fatalf("idle since %s, but attended at %s, and it is %s", got.Idle, p.attended, now)
	}
	for _, r := range got.Because {
		at, moment := p.moments[r.Detail]
		if p.open[r.Detail] == nil && (!moment || now.Sub(at) >= idle.Pulse) {
			t.Fatalf("%v is a reason, and has ended", r)
		}
	}
	if !slices.IsSortedFunc(got.Because, func(a, b idle.Reason) int { return a.Since.Compare(b.Since) }) {
		t.Fatalf("not the oldest first: %v", got.Because)
	}
}
