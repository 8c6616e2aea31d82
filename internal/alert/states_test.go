package alert_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// watching gives a world that runs, with one sandbox, lab, of ann's, and the rules of the installation.
func watching(t *testing.T, rules ...alert.Rule) *world {
	w := newWorld(t)
	w.box("lab", "ann")
	c := w.channel("")
	for i := range rules {
		rules[i].Name, rules[i].Channels = string(rules[i].Kind), []string{c.ID}
	}
	w.rules("", rules...)
	w.run()
	return w
}

func TestAlert_IsPendingThenFiresThenIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90, For: time.Minute})
		told := w.Subscribe()
		defer told.Close()
		since := time.Now()
		w.set(func() { w.used["lab"] = 96 })
		w.pass(time.Minute + time.Second)
		w.want("pending for less than a minute")
		w.pass(10 * time.Second)
		w.want("after a minute", "firing lab: uses 96 % of its 100 B")
		if n := w.Firing(alert.Scope{User: "ann"}); n != 1 {
			t.Errorf("%d fire", n)
		}
		if a := <-told.C; a.State != alert.Firing || a.Since.Sub(since) != 10*time.Second || a.Fired.Sub(a.Since) != time.Minute {
			t.Errorf("told of %+v", a)
		}
		w.sent("at once")
		w.pass(31 * time.Second)
		w.sent("after half a minute", "lab: memory nearly full")
		w.set(func() { w.used["lab"] = 97 })
		w.pass(10 * time.Second)
		w.want("how it stands", "firing lab: uses 97 % of its 100 B")
		w.set(func() { w.used["lab"] = 86 })
		w.pass(time.Hour)
		w.want("within five points", "firing lab: uses 97 % of its 100 B")
		w.set(func() { w.used["lab"] = 84 })
		w.pass(10 * time.Second)
		w.want("below", "resolved lab: uses 97 % of its 100 B")
		if a := <-told.C; a.State != alert.Resolved {
			t.Errorf("told of %+v", a)
		}
		w.pass(31 * time.Second)
		if m := w.sent("then", "Resolved: lab: memory nearly full"); len(m) == 1 && (m[0].Event != alert.Ended || m[0].Resolved[0].Resolved.Sub(m[0].Resolved[0].Since) < time.Hour) {
			t.Errorf("message %+v", m[0])
		}
		w.set(func() { w.used["lab"] = 99 })
		w.pass(2 * time.Minute)
		w.want("again, as another one", "firing lab: uses 99 % of its 100 B", "resolved lab: uses 97 % of its 100 B")
	})
}

func TestAlert_PendingThatEndsIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90, For: time.Minute})
		for range 10 {
			w.set(func() { w.used["lab"] = 95 })
			w.pass(50 * time.Second)
			w.set(func() { w.used["lab"] = 89 })
			w.pass(20 * time.Second)
		}
		w.want("never for a minute")
		if n := w.store.Puts(); n != 0 {
			t.Errorf("the store was written %d times", n)
		}
	})
}

