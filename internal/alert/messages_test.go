package alert_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
)

// full makes sandboxes whose memory is nearly full.
func (w *world) full(names ...string) {
	for _, name := range names {
		w.box(name, "ann")
		w.set(func() { w.used[name] = 95 })
	}
}

func (w *world) free(names ...string) {
	w.set(func() {
		for _, name := range names {
			w.used[name] = 0
		}
	})
}

func targets(list []alert.Alert) (names []string) {
	for _, a := range list {
		names = append(names, a.Target.Sandbox)
	}
	return names
}

func TestMessages_NameAllThatChangeWithinHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90})
		w.full("b")
		w.pass(11 * time.Second)
		w.full("c", "a")
		w.pass(10 * time.Second)
		w.free("c")
		w.full("d")
		w.pass(10 * time.Second)
		w.full("late")
		w.pass(10 * time.Second)
		m := w.sent("the first half minute", "3 sandboxes: memory nearly full; 1 resolved")
		if len(m) == 1 && (!slices.Equal(targets(m[0].Firing), []string{"a", "b", "d"}) || !slices.Equal(targets(m[0].Resolved), []string{"c"}) ||
			m[0].Event != alert.Fired || m[0].Link != "https://box.example.com/alerts" || m[0].Rule != "memory") {
			t.Errorf("message %+v", m[0])
		}
		w.pass(30 * time.Second)
		w.sent("the next one", "late: memory nearly full")
	})
}

func TestMessages_AreThoseOfTheRuleAndItsChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.full("lab")
		a, b := w.channel("ann"), w.channel("ann")
		w.rules("")
		w.rules("ann", alert.Rule{Name: "both", Kind: alert.Memory, Threshold: 90, Channels: []string{a.ID, b.ID}},
			alert.Rule{Name: "none", Kind: alert.Memory, Threshold: 80}, alert.Rule{Name: "one", Kind: alert.Memory, Threshold: 70, Channels: []string{b.ID}})
		w.run()
		w.pass(time.Minute)
		got := map[string]int{}
		ids := map[string]bool{}
		for _, d := range w.store.Queued() {
			got[d.Message.Rule+" "+d.Channel]++
			ids[d.Message.ID] = true
		}
		if len(got) != 3 || got["both "+a.ID] != 1 || got["both "+b.ID] != 1 || got["one "+b.ID] != 1 || len(ids) != 2 {
			t.Errorf("queued %v, %v", got, ids)
		}
		w.sent("all", "lab: memory nearly full", "lab: memory nearly full", "lab: memory nearly full")
	})
}

func TestMessages_RemindOfAllThatStillFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90, Remind: 2 * time.Hour})
		w.full("a")
		w.pass(time.Hour)
		w.full("b")
		w.pass(time.Minute)
		w.sent("both", "a: memory nearly full", "b: memory nearly full")
		w.pass(time.Hour)
		m := w.sent("two hours after the first", "Still after 2 h: 2 sandboxes: memory nearly full")
		if len(m) == 1 && (m[0].Event != alert.Reminder || len(m[0].Firing) != 2) {
			t.Errorf("message %+v", m[0])
		}
		w.pass(time.Hour + 50*time.Minute)
		w.sent("not before two more hours")
		w.free("a")
		w.pass(20 * time.Minute)
		w.sent("then", "Resolved: a: memory nearly full", "Still after 3 h: b: memory nearly full")
	})
}

func TestMessages_AreNotSentOfAMutedRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90, Remind: time.Hour, Muted: time.Now().Add(3 * time.Hour)})
		w.full("a", "b")
		w.pass(time.Hour)
		w.free("b")
		w.pass(time.Hour)
		if n := w.Firing(alert.Scope{All: true}); n != 0 {
			t.Errorf("%d fire", n)
		}
		w.sent("while it is muted")
		w.pass(time.Hour + time.Minute)
		w.sent("then only a reminder", "Still after 3 h: a: memory nearly full")
		w.free("a")
		w.pass(time.Minute)
		w.sent("and the end", "Resolved: a: memory nearly full")
	})
}

