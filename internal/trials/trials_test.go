package trials_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/trials"
)

// waits is an agent that works until it is stopped.
func waits(ctx context.Context, _ *chat.Turn) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestBegin_EachCloneGetsTheMessageOnce(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		tr := w.try(box, 3)
		if tr.State != trials.Open || tr.Problem != "" || len(tr.Clones) != 3 {
			t.Fatalf("trial %+v", tr)
		}
		tries, err := w.Look(w.t.Context(), tr)
		w.ok(err)
		for i, try := range tries {
			if try.Box.Name != "lab-try-"+string(rune('1'+i)) || try.Box.ClonedFrom != "lab" || try.Box.Owner != "ann" || try.Words != "You said Make it faster" ||
				try.Conversation.State != chat.Idle || try.Conversation.Turn != 1 || try.Conversation.Mode != chat.AskRisky {
				t.Errorf("try %d: %+v", i, try)
			}
			if of, is := w.Of(try.Box.ID); !is || of != (trials.Of{Trial: tr.ID, Owner: "ann", Name: "lab", N: i + 1}) {
				t.Errorf("it is a try of %+v, %t", of, is)
			}
		}
		if list := w.snap.List(func(s snapshot.Snapshot) bool { return s.SandboxID == box.ID }); len(list) != 1 || list[0].ID != tr.Snapshot {
			t.Errorf("snapshots %+v", list)
		}
		second := w.try(box, 2)
		if second.Clones[0].Name != "lab-try-4" || len(w.List(box.ID)) != 2 || w.List(box.ID)[0].ID != second.ID {
			t.Errorf("a second one: %+v", second)
		}
	})
}

func TestBegin_RefusesBeforeAnythingIsMade(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		begin := func(change func(*trials.Ask)) error {
			a := trials.Ask{Owner: "ann", Text: "go", Count: 2}
			change(&a)
			_, err := w.Begin(w.t.Context(), box, a)
			return err
		}
		w.wantKind("one", begin(func(a *trials.Ask) { a.Count = 1 }), fault.Invalid, "from 2 to 8")
		w.wantKind("nine", begin(func(a *trials.Ask) { a.Count = 9 }), fault.Invalid, "from 2 to 8")
		w.wantKind("no text", begin(func(a *trials.Ask) { a.Text = " " }), fault.Invalid, "empty")
		w.wantKind("a long text", begin(func(a *trials.Ask) { a.Text = strings.Repeat("x", trials.MaxText+1) }), fault.Invalid, "at most 64 KiB")
		w.wantKind("a strange mode", begin(func(a *trials.Ask) { a.Mode = "wild" }), fault.Invalid, "mode")
		w.wantKind("a strange agent", begin(func(a *trials.Ask) { a.Agent = "nobody" }), fault.NotFound, "no agent")
		w.room = fault.New(fault.Unavailable, "The host is full.")
		w.wantKind("no room", begin(func(*trials.Ask) {}), fault.Unavailable, "full")
		w.room = nil
		if len(w.names()) != 1 || len(w.List(box.ID)) != 0 || len(w.snap.List(func(snapshot.Snapshot) bool { return true })) != 0 {
			t.Error("something was made")
		}
		w.try(box, 8)
		w.try(box, 7)
		w.wantKind("too many", begin(func(*trials.Ask) {}), fault.Conflict, "You have 15 tries already, and can have 16")
		w.ok(begin(func(a *trials.Ask) { a.Owner = "bob" }))
		w.settle()
		_, err := w.m.Delete(w.t.Context(), w.names()["lab-try-1"].Ref())
		w.ok(err)
		w.settle()
		w.ok(begin(func(*trials.Ask) {}))
		w.settle()
	})
}

func TestBegin_ANameThatIsLongIsCut(t *testing.T) {
	within(t, func(w *world, _ sandbox.Sandbox) {
		long, _, err := w.m.Create(w.t.Context(), sandbox.Request{Name: strings.Repeat("a", 33) + "-bbbbbb", Owner: "ann", Template: "base"})
		w.ok(err)
		long, err = w.m.Wait(w.t.Context(), long.Ref())
		w.ok(err)
		tr := w.try(long, 2)
		if tr.State != trials.Open || tr.Clones[1].Name != strings.Repeat("a", 33)+"-try-2" || tr.Clones[1].Problem != "" {
			t.Errorf("trial %+v", tr)
		}
	})
}

