//go:build e2e

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/gateway/gatewaytest"
)

// talk is a conversation as a program follows it: what it knows from the changes that it was told of.
type talk struct {
	a     *asker
	path  string
	rev   int64
	state string
	items map[int64]*talkItem
}

type talkItem struct {
	N                  int64
	Kind, Text, Output string
	Data               json.RawMessage
	Open, Undone       bool
}

type talkChange struct {
	Rev          int64
	Conversation *struct{ State, Problem string }
	Items        []talkItem
	Appends      []struct {
		N           int64
		Field, Text string
		At          int
	}
}

// until follows the conversation over a connection of its own, from the last change that it has seen, and cuts it when is says so.
func (k *talk) until(what string, is func() bool) {
	t := k.a.t
	t.Helper()
	ctx, cut := context.WithTimeout(t.Context(), time.Minute)
	defer cut()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/api/v1%s/events?after=%d", k.a.addr, k.path, k.rev), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+k.a.token)
	r.Header.Set("Accept", "text/event-stream")
	resp, err := k.a.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 8<<20)
	for !is() {
		if !lines.Scan() {
			t.Fatalf("%s: %d %v, it is %s\n%s", what, resp.StatusCode, lines.Err(), k.state, k)
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var c talkChange
		if ok && json.Unmarshal([]byte(data), &c) == nil && c.Rev > 0 {
			k.take(c)
		}
	}
}

func (k *talk) take(c talkChange) {
	k.a.t.Helper()
	if k.rev > 0 && c.Rev != k.rev+1 && c.Conversation == nil { // else it is whole, in place of the steps
		k.a.t.Errorf("change %d follows %d", c.Rev, k.rev)
	}
	k.rev = c.Rev
	if c.Conversation != nil {
		k.state = c.Conversation.State + c.Conversation.Problem
	}
	for _, it := range c.Items {
		k.items[it.N] = &it
	}
	for _, e := range c.Appends {
		it := k.items[e.N]
		to := &it.Text
		if e.Field == "output" {
			to = &it.Output
		}
		if len(*to) != e.At {
			k.a.t.Errorf("text at %d of item %d, which has %d bytes", e.At, e.N, len(*to))
		}
		*to += e.Text
	}
}

// String is the conversation in a few words.
func (k *talk) String() string {
	var b strings.Builder
	for n := range int64(len(k.items)) * 2 {
		if it := k.items[n]; it != nil {
			fmt.Fprintf(&b, "%s: %s%s %s\n", it.Kind, it.Text, it.Data, it.Output)
		}
	}
	return b.String()
}

func (k *talk) question() string {
	for _, it := range k.items {
		var ask struct{ ID, Text string }
		if it.Kind == "question" && it.Open && json.Unmarshal(it.Data, &ask) == nil && strings.Contains(ask.Text, "made.txt") {
			return ask.ID
		}
	}
	return ""
}

func (k *talk) post(path string, in any) {
	k.a.t.Helper()
	if status, text := k.a.raw("POST", k.path+path, in); status >= 300 {
		k.a.t.Fatalf("%s: %d %s", path, status, text)
	}
}

// TestChat_ThroughTheAPIAnAgentWorksInASandbox is a program's whole way: a message, a question while which the sandbox falls asleep, leave, a
// command in the sandbox, and its undo. The sandbox has no network.
func TestChat_ThroughTheAPIAnAgentWorksInASandbox(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	run := gatewaytest.Call{Name: "run_command", Args: map[string]any{"command": "echo made > made.txt"}}
	a.provider.Play(gatewaytest.Script{Text: "I make a file.", Calls: []gatewaytest.Call{run}}, gatewaytest.Script{Text: "It is made."})
	all := "/sandboxes/" + closedBox + "/conversations"
	var c struct{ ID string }
	if status := a.call("POST", all, map[string]any{"model": "best", "mode": "ask"}, &c); status != http.StatusCreated {
		t.Fatalf("create: %d", status)
	}
	a.until("the sandbox rests", func() bool { return a.rest(closedBox).State != "running" })
	k := &talk{a: a, path: all + "/" + c.ID, items: map[int64]*talkItem{}}
	k.post("/messages", map[string]any{"id": "m1", "text": "Make a file, please."})
	k.post("/messages", map[string]any{"id": "m1", "text": "Make a file, please."}) // as after a lost answer
	k.until("it asks", func() bool { return k.question() != "" })
	a.until("the sandbox rests while a person is asked", func() bool { return a.rest(closedBox).State != "running" })
	k.post("/approvals/"+k.question(), map[string]any{"answer": "allow"})
	k.until("it is done", func() bool { return k.state != "working" && k.state != "asking" })
	if got := k.String(); k.state != "idle" || !strings.Contains(got, "text: I make a file.") || !strings.Contains(got, "text: It is made.") || strings.Count(got, "message: ") != 1 {
		t.Errorf("it is %s\n%s", k.state, got)
	}
	if got := a.exec(closedBox, map[string]any{"command": "cat made.txt"}).Stdout; got != "made\n" {
		t.Errorf("the file has %q", got)
	}
	k.post("/turns/1/undo", nil)
	if got := a.exec(closedBox, map[string]any{"command": "cat made.txt || echo none"}).Stdout; got != "none\n" {
		t.Errorf("after undo the file has %q", got)
	}
	k.post("/turns/1/redo", nil)
	if got := a.exec(closedBox, map[string]any{"command": "cat made.txt"}).Stdout; got != "made\n" {
		t.Errorf("after redo the file has %q", got)
	}
	var calls struct {
		Calls []struct{ Label, Asked, User string }
	}
	a.until("the calls are in the log", func() bool {
		a.call("GET", "/models/calls?sandbox="+closedBox, nil, &calls)
		return len(calls.Calls) >= 2
	})
	if one := calls.Calls[0]; one.Label != closedBox || one.Asked != "best" || one.User != "admin" {
		t.Errorf("a call is %+v", one)
	}
	if _, text := a.raw("GET", k.path, nil); strings.Contains(string(text), a.secret) {
		t.Error("the key is in the conversation")
	}
	a.keyIsNowhere()
}
