package alerttest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
)

// Owners are the users whom the contract's rules and channels belong to. They must be there in a store that knows of users.
var Owners = []string{"owner-1", "owner-2"}

// StoreContract checks that what open gives keeps alert.Store's contract. open is called for each test and gives an empty store, which
// it closes itself at the end of the test.
func StoreContract(t *testing.T, open func(t *testing.T) alert.Store) {
	t.Helper()
	for name, run := range map[string]func(*testing.T, alert.Store){
		"RulesComeBackInTheirOrder":         contractRules,
		"BeginGivesTheFirstRulesOnce":       contractBegin,
		"ChannelsComeBackByName":            contractChannels,
		"DeletingAChannelTakesDeliveries":   contractDeleteChannel,
		"AlertsComeBackAndOpenAreThoseLeft": contractOpen,
		"FindKeepsToTheScope":               contractScope,
		"PagesCoverAllOnce":                 contractPages,
		"DeliveriesComeBack":                contractDeliveries,
		"DueGivesOneOfEachChannel":          contractDue,
		"DeliveryToNoChannelIsLeftOut":      contractNoChannel,
		"SweepDeletesWhatIsOver":            contractSweep,
		"CancelledContextEndsTheCall":       contractCancelled,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

func contractBegin(t *testing.T, s alert.Store) {
	ctx := t.Context()
	ok(t, s.SetRules(ctx, Owners[0], []alert.Rule{{ID: "own", Name: "Own", Kind: alert.OOMKill, Owner: Owners[0]}}))
	for range 2 {
		ok(t, s.Begin(ctx, []alert.Rule{{ID: "first", Name: "First", Kind: alert.OOMKill}}))
		same(t, "rules", len(must[[]alert.Rule](t)(s.Rules(ctx))), 2)
	}
	ok(t, s.SetRules(ctx, "", nil))
	ok(t, s.Begin(ctx, []alert.Rule{{ID: "first", Name: "First", Kind: alert.OOMKill}}))
	same(t, "rules after they were deleted", len(must[[]alert.Rule](t)(s.Rules(ctx))), 1)
}

// must gives what a call gave, and ends the test when it failed.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n%+v\nwant\n%+v", what, got, want)
	}
}

// now is a time that comes back as it was put in.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

func contractRules(t *testing.T, s alert.Store) {
	ctx := t.Context()
	full := alert.Rule{ID: "r1", Owner: "owner-1", Name: "ä\"'", Kind: alert.LogLine, SandboxID: "0123", Template: "base", Threshold: 1.5, Pattern: `"a b" c*`,
		For: time.Minute, Remind: time.Hour, Disabled: true, Muted: now(), Channels: []string{"c2", "c1"}}
	second, other := alert.Rule{ID: "r0", Owner: "owner-1", Name: "b", Kind: alert.OOMKill}, alert.Rule{ID: "r9", Owner: "", Name: "c", Kind: alert.HostDisk}
	ok(t, s.SetRules(ctx, "owner-1", []alert.Rule{{ID: "old", Owner: "owner-1", Name: "old", Kind: alert.OOMKill}}))
	ok(t, s.SetRules(ctx, "owner-1", []alert.Rule{full, second}))
	ok(t, s.SetRules(ctx, "", []alert.Rule{other}))
	same(t, "rules", must[[]alert.Rule](t)(s.Rules(ctx)), []alert.Rule{other, full, second})
	ok(t, s.SetRules(ctx, "", nil))
	ok(t, s.SetRules(ctx, "owner-1", []alert.Rule{second, full}))
	same(t, "in another order", must[[]alert.Rule](t)(s.Rules(ctx)), []alert.Rule{second, full})
}

