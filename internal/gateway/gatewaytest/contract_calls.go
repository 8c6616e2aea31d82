package gatewaytest

import (
	"fmt"
	"testing"
	"time"

	"sandboxd/internal/gateway"
)

func contractCalls(t *testing.T, s gateway.Store) {
	ctx := t.Context()
	whole := gateway.Call{
		ID: "0002", Time: noon.Add(time.Microsecond), User: Owners[1], Label: "token", Provider: "ä", Protocol: "messages", Asked: "a\"b", Model: "m'n", Stream: true, Status: 529,
		FirstByte: 1234567 * time.Nanosecond, Took: time.Hour, Tokens: gateway.Tokens{Input: 1 << 40, Output: 2, CacheRead: 3, CacheWrite: 4}, Cost: 1 << 50, Priced: true,
		Problem: "It is overloaded.", Request: `{"model": "a"}`, Answer: answerText,
	}
	first, asked := call(1), call(3)
	asked.Request = "asked"
	ok(t, s.AddCalls(ctx, []gateway.Call{asked, whole}))
	ok(t, s.AddCalls(ctx, []gateway.Call{first}))
	for _, c := range []gateway.Call{first, whole, asked} {
		same(t, "call "+c.ID, must[gateway.Call](t)(s.Call(ctx, c.ID)), c)
	}
	whole.Request, whole.Answer, asked.Request = "", "", ""
	same(t, "calls", must[[]gateway.Call](t)(s.Calls(ctx, gateway.CallQuery{})), []gateway.Call{asked, whole, first})
}

// ids gives those of calls that are found.
func ids(t *testing.T, s gateway.Store, q gateway.CallQuery) (list []string) {
	t.Helper()
	for _, c := range must[[]gateway.Call](t)(s.Calls(t.Context(), q)) {
		list = append(list, c.ID)
	}
	return list
}

func contractFind(t *testing.T, s gateway.Store) {
	var all []gateway.Call
	for n := range 6 {
		all = append(all, call(n))
	}
	all[1].User, all[1].Status = Owners[1], 429
	all[2].Sandbox, all[2].Label, all[2].Model = Sandboxes[1], "other", "fast"
	all[3].Sandbox, all[3].Label, all[3].Asked = "", Sandboxes[1], "gpt-5" // a token with an odd name
	all[4].Sandbox, all[4].Label, all[4].Asked, all[4].Model, all[4].Status = "", "", "", "", 400
	all[5].Status = 399
	ok(t, s.AddCalls(t.Context(), all))
	for name, c := range map[string]struct {
		q    gateway.CallQuery
		want []string
	}{
		"all":                   {gateway.CallQuery{}, []string{"0005", "0004", "0003", "0002", "0001", "0000"}},
		"user":                  {gateway.CallQuery{User: Owners[1]}, []string{"0001"}},
		"sandbox by id or name": {gateway.CallQuery{Sandbox: Sandboxes[1]}, []string{"0003", "0002"}},
		"sandbox by name":       {gateway.CallQuery{Sandbox: "other"}, []string{"0002"}},
		"model":                 {gateway.CallQuery{Model: "gpt-6"}, []string{"0005", "0003", "0001", "0000"}},
		"model as asked":        {gateway.CallQuery{Model: "fast"}, []string{"0005", "0002", "0001", "0000"}},
		"failed":                {gateway.CallQuery{Failed: true}, []string{"0004", "0001"}},
		"before":                {gateway.CallQuery{Before: "0002"}, []string{"0001", "0000"}},
		"limit":                 {gateway.CallQuery{Limit: 1}, []string{"0005"}},
		"all at once":           {gateway.CallQuery{User: Owners[0], Sandbox: "lab", Model: "fast", Before: "0005", Limit: 1}, []string{"0000"}},
		"none":                  {gateway.CallQuery{User: Owners[1], Sandbox: "other"}, nil},
	} {
		same(t, name, ids(t, s, c.q), c.want)
	}
}

