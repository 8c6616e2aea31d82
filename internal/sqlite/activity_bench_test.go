//go:build bench

package sqlite

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sandboxd/internal/activity"
	"sandboxd/internal/benchtest"
)

const (
	activityMost = 50 * time.Millisecond   // for a page by a usual filter
	oddMost      = 200 * time.Millisecond  // for what no page asks for
	textMost     = 3000 * time.Millisecond // for a text that is nowhere, among all entries
)

// activityUsers have two sandboxes each, apart from the first, who has a hundred and does a third of all.
const activityUsers = 40

// pastEntries gives entries of half a year, the newest last.
func pastEntries(r *rand.Rand, begun time.Time) (out []activity.Entry) {
	step := activity.DefaultKeep / activity.MaxEntries
	for i := range activity.MaxEntries {
		user, box := r.IntN(activityUsers), r.IntN(2)
		if r.IntN(3) == 0 {
			user, box = 0, r.IntN(100)
		}
		e := activity.Entry{
			ID: activity.ID(i + 1), Time: begun.Add(-activity.DefaultKeep + time.Duration(i)*step), UserID: fmt.Sprintf("%016d", user), User: fmt.Sprintf("user-%d", user),
			Via: activity.API, Token: fmt.Sprintf("%016d", 1000+user), From: fmt.Sprintf("192.0.2.%d", user), SandboxID: fmt.Sprintf("%08d%08d", user, box),
			Sandbox: fmt.Sprintf("box-%d-of-%d", box, user), Owner: fmt.Sprintf("%016d", user), Outcome: activity.Done, Request: fmt.Sprintf("%016x", i), Count: 1,
		}
		switch n := r.IntN(1000); {
		case n < 600:
			e.Action, e.Object = "command.run", "sh -c make test"
		case n < 800:
			e.Action, e.Object = "file.write", fmt.Sprintf("/home/dev/project/src/part-%d.go", r.IntN(500))
		case n < 950:
			e.Action, e.Via, e.UserID, e.User, e.Token, e.From = activity.SandboxFreeze, activity.Itself, "", "", "", ""
		case n < 995:
			e.Action, e.Via, e.Token = activity.SandboxWake, activity.Address, ""
		case n < 999:
			e.Action, e.Via, e.Token, e.Outcome, e.Problem = "sandbox.start", activity.Page, "", activity.Failed, "The host is full."
		default:
			e.Action, e.Via, e.Token = "token.create", activity.Page, ""
		}
		out = append(out, e)
	}
	return out
}

// TestBenchActivity asks for pages of a full store.
func TestBenchActivity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "activity.db")
	a, r, now := openActivity(t, path), rand.New(rand.NewPCG(1, 1)), time.Now()
	for part := range slices.Chunk(pastEntries(r, now), 1000) {
		must(t, a.Add(t.Context(), part))
	}
	t.Logf("%d entries were added at %s each", activity.MaxEntries, time.Since(now)/activity.MaxEntries)
	for _, c := range activityCases(now) {
		c.run(t, a)
	}
	begun := time.Now()
	n, err := a.Sweep(t.Context(), now.Add(-activity.DefaultKeep/2), activity.MaxEntries)
	must(t, err)
	t.Logf("%d were deleted in %s", n, time.Since(begun).Round(time.Millisecond))
	must(t, a.Close())
	info, err := os.Stat(path)
	must(t, err)
	t.Logf("the file has %d MiB", info.Size()>>20)
}

// activityCase is a page that is asked for, and how long it may take.
type activityCase struct {
	name string
	q    activity.Query
	most time.Duration
}