func contractChannels(t *testing.T, s alert.Store) {
	ctx := t.Context()
	b := alert.Channel{ID: "1", Owner: "owner-1", Name: "b", Kind: alert.Webhook, Address: "https://x", Secret: "whsec_x"}
	a := alert.Channel{ID: "2", Owner: "", Name: "a", Kind: alert.Email, Address: "a@b"}
	ok(t, s.PutChannel(ctx, b))
	ok(t, s.PutChannel(ctx, a))
	same(t, "channels", must[[]alert.Channel](t)(s.Channels(ctx)), []alert.Channel{a, b})
	b.Name, b.Address = "A", "https://y"
	ok(t, s.PutChannel(ctx, b))
	ok(t, s.DeleteChannel(ctx, a.ID))
	ok(t, s.DeleteChannel(ctx, a.ID))
	same(t, "what is left", must[[]alert.Channel](t)(s.Channels(ctx)), []alert.Channel{b})
}

// channels adds some.
func channels(t *testing.T, s alert.Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		ok(t, s.PutChannel(t.Context(), alert.Channel{ID: id, Name: id, Kind: alert.Webhook, Address: "https://x"}))
	}
}

// fires is an alert that has fired so many minutes ago.
func fires(id string, minutes int) alert.Alert {
	at := now().Add(-time.Duration(minutes) * time.Minute)
	return alert.Alert{ID: id, RuleID: "r1", Rule: "rule", Owner: "owner-1", Kind: alert.Memory, State: alert.Firing, Text: "uses 96 %", Since: at.Add(-time.Minute), Fired: at,
		Target: alert.Target{SandboxID: "s1", Sandbox: "lab", Owner: "owner-2", Template: "base", Part: "web"}}
}

// over is one that was resolved then.
func over(id string, minutes int) alert.Alert {
	a := fires(id, minutes+10)
	a.State, a.Resolved = alert.Resolved, a.Fired.Add(10*time.Minute)
	return a
}

func delivery(id, channel string, next time.Time) alert.Delivery {
	return alert.Delivery{ID: id, Channel: channel, Created: now().Add(-time.Minute), Next: next,
		Message: alert.Message{ID: "m" + id, Time: now(), Subject: "lab: memory", Event: alert.Fired}}
}

func contractDeleteChannel(t *testing.T, s alert.Store) {
	ctx := t.Context()
	channels(t, s, "a", "b")
	d, e := delivery("1", "a", now()), delivery("2", "b", now())
	ok(t, s.PutAlerts(ctx, nil, []alert.Delivery{d, e}))
	ok(t, s.DeleteChannel(ctx, "a"))
	ok(t, s.PutDelivery(ctx, d))
	same(t, "due", must[[]alert.Delivery](t)(s.Due(ctx, 10)), []alert.Delivery{e})
	same(t, "of the one that is gone", len(must[[]alert.Delivery](t)(s.Deliveries(ctx, "a", 10))), 0)
}

func contractOpen(t *testing.T, s alert.Store) {
	ctx := t.Context()
	a, b := fires("a", 3), fires("b", 5)
	a.Reminded, a.Muted = now(), now().Add(time.Hour)
	ok(t, s.PutAlerts(ctx, []alert.Alert{a, b}, nil))
	same(t, "open", must[[]alert.Alert](t)(s.Open(ctx)), []alert.Alert{a, b})
	a.State, a.Resolved, a.Text = alert.Resolved, now(), "used 97 %"
	ok(t, s.PutAlerts(ctx, []alert.Alert{a}, nil))
	same(t, "left", must[[]alert.Alert](t)(s.Open(ctx)), []alert.Alert{b})
	q := alert.Query{Scope: alert.Scope{All: true}}
	same(t, "all", must[[]alert.Alert](t)(s.Find(ctx, q)), []alert.Alert{b, a})
	q.State = alert.Resolved
	same(t, "resolved", must[[]alert.Alert](t)(s.Find(ctx, q)), []alert.Alert{a})
}