// TestAlert_OfEachKind goes through the life of an alert of each kind.
func TestAlert_OfEachKind(t *testing.T) {
	for _, c := range []struct {
		rule  alert.Rule
		bad   func(*world)
		fires string // text
		well  func(*world)
		ends  time.Duration // after well
	}{
		{alert.Rule{Kind: alert.ServiceDown}, unhealthy(true), "lab/web: is unhealthy: no answer", unhealthy(false), 40 * time.Second},
		{alert.Rule{Kind: alert.OOMKill}, func(w *world) { w.kills["lab"] += 2 }, "lab: 2 processes were killed for lack of memory within 10 minutes", func(*world) {}, 11 * time.Minute},
		{alert.Rule{Kind: alert.HomeSize, Threshold: 2}, func(w *world) { w.homes["lab"] = 3 << 30 }, "lab: its home has 3 GiB", func(w *world) { w.homes["lab"] = 1 << 30 }, 11 * time.Second},
		{alert.Rule{Kind: alert.HomeSize, Threshold: 2}, func(w *world) { w.limit("lab", 100<<20); w.homes["lab"] = 90 << 20 },
			"lab: its home has 90 MiB of the 100 MiB that it may take", func(w *world) { w.limit("lab", 200<<20) }, 11 * time.Second},
		{alert.Rule{Kind: alert.Broken}, func(w *world) { w.state("lab", sandbox.Failed, "The image is gone.") }, "lab: The image is gone.",
			func(w *world) { w.state("lab", sandbox.Running, "") }, 11 * time.Second},
		{alert.Rule{Kind: alert.Broken}, func(w *world) {
			w.state("lab", sandbox.Asleep, "")
			w.failures = append(w.failures, alert.Failure{SandboxID: "lab-id", Problem: "The host is full."})
		}, "lab: The host is full.", func(*world) {}, 11 * time.Minute},
		{alert.Rule{Kind: alert.BuildFailed}, func(w *world) { w.builds["go"] = alert.Build{Known: true, Problem: "Step 3 failed."} }, "/go: Step 3 failed.",
			func(w *world) { w.builds["go"] = alert.Build{Known: true} }, 11 * time.Second},
		{alert.Rule{Kind: alert.BackupFailed}, backupTrouble(alert.BackupFailed, "The disk is full."), "lab/nightly: The disk is full.", wellBackedUp, 11 * time.Second},
		{alert.Rule{Kind: alert.BackupMissed}, backupTrouble(alert.BackupMissed, "2 due times were missed"), "lab/nightly: 2 due times were missed", wellBackedUp, 11 * time.Second},
		{alert.Rule{Kind: alert.BackupTest, SandboxID: "lab-id"}, backupTrouble(alert.BackupTest, "It differs."), "lab/nightly: It differs.", wellBackedUp, 11 * time.Second},
		{alert.Rule{Kind: alert.HostDisk, Threshold: 90}, func(w *world) { w.host.DiskUsed, w.host.DiskFree = 95, 5 }, "/: 95 % of the disk are used, 5 B are free",
			func(w *world) { w.host.DiskUsed, w.host.DiskFree = 50, 50 }, 11 * time.Second},
		{alert.Rule{Kind: alert.HostDisk, Threshold: 90}, func(w *world) { w.pool.Used = 95 }, "/: 95 % of the storage pool are used, 5 B are free",
			func(w *world) { w.pool.Used = 50 }, 11 * time.Second},
		{alert.Rule{Kind: alert.HostDisk, Threshold: 90}, func(w *world) { w.pool.ReadOnly = true }, "/: the storage pool is read-only: the kernel's log (dmesg) says why",
			func(w *world) { w.pool.ReadOnly = false }, 11 * time.Second},
		{alert.Rule{Kind: alert.HostMemory, Threshold: 90}, func(w *world) { w.host.Memory = 91 }, "/: 91 % of the memory are used, 9 B are free",
			func(w *world) { w.host.Memory = 3 }, 11 * time.Second},
		{alert.Rule{Kind: alert.Certificate, Threshold: 14}, func(w *world) { w.ends = time.Date(2000, 1, 10, 12, 0, 0, 0, time.UTC) }, "/: expires on 10 January 2000, in 9 days",
			func(w *world) { w.ends = w.ends.Add(90 * 24 * time.Hour) }, 2 * time.Hour},
		{alert.Rule{Kind: alert.LogLine, Threshold: 1, Pattern: "panic"}, logged("panic: \x1b[31moh"), "lab: panic: [31moh", func(*world) {}, 11 * time.Minute},
	} {
		t.Run(string(c.rule.Kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watching(t, c.rule)
				w.pass(time.Minute)
				w.want("at first")
				w.set(func() { c.bad(w) })
				w.pass(time.Hour + 10*time.Second)
				if linger := c.ends == 11*time.Minute; linger {
					w.want("when it has happened", "resolved "+c.fires)
				} else {
					w.want("while it lasts", "firing "+c.fires)
				}
				w.set(func() { c.well(w) })
				w.pass(c.ends)
				w.want("when it is over", "resolved "+c.fires)
				w.pass(time.Minute)
				if n := len(w.sender.take()); n != 2 {
					t.Errorf("%d messages", n)
				}
			})
		})
	}
}

