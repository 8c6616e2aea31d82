package catalog

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/pace"
)

// noTimes is a store in which nothing is.
type noTimes struct{}

func (noTimes) StepTimes(context.Context) (map[string]time.Duration, error) {
	return map[string]time.Duration{}, nil
}
func (noTimes) PutStepTimes(context.Context, map[string]time.Duration) error { return nil }

// timed has a rig remember how long steps take.
func timed(t *testing.T, test func(r *rig)) {
	t.Helper()
	bubble(t, func(r *rig) {
		write(r.t, filepath.Join(r.dir, "top/Dockerfile"), "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n") // as many steps as the engine tells of
		r.estimates.times = pace.Open(r.t.Context(), noTimes{}, slog.New(slog.DiscardHandler))
		test(r)
	})
}

func TestExpected_IsAGuessUntilItWasMeasuredOnThisHost(t *testing.T) {
	timed(t, func(r *rig) {
		before := r.state("top", ImageMissing).Expected
		if before.Time <= 0 || before.IsMeasured() {
			t.Errorf("at first it takes %+v", before)
		}
		if _, err := r.ensure("top"); err != nil {
			t.Fatal(err)
		}
		if s := r.state("top", ImageBuilt); s.Expected != (pace.Length{}) {
			t.Errorf("an image that is there takes %+v", s.Expected)
		}
		r.engine.set(func() { clear(r.engine.images); r.engine.images["debian:trixie-slim"] = true })
		if l := r.state("top", ImageMissing).Expected; !l.IsMeasured() || l.Time < 2*buildTime || l.Time > 2*buildTime+5*time.Second {
			t.Errorf("both images take %+v, want two minutes", l)
		}
		base := r.state("base", ImageMissing).Ref
		r.engine.set(func() { r.engine.images[base] = true })
		if l := r.state("top", ImageMissing).Expected; l.Time < buildTime || l.Time > buildTime+5*time.Second {
			t.Errorf("the upper one takes %+v, want a minute", l)
		}
		write(t, filepath.Join(r.dir, "top/Dockerfile"), onBase+"RUN something else\n")
		if l := r.state("top", ImageMissing).Expected; l.Time < buildTime || !l.IsMeasured() {
			t.Errorf("with one more step it takes %+v", l)
		}
	})
}

func TestExpected_OfLayersInCommonIsKnownFromTheOther(t *testing.T) {
	timed(t, func(r *rig) {
		if _, err := r.ensure("top"); err != nil {
			t.Fatal(err)
		}
		if l := r.state("side", ImageMissing).Expected; !l.IsMeasured() || l.Time < buildTime {
			t.Errorf("side takes %+v", l)
		}
	})
}

func TestPace_IsEvenWhenItIsTheSecondTime(t *testing.T) {
	timed(t, func(r *rig) {
		if _, err := r.ensure("top"); err != nil {
			t.Fatal(err)
		}
		r.engine.set(func() { clear(r.engine.images); r.engine.images["debian:trixie-slim"] = true })
		go r.ensure("top")
		began := time.Now()
		for range 11 {
			time.Sleep(2 * buildTime / 12)
			synctest.Wait()
			s := r.state("top", ImageBuilding)
			even := float64(time.Since(began)) / float64(2*buildTime)
			if s.Progress < even-0.06 || s.Progress > even+0.06 {
				t.Errorf("after %s it is at %.3f, want about %.3f (%+v)", time.Since(began), s.Progress, even, s.Pace)
			}
			if p, ok := r.Pace(r.template("top")); !ok || p != s.Pace || !p.Began.Equal(began) || !p.Total.IsMeasured() {
				t.Errorf("pace is %+v", p)
			}
		}
		time.Sleep(buildTime)
		if _, ok := r.Pace(r.template("top")); ok {
			t.Error("a built image has a pace")
		}
	})
}

func TestLength_OfAStepThatFoundItsResultIsNotNoted(t *testing.T) {
	timed(t, func(r *rig) {
		r.engine.cached = true
		if _, err := r.ensure("base"); err != nil {
			t.Fatal(err)
		}
		r.engine.set(func() { clear(r.engine.images); r.engine.images["debian:trixie-slim"] = true })
		if l := r.state("base", ImageMissing).Expected; l.IsMeasured() {
			t.Errorf("it takes %+v", l)
		}
	})
}

func TestGuess_KnowsWhatFetches(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"FROM x\nRUN apt-get update && apt-get install -y git\n": installGuess, "FROM x\nRUN install-packages git\n": installGuess,
		"FROM x\nRUN chmod 755 /bin/install-packages\n": runGuess, "FROM x\nCOPY a b\n": copyGuess, "FROM x\nENV A=b\n": noteGuess,
	} {
		if got := splitInstructions([]byte(text))[1].guess(); got != want {
			t.Errorf("%q takes %s, want %s", text, got, want)
		}
	}
}

func TestAbandon_EndsOnlyWhatNobodyWaitsFor(t *testing.T) {
	waits := func(name string) func(r *rig) { return func(r *rig) { go r.ensure(name) } }
	for what, c := range map[string]struct {
		other func(r *rig)
		ends  bool
	}{
		"nobody else":         {func(*rig) {}, true},
		"another waiter":      {waits("base"), false},
		"what is built on it": {waits("top"), false},
		"asked for":           {func(r *rig) { _ = r.Build("base", Order{Why: WhyAsked}) }, false},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(r *rig) {
				if what == "asked for" {
					c.other(r)
					synctest.Wait()
				}
				ctx, leave := context.WithCancel(r.t.Context())
				go func() { _, _ = r.Ensure(ctx, r.template("base"), nil) }()
				synctest.Wait()
				if what != "asked for" {
					c.other(r)
				}
				time.Sleep(buildTime / 4)
				r.Abandon(r.template("base"), "ann") // its own waiter is there
				synctest.Wait()
				r.state("base", ImageBuilding)
				leave()
				synctest.Wait()
				r.Abandon(r.template("base"), "ann")
				synctest.Wait()
				want := ImageBuilding
				if c.ends {
					want = ImageFailed
				}
				r.state("base", want)
			})
		})
	}
}