func TestRun_ContinuesWhatARestartHasCutOff(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		for _, when := range []func(){func() {}, synctest.Wait} {
			tr, err := w.Begin(w.t.Context(), box, trials.Ask{Owner: "ann", Text: "go", Count: 4})
			w.ok(err)
			when()
			w.restart()
			w.settle()
			tr = w.now(tr)
			if tr.State != trials.Open {
				t.Fatalf("trial %+v", tr)
			}
			tries, err := w.Look(w.t.Context(), tr)
			w.ok(err)
			for _, try := range tries {
				if try.Problem != "" || try.Box.State != sandbox.Running || try.Conversation.Turn != 1 || try.Words != "You said go" {
					t.Errorf("try %+v", try)
				}
			}
			_, err = w.Cancel(w.t.Context(), tr.ID)
			w.ok(err)
			w.restart()
			w.settle()
			if tr = w.now(tr); tr.State != trials.Cancelled || len(w.names()) != 1 {
				t.Errorf("after cancelling: %+v, sandboxes %v", tr, slices.Collect(maps.Keys(w.names())))
			}
		}
	})
}

func TestRun_TakesUpACloneOfWhichItIsNotKnownThatItIsMade(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		tr := w.try(box, 2)
		made := tr.Clones[0].Sandbox
		w.end()
		tr.State, tr.Clones[0] = trials.Making, trials.Clone{Name: tr.Clones[0].Name}
		w.ok(w.rows.Put(w.t.Context(), tr))
		w.start()
		w.settle()
		tr = w.now(tr)
		tries, err := w.Look(w.t.Context(), tr)
		w.ok(err)
		if tr.State != trials.Open || tr.Clones[0].Sandbox != made || tries[0].Conversation.Turn != 1 || len(w.names()) != 3 {
			t.Errorf("trial %+v, first %+v", tr, tries[0])
		}
	})
}

func TestKeep_MakesTheSandboxAsTheCloneIs(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		tr := w.try(box, 3)
		kept := tr.Clones[1].Sandbox
		w.engine.PutHome(kept, map[string]string{"file": "better"})
		_, err := w.Keep(w.t.Context(), tr.ID, box.ID)
		w.wantKind("the sandbox itself", err, fault.Invalid, "none of the tries")
		_, err = w.Keep(w.t.Context(), "nothing", kept)
		w.wantKind("no trial", err, fault.NotFound, "")
		_, err = w.Keep(w.t.Context(), tr.ID, kept)
		w.ok(err)
		_, err = w.Cancel(w.t.Context(), tr.ID)
		w.wantKind("cancel meanwhile", err, fault.Conflict, "being kept")
		w.settle()
		if tr = w.now(tr); tr.State != trials.Kept || tr.Kept != kept || tr.Problem != "" {
			t.Fatalf("trial %+v", tr)
		}
		if files, settled := w.engine.HomeFiles(box.ID); !settled || files["file"] != "better" {
			t.Errorf("the home has %v", files)
		}
		if got := slices.Sorted(maps.Keys(w.names())); !slices.Equal(got, []string{"lab", "lab-try-2"}) {
			t.Errorf("sandboxes %v", got)
		}
		undo, can := w.snap.Undo(box.ID)
		if !can {
			t.Fatal("nothing was kept of the sandbox as it was")
		}
		_, err = w.snap.Restore(w.t.Context(), w.names()["lab"], undo.ID)
		w.ok(err)
		if files, _ := w.engine.HomeFiles(box.ID); files["file"] != "first" {
			t.Errorf("after it was undone the home has %v", files)
		}
		_, err = w.Keep(w.t.Context(), tr.ID, kept)
		w.wantKind("again", err, fault.Conflict, "over")
	})
}

