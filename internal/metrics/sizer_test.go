package metrics_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/metrics"
)

// disk is measured by a Sizer.
type disk struct {
	takes time.Duration

	mu    sync.Mutex
	sizes map[string]metrics.Size
	homes map[string]int64 // known at once
	err   error
	began []time.Time
}

func (d *disk) set(sizes map[string]metrics.Size, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sizes, d.err = sizes, err
}

// tries are when it was begun to measure.
func (d *disk) tries() []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.began
}

func (d *disk) measure(ctx context.Context) (map[string]metrics.Size, error) {
	d.mu.Lock()
	d.began = append(d.began, time.Now())
	d.mu.Unlock()
	select {
	case <-time.After(d.takes):
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.sizes, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *disk) known(context.Context) (map[string]int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.homes, d.err
}

// run runs a Sizer until the test ends, for some of the bubble's time already.
func (d *disk) run(t *testing.T, already time.Duration) *metrics.Sizer {
	t.Helper()
	s := metrics.NewSizer(d.measure, d.known, nil)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	time.Sleep(already)
	synctest.Wait()
	return s
}

func TestSizer_MeasuresHourlyAndAtMostTwoPerCentOfTheTime(t *testing.T) {
	for takes, most := range map[time.Duration]int{time.Second: 25, time.Minute: 24, 5 * time.Minute: 6} {
		synctest.Test(t, func(t *testing.T) {
			d := &disk{takes: takes}
			d.run(t, 24*time.Hour)
			began := d.tries()
			if n := len(began); n < most-2 || n > most {
				t.Errorf("when it takes %s it is done %d times a day, want %d", takes, n, most)
			}
			for i := range began[1:] {
				if rest := began[i+1].Sub(began[i]) - takes; rest < time.Hour || rest < 50*takes {
					t.Errorf("when it takes %s it rests for %s", takes, rest)
				}
			}
		})
	}
}

func TestSizer_RenewsEachMinuteWhatIsKnownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{takes: time.Second, sizes: map[string]metrics.Size{"1": {Home: 5, Layer: 6}, "2": {Home: 7}}}
		s := d.run(t, 10*time.Minute)
		d.mu.Lock()
		d.homes = map[string]int64{"1": 50, "3": 9}
		d.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		for id, want := range map[string]metrics.Size{"1": {Home: 50, Layer: 6}, "2": {Home: 7}, "3": {Home: 9}} {
			if got, at, _ := s.Size(id); got != want || (time.Since(at) <= time.Minute) != (id != "2") {
				t.Errorf("%s has %+v of %s, want %+v", id, got, at, want)
			}
		}
	})
}

func TestSizer_KeepsWhatItHasWhenMeasuringFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{takes: time.Second, sizes: map[string]metrics.Size{"1": {Home: 5, Layer: 6}, "2": {Home: 7}}}
		s := d.run(t, 0)
		if _, _, ok := s.Size("1"); ok || len(s.Sizes()) > 0 {
			t.Error("it has a size before it was measured")
		}
		time.Sleep(time.Minute)
		size, at, ok := s.Size("1")
		if !ok || size != (metrics.Size{Home: 5, Layer: 6}) || !at.Equal(d.tries()[0].Add(time.Second)) {
			t.Errorf("got %+v of %s, %v", size, at, ok)
		}
		d.set(nil, errors.New("no answer"))
		time.Sleep(3 * time.Hour)
		if again, then, ok := s.Size("1"); !ok || again != size || !then.Equal(at) {
			t.Errorf("after a failure it has %+v of %s, %v", again, then, ok)
		}
		if n := len(d.tries()); n < 20 {
			t.Errorf("after a failure it was tried %d times", n)
		}
		d.set(map[string]metrics.Size{"2": {Home: 8}}, nil)
		time.Sleep(10 * time.Minute)
		if all := s.Sizes(); len(all) != 1 || all["2"].Home != 8 || !all["2"].Time.After(at) {
			t.Errorf("later it has %+v", all)
		}
	})
}

// An engine may measure for one program at a time.
func TestSizer_TriesAgainSoonWhenTheEngineWasBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{err: errors.New("measuring for another program")}
		s := d.run(t, 25*time.Second)
		d.set(map[string]metrics.Size{"1": {Home: 5}}, nil)
		time.Sleep(25 * time.Second)
		if _, _, ok := s.Size("1"); !ok || len(d.tries()) != 3 {
			t.Errorf("it was tried at %v", d.tries())
		}
		d.set(nil, errors.New("no answer"))
		time.Sleep(24 * time.Hour)
		if n := len(d.tries()); n < 250 || n > 300 {
			t.Errorf("in a day without an answer it was tried %d times", n)
		}
	})
}

func TestSizer_GivesUpAfterTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{takes: 24 * time.Hour}
		s := d.run(t, 24*time.Hour)
		if n := len(d.tries()); n != 3 { // each takes ten minutes, and is followed by a pause of 50 times that
			t.Errorf("it was tried %d times", n)
		}
		if len(s.Sizes()) > 0 {
			t.Error("it has a size")
		}
	})
}
