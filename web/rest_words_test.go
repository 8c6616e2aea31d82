package web

import (
	"strings"
	"testing"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

func TestReasonText_IsForAPerson(t *testing.T) {
	for _, c := range []struct {
		reason      idle.Reason
		short, full string
	}{
		{idle.Reason{Kind: idle.Web, Detail: "port 3000"}, "requests", "a request to port 3000"},
		{idle.Reason{Kind: idle.Web, Detail: "GET /lab"}, "requests", "request: GET /lab"},
		{idle.Reason{Kind: idle.Web}, "requests", "a request"},
		{idle.Reason{Kind: idle.Stream, Detail: "GET /events"}, "a stream", "an open stream or websocket: GET /events"},
		{idle.Reason{Kind: idle.Terminal}, "terminal", "a terminal in use"},
		{idle.Reason{Kind: idle.Terminal, Detail: "main"}, "terminal", "a terminal in use: main"},
		{idle.Reason{Kind: idle.Exec, Detail: "npm test"}, "a command", "command: npm test"},
		{idle.Reason{Kind: idle.Files}, "files", "work on its files"},
		{idle.Reason{Kind: idle.Held, Detail: "nightly job"}, "a hold", "hold: nightly job"},
		{idle.Reason{Kind: idle.Held, Detail: "Keep awake"}, "a hold", "Keep awake"},
		{idle.Reason{Kind: idle.Work, Detail: "1.9 cores"}, "work", "work: 1.9 cores"},
		{idle.Reason{Kind: "dream", Detail: "x"}, "dream", "dream: x"},
	} {
		if got := shortReason(c.reason); got != c.short {
			t.Errorf("%+v: %q, want %q", c.reason, got, c.short)
		}
		if got := reasonText(c.reason); got != c.full {
			t.Errorf("%+v: %q, want %q", c.reason, got, c.full)
		}
	}
}

// line is what a person reads of notes.
func line(notes []views.Note) string {
	text := ""
	for i, n := range notes {
		if i > 0 {
			text += " · "
		}
		text += n.Text
		if n.Text != "" && n.Time.Relative != "" {
			text += " "
		}
		text += n.Time.Relative
	}
	return text
}

func TestStateNotes_SayWhyAndWhatComesNext(t *testing.T) {
	now := stageTime
	in := func(d time.Duration) time.Time { return now.Add(d) }
	terminal, hold := idle.Reason{Kind: idle.Terminal, Since: in(-time.Hour)}, idle.Reason{Kind: idle.Held, Since: in(-time.Minute)}
	byAda := idle.Reason{Kind: idle.Held, Detail: "Keep awake", Since: in(-time.Minute), Until: in(4 * time.Hour)}
	for _, c := range []struct {
		name    string
		state   sandbox.State
		outlook idle.Outlook
		want    string
	}{
		{"one reason", sandbox.Running, idle.Outlook{Because: []idle.Reason{terminal}}, "kept awake by terminal"},
		{"many reasons", sandbox.Running, idle.Outlook{Because: []idle.Reason{hold, terminal, terminal}}, "kept awake by a hold +1"},
		{"two terminals", sandbox.Running, idle.Outlook{Because: []idle.Reason{terminal, terminal}}, "kept awake by 2 terminals"},
		{"by a person", sandbox.Running, idle.Outlook{Because: []idle.Reason{terminal, byAda}}, "awake until " + stageTime.Add(4*time.Hour).UTC().Format("15:04 MST")},
		{"both times", sandbox.Running, idle.Outlook{FreezesAt: in(12 * time.Minute), StopsAt: in(4 * time.Hour)}, "freezes in 12 min"},
		{"never frozen", sandbox.Running, idle.Outlook{StopsAt: in(4 * time.Hour)}, "sleeps in 4 h"},
		{"sleeps first", sandbox.Running, idle.Outlook{FreezesAt: in(4 * time.Hour), StopsAt: in(time.Hour)}, "sleeps in 1 h"},
		{"being asked whether it works", sandbox.Running, idle.Outlook{FreezesAt: in(-time.Minute)}, "freezes now"},
		{"never", sandbox.Running, idle.Outlook{}, "never rests · started 2 h ago"},
		{"frozen", sandbox.Frozen, idle.Outlook{StopsAt: in(3 * time.Hour)}, "sleeps in 3 h"},
		{"frozen for ever", sandbox.Frozen, idle.Outlook{}, "wakes on use"},
		{"asleep", sandbox.Asleep, idle.Outlook{}, "2 h · wakes on use"},
		{"stopped", sandbox.Stopped, idle.Outlook{}, "2 h ago"},
		{"failed", sandbox.Failed, idle.Outlook{}, ""},
	} {
		box := sandbox.Sandbox{State: c.state, Changed: in(-2 * time.Hour)}
		if got := line(stateNotes(box, c.outlook, now)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestRestView_NamesEveryReasonWithItsTime(t *testing.T) {
	now := stageTime
	rest := sandbox.Resting{Rest: serverRest, FreezeFrom: sandbox.FromTemplate, StopFrom: sandbox.FromServer}
	at := func(d time.Duration) time.Time { return now.Add(d) }
	because := []idle.Reason{
		{Kind: idle.Terminal, Detail: "main", Since: at(-3 * time.Hour)},
		{Kind: idle.Held, Detail: "nightly job", Since: at(-time.Minute), Until: at(2 * time.Hour)},
		{Kind: idle.Held, Detail: "Keep awake", Since: at(-time.Minute), Until: at(3 * time.Hour)},
		{Kind: idle.Terminal, Detail: "2", Since: at(-time.Minute)},
	}
	box := sandbox.Sandbox{Name: "lab", State: sandbox.Running}
	v := restView(box, idle.Outlook{Because: because}, rest, now)
	if v.Title != "Kept awake by" || len(v.Reasons) != 3 {
		t.Fatalf("got %+v", v)
	}
	for i, want := range []string{"2 terminals in use began 3 h ago", "hold: nightly job began 1 min ago · ends in 2 h"} {
		if got := v.Reasons[i].Text + " " + line(v.Reasons[i].Notes); got != want || v.Reasons[i].End != "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if r := v.Reasons[2]; r.Text != "Keep awake" || r.Left.Relative != "3 h" || r.Until.Form != views.UntilForm || !strings.HasPrefix(r.End, "/sandboxes/lab/holds/end?") {
		t.Errorf("got %+v", r)
	}
	v = restView(box, idle.Outlook{FreezesAt: now.Add(time.Minute), StopsAt: now.Add(time.Hour)}, rest, now)
	if v.Title != "Nothing uses it now" || line(v.Notes) != "Freezes in 1 min · sleeps in 1 h" {
		t.Errorf("got %+v", v)
	}
	v = restView(box, idle.Outlook{FreezesAt: now.Add(2 * time.Hour), StopsAt: now.Add(time.Hour)}, rest, now)
	if line(v.Notes) != "Sleeps in 1 h" {
		t.Errorf("it never gets to freeze: %+v", v)
	}
	for state, want := range map[sandbox.State]string{
		sandbox.Frozen: "Frozen", sandbox.Asleep: "Asleep", sandbox.Sleeping: "Going to sleep", sandbox.Running: "It never rests by itself",
		sandbox.Stopped: "", sandbox.Creating: "", sandbox.Failed: "",
	} {
		v := restView(sandbox.Sandbox{Name: "lab", State: state}, idle.Outlook{}, rest, now)
		if v.Title != want || (v.URL == "") != (want == "") {
			t.Errorf("%s: %+v", state, v)
		}
	}
}

func TestRestRule_SaysTheTimesAndWhoSetThem(t *testing.T) {
	never := catalog.Rest{FreezeAfter: catalog.Never, StopAfter: catalog.Never}
	for _, c := range []struct {
		rest         catalog.Rest
		freeze, stop string
		want         string
	}{
		{serverRest, sandbox.FromServer, sandbox.FromServer, "Unused, it freezes after 15 min and sleeps after 4 h (the server's default)."},
		{serverRest, sandbox.FromTemplate, sandbox.FromServer, "Unused, it freezes after 15 min (the template's default) and sleeps after 4 h (the server's default)."},
		{serverRest, sandbox.FromSandbox, sandbox.FromSandbox, "Unused, it freezes after 15 min and sleeps after 4 h."},
		{never, sandbox.FromSandbox, sandbox.FromTemplate, "Unused, it never freezes and never sleeps (the template's default)."},
		{catalog.Rest{FreezeAfter: serverRest.StopAfter, StopAfter: serverRest.FreezeAfter}, sandbox.FromSandbox, sandbox.FromSandbox,
			"Unused, it freezes after 4 h and sleeps after 15 min. It sleeps before it would freeze."},
	} {
		if got := restRule(sandbox.Resting{Rest: c.rest, FreezeFrom: c.freeze, StopFrom: c.stop}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestAfterText_ReadsAsPeopleSayIt(t *testing.T) {
	for after, want := range map[time.Duration]string{
		90 * time.Second: "1 min 30 s", 15 * time.Minute: "15 min", 90 * time.Minute: "1 h 30 min", 72 * time.Hour: "3 d", -1: "never",
	} {
		if got := afterText(catalog.After(after)); got != want {
			t.Errorf("%v: %q, want %q", after, got, want)
		}
	}
	if afterWord(0) != "never" || afterWord(catalog.After(time.Hour)) != "1h" {
		t.Errorf("words %q, %q", afterWord(0), afterWord(catalog.After(time.Hour)))
	}
}

func TestListedAfter_KnowsTheSameTimeInOtherWords(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "default": "", "15m": "15m", "900s": "15m", "24h": "1d", "1d": "1d", "never": "never", "Never": "never",
		"20m": customAfter, "soon": customAfter,
	} {
		if got := listedAfter(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestReasonText_WhatStandsForSeveralSpeaksForItself(t *testing.T) {
	if got := reasonText(idle.Reason{Kind: idle.Held, Detail: "and 8 more holds", More: 8}); got != "and 8 more holds" {
		t.Errorf("got %q", got)
	}
}