func contractScope(t *testing.T, s alert.Store) {
	ctx := t.Context()
	host, theirs, mine := fires("host", 1), fires("theirs", 2), fires("mine", 3)
	host.Owner, host.Target = "", alert.Target{}
	theirs.Target.Owner, theirs.Target.SandboxID, theirs.Target.Sandbox = "owner-2", "s2", "den"
	mine.Owner, mine.Target.Owner = "", "owner-1"
	ok(t, s.PutAlerts(ctx, []alert.Alert{host, theirs, mine}, nil))
	all := []alert.Alert{host, theirs, mine}
	for _, q := range []alert.Query{
		{}, {Scope: alert.Scope{All: true}}, {Scope: alert.Scope{User: "owner-1"}}, {Scope: alert.Scope{User: "owner-2"}}, {Scope: alert.Scope{User: "' OR 1 --"}},
		{Scope: alert.Scope{SandboxID: "s1"}}, {Scope: alert.Scope{User: "owner-1", SandboxID: "s1"}}, {Scope: alert.Scope{All: true, SandboxID: "s2"}},
		{Scope: alert.Scope{All: true}, Sandbox: "den"}, {Scope: alert.Scope{All: true}, Sandbox: "s1"}, {Scope: alert.Scope{User: "owner-2"}, Sandbox: "s1"},
	} {
		var want []string
		for _, a := range all {
			if q.Scope.Has(a) && (q.Sandbox == "" || q.Sandbox == a.Target.Sandbox || q.Sandbox == a.Target.SandboxID) {
				want = append(want, a.ID)
			}
		}
		same(t, fmt.Sprintf("%+v", q), idsOf(must[[]alert.Alert](t)(s.Find(ctx, q))), want)
	}
}

func idsOf(list []alert.Alert) (ids []string) {
	for _, a := range list {
		ids = append(ids, a.ID)
	}
	return ids
}

func contractPages(t *testing.T, s alert.Store) {
	ctx := t.Context()
	var all []alert.Alert
	var want []string
	for i := range 20 {
		a := fires(fmt.Sprintf("f%02d", i), i/2) // two at a time
		all = append(all, a)
	}
	for i := range 21 {
		all = append(all, over(fmt.Sprintf("o%02d", i), i/3))
	}
	ok(t, s.PutAlerts(ctx, all, nil))
	for i := 0; i < 20; i += 2 {
		want = append(want, fmt.Sprintf("f%02d", i+1), fmt.Sprintf("f%02d", i))
	}
	for i := 0; i < 21; i += 3 {
		want = append(want, fmt.Sprintf("o%02d", i+2), fmt.Sprintf("o%02d", i+1), fmt.Sprintf("o%02d", i))
	}
	var got []string
	q := alert.Query{Scope: alert.Scope{All: true}, Limit: 4}
	for {
		page := must[[]alert.Alert](t)(s.Find(ctx, q))
		got = append(got, idsOf(page)...)
		if len(page) < 4 {
			break
		}
		q.Before = page[3].ID
	}
	same(t, "pages", got, want)
	if _, err := s.Find(ctx, alert.Query{Scope: alert.Scope{All: true}, Before: "gone"}); fault.FieldOf(err) != "before" {
		t.Errorf("a page after one that is gone: %v", err)
	}
}

func contractDeliveries(t *testing.T, s alert.Store) {
	ctx := t.Context()
	channels(t, s, "a")
	one := delivery("1", "a", now())
	one.Message = alert.Message{ID: "m", Time: now(), Subject: "s", Rule: "r", Kind: alert.Memory, Event: alert.Reminder, Link: "https://x/alerts",
		Firing: []alert.Alert{fires("a", 1), fires("b", 2)}, Resolved: []alert.Alert{over("c", 3)}}
	one.Message.Firing[0].Reminded, one.Message.Firing[0].Muted = now(), now()
	two := delivery("2", "a", now())
	two.Created = two.Created.Add(time.Second)
	ok(t, s.PutAlerts(ctx, []alert.Alert{fires("a", 1)}, []alert.Delivery{one, two}))
	same(t, "newest first", must[[]alert.Delivery](t)(s.Deliveries(ctx, "a", 10)), []alert.Delivery{two, one})
	one.Message.Firing = one.Message.Firing[:1]
	ok(t, s.PutAlerts(ctx, nil, []alert.Delivery{one}))
	two.Attempts, two.Sent, two.Next = 1, now(), time.Time{}
	ok(t, s.PutDelivery(ctx, two))
	same(t, "changed", must[[]alert.Delivery](t)(s.Deliveries(ctx, "a", 10)), []alert.Delivery{two, one})
	one.Attempts, one.GivenUp, one.Next, one.Problem = 2, true, time.Time{}, "no"
	ok(t, s.PutDelivery(ctx, one))
	same(t, "given up", must[[]alert.Delivery](t)(s.Deliveries(ctx, "a", 10)), []alert.Delivery{two, one})
	same(t, "limited", len(must[[]alert.Delivery](t)(s.Deliveries(ctx, "a", 1))), 1)
	same(t, "due", len(must[[]alert.Delivery](t)(s.Due(ctx, 10))), 0)
}

