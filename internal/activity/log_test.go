package activity_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/activity"
	"sandboxd/internal/activity/activitytest"
	"sandboxd/internal/fault"
)

// world is a Log that runs over a Store in memory.
type world struct {
	t      *testing.T
	store  *activitytest.Memory
	log    *activity.Log
	output bytes.Buffer // of the logger; to be read when nothing runs
	end    func()
}

// running runs test with a Log.
func running(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, store: &activitytest.Memory{}}
		w.start(w.store)
		test(w)
		w.end()
	})
}

func (w *world) start(s activity.Store) {
	w.log = activity.New(activity.Config{Store: s, Log: slog.New(slog.NewTextHandler(&w.output, nil))})
	ctx, stop := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.log.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	w.end = sync.OnceFunc(func() { stop(); running.Wait() })
}

// pass lets the bubble's time pass.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// all finds all that there is.
func (w *world) all() []activity.Entry {
	w.t.Helper()
	got, _, err := w.log.Find(w.t.Context(), activity.Query{Scope: activity.Scope{All: true}, Limit: activity.MaxLimit})
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// counts gives the Count of each entry, oldest first, without looking for sums.
func (w *world) counts() (out []int) {
	for _, e := range w.store.Entries() {
		out = append(out, e.Count)
	}
	return out
}

func entry(a activity.Action) activity.Entry {
	return activity.Entry{UserID: "u", User: "ada", Via: activity.API, Action: a, SandboxID: "s", Sandbox: "lab", Outcome: activity.Done}
}

// different gives entries that are never summed up.
func different(i int) activity.Entry {
	e := entry("sandbox.start")
	e.UserID, e.SandboxID = fmt.Sprint(i/100), fmt.Sprint(i/50)
	return e
}

func TestFind_SeesWhatWasAddedThisMoment(t *testing.T) {
	running(t, func(w *world) {
		w.log.Add(entry("sandbox.start"))
		got := w.all()
		if len(got) != 1 || got[0].ID != 1 || got[0].Count != 1 || !got[0].Time.Equal(time.Now()) {
			t.Errorf("got %+v", got)
		}
	})
}

func TestFind_SaysHowToContinue(t *testing.T) {
	running(t, func(w *world) {
		for i := range 5 {
			w.log.Add(different(i))
		}
		q := activity.Query{Scope: activity.Scope{All: true}, Limit: 2}
		var got []activity.ID
		for range 3 {
			page, next, err := w.log.Find(w.t.Context(), q)
			if err != nil || len(page) == 0 {
				t.Fatal(page, err)
			}
			for _, e := range page {
				got = append(got, e.ID)
			}
			got, q.Before = append(got, -next), next
		}
		if want := []activity.ID{5, 4, -4, 3, 2, -2, 1, 0}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		for _, q := range []activity.Query{{Limit: -1}, {Limit: activity.MaxLimit + 1}, {Text: strings.Repeat("x", 201)}} {
			if _, _, err := w.log.Find(w.t.Context(), q); !fault.Is(err, fault.Invalid) {
				t.Errorf("%+v: %v", q, err)
			}
		}
	})
}

func TestAdd_IsWrittenWithinASecondAndAtTheEnd(t *testing.T) {
	running(t, func(w *world) {
		w.log.Add(entry("sandbox.start"))
		w.pass(time.Second)
		if got := w.counts(); len(got) != 1 {
			t.Errorf("after a second: %v", got)
		}
		w.log.Add(entry("sandbox.stop"))
		w.end()
		if got := w.counts(); len(got) != 2 {
			t.Errorf("after the end: %v", got)
		}
	})
}

func TestAdd_ContinuesAfterTheLastID(t *testing.T) {
	running(t, func(w *world) {
		w.log.Add(entry("sandbox.start"))
		w.end()
		w.start(w.store)
		w.log.Add(entry("sandbox.stop"))
		if got := w.all(); len(got) != 2 || got[0].ID != 2 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestAdd_CutsAndCleansTexts(t *testing.T) {
	running(t, func(w *world) {
		e := entry("sandbox.start")
		e.Object, e.Problem, e.Sandbox, e.ID = "a\nb\x1b[31m"+strings.Repeat("é", 500), strings.Repeat("x", 5000), strings.Repeat("n", 5000), 77
		e.Time = time.Time{}.Add(time.Hour)
		w.log.Add(e)
		got := w.all()[0]
		if len(got.Object) > activity.MaxObject || !strings.HasPrefix(got.Object, "a b[31mé") || len(got.Problem) != activity.MaxProblem ||
			len(got.Sandbox) != 64 || got.ID != 1 || !got.Time.Equal(time.Now()) {
			t.Errorf("got %+v", got)
		}
	})
}

func TestLog_TriesAgainAndSaysSoOnce(t *testing.T) {
	running(t, func(w *world) {
		w.store.Fail(errors.New("no space"))
		for i := range 10_100 {
			w.log.Add(different(i))
		}
		w.pass(time.Minute)
		if got := w.counts(); len(got) != 0 || w.log.Problem() == nil || w.log.Lost() != 100 {
			t.Errorf("kept %d, %v, lost %d", len(got), w.log.Problem(), w.log.Lost())
		}
		w.store.Fail(nil)
		w.pass(time.Second)
		w.log.Add(entry("sandbox.stop"))
		got := w.all()
		if len(got) < 2 || got[0].Action != "sandbox.stop" || got[1].Action != activity.Lost || got[1].Count != 100 || got[1].Via != activity.Itself || got[0].ID != 10_002 {
			t.Errorf("got %+v", got[:2])
		}
		w.end()
		log := w.output.String()
		for _, line := range []string{"cannot be written", "can be written again", "were lost"} {
			if strings.Count(log, line) != 1 {
				t.Errorf("%q is said %d times: %s", line, strings.Count(log, line), log)
			}
		}
	})
}

func TestFind_WhenNothingCanBeWritten(t *testing.T) {
	running(t, func(w *world) {
		w.store.Fail(fault.New(fault.Unavailable, "The disk is full."))
		w.log.Add(entry("sandbox.start"))
		if _, _, err := w.log.Find(w.t.Context(), activity.Query{Scope: activity.Scope{All: true}}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v", err)
		}
		w.end()
		if !strings.Contains(w.output.String(), "before the end") {
			t.Error("nothing is said of what is lost")
		}
	})
}

// liar is a Store that says that it has failed when it has kept the entries.
type liar struct {
	*activitytest.Memory
	lies int
}

func (l *liar) Add(ctx context.Context, entries []activity.Entry) error {
	err := l.Memory.Add(ctx, entries)
	if l.lies--; l.lies >= 0 {
		return errors.New("no answer")
	}
	return err
}

func TestLog_ABatchThatIsTriedAgainIsKeptOnce(t *testing.T) {
	running(t, func(w *world) {
		w.end()
		w.start(&liar{w.store, 3})
		w.log.Add(entry("sandbox.start"))
		w.pass(time.Second)
		w.log.Add(entry("sandbox.stop"))
		w.pass(10 * time.Second)
		if got := w.all(); len(got) != 2 || got[0].Action != "sandbox.stop" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestAdd_SumsUpAFlood(t *testing.T) {
	running(t, func(w *world) {
		for range 250 {
			w.log.Add(entry("sandbox.start"))
		}
		refused := entry("sandbox.start")
		refused.Outcome = activity.Refused
		w.log.Add(refused)
		w.pass(time.Second)
		if got := w.counts(); len(got) != 101 {
			t.Errorf("at first there are %d", len(got))
		}
		w.pass(10 * time.Minute)
		if got := w.counts(); len(got) != 102 || got[101] != 150 {
			t.Errorf("after the window: %v", got)
		}
		w.log.Add(entry("sandbox.start")) // a new window
		w.pass(time.Second)
		if got := w.counts(); len(got) != 103 {
			t.Errorf("then: %v", got)
		}
	})
}

func TestAdd_SumsUpWhatIsRoutine(t *testing.T) {
	running(t, func(w *world) {
		run := func(program string) {
			e := entry("command.run")
			e.Object = program
			w.log.Add(e)
		}
		for range 30 {
			run("make")
			run("ls")
		}
		w.end()
		got := w.store.Entries()
		if len(got) != 4 || got[0].Object != "make" || got[1].Object != "ls" {
			t.Errorf("got %+v", got)
		}
		for _, sum := range got[2:] {
			if sum.Object == "" || sum.Count != 29 {
				t.Errorf("got %+v", sum)
			}
		}
	})
}

// TestAdd_ASumOfManyObjectsNamesNone writes more files than are named one by one.
func TestAdd_ASumOfManyObjectsNamesNone(t *testing.T) {
	running(t, func(w *world) {
		for i := range 130 {
			e := entry("file.write")
			e.Object = fmt.Sprint(i)
			w.log.Add(e)
		}
		w.end()
		got := w.store.Entries()
		if len(got) != 101 || got[99].Object != "99" || got[100].Object != "" || got[100].Count != 30 {
			t.Errorf("got %d, the last is %+v", len(got), got[len(got)-1])
		}
	})
}

// TestAdd_OneUserDoesNotFillTheLog has one do many different things, and another one a few.
func TestAdd_OneUserDoesNotFillTheLog(t *testing.T) {
	running(t, func(w *world) {
		total := 0
		for token := range 50 {
			for box := range 10 {
				for range 90 {
					e := entry("sandbox.change")
					e.Token, e.SandboxID, e.Sandbox = fmt.Sprint(token), fmt.Sprint(box), fmt.Sprint(box)
					w.log.Add(e)
					total++
				}
			}
		}
		other := entry("sandbox.change")
		other.UserID = "another"
		w.log.Add(other)
		w.end()
		got := w.store.Entries()
		if len(got) != 302 {
			t.Fatalf("%d entries", len(got))
		}
		if sum := got[301]; sum.Count != total-300 || sum.Sandbox != "" || sum.Token != "" {
			t.Errorf("got %+v", sum)
		}
		if got[300].UserID != "another" {
			t.Errorf("got %+v", got[300])
		}
	})
}

// TestFind_SeesSumsButMakesNoFlood looks after each of many commands.
func TestFind_SeesSumsButMakesNoFlood(t *testing.T) {
	running(t, func(w *world) {
		for range 100 {
			w.log.Add(entry("command.run"))
			w.all()
		}
		if got := len(w.counts()); got != 21 {
			t.Errorf("%d entries", got)
		}
		w.end()
		sum := 0
		for _, n := range w.counts() {
			sum += n
		}
		if sum != 100 {
			t.Errorf("%d are told of", sum)
		}
	})
}

// TestAdd_KnowsAFloodOfManySorts adds more sorts than have room.
func TestAdd_KnowsAFloodOfManySorts(t *testing.T) {
	running(t, func(w *world) {
		total := 0
		for i := range 25_000 {
			e := different(i)
			e.Action, e.SandboxID = "command.run", fmt.Sprint(i)
			for range 2 {
				w.log.Add(e)
				total++
			}
			if i%1000 == 0 {
				w.all()
			}
		}
		w.end()
		for _, n := range w.counts() {
			total -= n
		}
		if total != 0 {
			t.Errorf("%d are told of by nothing", total)
		}
	})
}

// swept notes what it is asked to delete.
type swept struct {
	*activitytest.Memory
	before []time.Time
	most   int
}

func (s *swept) Sweep(_ context.Context, before time.Time, most int) (int, error) {
	s.before, s.most = append(s.before, before), most
	return 0, nil
}

func TestRun_SweepsEachHour(t *testing.T) {
	running(t, func(w *world) {
		w.end()
		s, begun := &swept{Memory: w.store}, time.Now()
		w.start(s)
		w.pass(150 * time.Minute)
		w.end()
		if len(s.before) != 3 || !s.before[2].Equal(begun.Add(2*time.Hour-activity.DefaultKeep)) || s.most != activity.MaxEntries {
			t.Errorf("got %v, %d", s.before, s.most)
		}
	})
}

func TestActions_AreWhole(t *testing.T) {
	seen := map[activity.Action]bool{}
	for _, a := range activity.Actions {
		noun, verb, ok := strings.Cut(string(a.Action), ".")
		if !ok || noun == "" || verb == "" || a.Words == "" || seen[a.Action] || !a.Action.Known() || a.Action.Words() != a.Words {
			t.Errorf("%+v", a)
		}
		seen[a.Action] = true
	}
	if a := activity.Action("no.such"); a.Known() || a.Routine() || a.Words() != "no.such" {
		t.Error("an unknown one is known")
	}
}

func TestCaller_GoesWithTheContext(t *testing.T) {
	ctx := activity.With(t.Context(), activity.Caller{UserID: "u", User: "ada", Via: activity.SSH, From: "192.0.2.1"})
	c, ok := activity.CallerOf(ctx)
	if e := c.Entry(activity.SandboxWake); !ok || e.User != "ada" || e.Via != activity.SSH || e.Outcome != activity.Done {
		t.Errorf("got %+v, %v", c, ok)
	}
	if _, ok := activity.CallerOf(t.Context()); ok {
		t.Error("nobody is a caller")
	}
}

func TestAdd_CallersWhoAreNotSignedInDoNotFillTheLog(t *testing.T) {
	for how, from := range map[string]func(i int) string{
		"from one address":   func(int) string { return "192.0.2.1" },
		"from many":          func(i int) string { return fmt.Sprintf("127.10.%d.%d", i/250, i%250) },
		"from one network":   func(i int) string { return fmt.Sprintf("2001:db8::%x", i) },
		"from many networks": func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i) },
	} {
		t.Run(how, func(t *testing.T) {
			running(t, func(w *world) {
				for i := range 5000 {
					w.log.Add(activity.Entry{Via: activity.Page, From: from(i % 500), Action: "account.login", Object: "ada", Outcome: activity.Refused})
				}
				w.pass(time.Minute + time.Second)
				early := 0
				for _, n := range w.counts() {
					early += n
				}
				if early != 5000 {
					t.Errorf("%d of 5000 are told within a minute", early)
				}
				w.log.Add(entry("sandbox.start"))
				w.pass(time.Hour)
				all, sum := w.counts(), 0
				for _, n := range all {
					sum += n
				}
				if len(all) > 330 || sum != 5001 {
					t.Errorf("%d entries of %d", len(all), sum)
				}
			})
		})
	}
}

func TestAdd_WhatAPersonRepeatsIsToldOfWithinAMinute(t *testing.T) {
	running(t, func(w *world) {
		e := entry("command.run")
		e.Object = "make"
		for range 2 {
			w.log.Add(e)
		}
		w.pass(time.Minute + time.Second)
		if got := w.counts(); !slices.Equal(got, []int{1, 1}) {
			t.Errorf("counts %v", got)
		}
		for range 60 {
			w.log.Add(e)
			w.pass(8 * time.Second)
		}
		w.pass(10 * time.Minute)
		if got := w.counts(); len(got) > 5 { // at most three sums come early
			t.Errorf("counts %v", got)
		}
	})
}
