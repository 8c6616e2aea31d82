package gateway_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
)

var caller = gateway.Caller{User: "u1", Sandbox: "s1", Label: "lab"}

func (c *control) budget(t *testing.T, list ...gateway.Budget) {
	t.Helper()
	for _, b := range list {
		if err := c.SetBudget(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// served is a call of the caller that a provider has answered.
func served(c *control) gateway.Call {
	return gateway.Call{Time: c.clock(), User: caller.User, Sandbox: caller.Sandbox, Label: caller.Label, Provider: "cloud", Protocol: "chat", Asked: "fast", Model: "small",
		Status: 200, Tokens: gateway.Tokens{Input: 40, Output: 30, CacheRead: 20, CacheWrite: 10}, Cost: 500_000, Priced: true}
}

// wantSpent checks that a caller is refused, until when, and what is said.
func (c *control) wantSpent(t *testing.T, of gateway.Caller, until time.Time, says string) {
	t.Helper()
	err := c.Admit(of)
	wantFault(t, "admit", err, fault.Limited, says)
	spent := (*gateway.Spent)(nil)
	if !errors.As(err, &spent) || !spent.Ends.Equal(until) || fault.RetryAfter(err) != until.Sub(c.clock()).Round(time.Second) {
		t.Errorf("%v; it ends %v, retry after %s", err, spent, fault.RetryAfter(err))
	}
}

func (c *control) wantAdmitted(t *testing.T, of gateway.Caller) {
	t.Helper()
	if err := c.Admit(of); err != nil {
		t.Error(err)
	}
}

func TestSetBudget_SaysByTheFieldWhatIsWrong(t *testing.T) {
	c := newControl(t)
	good := gateway.Budget{Scope: gateway.PerUser, Period: gateway.Day, Requests: 1}
	for field, edit := range map[string]func(*gateway.Budget){
		"scope":    func(b *gateway.Budget) { b.Scope = "team" },
		"period":   func(b *gateway.Budget) { b.Period = "year" },
		"requests": func(b *gateway.Budget) { b.Requests = 0 },
		"tokens":   func(b *gateway.Budget) { b.Tokens = -1 },
		"cost":     func(b *gateway.Budget) { b.Cost = math.MaxInt64 },
	} {
		b := good
		edit(&b)
		wantField(t, field, c.SetBudget(t.Context(), b), field)
	}
	if n := len(c.Budgets()); n != 0 {
		t.Errorf("there are %d budgets", n)
	}
	wantFault(t, "remove none", c.RemoveBudget(t.Context(), gateway.PerUser, "", gateway.Day), fault.NotFound, "no such budget")
	wantField(t, "remove of no scope", c.RemoveBudget(t.Context(), "team", "", gateway.Day), "scope")
	c.store.Forget("u2")
	good.Subject = "u2"
	wantFault(t, "of one who is gone", c.SetBudget(t.Context(), good), fault.NotFound, "deleted")
}

var tomorrow, december = time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC), time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func TestAdmit_RefusesWhenABudgetIsSpent(t *testing.T) {
	for name, v := range map[string]struct {
		budget gateway.Budget
		until  time.Time
		says   string
	}{
		"requests": {gateway.Budget{Scope: gateway.PerUser, Period: gateway.Day, Requests: 2}, tomorrow,
			"Your budget for models, 2 requests a day, is spent. It begins anew at 2026-11-29 00:00 UTC, in 2 hours. An admin can raise it."},
		"tokens":     {gateway.Budget{Scope: gateway.PerSandbox, Period: gateway.Day, Tokens: 200}, tomorrow, "This sandbox's budget for models, 200 tokens a day, is spent."},
		"money":      {gateway.Budget{Scope: gateway.PerUser, Subject: "u1", Period: gateway.Month, Cost: 1_000_000}, december, "$1.00 a month, is spent. It begins anew at 2026-12-01 00:00 UTC, in 3 days."},
		"of its own": {gateway.Budget{Scope: gateway.PerSandbox, Subject: "s1", Period: gateway.Month, Requests: 2, Tokens: 1_000_000}, december, "2 requests a month"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newControl(t)
			c.budget(t, v.budget)
			for range 2 {
				c.wantAdmitted(t, caller)
				c.Record(served(c))
			}
			c.wantSpent(t, caller, v.until, v.says)
			c.wantAdmitted(t, gateway.Caller{User: "u2", Sandbox: "s2"})
			c.setClock(v.until.Add(-time.Nanosecond))
			if err := c.Admit(caller); err == nil {
				t.Error("admitted before the period ends")
			}
			c.setClock(v.until)
			c.wantAdmitted(t, caller)
		})
	}
}

func TestAdmit_EachBudgetBinds(t *testing.T) {
	c := newControl(t)
	c.budget(t,
		gateway.Budget{Scope: gateway.PerUser, Period: gateway.Day, Requests: 1},
		gateway.Budget{Scope: gateway.PerUser, Subject: "u1", Period: gateway.Day, Requests: 3}, // in the place of the one before
		gateway.Budget{Scope: gateway.PerUser, Period: gateway.Month, Requests: 5},
		gateway.Budget{Scope: gateway.PerSandbox, Period: gateway.Day, Requests: 2})
	s2, outside := gateway.Caller{User: "u1", Sandbox: "s2"}, gateway.Caller{User: "u1"}
	c.wantAdmitted(t, caller)
	c.wantAdmitted(t, caller)
	c.wantSpent(t, caller, tomorrow, "This sandbox's budget for models, 2 requests a day")
	c.wantAdmitted(t, s2)
	c.wantSpent(t, s2, tomorrow, "Your budget for models, 3 requests a day")
	c.wantSpent(t, outside, tomorrow, "Your budget for models, 3 requests a day")
	c.setClock(tomorrow)
	c.wantAdmitted(t, outside)
	c.wantAdmitted(t, outside)
	c.wantSpent(t, outside, december, "5 requests a month")
	c.budget(t, gateway.Budget{Scope: gateway.PerUser, Subject: "u1", Period: gateway.Day, Requests: 2})
	c.wantSpent(t, outside, december, "5 requests a month") // that of the day ends sooner, which would not help
	if err := c.RemoveBudget(t.Context(), gateway.PerUser, "", gateway.Month); err != nil {
		t.Fatal(err)
	}
	c.wantSpent(t, outside, tomorrow.AddDate(0, 0, 1), "2 requests a day")
}

func TestAdmit_ManyAtOnceDoNotAllPass(t *testing.T) {
	c := newControl(t)
	const most, callers = 100, 10_000
	c.budget(t, gateway.Budget{Scope: gateway.PerSandbox, Period: gateway.Day, Requests: most})
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for range callers / 100 {
				if c.Admit(caller) == nil {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := admitted.Load(); n != most {
		t.Errorf("%d were admitted", n)
	}
}

func TestAdmit_TheKillSwitchRefusesAll(t *testing.T) {
	c := newControl(t)
	if err := c.SetSettings(t.Context(), gateway.Settings{Off: true}); err != nil || !c.Settings().Off {
		t.Fatal(c.Settings(), err)
	}
	err := c.Admit(caller)
	wantFault(t, "while off", err, fault.Forbidden, "turned off")
	if !errors.Is(err, gateway.ErrOff) {
		t.Errorf("%v is not ErrOff", err)
	}
	c.reopen(t)
	if err := c.Admit(caller); !errors.Is(err, gateway.ErrOff) {
		t.Errorf("after a restart: %v", err)
	}
	if err := c.SetSettings(t.Context(), gateway.Settings{}); err != nil {
		t.Fatal(err)
	}
	c.wantAdmitted(t, caller)
}

func TestOpen_KnowsWhatWasUsedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.budget(t, gateway.Budget{Scope: gateway.PerUser, Period: gateway.Day, Requests: 2}, gateway.Budget{Scope: gateway.PerSandbox, Period: gateway.Month, Tokens: 1000})
		end := c.running(t)
		long, yesterday, refused := served(c), served(c), served(c)
		long.Time = time.Date(2026, 10, 31, 23, 59, 0, 0, time.UTC)
		yesterday.Time = c.clock().Add(-24 * time.Hour)
		refused.Provider, refused.Status, refused.Tokens = "", 402, gateway.Tokens{}
		for _, call := range []gateway.Call{long, yesterday, served(c), refused} {
			c.Record(call)
		}
		end()
		c.reopen(t)
		at := c.Standing("u1", "s1")
		if len(at) != 2 || at[0].Used.Requests != 1 || at[1].Used.Tokens.Total() != 200 || at[1].Used.Requests != 2 {
			t.Errorf("after a restart: %+v", at)
		}
		c.wantAdmitted(t, caller)
		c.wantSpent(t, caller, tomorrow, "2 requests a day")
	})
}

