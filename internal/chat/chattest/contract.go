package chattest

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

// StoreContract checks that what open gives keeps chat.Store's contract. open is called for each test, and gives an empty store with a
// sandbox and an owner that exist.
func StoreContract(t *testing.T, open func(t *testing.T) (s chat.Store, sandbox, owner string)) {
	t.Helper()
	for name, run := range map[string]func(contract, *testing.T){
		"EveryFieldComesBack":              contract.fields,
		"ChangesAreWholeOrNot":             contract.whole,
		"TextIsExtendedOnce":               contract.extend,
		"ItemsAreFoundByEachLimit":         contract.items,
		"BusyOnesAreFound":                 contract.busy,
		"WhatIsMissingIsNotFound":          contract.missing,
		"ACopyHasTheItemsUpToOne":          contract.copied,
		"DeletingTakesEverything":          contract.deleted,
		"MemoryIsReplaced":                 contract.memory,
		"WithoutSandboxOrOwnerItIsRefused": contract.orphan,
	} {
		t.Run(name, func(t *testing.T) {
			s, sandbox, owner := open(t)
			run(contract{s, sandbox, owner}, t)
		})
	}
}

type contract struct {
	chat.Store
	sandbox, owner string
}

// conversation gives one with every field set.
func (c contract) conversation(id string, minute int) chat.Conversation {
	at := time.Date(2026, 11, 28, 9, minute, 1, 234000, time.UTC)
	return chat.Conversation{ID: id, Sandbox: c.sandbox, Owner: c.owner, Title: "A ‘title’", Agent: "sandboxd", Model: "best", Mode: chat.AskRisky, State: chat.Failed,
		Since: at, Problem: "why", Held: true, Rev: 7, Items: 3, Turn: 2, Used: chat.Used{Input: 1, Output: 2, Cached: 3, Cost: 4, Unpriced: true, Context: 5, Window: 6}, From: "other",
		Created: at.Add(-time.Hour), Changed: at, Settings: chat.Settings{Commands: []chat.Command{{Name: "plan"}}, Options: []chat.Option{
			{ID: "mode", Name: "Mode", Value: "code", Values: []chat.Choice{{ID: "code", Label: "Code"}}}}}}
}