func TestKeep_RefusesWhileAnAgentWorks(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		w.agent = waits
		tr := w.try(box, 2)
		if tr.State != trials.Open {
			t.Fatalf("trial %+v", tr)
		}
		_, err := w.Keep(w.t.Context(), tr.ID, tr.Clones[0].Sandbox)
		w.wantKind("it works in the clone", err, fault.Conflict, "working in lab-try-1")
		w.ok(w.chat.Cancel(w.t.Context(), tr.Clones[0].Conversation))
		own, err := w.chat.Create(w.t.Context(), chat.Conversation{Sandbox: box.ID, Owner: "ann", Agent: chat.OwnAgent})
		w.ok(err)
		_, err = w.chat.Send(w.t.Context(), own.ID, chat.Queued{User: "ann", Text: "go"})
		w.ok(err)
		synctest.Wait()
		_, err = w.Keep(w.t.Context(), tr.ID, tr.Clones[0].Sandbox)
		w.wantKind("it works in the sandbox", err, fault.Conflict, "working in lab.")
		w.ok(w.chat.Cancel(w.t.Context(), own.ID))
		synctest.Wait()
		_, err = w.Keep(w.t.Context(), tr.ID, tr.Clones[0].Sandbox)
		w.ok(err)
		w.settle()
		if tr = w.now(tr); tr.State != trials.Kept {
			t.Errorf("trial %+v", tr)
		}
	})
}

func TestKeep_ThatWasCutOffIsForAPersonToDecide(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		tr := w.try(box, 2)
		w.end()
		tr.State, tr.Kept = trials.Keeping, tr.Clones[0].Sandbox
		w.ok(w.rows.Put(w.t.Context(), tr))
		w.start()
		w.settle()
		if tr = w.now(tr); tr.State != trials.Open || tr.Kept != "" || !strings.Contains(tr.Problem, "restarted") || len(w.names()) != 3 {
			t.Errorf("trial %+v", tr)
		}
	})
}

func TestKeep_IsOverAlsoWhenTheStoreRefusesForAWhile(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		tr := w.try(box, 2)
		w.rows.refused.Store(trials.Deleting)
		_, err := w.Keep(w.t.Context(), tr.ID, tr.Clones[0].Sandbox)
		w.ok(err)
		w.settle()
		if now := w.now(tr); now.State != trials.Keeping {
			t.Errorf("meanwhile: %+v", now)
		}
		w.rows.refused.Store(trials.State(""))
		<-time.After(time.Minute)
		w.settle()
		if now := w.now(tr); now.State != trials.Kept || len(w.names()) != 2 {
			t.Errorf("after that: %+v", now)
		}
	})
}

func TestRun_EndsAlsoWhenTheStoreRefuses(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		w.rows.refused.Store(trials.Open)
		tr := w.try(box, 2)
		w.end()
		if now := w.now(tr); now.State != trials.Making {
			t.Errorf("trial %+v", now)
		}
	})
}

func TestCancel_LeavesAPersonsOwnCloneWithTheNameOfATryThatFailed(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		tr := w.try(box, 2)
		_, err := w.m.Delete(w.t.Context(), w.names()["lab-try-2"].Ref())
		w.ok(err)
		w.settle()
		w.end()
		tr.Clones[1] = trials.Clone{Name: "lab-try-2", Problem: "The host is full."}
		w.ok(w.rows.Put(w.t.Context(), tr))
		w.start()
		own, err := w.snap.Clone(w.t.Context(), box, snapshot.CloneAsk{Owner: "ann", Name: "lab-try-2", Count: 1})
		w.ok(err)
		_, err = w.Cancel(w.t.Context(), tr.ID)
		w.ok(err)
		w.settle()
		if got := w.names(); w.now(tr).State != trials.Cancelled || len(got) != 2 || got["lab-try-2"].ID != own[0].ID {
			t.Errorf("trial %+v, sandboxes %v", w.now(tr), slices.Collect(maps.Keys(got)))
		}
	})
}

