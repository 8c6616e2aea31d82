package gateway_test

import (
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/gateway"
)

// TestAdmit_AClockThatWasAheadLeavesNoBudgetWithoutCount has a clock that tells a year too much, for a while.
func TestAdmit_AClockThatWasAheadLeavesNoBudgetWithoutCount(t *testing.T) {
	for _, period := range []gateway.Period{gateway.Day, gateway.Month} {
		synctest.Test(t, func(t *testing.T) {
			c := newControl(t)
			end := c.running(t)
			c.budget(t, gateway.Budget{Scope: gateway.PerUser, Period: period, Requests: 2})
			c.wantAdmitted(t, caller)
			c.Record(served(c))
			time.Sleep(time.Second) // it is kept
			c.setClock(saturday.AddDate(1, 0, 0))
			c.wantAdmitted(t, caller)
			c.setClock(saturday.Add(time.Hour))
			c.wantAdmitted(t, caller)
			c.Record(served(c))
			time.Sleep(time.Minute) // what was used before is read again
			if err := c.Admit(caller); err == nil {
				t.Errorf("a %s: more than its requests are admitted", period)
			}
			end()
		})
	}
}

// TestAdmit_OneWhoComesLateAtMidnightEndsNoCount has the time of a request come in after that of a later one.
func TestAdmit_OneWhoComesLateAtMidnightEndsNoCount(t *testing.T) {
	c := newControl(t)
	c.budget(t, gateway.Budget{Scope: gateway.PerUser, Period: gateway.Day, Requests: 1})
	c.setClock(tomorrow)
	c.wantAdmitted(t, caller)
	c.setClock(tomorrow.Add(-time.Millisecond))
	if err := c.Admit(caller); err == nil {
		t.Error("it is admitted")
	}
	c.setClock(tomorrow)
	c.wantSpent(t, caller, tomorrow.AddDate(0, 0, 1), "1 request a day")
}
