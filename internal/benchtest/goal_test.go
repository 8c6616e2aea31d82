//go:build bench

package benchtest

import (
	"strings"
	"testing"
	"time"
)

func TestJudge_SaysWhichGoalsAreMissed(t *testing.T) {
	times := func(goal string, base float64) Case { // 10 and 20 ms at p50 and p95
		c := Times("times", goal, []time.Duration{9 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond})
		c.Base, c.Ratio = base, c.P50/max(base, 1)
		return c
	}
	for _, c := range []struct {
		of     Case
		missed string // "" when it is met
	}{
		{times("p50 ≤ 15 ms", 0), ""},
		{times("p50 ≤ 9.5 ms", 0), "10 ms, the goal is p50 ≤ 9.5 ms"},
		{times("p95 ≤ 15 ms", 0), "20 ms, "},
		{times("p95 ≤ 100ms", 0), ""},
		{times("≤ 15 ms", 0), "20 ms, "},
		{times("p50 ≤ 1 s", 0), ""},
		{times("p50 ≤ 1.5 ms more than the provider alone", 9), ""},
		{times("p50 ≤ 1.5 ms more than the provider alone", 8), "2 ms, "},
		{times("≤ 40 %", 20), "50 %, "},
		{times("≤ 40 %", 100), ""},
		{times("≤ 150 ms where the disk shares blocks", 0), ""}, // no bound: it depends on the disk
		{times("", 0), ""},
		{Amount("amount", "≤ 16", "MiB", 16), ""},
		{Amount("amount", "≤ 16", "MiB", 16.5), "16.5 MiB, "},
		{Amount("amount", "≤ 10 % of a core", "% of a core", 12), "12 % of a core, "},
		{Amount("amount", "≤ 75 MB", "MB", 74), ""},
		{Amount("amount", "≥ 1000", "cuts", 999), "999 cuts, "},
	} {
		got := Judge(t, c.of).Missed
		if c.missed == "" && got != "" || !strings.HasPrefix(got, c.missed) {
			t.Errorf("%s, %+v: missed: %q, want %q", c.of.Goal, c.of, got, c.missed)
		}
	}
	if c := times("p50 ≤ 1 ms", 0); Judge(t, Case{Name: "each", Goal: c.Goal, P50: 5, Missed: "told already"}).Missed != "told already" {
		t.Error("what a case says of itself is lost")
	}
}