func (w *world) state(name string, state sandbox.State, problem string) {
	b := w.boxes[name]
	b.State, b.Problem = state, problem
	w.boxes[name] = b
}

// limit is that of a home.
func (w *world) limit(name string, bytes int64) {
	b := w.boxes[name]
	b.Spec.Limits.Disk = bytes
	w.boxes[name] = b
}

func unhealthy(yes bool) func(*world) {
	one := wire.ServiceStatus{Name: "web", State: wire.ServiceRunning, Health: wire.HealthHealthy}
	if yes {
		one.Health, one.Problem = wire.HealthUnhealthy, "no answer"
	}
	return func(w *world) { w.services["lab"] = []wire.ServiceStatus{one} }
}

func TestAlert_IsOverWhenItsSandboxIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.OOMKill}, alert.Rule{Kind: alert.Broken}, alert.Rule{Kind: alert.ServiceDown})
		w.set(func() { w.kills["lab"] = 1 })
		w.set(func() { unhealthy(true)(w) })
		w.pass(time.Minute)
		w.want("before", "firing lab/web: is unhealthy: no answer", "firing lab: 1 process was killed for lack of memory")
		w.gone("lab")
		w.pass(time.Minute)
		w.want("deleted", "resolved lab/web: is unhealthy: no answer", "resolved lab: 1 process was killed for lack of memory")
	})
}

func TestAlert_StaysAsItIsWhileASourceFailsOrHangs(t *testing.T) {
	for _, how := range []string{"fails", "hangs"} {
		for source, rule := range map[string]alert.Rule{
			"sandboxes": {Kind: alert.Memory, Threshold: 90}, "usage": {Kind: alert.Memory, Threshold: 90}, "services": {Kind: alert.ServiceDown},
			"homes": {Kind: alert.HomeSize, Threshold: 1}, "host": {Kind: alert.HostDisk, Threshold: 90},
			"certificate": {Kind: alert.Certificate, Threshold: 20}, "lines": {Kind: alert.LogLine, Threshold: 1, Pattern: "x"}, "lab": {Kind: alert.ServiceDown},
		} {
			quick := source == "usage" || source == "homes" || source == "lab" // from memory
			if quick && how == "hangs" {
				continue
			}
			t.Run(source+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := watching(t, rule)
					all := func(yes bool) {
						w.set(func() {
							unhealthy(yes)(w)
							w.used["lab"], w.homes["lab"], w.host.DiskUsed, w.host.DiskFree, w.ends = 0, 0, 0, 100, time.Now().Add(1000*time.Hour)
							if yes {
								w.used["lab"], w.homes["lab"], w.host.DiskUsed, w.ends = 99, 9<<30, 9999, time.Now().Add(100*time.Hour)
							}
						})
					}
					all(true)
					w.line("lab", "x")
					w.pass(61 * time.Minute)
					if source == "lines" {
						w.line("lab", "x")
						w.pass(11 * time.Second)
					}
					before := w.alerts()
					w.set(func() {
						if w.hangs[source] = how == "hangs"; how == "fails" {
							w.fails[source] = errOut
						}
					})
					all(false)
					w.pass(65 * time.Minute)
					w.want("while it cannot be told", before...)
					if len(before) == 0 || !strings.HasPrefix(before[0], "firing") {
						t.Errorf("before: %q", before)
					}
					if !quick && !strings.Contains(w.said.String(), "cannot be told") {
						t.Error("nothing is logged")
					}
					w.set(func() { clear(w.fails); clear(w.hangs) })
					w.pass(75 * time.Minute)
					if n := w.Firing(alert.Scope{All: true}); n != 0 {
						t.Errorf("%d fire once it can be told", n)
					}
				})
			})
		}
	}
}

