package web

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// alarmed runs in a bubble with a server that has just started, whose engine fails. told waits for what a page's stream
// is told next.
func alarmed(t *testing.T, run func(engine *fakeEngine, told func() string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine := &fakeEngine{}
		engine.fail(errUnseen)
		s := &Server{
			cfg:   Config{Checks: []Check{{Name: "engine", Ask: engine.ask}}, Now: time.Now},
			alarm: alarm{grace: time.Now().Add(alarmGrace)},
		}
		tells := make(chan string)
		go s.watchAlarm(t.Context(), "", tells)
		run(engine, func() string {
			select {
			case text := <-tells:
				return text
			case <-time.After(time.Minute):
				return "nothing"
			}
		})
	})
}

func TestAlarm_SaysNothingInTheFirstSecondsAfterAStart(t *testing.T) {
	alarmed(t, func(engine *fakeEngine, told func() string) {
		time.AfterFunc(2*time.Second, func() { engine.fail(nil) })
		if got := told(); got != "nothing" {
			t.Errorf("said %q", got)
		}
	})
}

func TestAlarm_SaysSoOnceTheFirstSecondsAreOver(t *testing.T) {
	alarmed(t, func(_ *fakeEngine, told func() string) {
		begun := time.Now()
		if got := told(); got != alarmText([]string{"engine"}) {
			t.Errorf("said %q", got)
		}
		if took := time.Since(begun); took < alarmGrace || took > alarmGrace+alarmSoon {
			t.Errorf("after %v", took)
		}
	})
}

func TestAlarm_IsOverAsSoonAsAllIsWell(t *testing.T) {
	alarmed(t, func(engine *fakeEngine, told func() string) {
		told()
		engine.fail(nil)
		begun := time.Now()
		if got := told(); got != "" {
			t.Errorf("said %q", got)
		}
		if took := time.Since(begun); took > alarmSoon {
			t.Errorf("after %v", took)
		}
	})
}

func TestAlarm_AHungEngineIsToldWithinTenSeconds(t *testing.T) {
	for i := range 100 {
		after, apart := i%10, time.Duration(i/10)*600*time.Millisecond // how far the looks of two pages are apart
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now().Add(time.Duration(after)*time.Second + time.Millisecond)
			s := &Server{cfg: Config{Now: time.Now, Checks: []Check{{Name: "engine", Ask: func(ctx context.Context) error {
				if time.Now().Before(begun) {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}}}}}
			tells := make(chan string)
			go s.watchAlarm(t.Context(), "", tells)
			time.AfterFunc(apart, func() { s.watchAlarm(t.Context(), "", tells) })
			for range 2 {
				if text := <-tells; text != alarmText([]string{"engine"}) {
					t.Errorf("said %q", text)
				}
				if took := time.Since(begun); took >= 10*time.Second {
					t.Errorf("hung after %d s, pages %v apart: told %v later", after, apart, took)
				}
			}
		})
	}
}

func TestAlarm_IsNotShownWhenNobodyHasAskedForLong(t *testing.T) {
	s := newStage(t)
	s.engine.fail(errUnseen)
	s.server.checkAlarm(t.Context())
	if got := s.server.alarm.last(stageTime); got == "" {
		t.Error("says nothing")
	}
	if got := s.server.alarm.last(stageTime.Add(time.Hour)); got != "" {
		t.Errorf("says %q", got)
	}
}

func TestAlarm_ALeavingStreamLearnsNothing(t *testing.T) {
	s := newStage(t)
	s.engine.fail(errUnseen)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got := s.server.checkAlarm(gone); got != "" {
		t.Errorf("said %q", got)
	}
	if got := s.server.checkAlarm(t.Context()); got == "" {
		t.Error("the next one is not asked")
	}
}