func item(n, turn int64, kind chat.Kind, text string) chat.Item {
	return chat.Item{N: n, Turn: turn, Kind: kind, Text: text, Output: "out\x00put", Data: json.RawMessage(`{"a":1}`), Undone: true, Open: true,
		At: time.Date(2026, 11, 28, 10, 0, int(n%60), 5000, time.UTC)}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

func (c contract) fields(t *testing.T) {
	ctx := t.Context()
	want := c.conversation("a", 1)
	ok(t, c.Create(ctx, want))
	got, err := c.Conversation(ctx, "a")
	ok(t, err)
	same(t, got, want)
	want.Title, want.State, want.Rev, want.Held = "Other", chat.Idle, 8, false
	it := item(1, 1, chat.CallItem, "héllo\x00")
	it.Rev = 8
	queue := []chat.Queued{{ID: "q", User: c.owner, Text: "later", Files: []chat.File{{Name: "a.png", Type: "image/png", Data: []byte{1, 2}}}, At: want.Changed}}
	ok(t, c.Apply(ctx, "a", chat.Change{Rev: 8, Conversation: &want, Items: []chat.Item{it}, Queue: &queue}))
	got, err = c.Conversation(ctx, "a")
	ok(t, err)
	same(t, got, want)
	items, err := c.Items(ctx, "a", chat.ItemQuery{})
	ok(t, err)
	same(t, items, []chat.Item{it})
	waits, err := c.Queue(ctx, "a")
	ok(t, err)
	same(t, waits, queue)
	ok(t, c.Create(ctx, c.conversation("b", 2)))
	list, err := c.List(ctx, c.sandbox)
	ok(t, err)
	same(t, []string{list[0].ID, list[1].ID}, []string{"b", "a"})
}

func (c contract) whole(t *testing.T) {
	ctx := t.Context()
	ok(t, c.Create(ctx, c.conversation("a", 1)))
	err := c.Apply(ctx, "a", chat.Change{Rev: 8, Items: []chat.Item{item(1, 1, chat.Text, "x")}, Appends: []chat.Append{{N: 9, Field: chat.InText, Text: "y"}}})
	if err == nil {
		t.Fatal("text of an item that is not there is taken")
	}
	items, err := c.Items(ctx, "a", chat.ItemQuery{})
	ok(t, err)
	same(t, len(items), 0)
	got, err := c.Conversation(ctx, "a")
	ok(t, err)
	same(t, got.Rev, int64(7))
}

func (c contract) extend(t *testing.T) {
	ctx := t.Context()
	ok(t, c.Create(ctx, c.conversation("a", 1)))
	it := item(1, 1, chat.Text, "é\x00")
	it.Output = ""
	ok(t, c.Apply(ctx, "a", chat.Change{Rev: 8, Items: []chat.Item{it}}))
	more := chat.Change{Rev: 9, Appends: []chat.Append{{N: 1, Field: chat.InText, At: 3, Text: "ü\x00b"}, {N: 1, Field: chat.InOutput, Text: "o"}}}
	for range 2 { // the second time is a retry of one whose answer was lost
		ok(t, c.Apply(ctx, "a", more))
	}
	items, err := c.Items(ctx, "a", chat.ItemQuery{Since: 8})
	ok(t, err)
	same(t, []any{items[0].Text, items[0].Output, items[0].Rev}, []any{"é\x00ü\x00b", "o", int64(9)})
	if err := c.Apply(ctx, "a", chat.Change{Rev: 10, Appends: []chat.Append{{N: 1, Field: chat.InText, At: 100, Text: "z"}}}); err == nil {
		t.Error("text after a gap is taken")
	}
}

func (c contract) items(t *testing.T) {
	ctx := t.Context()
	ok(t, c.Create(ctx, c.conversation("a", 1)))
	var all []chat.Item
	for n := range int64(10) {
		it := item(n+1, n/5+1, chat.Text, "x")
		if it.Rev = n + 1; it.N == 7 {
			it.Kind = chat.Record
		}
		all = append(all, it)
	}
	ok(t, c.Apply(ctx, "a", chat.Change{Rev: 10, Items: all}))
	for _, q := range []struct {
		q    chat.ItemQuery
		want []int64
	}{
		{chat.ItemQuery{Limit: 2}, []int64{9, 10}},
		{chat.ItemQuery{Before: 5, Limit: 2}, []int64{3, 4}},
		{chat.ItemQuery{After: 3, Limit: 2}, []int64{4, 5}},
		{chat.ItemQuery{Since: 8}, []int64{9, 10}},
		{chat.ItemQuery{Turn: 1, Before: 3}, []int64{1, 2}},
		{chat.ItemQuery{Since: 10}, nil},
		{chat.ItemQuery{Turn: 2, Shown: true}, []int64{6, 8, 9, 10}},
		{chat.ItemQuery{Before: 9, Limit: 2, Shown: true}, []int64{6, 8}},
		{chat.ItemQuery{Bytes: 1}, []int64{10}},
		{chat.ItemQuery{Bytes: 200, Limit: 5}, []int64{9, 10}},
		{chat.ItemQuery{Before: 5, Bytes: 1 << 20, Limit: 3}, []int64{2, 3, 4}},
		{chat.ItemQuery{After: 3, Bytes: 200}, []int64{4, 5}},
		{chat.ItemQuery{Since: 10, Bytes: 1}, nil},
	} {
		items, err := c.Items(ctx, "a", q.q)
		ok(t, err)
		var got []int64
		for _, it := range items {
			got = append(got, it.N)
		}
		same(t, got, q.want)
	}
}

func (c contract) busy(t *testing.T) {
	ctx := t.Context()
	for i, state := range []chat.State{chat.Idle, chat.Working, chat.Asking, chat.Failed, chat.Idle} {
		one := c.conversation(string(rune('a'+i)), i)
		one.State = state
		ok(t, c.Create(ctx, one))
	}
	queue := []chat.Queued{{ID: "q", Text: "x"}}
	ok(t, c.Apply(ctx, "e", chat.Change{Rev: 8, Queue: &queue}))
	list, err := c.Busy(ctx)
	ok(t, err)
	found := map[string]bool{}
	for _, one := range list {
		found[one.ID] = true
	}
	same(t, found, map[string]bool{"b": true, "c": true, "e": true})
	list, err = c.Stirring(ctx)
	ok(t, err)
	found = map[string]bool{}
	for _, one := range list {
		found[one.ID] = true
	}
	same(t, found, map[string]bool{"b": true, "c": true, "d": true})
	var none []chat.Queued
	ok(t, c.Apply(ctx, "e", chat.Change{Rev: 9, Queue: &none}))
	list, err = c.Busy(ctx)
	ok(t, err)
	same(t, len(list), 2)
}

func (c contract) missing(t *testing.T) {
	ctx := t.Context()
	_, conversation := c.Conversation(ctx, "no")
	_, items := c.Items(ctx, "no", chat.ItemQuery{})
	_, queue := c.Queue(ctx, "no")
	_, memory := c.Memory(ctx, "no")
	for name, err := range map[string]error{
		"conversation": conversation, "items": items, "queue": queue, "memory": memory, "set memory": c.SetMemory(ctx, "no", nil),
		"apply": c.Apply(ctx, "no", chat.Change{Rev: 1}), "copy": c.Copy(ctx, "no", 1, c.conversation("b", 1)),
	} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ok(t, c.Delete(ctx, "no"))
	if list, err := c.List(ctx, "no"); err != nil || len(list) > 0 {
		t.Error(list, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Conversation(ctx, "no"); err == nil {
		t.Error("a call whose context has ended succeeds")
	}
}

func (c contract) copied(t *testing.T) {
	ctx := t.Context()
	ok(t, c.Create(ctx, c.conversation("a", 1)))
	ask := item(2, 1, chat.Question, "")
	ask.Data = json.RawMessage(`{"id":"q","title":"May I?"}`)
	ok(t, c.Apply(ctx, "a", chat.Change{Rev: 8, Items: []chat.Item{item(1, 1, chat.Message, "x"), ask, item(3, 2, chat.Text, "y")}}))
	ok(t, c.Copy(ctx, "a", 2, c.conversation("b", 2)))
	items, err := c.Items(ctx, "b", chat.ItemQuery{})
	ok(t, err)
	same(t, len(items), 2)
	var a chat.Ask
	ok(t, json.Unmarshal(items[1].Data, &a))
	if !a.Lapsed || items[0].Open || items[0].Rev != 1 || items[0].Text != "x" {
		t.Errorf("%+v %+v", items, a)
	}
}

func (c contract) deleted(t *testing.T) {
	ctx := t.Context()
	ok(t, c.Create(ctx, c.conversation("a", 1)))
	ok(t, c.Apply(ctx, "a", chat.Change{Rev: 8, Items: []chat.Item{item(1, 1, chat.Message, "x")}}))
	ok(t, c.Delete(ctx, "a"))
	ok(t, c.Create(ctx, c.conversation("a", 1)))
	items, err := c.Items(ctx, "a", chat.ItemQuery{})
	ok(t, err)
	same(t, len(items), 0)
}

func (c contract) memory(t *testing.T) {
	ctx := t.Context()
	ok(t, c.Create(ctx, c.conversation("a", 1)))
	m, err := c.Memory(ctx, "a")
	ok(t, err)
	same(t, len(m), 0)
	for _, text := range []string{`{"session":"1"}`, `{"session":"2"}`} {
		ok(t, c.SetMemory(ctx, "a", json.RawMessage(text)))
		m, err := c.Memory(ctx, "a")
		ok(t, err)
		same(t, string(m), text)
	}
	ok(t, c.Apply(ctx, "a", chat.Change{Rev: 8, Memory: json.RawMessage(`{"session":"3"}`)}))
	ok(t, c.Apply(ctx, "a", chat.Change{Rev: 9, Items: []chat.Item{item(1, 1, chat.Message, "x")}}))
	m, err = c.Memory(ctx, "a")
	ok(t, err)
	same(t, string(m), `{"session":"3"}`)
}

func (c contract) orphan(t *testing.T) {
	one := c.conversation("a", 1)
	one.Sandbox = "gone"
	other := c.conversation("b", 1)
	other.Owner = "gone"
	for _, o := range []chat.Conversation{one, other} {
		if err := c.Create(t.Context(), o); !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
	}
}
