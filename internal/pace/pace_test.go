package pace

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var start = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return start.Add(d) }

// The cases of pace_cases.json are those of static/js/pace.test.js, too.
func TestPace_CountsAsTheScriptDoes(t *testing.T) {
	text, err := os.ReadFile("../../static/js/pace_cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Total, Done, Step, Spent, Part float64
		Running                        bool
		At                             float64
		Late                           bool
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 5 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		p := Pace{Began: start, Total: Length{Time: seconds(c.Total)}, Done: seconds(c.Done), Step: seconds(c.Step), Part: c.Part}
		if c.Running {
			p.Since = start
		}
		now := after(seconds(c.Spent))
		if got := p.At(now).Seconds(); math.Abs(got-c.At) > 0.001 || p.Late(now) != c.Late {
			t.Errorf("%+v: at %.3f, late %v", c, got, p.Late(now))
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func TestPace_NeverGoesBackAndNeverSaysDoneTooEarly(t *testing.T) {
	p := Pace{Began: start, Total: Length{Time: time.Minute}, Done: 20 * time.Second, Step: 30 * time.Second, Since: start}
	last := time.Duration(0)
	for s := range 600 {
		at := p.At(after(time.Duration(s) * time.Second))
		if at < last || at > 50*time.Second {
			t.Fatalf("after %d s it is at %s, before that at %s", s, at, last)
		}
		last = at
	}
	if f := p.Fraction(after(15 * time.Second)); math.Abs(f-35.0/60) > 0.001 {
		t.Errorf("half of the step is %f of the whole", f)
	}
	if p.Left(after(15*time.Second)) != 25*time.Second {
		t.Errorf("left are %s", p.Left(after(15*time.Second)))
	}
}

func TestPace_OfNothingIsNothing(t *testing.T) {
	if (Pace{}).Fraction(start) != 0 || (Pace{}).Left(start) != 0 || (Pace{}).Late(start) {
		t.Error("no work has a pace")
	}
}

func TestLength_SaysWhetherItIsMeasured(t *testing.T) {
	measured, guessed := Length{time.Minute, time.Minute}, Length{Time: time.Second}
	if !measured.Plus(guessed).IsMeasured() || guessed.IsMeasured() || guessed.Plus(guessed).IsMeasured() || (Length{}).IsMeasured() {
		t.Error("a length is measured when most of it is")
	}
	if Sum([]Length{measured, guessed, guessed}) != (Length{time.Minute + 2*time.Second, time.Minute}) {
		t.Error("a sum has all")
	}
}

// memory is a Store.
type memory struct {
	mu    sync.Mutex
	times map[string]time.Duration
	puts  int
	err   error
}

func (m *memory) StepTimes(context.Context) (map[string]time.Duration, error) { return m.times, m.err }

func (m *memory) PutStepTimes(_ context.Context, times map[string]time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.puts++
	for k, v := range times {
		m.times[k] = v
	}
	return m.err
}

func TestTimes_KeepsTheLastOfEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{times: map[string]time.Duration{"old": time.Hour}}
		times := Open(t.Context(), m, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- times.Run(ctx) }()
		times.Note("a", time.Second)
		times.Note("a", 2*time.Second)
		times.Note("b", time.Minute)
		if times.Length("a", 0) != (Length{2 * time.Second, 2 * time.Second}) || times.Length("old", 0).Time != time.Hour ||
			times.Length("new", time.Second) != (Length{Time: time.Second}) {
			t.Error("what was noted is not known")
		}
		time.Sleep(saveEvery + time.Second)
		synctest.Wait()
		if m.puts != 1 || m.times["a"] != 2*time.Second || m.times["b"] != time.Minute {
			t.Errorf("kept in %d goes: %v", m.puts, m.times)
		}
		times.Note("a", 3*time.Second)
		cancel()
		if err := <-ended; err != nil || m.times["a"] != 3*time.Second {
			t.Errorf("at the end %v, %v", m.times, err)
		}
	})
}

func TestTimes_WithoutAStoreGuesses(t *testing.T) {
	times := Open(t.Context(), &memory{err: errors.New("gone")}, slog.New(slog.DiscardHandler))
	times.Note("a", time.Second)
	if !times.Length("a", 0).IsMeasured() {
		t.Error("what was noted is not known")
	}
	var none *Times
	none.Note("a", time.Second)
	if none.Length("a", time.Minute) != (Length{Time: time.Minute}) {
		t.Error("nothing knows something")
	}
}
