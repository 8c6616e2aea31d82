package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
	"sandboxd/internal/sandboxtest"
)

// gatewayDB gives a database with the users and sandboxes of the contract.
func gatewayDB(t *testing.T) *DB {
	t.Helper()
	d := fresh(t)
	for i, id := range gatewaytest.Owners {
		a := account("name-of-"+id, auth.Member, i)
		a.ID = id
		mustUser(t, d.Auth(), a)
	}
	for i, id := range gatewaytest.Sandboxes {
		b := sandboxtest.Sandbox(fmt.Sprintf("box-%d", i), i)
		b.ID, b.Owner = id, gatewaytest.Owners[0]
		must(t, d.Sandboxes().Insert(t.Context(), b))
	}
	return d
}

func TestGateway_KeepsTheContract(t *testing.T) {
	gatewaytest.StoreContract(t, func(t *testing.T) gateway.Store {
		d := gatewayDB(t)
		for i, name := range []string{"lab", "other"} { // as the contract's calls name them
			_, err := d.writer.ExecContext(t.Context(), `UPDATE sandboxes SET name = ? WHERE id = ?`, name, gatewaytest.Sandboxes[i])
			must(t, err)
		}
		return d.Gateway()
	})
}

var gatewayCall = gateway.Call{ID: "1", Time: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), User: gatewaytest.Owners[0], Sandbox: gatewaytest.Sandboxes[0], Label: "lab",
	Provider: "cloud", Protocol: "chat", Asked: "fast", Model: "gpt-6", Status: 200, Tokens: gateway.Tokens{Input: 1}, Request: "asked", Answer: "answered"}

// fillGateway adds one of each to the user and the sandbox of gatewayCall.
func fillGateway(t *testing.T, d *DB) *Gateway {
	t.Helper()
	s, user, now := d.Gateway(), gatewayCall.User, gatewayCall.Time
	must(t, errors.Join(
		s.PutProvider(t.Context(), gateway.Provider{ID: "p", Owner: user, Name: "p", Kind: gateway.OpenAI, BaseURL: "https://x", Changed: now}, []byte{1}),
		s.PutAlias(t.Context(), gateway.Alias{Owner: user, Name: "fast", Targets: []gateway.Target{{Provider: "p", Model: "m"}}, Changed: now}),
		s.PutBudget(t.Context(), gateway.Budget{Scope: gateway.PerUser, Subject: user, Period: gateway.Day, Requests: 1}),
		s.PutBudget(t.Context(), gateway.Budget{Scope: gateway.PerSandbox, Subject: gatewayCall.Sandbox, Period: gateway.Day, Requests: 1}),
		s.PutBudget(t.Context(), gateway.Budget{Scope: gateway.PerUser, Period: gateway.Day, Requests: 1}),
		s.AddCalls(t.Context(), []gateway.Call{gatewayCall})))
	return s
}

func TestGateway_WhatIsOfAUserOrSandboxGoesWithThem(t *testing.T) {
	d := gatewayDB(t)
	s := fillGateway(t, d)
	must(t, d.Sandboxes().Delete(t.Context(), gatewayCall.Sandbox))
	must(t, d.Auth().DeleteUser(t.Context(), gatewayCall.User, func(auth.Account, int) error { return nil }))
	providers, err := s.Providers(t.Context())
	aliases, err2 := s.Aliases(t.Context())
	budgets, err3 := s.Budgets(t.Context())
	if err := errors.Join(err, err2, err3); err != nil || len(providers)+len(aliases) != 0 || len(budgets) != 1 || budgets[0].Subject != "" {
		t.Errorf("left are %+v, %+v and %+v, %v", providers, aliases, budgets, err)
	}
	if c, err := s.Call(t.Context(), "1"); err != nil || c.Answer != "answered" {
		t.Errorf("the call: %+v, %v", c, err)
	}
	for by, want := range map[string]string{"user": "name-of-" + gatewayCall.User, "sandbox": "lab"} {
		list, err := s.Usage(t.Context(), gateway.UsageQuery{From: gatewayCall.Time, To: gatewayCall.Time.Add(time.Hour), By: by})
		if err != nil || len(list) != 1 || list[0].Label != want || list[0].Requests != 1 {
			t.Errorf("usage by %s: %+v, %v", by, list, err)
		}
	}
	for what, err := range map[string]error{
		"provider": s.PutProvider(t.Context(), gateway.Provider{ID: "q", Owner: gatewayCall.User, Name: "q", Changed: time.Now()}, nil),
		"alias":    s.PutAlias(t.Context(), gateway.Alias{Owner: gatewayCall.User, Name: "q", Changed: time.Now()}),
		"user's":   s.PutBudget(t.Context(), gateway.Budget{Scope: gateway.PerUser, Subject: gatewayCall.User, Period: gateway.Day, Requests: 1}),
		"box's":    s.PutBudget(t.Context(), gateway.Budget{Scope: gateway.PerSandbox, Subject: gatewayCall.Sandbox, Period: gateway.Day, Requests: 1}),
	} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s of one who is gone: %v", what, err)
		}
	}
}

