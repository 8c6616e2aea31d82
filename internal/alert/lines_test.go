package alert_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/alert"
)

func TestLogLines_AreCountedForEachSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, alert.Rule{Kind: alert.LogLine, Pattern: "error", Threshold: 3})
		w.box("den", "bob")
		w.line("lab", "error from before")
		w.pass(11 * time.Second)
		for i := range 4000 { // one that would hide the others
			w.line("lab", fmt.Sprint("error ", i))
		}
		w.line("den", "error 1")
		w.line("den", "no e")
		w.pass(10 * time.Second)
		w.want("a thousand of one", "firing lab: 1000 times within 5 minutes, the last one: error 3999")
		w.line("den", "error 2")
		w.pass(4 * time.Minute)
		w.line("den", "error 3")
		w.pass(10 * time.Second)
		w.want("three within five minutes", "firing den: 3 times within 5 minutes, the last one: error 3", "firing lab: 1000 times within 5 minutes, the last one: error 3999")
		w.pass(11 * time.Minute)
		w.sent("the rule's name", "lab: log-line", "den: log-line", "Resolved: lab: log-line", "Resolved: den: log-line")
		w.line("den", "error 4")
		w.line("den", "error 5")
		w.pass(time.Minute)
		if n := w.Firing(alert.Scope{All: true}); n != 0 {
			t.Errorf("%d fire: %q", n, w.alerts())
		}
	})
}

// linesOf makes rules about log lines, one for each pattern.
func linesOf(threshold float64, patterns ...string) (rules []alert.Rule) {
	for _, p := range patterns {
		rules = append(rules, alert.Rule{Name: "lines " + p, Kind: alert.LogLine, Pattern: p, Threshold: threshold})
	}
	return rules
}

// slowOnes makes as many rules as one owner may have, whose searches take all the time that they get.
func slowOnes() []alert.Rule {
	var patterns []string
	for i := range alert.MaxRules {
		patterns = append(patterns, fmt.Sprint("slow", i))
	}
	return linesOf(1, patterns...)
}

func TestLogLines_SlowRulesDelayOnlyTheirOwners(t *testing.T) {
	for owners, within := range map[int]time.Duration{1: 13 * time.Second, 12: 43 * time.Second} {
		t.Run(fmt.Sprint(owners), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watching(t)
				w.set(func() { w.slow = "slow" })
				w.box("bobs", "bob")
				w.rules("bob", linesOf(1, "quick")...)
				for i := range owners {
					owner := fmt.Sprint("anna", i) // before bob
					w.box(owner, owner)
					w.rules(owner, slowOnes()...)
				}
				for i := range 10 {
					w.pass(10 * time.Minute)
					w.line("bobs", fmt.Sprint("quick ", i))
					w.pass(within)
					if got := w.alerts(); len(got) != i+1 || !slices.Contains(got, fmt.Sprint("firing bobs: quick ", i)) {
						t.Fatalf("%d: %q", i, got)
					}
					w.pass(5 * time.Minute)
				}
				if said := w.said.String(); strings.Contains(said, "log lines\"") || !strings.Contains(said, `rule="lines slow0" owner=anna0`) || strings.Contains(said, "quick") {
					t.Errorf("logged:\n%.2000s", said)
				}
			})
		})
	}
}

func TestLogLines_SlowRuleOfAnOwnerDelaysItsOtherRulesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, linesOf(1, "slow", "quick")...)
		w.set(func() { w.slow = "slow" })
		w.line("lab", "quick")
		w.pass(25 * time.Second)
		w.want("the other rule", "firing lab: quick")
	})
}

func TestLogLines_ARuleThatIsTooSlowGrowsNoSlower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, linesOf(1, "slow")...)
		w.set(func() { w.slow = "slow" })
		w.pass(time.Hour)
		w.line("lab", "slow 1")
		w.pass(10 * time.Second)
		w.want("one of the newest lines", "firing lab: slow 1")
		w.line("lab", "other")
		w.pass(time.Hour)
		w.want("what is not searched", "firing lab: slow 1")
		if span := slices.Max(w.asked); span > 90*time.Second {
			t.Errorf("a search looked back %s", span)
		}
		if said := w.said.String(); strings.Count(said, "not all log lines are searched") != 1 || strings.Contains(said, "again") {
			t.Errorf("logged while it is slow:\n%s", said)
		}
		w.set(func() { w.slow = "" })
		w.line("lab", "slow 2")
		w.pass(10 * time.Second)
		w.want("later", "firing lab: slow 2")
		w.pass(15 * time.Minute)
		w.want("at last", "resolved lab: slow 2")
		if said := w.said.String(); strings.Count(said, "all log lines are searched for an alert rule again") != 1 {
			t.Errorf("logged once it is not slow:\n%s", said)
		}
	})
}

func TestLogLines_FailureOfTheSourceLooksBackFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t, linesOf(1, "x")...)
		w.set(func() { w.fails["lines"] = errOut })
		w.pass(time.Minute)
		w.line("lab", "x 1")
		w.pass(4 * time.Minute)
		w.set(func() { clear(w.fails) })
		w.pass(10 * time.Second)
		w.want("once it answers", "firing lab: x 1")
		w.set(func() { w.fails["lines"] = errOut })
		w.pass(time.Hour)
		w.set(func() { clear(w.fails) })
		w.pass(10 * time.Second)
		if span := slices.Max(w.asked); span > 5*time.Minute {
			t.Errorf("a search looked back %s", span)
		}
	})
}

func TestLogLines_AreCountedByTheirTimes(t *testing.T) {
	for name, c := range map[string]struct {
		apart, later time.Duration
		want         []string
	}{
		"four minutes apart, found late": {4 * time.Minute, 3 * time.Minute, []string{"firing lab: 2 times within 5 minutes, the last one: x 2"}},
		"six minutes apart, found late":  {6 * time.Minute, 3 * time.Minute, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watching(t, linesOf(2, "x")...)
				fail := func(yes bool) {
					w.set(func() {
						if clear(w.fails); yes {
							w.fails["lines"] = errOut
						}
					})
				}
				fail(true)
				w.line("lab", "x 1")
				w.pass(2 * time.Minute)
				fail(false)
				w.pass(11 * time.Second)
				fail(true)
				w.pass(c.apart - 131*time.Second)
				w.line("lab", "x 2")
				w.pass(c.later)
				fail(false)
				w.pass(11 * time.Second)
				w.want("at last", c.want...)
			})
		})
	}
}