func contractDue(t *testing.T, s alert.Store) {
	ctx := t.Context()
	channels(t, s, "a", "b", "c", "d")
	ok(t, s.PutAlerts(ctx, nil, []alert.Delivery{
		delivery("a2", "a", now().Add(-time.Minute)), delivery("a1", "a", now().Add(-time.Hour)), delivery("b1", "b", now().Add(-2*time.Hour)),
		delivery("c1", "c", now().Add(time.Hour)), delivery("d1", "d", now().Add(24*time.Hour)), delivery("d0", "d", time.Time{}),
	}))
	var got []string
	for _, d := range must[[]alert.Delivery](t)(s.Due(ctx, 10)) {
		got = append(got, d.ID)
	}
	same(t, "due", got, []string{"b1", "a1", "d1"})
	same(t, "at most", len(must[[]alert.Delivery](t)(s.Due(ctx, 2))), 2)
}

func contractNoChannel(t *testing.T, s alert.Store) {
	ctx := t.Context()
	channels(t, s, "a")
	ok(t, s.PutAlerts(ctx, []alert.Alert{fires("x", 1)}, []alert.Delivery{delivery("1", "gone", now()), delivery("2", "a", now())}))
	same(t, "open", len(must[[]alert.Alert](t)(s.Open(ctx))), 1)
	same(t, "due", len(must[[]alert.Delivery](t)(s.Due(ctx, 10))), 1)
}

func contractSweep(t *testing.T, s alert.Store) {
	ctx := t.Context()
	channels(t, s, "a", "b")
	const day = 24 * 60
	var queue []alert.Delivery
	for i := range alert.MaxDeliveries + 5 {
		d := delivery(fmt.Sprint("n", i), "a", time.Time{})
		d.Created = d.Created.Add(-time.Duration(i) * time.Second)
		queue = append(queue, d)
	}
	old, waits := delivery("old", "b", time.Time{}), delivery("waits", "b", now())
	old.Created, waits.Created = now().Add(-8*24*time.Hour), now().Add(-8*24*time.Hour)
	ok(t, s.PutAlerts(ctx, []alert.Alert{fires("a", 100*day), over("b", 91*day), over("c", 89*day)}, append(queue, old, waits)))
	ok(t, s.Sweep(ctx))
	got := idsOf(must[[]alert.Alert](t)(s.Find(ctx, alert.Query{Scope: alert.Scope{All: true}})))
	same(t, "alerts", got, []string{"a", "c"})
	same(t, "deliveries", len(must[[]alert.Delivery](t)(s.Deliveries(ctx, "a", 1000))), alert.MaxDeliveries)
	left := must[[]alert.Delivery](t)(s.Deliveries(ctx, "b", 1000))
	if !slices.EqualFunc(left, []string{"waits"}, func(d alert.Delivery, id string) bool { return d.ID == id }) {
		t.Errorf("left %+v", left)
	}
}

func contractCancelled(t *testing.T, s alert.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.PutAlerts(ctx, []alert.Alert{fires("a", 1)}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v", err)
	}
	if _, err := s.Due(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("due: %v", err)
	}
	same(t, "open", len(must[[]alert.Alert](t)(s.Open(t.Context()))), 0)
}