func TestGateway_UsageHasTheNamesOfToday(t *testing.T) {
	d := gatewayDB(t)
	s := fillGateway(t, d)
	_, err := d.writer.ExecContext(t.Context(), `UPDATE users SET name = 'renamed' WHERE id = 'owner-1'; UPDATE sandboxes SET name = 'renamed-' || id`)
	must(t, err)
	for by, want := range map[string]string{"user": "renamed", "sandbox": "renamed-" + gatewayCall.Sandbox} {
		list, err := s.Usage(t.Context(), gateway.UsageQuery{From: gatewayCall.Time, To: gatewayCall.Time.Add(time.Hour), By: by})
		if err != nil || len(list) != 1 || list[0].Label != want {
			t.Errorf("usage by %s: %+v, %v", by, list, err)
		}
	}
}

func TestGateway_ABrokenRowSaysNothingOfIt(t *testing.T) {
	d := gatewayDB(t)
	s := fillGateway(t, d)
	for table, read := range map[string]func() error{
		"gateway_providers SET models": func() error { _, err := s.Providers(t.Context()); return err },
		"gateway_aliases SET targets":  func() error { _, err := s.Aliases(t.Context()); return err },
		"gateway_contents SET answer":  func() error { _, err := s.Call(t.Context(), "1"); return err },
	} {
		_, err := d.writer.ExecContext(t.Context(), `UPDATE `+table+` = CAST('{"a": "s3cret"}' AS `+map[bool]string{true: "BLOB", false: "TEXT"}[strings.HasSuffix(table, "answer")]+`)`)
		must(t, err)
		if err := read(); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: error is %v", table, err)
		}
	}
}

func TestGateway_SweepKeepsTheNewestCallsAndContents(t *testing.T) {
	d := gatewayDB(t)
	s := d.Gateway()
	var all []gateway.Call
	for n := range 6 {
		c := gatewayCall
		c.ID, c.Answer = fmt.Sprint(n), strings.Repeat("answered", 10_000)
		all = append(all, c)
	}
	must(t, s.AddCalls(t.Context(), all))
	must(t, d.reader.QueryRowContext(t.Context(), `SELECT sum(size) / 3 FROM gateway_contents`).Scan(&s.maxContents))
	if s.maxContents > 1000 {
		t.Errorf("an answer of 80,000 bytes takes %d", s.maxContents/2)
	}
	s.maxCalls = 5
	must(t, s.SweepCalls(t.Context(), gatewayCall.Time, gatewayCall.Time))
	for n, want := range []int{0, 0, 0, 80_000, 80_000} {
		if c, err := s.Call(t.Context(), fmt.Sprint(n+1)); err != nil || len(c.Answer) != want {
			t.Errorf("call %d: %d bytes, %v", n+1, len(c.Answer), err)
		}
	}
	if _, err := s.Call(t.Context(), "0"); !fault.Is(err, fault.NotFound) {
		t.Errorf("the oldest call: %v", err)
	}
	must(t, s.SweepCalls(t.Context(), gatewayCall.Time.Add(time.Second), gatewayCall.Time))
	var left int
	must(t, d.reader.QueryRowContext(t.Context(), `SELECT count(*) FROM gateway_contents`).Scan(&left))
	if left != 0 {
		t.Errorf("%d contents are left without their calls", left)
	}
}

