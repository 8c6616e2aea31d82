package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// logged gives all calls that are kept, newest first.
func (c *control) logged(t *testing.T) []gateway.Call {
	t.Helper()
	list, err := c.Calls(t.Context(), gateway.CallQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// used gives what was used around now.
func (c *control) used(t *testing.T) (u gateway.Usage) {
	t.Helper()
	list, err := c.Usage(t.Context(), gateway.UsageQuery{From: saturday.Add(-time.Hour), To: saturday.Add(time.Hour)})
	if err != nil || len(list) > 1 {
		t.Fatal(list, err)
	}
	if len(list) == 1 {
		u = list[0]
	}
	return u
}

func TestRecord_ACallIsSoonInTheLogAndTheUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.running(t)
		for n := range 3 {
			call := served(c)
			call.Asked = fmt.Sprint(n)
			c.Record(call)
		}
		time.Sleep(time.Second)
		list := c.logged(t)
		if len(list) != 3 || list[0].Asked != "2" || list[2].Asked != "0" || list[0].ID <= list[1].ID {
			t.Errorf("logged are %+v", list)
		}
		if u := c.used(t); u.Requests != 3 || u.Cost != 1_500_000 {
			t.Errorf("used is %+v", u)
		}
	})
}

func TestRun_WritesWhatWaitsAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		end := c.running(t)
		synctest.Wait()
		const calls = 2000
		for range calls {
			call := served(c)
			call.Label = "" // of many tokens
			call.Sandbox = ""
			call.User = fmt.Sprint(time.Now().UnixNano())
			c.Record(call)
		}
		end()
		if u := c.used(t); u.Requests != calls {
			t.Errorf("used is %+v", u)
		}
	})
}

func TestRecord_NeverWaitsForAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.store.Fail(fault.New(fault.Unavailable, "The disk is full."))
		c.running(t)
		synctest.Wait()
		begun := time.Now()
		for n := range gateway.MaxQueued + 1500 {
			call := served(c)
			call.User = fmt.Sprint("u", n)
			c.Record(call)
		}
		if d := time.Since(begun); d > 0 {
			t.Errorf("it waited for %s", d)
		}
		time.Sleep(time.Minute)
		if log := c.log.String(); !strings.Contains(log, "The disk is full") || !strings.Contains(log, "calls=1500") {
			t.Errorf("the log says %s", log)
		}
		c.store.Fail(nil)
		time.Sleep(time.Minute)
		if u := c.used(t); u.Requests != gateway.MaxQueued {
			t.Errorf("kept are %d", u.Requests)
		}
	})
}

func TestRecord_ABatchThatIsRefusedDoesNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.store.Fail(errors.New("a mistake"))
		c.running(t)
		c.Record(served(c))
		time.Sleep(time.Second)
		c.store.Fail(nil)
		c.Record(served(c))
		time.Sleep(time.Second)
		if log, n := c.log.String(), len(c.logged(t)); n != 1 || !strings.Contains(log, "a mistake") || !strings.Contains(log, "calls=1") {
			t.Errorf("%d are kept; the log says %s", n, log)
		}
	})
}

// stuckStore is one that does not answer while it is stuck.
type stuckStore struct {
	*gatewaytest.Store
	free chan struct{}
}

func (s stuckStore) AddCalls(ctx context.Context, calls []gateway.Call) error {
	select {
	case <-s.free:
		return s.Store.AddCalls(ctx, calls)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestRun_EndsAlsoWhenTheStoreIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := stuckStore{gatewaytest.NewStore(), make(chan struct{})}
		c := newControl(t, func(g *gateway.Config) { g.Store = store })
		end := c.running(t)
		c.Record(served(c))
		time.Sleep(time.Second)
		begun := time.Now()
		end()
		if d := time.Since(begun); d > time.Minute {
			t.Errorf("it ended after %s", d)
		}
		if log := c.log.String(); !strings.Contains(log, "could not be kept") {
			t.Errorf("the log says %s", log)
		}
	})
}

func TestRecord_OneWhoCallsAllTheTimeDoesNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.running(t)
		other := served(c)
		other.Sandbox, other.Label = "s2", "other"
		c.Record(other)
		const calls = 10_000
		for range calls {
			c.Record(served(c))
		}
		time.Sleep(time.Minute)
		list := c.logged(t)
		if len(list) != gateway.LoggedBurst+1 || list[len(list)-1].Label != "other" || c.used(t).Requests != calls+1 {
			t.Errorf("%d of %d are logged", len(list), c.used(t).Requests)
		}
	})
}

