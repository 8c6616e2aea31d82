package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

// computer runs code: each line is "out TEXT", "err TEXT", "exit N", "wait" (for its end), "panic", or "fail".
type computer struct {
	mu   sync.Mutex
	runs []string // all code that was run
}

// Runs implements chat.Runner.
func (c *computer) Runs(language string) bool { return language == "sh" }

// Risky implements chat.Runner.
func (c *computer) Risky(_, code string) bool { return strings.Contains(code, "rm ") }

// Run implements chat.Runner.
func (c *computer) Run(ctx context.Context, _ chat.Conversation, r chat.Run, out func(chat.Field, string)) (ran chat.Ran, err error) {
	c.mu.Lock()
	c.runs = append(c.runs, r.Code)
	c.mu.Unlock()
	for line := range strings.Lines(r.Code) {
		what, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "out":
			out(chat.InOutput, rest+"\n")
		case "err":
			out(chat.InText, rest+"\n")
		case "flood":
			for range 100 {
				out(chat.InOutput, strings.Repeat("é", 10_000))
			}
		case "exit":
			fmt.Sscan(rest, &ran.Exit)
		case "wait":
			<-ctx.Done()
			return ran, ctx.Err()
		case "panic":
			panic("a mistake of the runner")
		case "fail":
			return ran, fault.New(fault.Unavailable, "The sandbox is gone.")
		}
	}
	return ran, nil
}

func (c *computer) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.runs)
}

// runner gives the runs of a world, and makes its agent one that repeats what it is told, after the code in it has run.
func (w *world) runner() (*chat.Runs, *computer) {
	pc := &computer{}
	runs := chat.NewRuns(w.s, pc)
	w.does(func(ctx context.Context, t *chat.Turn) error { return runs.First(echo{}).Turn(ctx, t) })
	return runs, pc
}

type echo struct{}

// Turn implements chat.Driver.
func (echo) Turn(_ context.Context, t *chat.Turn) error {
	t.Text("You said: " + t.Message().Text)
	return nil
}

// runs is the run items of a reader.
func (r *reader) runs() (items []chat.Item, runs []chat.Run) {
	for _, it := range r.items {
		var run chat.Run
		if it.Kind == chat.RunItem && json.Unmarshal(it.Data, &run) == nil {
			items, runs = append(items, it), append(runs, run)
		}
	}
	return items, runs
}

// ran waits until the conversation has n runs that have ended.
func (w *world) ran(n int) (items []chat.Item, runs []chat.Run) {
	w.t.Helper()
	w.sees("runs that have ended", func(r *reader) bool {
		items, runs = r.runs()
		for _, it := range items {
			if it.Open {
				return false
			}
		}
		return len(items) == n
	})
	return items, runs
}

// code sends a message with code that is not run by itself.
func (w *world) code(lines ...string) {
	w.t.Helper()
	w.send("explain\n```sh\n" + strings.Join(lines, "\n") + "\n```")
	w.ends(chat.Idle, 1)
}

func (w *world) starts(r *chat.Runs, ask chat.Run) chat.Item {
	w.t.Helper()
	it, err := r.Start(w.t.Context(), w.id, ask)
	if err != nil {
		w.t.Fatal(err)
	}
	return it
}

func TestRuns_ABlockIsRunAsItIsStored(t *testing.T) {
	w := newWorld(t)
	runs, pc := w.runner()
	w.code("out one", "err two", "exit 3")
	if _, err := runs.Start(t.Context(), w.id, chat.Run{ID: "r0", User: "ada", Item: 1, Code: "out evil"}); !fault.Is(err, fault.Conflict) || pc.count() != 0 {
		t.Errorf("code that the person does not see: %v, %d runs", err, pc.count())
	}
	it := w.starts(runs, chat.Run{ID: "r1", User: "ada", Item: 1, Code: "out one\nerr two\nexit 3", Language: "evil"})
	if it.Kind != chat.RunItem || !it.Open {
		t.Errorf("it begins as %+v", it)
	}
	items, ran := w.ran(1)
	if it, r := items[0], ran[0]; it.Output != "one\n" || it.Text != "two\n" || r.Status != "error" || r.Exit == nil || *r.Exit != 3 || r.Code != "out one\nerr two\nexit 3" || r.Language != "sh" {
		t.Errorf("it ran as %+v %s", it, it.Data)
	}
	// The same request is the same run, also later, and of another service.
	again := w.starts(runs, chat.Run{ID: "r1", User: "ada", Item: 1})
	w.restart()
	runs, other := w.runner()
	later := w.starts(runs, chat.Run{ID: "r1", User: "ada", Item: 1})
	if again.N != it.N || later.N != it.N || pc.count() != 1 || other.count() != 0 {
		t.Errorf("again: items %d and %d, not %d; %d and %d runs", again.N, later.N, it.N, pc.count(), other.count())
	}
	w.starts(runs, chat.Run{ID: "r2", User: "ada", Item: 1})
	if _, ran := w.ran(2); ran[1].Status != "error" || w.held.now() != 0 {
		t.Errorf("it ran as %+v; %d holds", ran, w.held.now())
	}
	w.send("and now?")
	if said := w.ends(chat.Idle, 2).String(); !strings.Contains(said, "You said: and now?\n\n[The person ran the sh code that begins with \"out one\" in the sandbox. Its exit code was 3.\nstdout:\none\nstderr:\ntwo]") {
		t.Errorf("the agent is told %s", said)
	}
}

