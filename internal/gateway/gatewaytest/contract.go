package gatewaytest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
)

// Owners are the users, and Sandboxes the ids of the sandboxes, that the contract's entries are about. They must be there in a store that
// knows of users and sandboxes.
var (
	Owners    = []string{"owner-1", "owner-2"}
	Sandboxes = []string{"00000000000000a1", "00000000000000a2"}
)

// StoreContract checks that what open gives keeps gateway.Store's contract. open is called for each test and gives an empty store.
func StoreContract(t *testing.T, open func(t *testing.T) gateway.Store) {
	t.Helper()
	for name, run := range map[string]func(*testing.T, gateway.Store){
		"ProvidersComeBackByOwnerAndName": contractProviders,
		"AKeyIsKeptUntilItIsDropped":      contractKeys,
		"ANameIsTakenOnceOfAnOwner":       contractNames,
		"AliasesComeBack":                 contractAliases,
		"BudgetsComeBack":                 contractBudgets,
		"SettingsComeBack":                contractSettings,
		"CallsComeBackNewestFirst":        contractCalls,
		"CallsAreFound":                   contractFind,
		"PagesCoverAllOnce":               contractPages,
		"ABatchCanBeAddedAgain":           contractAgain,
		"ACallWithoutIDIsCountedOnly":     contractCounted,
		"UsageIsSummedUp":                 contractUsage,
		"UsageIsOfItsParts":               contractParts,
		"UsageForgetsNamesOfModels":       contractModels,
		"SweepDeletesWhatIsOver":          contractSweep,
		"WhatIsGivenIsACopy":              contractCopies,
		"CancelledContextEndsTheCall":     contractCancelled,
		"DeletingWhatIsNotThereIsNoError": contractNothing,
		"AnEmptyStoreGivesNothing":        contractEmpty,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
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

// noon is a time in the middle of a day, which comes back as it was put in.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func provider(id, owner, name string) gateway.Provider {
	return gateway.Provider{ID: id, Owner: owner, Name: name, Kind: gateway.OpenAI, BaseURL: "https://api.example.com/v1", Models: []string{"gpt-6", "ä/b:c"}, Changed: noon}
}

func contractProviders(t *testing.T, s gateway.Store) {
	ctx := t.Context()
	b, a, own := provider("2", "", "b"), provider("1", "", "a"), provider("3", Owners[0], "a")
	own.Kind, own.Models, own.BaseURL, own.Inside = gateway.Ollama, nil, "", gateway.Inside{Sandbox: Sandboxes[0], Name: "lab", Port: 11434}
	for _, p := range []gateway.Provider{own, b, a} {
		ok(t, s.PutProvider(ctx, p, nil))
	}
	same(t, "providers", must[[]gateway.Provider](t)(s.Providers(ctx)), []gateway.Provider{a, b, own})
	b.Name, b.Kind, b.BaseURL, b.Models, b.Changed = "c", gateway.Gemini, "http://localhost:1", []string{"x"}, noon.Add(time.Hour)
	own.Inside.Port, own.Inside.Sandbox = 8080, "00000000000000ff" // a sandbox may be deleted, and its provider says so
	ok(t, s.PutProvider(ctx, b, nil))
	ok(t, s.PutProvider(ctx, own, nil))
	ok(t, s.DeleteProvider(ctx, a.ID))
	same(t, "after changes", must[[]gateway.Provider](t)(s.Providers(ctx)), []gateway.Provider{b, own})
}

func contractKeys(t *testing.T, s gateway.Store) {
	ctx := t.Context()
	p := provider("1", "", "a")
	has := func(want []byte) {
		t.Helper()
		same(t, "key", must[[]byte](t)(s.ProviderKey(ctx, p.ID)), want)
		same(t, "has a key", must[[]gateway.Provider](t)(s.Providers(ctx))[0].HasKey, want != nil)
	}
	ok(t, s.PutProvider(ctx, p, nil))
	has(nil)
	for _, sealed := range [][]byte{{0, 1, 0xff}, {2}} {
		ok(t, s.PutProvider(ctx, p, sealed))
		has(sealed)
		ok(t, s.PutProvider(ctx, p, nil))
		has(sealed)
	}
	ok(t, s.PutProvider(ctx, p, []byte{}))
	has(nil)
	ok(t, s.PutProvider(ctx, provider("2", "", "b"), []byte{}))
	same(t, "key of a new one without", must[[]byte](t)(s.ProviderKey(ctx, "2")), nil)
	if _, err := s.ProviderKey(ctx, "3"); !fault.Is(err, fault.NotFound) {
		t.Errorf("key of none: %v", err)
	}
}

func contractNames(t *testing.T, s gateway.Store) {
	ctx := t.Context()
	for _, p := range []gateway.Provider{provider("1", "", "a"), provider("2", Owners[0], "a"), provider("3", Owners[1], "a"), provider("4", Owners[1], "b")} {
		ok(t, s.PutProvider(ctx, p, nil))
	}
	for _, p := range []gateway.Provider{provider("5", "", "a"), provider("5", Owners[1], "a"), provider("4", Owners[1], "a")} {
		if err := s.PutProvider(ctx, p, nil); !fault.Is(err, fault.Conflict) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	same(t, "providers", len(must[[]gateway.Provider](t)(s.Providers(ctx))), 4)
}

func contractAliases(t *testing.T, s gateway.Store) {
	ctx := t.Context()
	fast := gateway.Alias{Name: "fast", Targets: []gateway.Target{{Provider: "b", Model: "x"}, {Provider: "a", Model: "ä"}}, Changed: noon}
	best, own := fast, fast
	best.Name, own.Owner = "best", Owners[0]
	for _, a := range []gateway.Alias{own, fast, best} {
		ok(t, s.PutAlias(ctx, a))
	}
	same(t, "aliases", must[[]gateway.Alias](t)(s.Aliases(ctx)), []gateway.Alias{best, fast, own})
	fast.Targets, fast.Changed = []gateway.Target{{Provider: "c", Model: "z"}}, noon.Add(time.Hour)
	ok(t, s.PutAlias(ctx, fast))
	ok(t, s.DeleteAlias(ctx, "", "best"))
	same(t, "after changes", must[[]gateway.Alias](t)(s.Aliases(ctx)), []gateway.Alias{fast, own})
	ok(t, s.DeleteAlias(ctx, "", "fast"))
	same(t, "another owner's stays", must[[]gateway.Alias](t)(s.Aliases(ctx)), []gateway.Alias{own})
}

func contractBudgets(t *testing.T, s gateway.Store) {
	ctx := t.Context()
	all := []gateway.Budget{
		{Scope: gateway.PerUser, Period: gateway.Day, Requests: 1}, {Scope: gateway.PerUser, Period: gateway.Month, Tokens: 2},
		{Scope: gateway.PerSandbox, Period: gateway.Day, Cost: 3},
		{Scope: gateway.PerSandbox, Subject: Sandboxes[0], Period: gateway.Day, Requests: 4, Tokens: 5, Cost: 1 << 40},
		{Scope: gateway.PerUser, Subject: Owners[0], Period: gateway.Month, Requests: 6},
	}
	for _, b := range all {
		ok(t, s.PutBudget(ctx, b))
	}
	same(t, "budgets", must[[]gateway.Budget](t)(s.Budgets(ctx)), all)
	all[0].Requests, all[3].Tokens = 7, 0
	ok(t, s.PutBudget(ctx, all[0]))
	ok(t, s.PutBudget(ctx, all[3]))
	ok(t, s.DeleteBudget(ctx, gateway.PerUser, "", gateway.Month))
	ok(t, s.DeleteBudget(ctx, gateway.PerUser, Owners[0], gateway.Month))
	same(t, "after changes", must[[]gateway.Budget](t)(s.Budgets(ctx)), []gateway.Budget{all[0], all[2], all[3]})
}

func contractSettings(t *testing.T, s gateway.Store) {
	for _, want := range []gateway.Settings{{Off: true}, {LogContent: true}, {Off: true, LogContent: true}, {}} {
		ok(t, s.PutSettings(t.Context(), want))
		same(t, "settings", must[gateway.Settings](t)(s.Settings(t.Context())), want)
	}
}

func contractCopies(t *testing.T, s gateway.Store) {
	ctx := t.Context()
	p, a := provider("1", "", "a"), gateway.Alias{Name: "fast", Targets: []gateway.Target{{Provider: "a", Model: "x"}}, Changed: noon}
	sealed := []byte{1}
	ok(t, s.PutProvider(ctx, p, sealed))
	ok(t, s.PutAlias(ctx, a))
	p.Models[0], a.Targets[0].Model, sealed[0] = "other", "other", 2
	must[[]gateway.Provider](t)(s.Providers(ctx))[0].Models[0] = "other"
	must[[]gateway.Alias](t)(s.Aliases(ctx))[0].Targets[0].Model = "other"
	must[[]byte](t)(s.ProviderKey(ctx, "1"))[0] = 2
	same(t, "model", must[[]gateway.Provider](t)(s.Providers(ctx))[0].Models[0], "gpt-6")
	same(t, "target", must[[]gateway.Alias](t)(s.Aliases(ctx))[0].Targets[0].Model, "x")
	same(t, "key", must[[]byte](t)(s.ProviderKey(ctx, "1")), []byte{1})
}

func contractNothing(t *testing.T, s gateway.Store) {
	ctx := t.Context()
	ok(t, errors.Join(s.DeleteProvider(ctx, "1"), s.DeleteAlias(ctx, "", "fast"), s.DeleteBudget(ctx, gateway.PerUser, "", gateway.Day),
		s.AddCalls(ctx, nil), s.SweepCalls(ctx, noon, noon)))
}

func contractEmpty(t *testing.T, s gateway.Store) {
	ctx := t.Context()
	same(t, "all", len(must[[]gateway.Provider](t)(s.Providers(ctx)))+len(must[[]gateway.Alias](t)(s.Aliases(ctx)))+len(must[[]gateway.Budget](t)(s.Budgets(ctx)))+
		len(must[[]gateway.Call](t)(s.Calls(ctx, gateway.CallQuery{})))+len(must[[]gateway.Usage](t)(s.Usage(ctx, gateway.UsageQuery{From: noon, To: noon.Add(time.Hour)}))), 0)
	same(t, "settings", must[gateway.Settings](t)(s.Settings(ctx)), gateway.Settings{})
	if _, err := s.Call(ctx, "1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("no call: %v", err)
	}
}

func contractCancelled(t *testing.T, s gateway.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Providers(ctx)
	_, more := s.Usage(ctx, gateway.UsageQuery{From: noon, To: noon.Add(time.Hour)})
	for i, err := range []error{err, more, s.PutProvider(ctx, provider("1", "", "a"), nil), s.AddCalls(ctx, []gateway.Call{call(1)})} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	same(t, "providers", len(must[[]gateway.Provider](t)(s.Providers(t.Context()))), 0)
}

// call is one of so many minutes after noon.
func call(n int) gateway.Call {
	return gateway.Call{
		ID: fmt.Sprintf("%04d", n), Time: noon.Add(time.Duration(n) * time.Minute), User: Owners[0], Sandbox: Sandboxes[0], Label: "lab", Provider: "cloud",
		Protocol: "chat", Asked: "fast", Model: "gpt-6", Status: 200, Tokens: gateway.Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, Cost: 5, Priced: true,
	}
}

// answerText is longer than what a page of a database holds.
var answerText = strings.Repeat("ä\x00\xff", 10_000)