func TestMessages_AreAtMostThirtyAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90})
		for range 25 { // fires and is resolved once a minute each
			w.full("a")
			w.pass(time.Minute)
			w.free("a")
			w.pass(time.Minute)
		}
		if n := len(w.sender.take()); n != 30 {
			t.Errorf("%d messages within 50 minutes", n)
		}
		w.pass(11 * time.Minute)
		m := w.sent("an hour after the first", "20 messages were not sent: more than 30 within an hour. The Alerts page has them.")
		if len(m) == 1 && m[0].Event != alert.Held {
			t.Errorf("message %+v", m[0])
		}
		w.full("a")
		w.pass(time.Minute)
		w.sent("afterwards", "a: memory nearly full")
	})
}

func TestMessages_OfAnHourAreCountedOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90})
		for range 20 {
			w.full("a")
			w.pass(time.Minute)
			w.free("a")
			w.pass(35 * time.Second)
			w.again()
			w.run()
		}
		if n := len(w.sender.take()); n != 30 {
			t.Errorf("%d messages within 34 minutes", n)
		}
		w.pass(30 * time.Minute)
		w.sent("an hour after the first", "10 messages were not sent: more than 30 within an hour. The Alerts page has them.")
	})
}

func TestDelivery_HangingChannelHoldsNoOtherUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		slow, quick := w.channel(""), w.channel("")
		w.sender.hangs[slow.ID] = true
		w.rules("", alert.Rule{Name: "slow", Kind: alert.Memory, Threshold: 90, Channels: []string{slow.ID, quick.ID}})
		w.run()
		for i := range 10 {
			w.full(fmt.Sprint("box", i))
			w.pass(35 * time.Second)
		}
		w.pass(5 * time.Second)
		if n := len(w.sender.take()); n < 8 {
			t.Errorf("%d messages", n)
		}
		list, err := w.Deliveries(t.Context(), "", slow.ID)
		if err != nil || len(list) < 8 || list[len(list)-1].Attempts < 3 || list[len(list)-1].Problem != "It took too long and was given up." {
			t.Errorf("%v: %+v", err, list)
		}
	})
}

func TestDelivery_IsTriedAgainLessAndLessOftenForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90})
		channels, err := w.Channels(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		w.sender.answer(channels[0].ID, fault.New(fault.Unavailable, "It does not answer."))
		w.full("a")
		w.pass(30 * time.Hour)
		gaps := w.sender.tried()
		want := 10 * time.Second
		for i, gap := range gaps {
			if slack := want/5 + 5*time.Second; gap < want || gap > want+slack {
				t.Errorf("try %d came after %s, want %s", i+2, gap, want)
			}
			want = min(2*want, time.Hour)
		}
		list, err := w.Deliveries(t.Context(), "", channels[0].ID)
		if err != nil || len(list) != 1 || !list[0].GivenUp || list[0].Problem != "It does not answer." || len(gaps) < 25 || len(gaps) > 33 || list[0].Attempts != len(gaps)+1 {
			t.Errorf("%d tries, %v: %+v", len(gaps)+1, err, list)
		}
	})
}

func TestDelivery_IsGivenUpAtOnceWhenItIsRefused(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Invalid, fault.Forbidden} {
		synctest.Test(t, func(t *testing.T) {
			w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90})
			channels, _ := w.Channels(t.Context(), "")
			w.sender.answer(channels[0].ID, fault.New(kind, "No."))
			w.full("a")
			w.pass(time.Hour)
			list, err := w.Deliveries(t.Context(), "", channels[0].ID)
			if err != nil || len(list) != 1 || !list[0].GivenUp || list[0].Attempts != 1 {
				t.Errorf("%s: %v: %+v", kind, err, list)
			}
		})
	}
}

func TestRestart_LosesNoAlertAndNoMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90, Remind: 2 * time.Hour}, alert.Rule{Kind: alert.OOMKill},
			alert.Rule{Kind: alert.HomeSize, Threshold: 1, For: 10 * time.Minute})
		w.full("a")
		w.set(func() { w.kills["a"], w.homes["a"] = 1, 2<<30 })
		w.pass(11 * time.Second) // they fire, and are on their way
		w.again()
		w.set(func() { clear(w.kills) }) // counted anew
		w.run()
		w.pass(40 * time.Second)
		got := w.sender.take()
		if len(got) != 2 {
			t.Errorf("messages %+v", got)
		}
		w.pass(8 * time.Minute)
		w.want("all the while", "firing a: uses 95 % of its 100 B", "firing a: 1 process was killed for lack of memory")
		w.pass(3 * time.Minute)
		w.want("ten minutes after", "firing a: its home has 2 GiB", "firing a: uses 95 % of its 100 B", "resolved a: 1 process was killed for lack of memory")
		w.again()
		w.free("a")
		time.Sleep(time.Hour)
		w.run()
		w.pass(time.Minute)
		w.want("over another restart", "firing a: its home has 2 GiB", "resolved a: uses 95 % of its 100 B", "resolved a: 1 process was killed for lack of memory")
		w.sender.take()
		w.pass(time.Hour)
		w.sent("no reminder of what is over")
	})
}