func TestRuns_AtOnceTheSameIsOne(t *testing.T) {
	w := newWorld(t)
	runs, pc := w.runner()
	w.code("out one")
	var all sync.WaitGroup
	numbers := make([]int64, 20)
	for i := range numbers {
		all.Go(func() { numbers[i] = w.starts(runs, chat.Run{ID: "r1", Item: 1}).N })
	}
	all.Wait()
	w.ran(1)
	for _, n := range numbers {
		if n != numbers[0] {
			t.Errorf("items %v", numbers)
		}
	}
	if pc.count() != 1 {
		t.Errorf("%d runs", pc.count())
	}
}

func TestRuns_EndWhenTheyAreStopped(t *testing.T) {
	w := newWorld(t)
	runs, _ := w.runner()
	w.code("out begun", "wait")
	it := w.starts(runs, chat.Run{ID: "r1", Item: 1})
	w.sees("what it writes while it runs", func(r *reader) bool {
		items, _ := r.runs()
		return len(items) == 1 && items[0].Open && items[0].Output == "begun\n"
	})
	if w.held.now() != 1 {
		t.Errorf("%d holds while it runs", w.held.now())
	}
	if err := w.s.Undo(t.Context(), w.id, 1); !fault.Is(err, fault.Conflict) {
		t.Errorf("undo meanwhile: %v", err)
	}
	w.send("hello") // a turn is not disturbed
	w.ends(chat.Idle, 2)
	if err := runs.Cancel(t.Context(), w.id, it.N); err != nil {
		t.Fatal(err)
	}
	if _, ran := w.ran(1); ran[0].Status != "cancelled" {
		t.Errorf("it ended as %+v", ran[0])
	}
	if err := errors.Join(runs.Cancel(t.Context(), w.id, it.N), runs.Cancel(t.Context(), w.id, 99)); err != nil {
		t.Error(err)
	}
	for i := range chat.MaxRuns {
		w.starts(runs, chat.Run{ID: fmt.Sprint("more", i), Item: 1})
	}
	if _, err := runs.Start(t.Context(), w.id, chat.Run{ID: "too many", Item: 1}); !fault.Is(err, fault.Conflict) {
		t.Errorf("one more: %v", err)
	}
	w.restart()
	if _, ran := w.ran(1 + chat.MaxRuns); ran[1].Status != "interrupted" {
		t.Errorf("after a restart: %+v", ran[1])
	}
	if w.held.now() != 0 {
		t.Errorf("%d holds", w.held.now())
	}
}

func TestRuns_WhatACrashLeftIsShownAsInterrupted(t *testing.T) {
	w := newWorld(t)
	runs, _ := w.runner()
	w.code("out x")
	w.starts(runs, chat.Run{ID: "r1", Item: 1})
	items, _ := w.ran(1)
	w.end()
	c, err := w.store.Conversation(t.Context(), w.id)
	if err != nil {
		t.Fatal(err)
	}
	left := items[0]
	left.Open, left.Rev = true, c.Rev+1
	left.Data = json.RawMessage(`{"id":"r1","item":1,"language":"sh","code":"x"}`)
	if err := w.store.Apply(t.Context(), w.id, chat.Change{Rev: c.Rev + 1, Items: []chat.Item{left}}); err != nil {
		t.Fatal(err)
	}
	w.start()
	if _, ran := w.ran(1); ran[0].Status != "interrupted" {
		t.Errorf("a follower sees %+v", ran[0])
	}
	v, err := w.s.View(t.Context(), w.id, chat.ItemQuery{})
	if it := v.Items[left.N-1]; err != nil || it.Open || !strings.Contains(string(it.Data), `"interrupted"`) {
		t.Errorf("a reader sees %+v %s: %v", it, it.Data, err)
	}
	w.runner()
	w.send("and now?")
	if said := w.ends(chat.Idle, 2).String(); !strings.Contains(said, "in the sandbox. It was interrupted.") {
		t.Errorf("the agent is told %s", said)
	}
}