func TestCancel_EndsTheTurnsAndDeletesTheClones(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		w.agent = waits
		tr := w.try(box, 2)
		_, err := w.m.Delete(w.t.Context(), w.names()["lab-try-2"].Ref())
		w.ok(err)
		w.settle()
		tries, err := w.Look(w.t.Context(), tr)
		w.ok(err)
		if tries[0].Conversation.State != chat.Working || tries[1].Box.ID != "" {
			t.Errorf("tries %+v", tries)
		}
		_, err = w.Keep(w.t.Context(), tr.ID, tr.Clones[1].Sandbox)
		w.wantKind("one that is gone", err, fault.NotFound, "deleted")
		_, err = w.Cancel(w.t.Context(), tr.ID)
		w.ok(err)
		w.settle()
		if tr = w.now(tr); tr.State != trials.Cancelled || tr.Problem != "" || len(w.names()) != 1 {
			t.Errorf("trial %+v", tr)
		}
		_, err = w.Cancel(w.t.Context(), tr.ID)
		w.wantKind("again", err, fault.Conflict, "over")
	})
}

func TestCancel_WhileTheyAreMadeLeavesNothing(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		tr, err := w.Begin(w.t.Context(), box, trials.Ask{Owner: "ann", Text: "go", Count: 5})
		w.ok(err)
		_, err = w.Keep(w.t.Context(), tr.ID, box.ID)
		w.wantKind("keep", err, fault.Conflict, "being made")
		_, err = w.Cancel(w.t.Context(), tr.ID)
		w.ok(err)
		w.settle()
		if tr = w.now(tr); tr.State != trials.Cancelled || len(w.names()) != 1 {
			t.Errorf("trial %+v, sandboxes %v", tr, slices.Collect(maps.Keys(w.names())))
		}
	})
}

func TestForget_ATrialEndsWithItsSandbox(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		tr := w.try(box, 2)
		w.Forget(box.ID)
		if of, is := w.Of(tr.Clones[0].Sandbox); is || len(w.List(box.ID)) != 0 {
			t.Errorf("a clone is a try of %+v", of)
		}
		_, err := w.Cancel(w.t.Context(), tr.ID)
		w.wantKind("cancel", err, fault.NotFound, "")
	})
}

func TestLook_ReadsTheEndOfALongConversation(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		w.agent = func(_ context.Context, t *chat.Turn) error {
			t.End(t.Begin(chat.Call{Tool: "edit"}), func(c *chat.Call) { c.Diffs = []chat.Diff{{Path: "early"}} })
			for range 9 {
				t.Text(strings.Repeat("x", chat.MaxText))
			}
			t.End(t.Begin(chat.Call{Tool: "edit"}), func(c *chat.Call) { c.Diffs = []chat.Diff{{Path: "late"}} })
			return nil
		}
		tries, err := w.Look(w.t.Context(), w.try(box, 2))
		w.ok(err)
		if seen := tries[0].Seen; len(seen.Files) != 1 || seen.Files[0].Path != "late" || !seen.More {
			t.Errorf("files %+v, more %t", seen.Files, seen.More)
		}
	})
}

func TestLook_AddsUpWhatTheAgentHasChanged(t *testing.T) {
	within(t, func(w *world, box sandbox.Sandbox) {
		w.agent = func(_ context.Context, t *chat.Turn) error {
			t.Text(strings.Repeat("é", trials.MaxWords))
			for _, diffs := range [][]chat.Diff{{{Path: "b", Added: 2, Removed: 1}, {Path: "a", Created: true, Added: 3}}, {{Path: "b", Added: 1, Removed: -5}, {Path: "evil\u202e\n", Deleted: true}}} {
				t.End(t.Begin(chat.Call{Tool: "edit"}), func(c *chat.Call) { c.Diffs = diffs })
			}
			return nil
		}
		tries, err := w.Look(w.t.Context(), w.try(box, 2))
		w.ok(err)
		want := []trials.File{{Path: "a", Created: true, Added: 3}, {Path: "b", Added: 3, Removed: 1}}
		if got := tries[0].Files; len(got) != 3 || !slices.Equal(got[:2], want) || strings.ContainsAny(got[2].Path, "\u202e\n") {
			t.Errorf("files %+v", got)
		}
		if !strings.HasSuffix(tries[0].Words, "é") || len(tries[0].Words) > trials.MaxWords+3 {
			t.Errorf("words %q", tries[0].Words)
		}
	})
}