func TestRestart_SendsWhatASenderWasCutOffIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90})
		channels, _ := w.Channels(t.Context(), "")
		w.sender.hangs[channels[0].ID] = true
		w.full("a")
		w.pass(45 * time.Second)
		w.end()
		w.sender.hangs[channels[0].ID] = false
		w.again()
		w.run()
		w.pass(time.Second)
		w.sent("at once", "a: memory nearly full")
		w.pass(time.Hour)
		w.sent("once")
	})
}

func TestStore_ThatFailsLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.OOMKill}, alert.Rule{Kind: alert.LogLine, Pattern: "panic", Threshold: 2}, alert.Rule{Kind: alert.Memory, Threshold: 90})
		w.pass(time.Minute)
		w.store.Fail(errors.New("full"))
		w.set(func() { w.kills["lab"], w.used["lab"] = 1, 95 })
		w.line("lab", "panic 1")
		w.line("lab", "panic 2")
		w.pass(5 * time.Minute)
		if n := w.Firing(alert.Scope{All: true}); n != 0 {
			t.Errorf("%d fire that are not kept", n)
		}
		w.store.Fail(nil)
		w.pass(time.Minute)
		if got := w.alerts(); len(got) != 3 {
			t.Errorf("alerts %q", got)
		}
		if n := len(w.sender.take()); n != 3 {
			t.Errorf("%d messages", n)
		}
		if said := w.said.String(); strings.Count(said, "source=store") != 2 {
			t.Errorf("logged:\n%s", said)
		}
	})
}

func TestDelivery_ThatCannotBeKeptIsNotSentAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90})
		channels, _ := w.Channels(t.Context(), "")
		w.sender.hangs[channels[0].ID] = true
		w.full("a")
		w.pass(45 * time.Second)
		w.store.Fail(errors.New("full"))
		w.pass(10 * time.Minute)
		w.store.Fail(nil)
		if n := len(w.sender.tried()) + 1; n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// TestMessages_OfAMemberAreBounded lets a member delete channels and add them again, to pass the bound of each.
func TestMessages_OfAMemberAreBounded(t *testing.T) {
	for how, c := range map[string]struct {
		address func(i int) string
		most    int
	}{
		"to one address": {func(int) string { return "https://example.com/victim" }, 31}, // with the one that says how many were not sent
		"to many":        {func(i int) string { return fmt.Sprint("https://example.com/", i) }, 101},
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watching(t)
				w.box("a", "ann")
				n := 0
				for range 12 {
					var ids []string
					for i := range 20 {
						ch, err := w.PutChannel(t.Context(), alert.Channel{Owner: "ann", Name: "x", Kind: alert.Webhook, Address: c.address(i)})
						if err != nil {
							t.Fatal(err)
						}
						ids = append(ids, ch.ID)
					}
					w.rules("ann", alert.Rule{Name: "m", Kind: alert.Memory, Threshold: 90, Channels: ids})
					w.full("a")
					w.pass(time.Minute)
					w.free("a")
					w.pass(time.Minute)
					n += len(w.sender.take())
					for _, id := range ids {
						if err := w.DeleteChannel(t.Context(), "ann", id); err != nil {
							t.Fatal(err)
						}
					}
					w.rules("ann")
				}
				if n > c.most || n < 20 {
					t.Errorf("%d messages within half an hour", n)
				}
			})
		})
	}
}

// TestMessages_SaysOnceInAnHourHowManyWereNotSent has one message a minute for hours.
func TestMessages_SaysOnceInAnHourHowManyWereNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90})
		w.box("a", "ann")
		for hour := range 6 {
			for range 30 {
				w.full("a")
				w.pass(time.Minute)
				w.free("a")
				w.pass(time.Minute)
			}
			got := w.sender.take()
			notes := 0
			for _, m := range got {
				if m.Event == alert.Held {
					notes++
				}
			}
			if len(got) > 32 || notes > 1 {
				t.Errorf("hour %d: %d messages, %d of them about others", hour, len(got), notes)
			}
		}
	})
}