// manyCalls fills the log, and the usage of a month, with so many calls: of 40 users with 5 sandboxes each.
func manyCalls(t *testing.T, d *DB, n int) {
	t.Helper()
	_, err := d.writer.ExecContext(t.Context(), `
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
INSERT INTO gateway_calls (`+callColumns+`)
SELECT printf('%014x%08x', ?2 + i * ?3, i), ?2 + i * ?3, 'user-' || (i % 40), 'box-' || (i % 200), 'name-' || (i % 200), 'cloud', 'chat', 'alias-' || (i % 3), 'model-' || (i % 10), 1,
  iif(i % 100 = 0, 500, 200), 1000, 2000, 100, 200, 300, 400, 500, 1, '' FROM n`, n, time.Now().Add(-gateway.KeepCalls).UnixMicro(), gateway.KeepCalls.Microseconds()/int64(n))
	must(t, err)
	_, err = d.writer.ExecContext(t.Context(), `INSERT INTO gateway_usage (`+usageColumns+`)
SELECT time - time % 3600000000, user, sandbox, provider, model, user, label, count(*), sum(status >= 400), sum(input), sum(output), sum(cache_read), sum(cache_write), sum(cost)
FROM gateway_calls GROUP BY 1, 2, 3, 4, 5`)
	must(t, err)
}

// gatewayQuestions are what pages ask. Each gives how much it has found.
func gatewayQuestions(s *Gateway, now time.Time) map[string]func(context.Context) (int, error) {
	all := map[string]func(context.Context) (int, error){}
	for name, q := range map[string]gateway.CallQuery{
		"newest": {}, "user": {User: "user-7"}, "sandbox": {Sandbox: "box-7"}, "sandbox by name of a user": {Sandbox: "name-7", User: "user-7"}, "model": {Model: "model-7"},
		"failed": {Failed: true}, "failed of a user, sandbox and model": {User: "user-0", Sandbox: "box-0", Model: "alias-0", Failed: true}, "an old page": {Before: fmt.Sprintf("%014x", now.Add(-gateway.KeepCalls*9/10).UnixMicro()), Model: "model-7"},
	} {
		all["calls: "+name] = func(ctx context.Context) (int, error) { l, err := s.Calls(ctx, q); return len(l), err }
	}
	for _, by := range []string{"", "user", "sandbox", "model", "provider"} {
		month := gateway.UsageQuery{From: now.Add(-gateway.KeepCalls), To: now, By: by}
		days := month
		days.Step, days.User = 24*time.Hour, "user-7"
		all["usage: month by "+by] = func(ctx context.Context) (int, error) { l, err := s.Usage(ctx, month); return len(l), err }
		all["usage: days of a user by "+by] = func(ctx context.Context) (int, error) { l, err := s.Usage(ctx, days); return len(l), err }
	}
	all["add 500"] = func(ctx context.Context) (int, error) {
		var calls []gateway.Call
		for n := range 500 {
			c := gatewayCall
			c.ID, c.Time = fmt.Sprintf("%021d", n), now
			calls = append(calls, c)
		}
		return len(calls), s.AddCalls(ctx, calls)
	}
	return all
}

func TestGateway_FindsWhatPagesAskForAmongMany(t *testing.T) {
	d := gatewayDB(t)
	manyCalls(t, d, 5000)
	for name, ask := range gatewayQuestions(d.Gateway(), time.Now()) {
		if n, err := ask(t.Context()); err != nil || n == 0 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

// TestGateway_PagesOfCallsDoNotReadAllOfThem looks at how they are found.
func TestGateway_PagesOfCallsDoNotReadAllOfThem(t *testing.T) {
	d := gatewayDB(t)
	for want, q := range map[string]gateway.CallQuery{
		"PRIMARY KEY (id<?)": {Before: "1"}, "gateway_calls_by_user": {User: "u"}, "gateway_calls_by_sandbox": {Sandbox: "b"}, "gateway_calls_by_label": {Sandbox: "b"},
		"gateway_calls_by_asked": {Model: "m"}, "gateway_calls_by_model": {Model: "m", Failed: true}, "gateway_calls_failed": {Failed: true},
	} {
		query, values := findCalls(q)
		var steps []string
		must(t, d.read(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			rows, err := tx.QueryContext(ctx, "EXPLAIN QUERY PLAN "+query, values...)
			if err != nil {
				return err
			}
			steps, err = collect(rows, func(r row) (step string, err error) { return step, r.Scan(new(int), new(int), new(int), &step) })
			return err
		}))
		if plan := strings.Join(steps, "\n"); !strings.Contains(plan, want) || slices.Contains(steps, "SCAN gateway_calls") {
			t.Errorf("%+v is found so:\n%s", q, plan)
		}
	}
}