func TestAlert_PendingCountsOnlyTheTimeOfWhichOneCanTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90, For: 5 * time.Minute})
		w.set(func() { w.used["lab"] = 95 })
		w.pass(2 * time.Minute)
		w.becomes("lab", sandbox.Frozen, "")
		w.pass(time.Hour)
		w.becomes("lab", sandbox.Running, "")
		w.pass(2*time.Minute + 30*time.Second)
		w.want("after four and a half minutes")
		w.pass(time.Minute)
		w.want("after five", "firing lab: uses 95 % of its 100 B")
		w.becomes("lab", sandbox.Frozen, "")
		w.pass(time.Hour)
		w.want("frozen", "firing lab: uses 95 % of its 100 B")
		w.becomes("lab", sandbox.Asleep, "")
		w.pass(11 * time.Second)
		w.want("asleep", "resolved lab: uses 95 % of its 100 B")
	})
}

func TestAlert_OfASandboxThatIsGoneIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90}, alert.Rule{Kind: alert.BuildFailed})
		w.set(func() { w.used["lab"], w.builds["go"] = 95, alert.Build{Known: true, Problem: "no"} })
		w.pass(11 * time.Second)
		if n := w.Firing(alert.Scope{All: true}); n != 2 {
			t.Fatalf("%d fire: %q", n, w.alerts())
		}
		w.gone("lab")
		w.set(func() { delete(w.builds, "go") })
		w.pass(11 * time.Second)
		if n := w.Firing(alert.Scope{All: true}); n != 0 {
			t.Errorf("%d fire: %q", n, w.alerts())
		}
	})
}

func TestRule_WatchesItsSandboxItsTemplateOrItsOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, name := range []string{"a", "b", "c"} {
			w.box(name, "ann")
		}
		w.box("d", "bob")
		w.set(func() {
			b := w.boxes["b"]
			b.Spec.Template = "go"
			w.boxes["b"] = b
			for name := range w.boxes {
				w.used[name] = 95
			}
		})
		w.rules("")
		r := alert.Rule{Kind: alert.Memory, Threshold: 90}
		one, template, disabled, all := r, r, r, r
		one.Name, one.SandboxID = "one", "a-id"
		template.Name, template.Template = "template", "go"
		disabled.Name, disabled.Disabled = "disabled", true
		all.Name = "all"
		w.rules("ann", one, template, disabled, all)
		w.run()
		w.pass(11 * time.Second)
		found, _, err := w.Find(t.Context(), alert.Query{Scope: alert.Scope{All: true}})
		var got []string
		for _, a := range found {
			got = append(got, a.Rule+" "+a.Target.Sandbox)
		}
		want := map[string]bool{"one a": true, "template b": true, "all a": true, "all b": true, "all c": true}
		for _, g := range got {
			if !want[g] {
				t.Errorf("there is %q", g)
			}
		}
		if err != nil || len(got) != len(want) {
			t.Errorf("alerts %q, %v", got, err)
		}
	})
}

func TestSetRules_ResolvesTheAlertsOfThoseThatAreGoneOrDisabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90}, alert.Rule{Kind: alert.Memory, Threshold: 80}, alert.Rule{Kind: alert.Memory, Threshold: 70})
		w.set(func() { w.used["lab"] = 95 })
		w.pass(time.Minute)
		w.sender.take()
		rules, err := w.Rules(t.Context(), "")
		if err != nil || w.Firing(alert.Scope{All: true}) != 3 {
			t.Fatalf("%v, %q", err, w.alerts())
		}
		rules[1].Disabled = true
		rules[2].Threshold = 60
		w.rules("", rules[1:]...)
		if n := w.Firing(alert.Scope{All: true}); n != 1 {
			t.Errorf("%d fire: %q", n, w.alerts())
		}
		w.pass(time.Minute)
		w.sent("afterwards")
		if got := w.alerts(); len(got) != 3 {
			t.Errorf("the one that was changed has begun anew: %q", got)
		}
	})
}