func contractPages(t *testing.T, s gateway.Store) {
	var all []gateway.Call
	for n := range 25 {
		all = append(all, call(n))
	}
	ok(t, s.AddCalls(t.Context(), all))
	var got []string
	for q := (gateway.CallQuery{Sandbox: "lab", Limit: 10}); ; {
		page := ids(t, s, q)
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		q.Before = page[len(page)-1]
	}
	for n := range 25 {
		if len(got) != 25 || got[n] != fmt.Sprintf("%04d", 24-n) {
			t.Fatalf("pages give %v", got)
		}
	}
}

// total gives all that was used within a day around noon.
func total(t *testing.T, s gateway.Store, by string) []gateway.Usage {
	t.Helper()
	return must[[]gateway.Usage](t)(s.Usage(t.Context(), gateway.UsageQuery{From: noon.Add(-12 * time.Hour), To: noon.Add(12 * time.Hour), By: by}))
}

func contractAgain(t *testing.T, s gateway.Store) {
	for range 2 {
		ok(t, s.AddCalls(t.Context(), []gateway.Call{call(1), call(2)}))
	}
	ok(t, s.AddCalls(t.Context(), []gateway.Call{call(2), call(3), call(3)}))
	same(t, "calls", ids(t, s, gateway.CallQuery{}), []string{"0003", "0002", "0001"})
	same(t, "requests", total(t, s, "")[0].Requests, 3)
}

func contractCounted(t *testing.T, s gateway.Store) {
	c := call(1)
	c.ID = ""
	ok(t, s.AddCalls(t.Context(), []gateway.Call{c, c, call(2)}))
	ok(t, s.AddCalls(t.Context(), []gateway.Call{c}))
	same(t, "calls", ids(t, s, gateway.CallQuery{}), []string{"0002"})
	same(t, "requests", total(t, s, "")[0].Requests, 4)
}

func contractUsage(t *testing.T, s gateway.Store) {
	a, b, c, refused := call(1), call(2), call(3), call(4)
	b.Sandbox, b.Label, b.Model, b.Tokens.Output = Sandboxes[1], "other", "gpt-5", 1000
	c.User, c.Sandbox, c.Label, c.Provider, c.Model, c.Status = Owners[1], "", "token", "local", "llama", 500
	refused.Provider, refused.Model, refused.Status, refused.Tokens, refused.Cost = "", "", 429, gateway.Tokens{}, 0
	ok(t, s.AddCalls(t.Context(), []gateway.Call{a, b, c, refused}))
	one, most := gateway.Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, gateway.Tokens{Input: 1, Output: 1000, CacheRead: 3, CacheWrite: 4}
	ada := gateway.Usage{Requests: 3, Failed: 1, Tokens: gateway.Tokens{Input: 2, Output: 1002, CacheRead: 6, CacheWrite: 8}, Cost: 10}
	bob := gateway.Usage{Requests: 1, Failed: 1, Tokens: one, Cost: 5}
	same(t, "in total", total(t, s, ""), []gateway.Usage{plus(ada, bob)})
	with := func(u gateway.Usage, key, label string) gateway.Usage {
		u.Key, u.Label = key, label
		return u
	}
	by := total(t, s, "user")
	for i := range by {
		by[i].Label = "" // a store that knows users has their names
	}
	same(t, "by user", by, []gateway.Usage{with(ada, Owners[0], ""), with(bob, Owners[1], "")})
	first, second := gateway.Usage{Requests: 2, Failed: 1, Tokens: one, Cost: 5}, gateway.Usage{Requests: 1, Tokens: most, Cost: 5}
	same(t, "by sandbox", total(t, s, "sandbox"), []gateway.Usage{with(second, Sandboxes[1], "other"), with(first, Sandboxes[0], "lab"), with(bob, "", "")})
	none, cloud := gateway.Usage{Requests: 1, Failed: 1}, plus(gateway.Usage{Requests: 1, Tokens: one, Cost: 5}, second)
	same(t, "by provider", total(t, s, "provider"), []gateway.Usage{with(cloud, "cloud", "cloud"), with(bob, "local", "local"), with(none, "", "")})
	day := gateway.UsageQuery{From: noon, To: noon.Add(time.Hour)}
	user, box, served := day, day, day
	user.User, box.Sandbox, served.Served = Owners[1], Sandboxes[0], true
	same(t, "of a user", must[[]gateway.Usage](t)(s.Usage(t.Context(), user)), []gateway.Usage{bob})
	same(t, "of a sandbox", must[[]gateway.Usage](t)(s.Usage(t.Context(), box)), []gateway.Usage{first})
	same(t, "served", must[[]gateway.Usage](t)(s.Usage(t.Context(), served)), []gateway.Usage{plus(cloud, bob)})
}