func TestRuns_WhatCannotBeRunIsRefused(t *testing.T) {
	w := newWorld(t)
	runs, pc := w.runner()
	w.send("explain\n```cobol\nx\n```\n```\n???\n```\n```sh\n```\n" + "```sh\n" + strings.Repeat("out x\n", chat.MaxCode/8) + "```")
	w.ends(chat.Idle, 1)
	for what, c := range map[string]struct {
		ask   chat.Run
		kind  fault.Kind
		field string
	}{
		"another language":  {chat.Run{ID: "a", Item: 1, Block: 0}, fault.Invalid, "block"},
		"no known language": {chat.Run{ID: "a", Item: 1, Block: 1}, fault.Invalid, "block"},
		"an empty one":      {chat.Run{ID: "a", Item: 1, Block: 2}, fault.Invalid, "block"},
		"no such block":     {chat.Run{ID: "a", Item: 1, Block: 9}, fault.Invalid, "block"},
		"a negative block":  {chat.Run{ID: "a", Item: 1, Block: -1}, fault.Invalid, "block"},
		"no such item":      {chat.Run{ID: "a", Item: 9}, fault.Invalid, "item"},
		"a negative item":   {chat.Run{ID: "a", Item: -1}, fault.Invalid, "item"},
		"no id":             {chat.Run{Item: 1}, fault.Invalid, "id"},
		"a long id":         {chat.Run{ID: strings.Repeat("x", 65), Item: 1}, fault.Invalid, "id"},
	} {
		if _, err := runs.Start(t.Context(), w.id, c.ask); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := runs.Start(t.Context(), "0123456789abcdef", chat.Run{ID: "a", Item: 1}); !fault.Is(err, fault.NotFound) {
		t.Errorf("no such conversation: %v", err)
	}
	if pc.count() != 0 {
		t.Errorf("%d runs", pc.count())
	}
}

func TestRuns_OutputIsBoundedAndFailuresAreSaid(t *testing.T) {
	w := newWorld(t)
	runs, _ := w.runner()
	w.code("flood", "err still kept", "fail")
	w.starts(runs, chat.Run{ID: "r1", Item: 1})
	items, ran := w.ran(1)
	if it := items[0]; len(it.Output) != chat.MaxOutput || !strings.Contains(it.Output, "which is not kept") || it.Text != "still kept\n" {
		t.Errorf("%d bytes of output, %q", len(it.Output), it.Text)
	}
	if r := ran[0]; r.Status != "error" || r.Exit != nil || r.Problem != "The sandbox is gone." {
		t.Errorf("it ended as %+v", r)
	}
}

func TestRuns_APanicEndsTheRunAlone(t *testing.T) {
	w := newWorld(t)
	runs, _ := w.runner()
	w.code("panic")
	w.starts(runs, chat.Run{ID: "r1", Item: 1})
	if _, ran := w.ran(1); ran[0].Status != "error" || !strings.Contains(ran[0].Problem, "The log has the details") {
		t.Errorf("it ended as %+v", ran[0])
	}
}

func TestRuns_AMessageThatAsksForItRunsBeforeTheAgent(t *testing.T) {
	w := newWorld(t)
	_, pc := w.runner()
	w.send("run it\n```sh\nout forty\nerr two\n```")
	r := w.ends(chat.Idle, 1)
	items, ran := r.runs()
	if len(items) != 1 || !ran[0].Auto || ran[0].Status != "ok" || ran[0].Item != 1 || items[0].Output != "forty\n" {
		t.Fatalf("runs are %+v", items)
	}
	if said := r.String(); !strings.Contains(said, "[The sh code in this message was run in the sandbox. Its exit code was 0.\nstdout:\nforty\nstderr:\ntwo]") || !strings.Contains(said, "checkpoint") {
		t.Errorf("the agent is told %s", said)
	}
	w.send("run it\n```sh\nrm -rf x\n```") // risky: a button is there
	w.send("don't run it\n```sh\nout x\n```")
	w.ends(chat.Idle, 3)
	if pc.count() != 1 {
		t.Errorf("%d runs", pc.count())
	}
}

func TestRuns_StopEndsARunBeforeTheTurnToo(t *testing.T) {
	w := newWorld(t)
	w.runner()
	w.send("run it\n```sh\nwait\n```")
	w.sees("the run", func(r *reader) bool { items, _ := r.runs(); return len(items) == 1 })
	if err := w.s.Cancel(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	r := w.ends(chat.Idle, 1)
	if _, ran := r.runs(); ran[0].Status != "cancelled" || strings.Contains(r.String(), "You said") {
		t.Errorf("it is %s", r)
	}
}

func TestRuns_ARunOfADeletedConversationEnds(t *testing.T) {
	w := newWorld(t)
	runs, _ := w.runner()
	w.code("wait")
	w.starts(runs, chat.Run{ID: "r1", Item: 1})
	if err := w.s.Delete(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	w.end() // waits for it, and finds no hold
}