func logged(text string) func(*world) {
	return func(w *world) {
		w.lines = append(w.lines, logs.Line{ID: logs.ID(time.Now().UnixMicro()), Time: time.Now(), Sandbox: "lab-id", Text: text})
	}
}

func TestRule_ThatFiresAThousandTimesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90, Remind: 10 * time.Minute})
		for i := range 1200 {
			name := fmt.Sprintf("box-%04d", i)
			w.box(name, "ann")
			w.set(func() { w.used[name] = 95 })
		}
		w.pass(5 * time.Minute)
		if n := w.Firing(alert.Scope{All: true}); n != 1000 {
			t.Errorf("%d fire", n)
		}
		if said := w.said.String(); strings.Count(said, "a rule has too many alerts") != 1 {
			t.Errorf("logged:\n%s", said)
		}
		if m := w.sent("as one message", "1000 sandboxes: memory nearly full"); len(m) == 1 && len(m[0].Firing) != 1000 {
			t.Errorf("it names %d", len(m[0].Firing))
		}
		w.pass(10 * time.Minute)
		w.sent("a reminder", "Still after 10 min: 1000 sandboxes: memory nearly full")
		w.set(func() { clear(w.used) })
		w.pass(time.Minute)
		w.sent("then", "Resolved: 1000 sandboxes: memory nearly full")
	})
}

func TestMute_IsForOwnersOfTheRuleAndAdmins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.Memory, Threshold: 90, Remind: time.Hour})
		w.set(func() { w.used["lab"] = 95 })
		w.pass(time.Minute)
		w.sent("first", "lab: memory nearly full")
		found, _, err := w.Find(t.Context(), alert.Query{Scope: alert.Scope{User: "ann"}})
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		id, until := found[0].ID, time.Now().Add(3*time.Hour)
		for user, kind := range map[string]fault.Kind{"ann": fault.Forbidden, "bob": fault.NotFound} {
			if _, err := w.Mute(t.Context(), alert.Scope{User: user}, id, until); !fault.Is(err, kind) {
				t.Errorf("%s: %v", user, err)
			}
		}
		if _, err := w.Mute(t.Context(), alert.Scope{All: true}, id, time.Now().Add(9000*time.Hour)); fault.FieldOf(err) != "until" {
			t.Errorf("for ever: %v", err)
		}
		if _, err := w.Mute(t.Context(), alert.Scope{All: true}, id, until); err != nil {
			t.Fatal(err)
		}
		if n := w.Firing(alert.Scope{All: true}); n != 0 {
			t.Errorf("%d fire", n)
		}
		w.pass(2 * time.Hour)
		w.sent("while it is muted")
		w.pass(time.Hour + time.Minute)
		if n := w.Firing(alert.Scope{All: true}); n != 1 {
			t.Errorf("%d fire when it is not muted any more", n)
		}
		w.sent("then", "Still after 3 h: lab: memory nearly full")
		if _, err := w.Mute(t.Context(), alert.Scope{All: true}, id, until.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		w.again()
		w.run()
		w.set(func() { clear(w.used) })
		w.pass(time.Minute)
		w.sent("resolved while it is muted, over a restart")
		w.want("but", "resolved lab: uses 95 % of its 100 B")
	})
}

// backupTrouble has something be wrong with the backups of lab, and with those of a sandbox that is not there.
func backupTrouble(kind alert.Kind, text string) func(*world) {
	return func(w *world) {
		for _, name := range []string{"lab", "gone"} {
			w.troubles = append(w.troubles, alert.BackupTrouble{Kind: kind, Target: alert.Target{SandboxID: name + "-id", Sandbox: name, Owner: "ann", Part: "nightly"}, Text: text})
		}
	}
}

func wellBackedUp(w *world) { w.troubles = nil }