func contractParts(t *testing.T, s gateway.Store) {
	at := func(d time.Duration, id string) gateway.Call {
		c := call(0)
		c.ID, c.Time = id, noon.Add(d)
		return c
	}
	ok(t, s.AddCalls(t.Context(), []gateway.Call{
		at(-time.Microsecond, "1"), at(0, "2"), at(time.Hour-time.Microsecond, "3"), at(time.Hour, "4"), at(5*time.Hour, "5"), at(6*time.Hour, "6")}))
	list := must[[]gateway.Usage](t)(s.Usage(t.Context(), gateway.UsageQuery{From: noon, To: noon.Add(6 * time.Hour), Step: 2 * time.Hour, By: "model"}))
	type part struct {
		hours    float64
		requests int64
		key      string
	}
	var got []part
	for _, u := range list {
		got = append(got, part{u.From.Sub(noon).Hours(), u.Requests, u.Key})
	}
	same(t, "parts", got, []part{{0, 3, "gpt-6"}, {4, 1, "gpt-6"}})
}

func contractModels(t *testing.T, s gateway.Store) {
	const more = 5
	var all []gateway.Call
	for n := range gateway.MaxUsageRows + more {
		c := call(0)
		c.ID, c.Model = "", fmt.Sprintf("made-up-%d", n)
		bad := c
		bad.Model, bad.Status = fmt.Sprintf("unknown-%d", n), 404
		all = append(all, c, bad)
	}
	next := call(0)
	next.ID, next.Model = "", "made-up-0"
	other := next
	other.Sandbox, other.Model = Sandboxes[1], "another"
	cut := other // the client left in the middle of the answer, which was counted
	cut.Status, cut.FirstByte = 499, time.Second
	ok(t, s.AddCalls(t.Context(), append(all, next, other, cut)))
	list := total(t, s, "model")
	same(t, "models", len(list), gateway.MaxUsageRows+1) // one of the rows is of those that failed
	by := map[string]int64{}
	for _, u := range list {
		by[u.Key] = u.Requests
	}
	same(t, "without a model", by[""], gateway.MaxUsageRows+more+more+1)
	same(t, "one that was known", by["made-up-0"], 2)
	same(t, "of another sandbox", by["another"], 2)
}

func contractSweep(t *testing.T, s gateway.Store) {
	ctx, now := t.Context(), noon.Add(gateway.KeepUsage)
	old, late, last := call(1), call(2), call(61)
	old.Request = "asked"
	last.Time = now
	ok(t, s.AddCalls(ctx, []gateway.Call{old, late, last}))
	ok(t, s.SweepCalls(ctx, late.Time, now.Add(time.Hour-time.Microsecond)))
	same(t, "calls", ids(t, s, gateway.CallQuery{}), []string{"0061", "0002"})
	usage := func() int64 {
		return must[[]gateway.Usage](t)(s.Usage(ctx, gateway.UsageQuery{From: noon, To: now.Add(time.Hour)}))[0].Requests
	}
	same(t, "used", usage(), 3)
	ok(t, s.SweepCalls(ctx, late.Time, now.Add(time.Hour)))
	same(t, "used, an hour later", usage(), 1)
}