func TestStanding_GivesWhatBindsAndWhatIsUsed(t *testing.T) {
	c := newControl(t)
	c.budget(t, gateway.Budget{Scope: gateway.PerUser, Period: gateway.Day, Requests: 1, Tokens: 1000}, gateway.Budget{Scope: gateway.PerSandbox, Subject: "s1", Period: gateway.Month, Cost: 1_000_000})
	c.wantAdmitted(t, caller)
	failed := served(c)
	failed.Status = 500
	c.Record(failed)
	list := c.Standing("u1", "s1")
	if len(list) != 2 || !list[0].Spent() || list[1].Spent() {
		t.Fatalf("standing is %+v", list)
	}
	day, month := list[0], list[1]
	if day.Scope != gateway.PerUser || day.Used.Requests != 1 || day.Used.Failed != 1 || day.Used.Tokens.Total() != 100 || !day.Used.From.Equal(tomorrow.AddDate(0, 0, -1)) || !day.Ends.Equal(tomorrow) {
		t.Errorf("of the day: %+v", day)
	}
	if month.Subject != "s1" || month.Used.Cost != 500_000 || month.Used.From.Day() != 1 || !month.Ends.Equal(december) {
		t.Errorf("of the month: %+v", month)
	}
	for who, want := range map[[2]string]int{{"u2", "s2"}: 1, {"", "s1"}: 1, {"u1", ""}: 1, {"", ""}: 0} {
		if got := c.Standing(who[0], who[1]); len(got) != want || slices.ContainsFunc(got, func(s gateway.Standing) bool { return who[0] == "u2" && s.Used.Requests != 0 }) {
			t.Errorf("of %v: %+v", who, got)
		}
	}
}

func TestAdmit_ABudgetSaysSmallAndLargeAmountsAsTheyAre(t *testing.T) {
	for want, b := range map[string]gateway.Budget{
		"$0.000001 a day":        {Cost: 1},
		"$1,234.50 a day":        {Cost: 1_234_500_000},
		"1 request a day":        {Requests: 1},
		"1,000,000 tokens a day": {Tokens: 1_000_000},
	} {
		c := newControl(t)
		b.Scope, b.Period = gateway.PerUser, gateway.Day
		c.budget(t, b)
		call := served(c)
		call.Cost, call.Tokens = 1_234_500_000, gateway.Tokens{Input: 1_000_000}
		c.wantAdmitted(t, caller)
		c.Record(call)
		if err := c.Admit(caller); !strings.Contains(fault.Message(err), want) {
			t.Errorf("%+v: %v", b, err)
		}
	}
}