func activityCases(now time.Time) []activityCase {
	all := activity.Scope{All: true}
	member := activity.Scope{User: fmt.Sprintf("%016d", 7)}
	busy := activity.Scope{User: fmt.Sprintf("%016d", 0)}
	return []activityCase{
		{"newest", activity.Query{Scope: all}, activityMost},
		{"newest of a member", activity.Query{Scope: member}, activityMost},
		{"newest of a busy member", activity.Query{Scope: busy}, activityMost},
		{"an old page", activity.Query{Scope: all, Before: activity.MaxEntries / 3}, activityMost},
		{"an old page of a member", activity.Query{Scope: member, Before: activity.MaxEntries / 3}, activityMost},
		{"sandbox", activity.Query{Scope: all, Sandbox: "box-1-of-7"}, activityMost},
		{"sandbox by id", activity.Query{Scope: all, Sandbox: "0000000700000001"}, activityMost},
		{"sandbox of a member", activity.Query{Scope: member, Sandbox: "box-1-of-7"}, activityMost},
		{"sandbox of another", activity.Query{Scope: member, Sandbox: "box-1-of-8"}, oddMost},
		{"no such sandbox", activity.Query{Scope: all, Sandbox: "nothing"}, activityMost},
		{"user", activity.Query{Scope: all, User: "user-7"}, activityMost},
		{"via", activity.Query{Scope: all, Via: activity.API}, activityMost},
		{"rare via", activity.Query{Scope: all, Via: activity.SSH}, activityMost},
		{"action", activity.Query{Scope: all, Action: "token.create"}, activityMost},
		{"common action", activity.Query{Scope: all, Action: "command.run"}, activityMost},
		{"noun", activity.Query{Scope: all, Action: "token."}, activityMost},
		{"action of a member", activity.Query{Scope: member, Action: "token.create"}, activityMost},
		{"action of a busy member", activity.Query{Scope: busy, Action: "token.create"}, activityMost},
		{"no such action of a busy member", activity.Query{Scope: busy, Action: "user.add"}, activityMost},
		{"noun of a busy member", activity.Query{Scope: busy, Action: "token."}, activityMost},
		{"failed", activity.Query{Scope: all, Outcome: activity.Failed}, activityMost},
		{"failed of a busy member", activity.Query{Scope: busy, Outcome: activity.Failed}, activityMost},
		{"refused of a busy member", activity.Query{Scope: busy, Outcome: activity.Refused}, activityMost},
		{"failed wakes of a sandbox", activity.Query{Scope: all, Sandbox: "box-1-of-7", Action: "sandbox.wake", Outcome: activity.Failed}, activityMost},
		{"via SSH of a busy member", activity.Query{Scope: busy, Via: activity.SSH}, activityMost},
		{"the last day", activity.Query{Scope: all, Since: now.Add(-24 * time.Hour)}, activityMost},
		{"a day in the past", activity.Query{Scope: all, Since: now.Add(-101 * 24 * time.Hour), Until: now.Add(-100 * 24 * time.Hour)}, activityMost},
		{"a day of a member", activity.Query{Scope: member, Since: now.Add(-101 * 24 * time.Hour), Until: now.Add(-100 * 24 * time.Hour)}, activityMost},
		{"a day of a sandbox", activity.Query{Scope: all, Sandbox: "box-1-of-7", Since: now.Add(-101 * 24 * time.Hour), Until: now.Add(-100 * 24 * time.Hour)}, activityMost},
		{"common text", activity.Query{Scope: all, Text: "make"}, activityMost},
		{"text that is nowhere", activity.Query{Scope: all, Text: "nowhere"}, textMost},
		{"text that is nowhere, of a member", activity.Query{Scope: member, Text: "nowhere"}, textMost},
	}
}

func (c activityCase) run(t *testing.T, a *Activity) {
	t.Helper()
	var took []time.Duration
	found := 0
	c.q.Limit = activity.DefaultLimit + 1
	for range 20 {
		begun := time.Now()
		got, err := a.Find(t.Context(), c.q)
		must(t, err)
		took, found = append(took, time.Since(begun)), len(got)
	}
	benchtest.Record(t, benchtest.Deep, benchtest.Times("activity, 500,000 entries: "+c.name, fmt.Sprintf("p95 ≤ %v", c.most), took))
	slices.Sort(took)
	p95 := took[len(took)*95/100]
	t.Logf("%-34s %3d entries: p50 %6.1f ms, p95 %6.1f ms", c.name, found, ms(took[len(took)/2]), ms(p95))
	if p95 > c.most {
		t.Errorf("%s takes %s", c.name, p95)
	}
}