func TestRecord_ContentIsKeptOnlyWhileTheAdminSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.running(t)
		call := served(c)
		call.Request, call.Answer = strings.Repeat("a", gateway.MaxContent+1), "answered"
		for _, on := range []bool{false, true} {
			if err := c.SetSettings(t.Context(), gateway.Settings{LogContent: on}); err != nil {
				t.Fatal(err)
			}
			c.Record(call)
			time.Sleep(time.Second)
			list := c.logged(t)
			got, err := c.Call(t.Context(), list[0].ID)
			if err != nil || on != (got.Answer == "answered") || on != (len(got.Request) == gateway.MaxContent) || list[0].Answer != "" {
				t.Errorf("while it is %t: %d and %q, %v", on, len(got.Request), got.Answer, err)
			}
		}
	})
}

func TestRecord_ContentsThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		if err := c.SetSettings(t.Context(), gateway.Settings{LogContent: true}); err != nil {
			t.Fatal(err)
		}
		const fit = gateway.MaxHeld / gateway.MaxContent
		for n := range fit + 5 {
			call := served(c)
			call.Label, call.Answer = fmt.Sprint(n), strings.Repeat("a", gateway.MaxContent)
			c.Record(call)
		}
		c.running(t)
		time.Sleep(time.Minute)
		whole := 0
		for _, call := range c.logged(t) {
			if got, err := c.Call(t.Context(), call.ID); err != nil || got.Answer != "" {
				whole++
			}
		}
		if log := c.log.String(); whole != fit || !strings.Contains(log, "calls=5") {
			t.Errorf("%d contents are kept; the log says %s", whole, log)
		}
	})
}

func TestRecord_WhatAProviderSaysIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.running(t)
		call := served(c)
		call.Time = time.Time{}
		call.Model, call.Asked, call.Problem = strings.Repeat("m", 10_000), "a\x00b\n\u202ec\xff", strings.Repeat("ä", 10_000)
		call.Tokens, call.Cost, call.Took = gateway.Tokens{Input: math.MaxInt64, Output: -5, CacheRead: math.MaxInt64, CacheWrite: math.MinInt64}, math.MaxInt64, -time.Second
		for range 3 {
			c.Record(call)
		}
		time.Sleep(time.Second)
		got := c.logged(t)[0]
		if len(got.Model) > 512 || len(got.Problem) > 512 || got.Asked != "ab c?" || !got.Time.Equal(saturday) || got.Tokens.Output != 0 || got.Took != 0 || got.Tokens.Total() < 0 || got.Cost < 0 {
			t.Errorf("logged is %+v", got)
		}
		if u := c.used(t); u.Cost <= 0 || u.Tokens.Total() <= 0 {
			t.Errorf("used is %+v", u)
		}
	})
}

func TestRecord_IsSafeFromManySides(t *testing.T) {
	c := newControl(t)
	end := c.running(t)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			for range 50 {
				call := served(c)
				call.Label = fmt.Sprint(n)
				c.Record(call)
			}
		})
	}
	all.Wait()
	end()
	list := c.logged(t)
	slices.SortFunc(list, func(a, b gateway.Call) int { return strings.Compare(a.ID, b.ID) })
	if unique := slices.CompactFunc(slices.Clone(list), func(a, b gateway.Call) bool { return a.ID == b.ID }); len(unique) != 1000 {
		t.Errorf("%d of them are logged", len(unique))
	}
}

func TestUsage_SaysWhatIsWrong(t *testing.T) {
	c := newControl(t)
	good := gateway.UsageQuery{From: saturday.Add(-time.Hour), To: saturday}
	for field, edit := range map[string]func(*gateway.UsageQuery){
		"to":   func(q *gateway.UsageQuery) { q.To = q.From },
		"by":   func(q *gateway.UsageQuery) { q.By = "day" },
		"step": func(q *gateway.UsageQuery) { q.Step = time.Minute },
	} {
		q := good
		edit(&q)
		_, err := c.Usage(t.Context(), q)
		wantField(t, field, err, field)
	}
	good.From, good.Step = saturday.AddDate(-3, 0, 0), time.Hour
	_, err := c.Usage(t.Context(), good)
	wantField(t, "three years of hours", err, "step")
}

func TestRun_DeletesOldCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.running(t)
		c.Record(served(c))
		time.Sleep(time.Second)
		c.setClock(saturday.Add(gateway.KeepCalls + time.Hour))
		time.Sleep(2 * time.Hour)
		if n := len(c.logged(t)); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}
