package plain

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/alert"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func TestText_SaysWhatFiresSinceWhenAndHowLongItWas(t *testing.T) {
	m := alert.Message{
		Time: noon, Event: alert.Fired, Link: "https://box.example.com/alerts",
		Firing: []alert.Alert{
			{Target: alert.Target{SandboxID: "1", Sandbox: "lab", Part: "web"}, Text: "is unhealthy", Since: noon.Add(-12 * time.Minute)},
			{Target: alert.Target{Template: "go"}, Text: "could not be built"},
			{Target: alert.Target{SandboxID: "gone"}, Since: noon},
			{Target: alert.Target{}, Text: "left out"},
		},
		Resolved: []alert.Alert{{Target: alert.Target{}, Text: "the disk was 91 % full", Since: noon.Add(-50 * time.Hour), Resolved: noon}},
	}
	want := `Firing:
  lab, web: is unhealthy (since 24 Nov 2026, 11:48 UTC, 12 min)
  template go: could not be built
  gone (since 24 Nov 2026, 12:00 UTC, less than a second)
  and 1 more
Resolved:
  the host: the disk was 91 % full (lasted 2 d 2 h, until 24 Nov 2026, 12:00 UTC)
https://box.example.com/alerts
`
	if diff := cmp.Diff(want, Text(m, 3)); diff != "" {
		t.Error(diff)
	}
}

func TestText_OfTheOtherEvents(t *testing.T) {
	firing := []alert.Alert{{Target: alert.Target{Sandbox: "lab"}}}
	for event, want := range map[alert.Event]string{
		alert.Test:     "This is a test. Messages about alerts arrive here.\n",
		alert.Reminder: "Still firing:\n  lab\n",
		alert.Fired:    "Firing:\n  lab\n",
	} {
		m := alert.Message{Event: event, Time: noon}
		if event != alert.Test {
			m.Firing = firing
		}
		if got := Text(m, 10); got != want {
			t.Errorf("%s: %q, want %q", event, got, want)
		}
	}
}

func TestText_WhatOthersWroteStaysInItsLine(t *testing.T) {
	hostile := "a\r\nBcc: b\x1b[31m\u202e" + strings.Repeat("x", 5000)
	m := alert.Message{Subject: hostile, Time: noon, Firing: []alert.Alert{{Text: hostile, Target: alert.Target{Sandbox: hostile, Part: hostile}}}}
	if got := Subject(m); strings.ContainsAny(got, "\r\n\x1b\u202e") || len(got) > 2*subjectLimit {
		t.Errorf("subject %q", got)
	}
	if got := Text(m, 10); strings.Count(got, "\n") != 2 || strings.ContainsAny(got, "\r\x1b\u202e") || len(got) > 2*(nameLimit+textLimit) {
		t.Errorf("text %q", got)
	}
	if Subject(alert.Message{}) == "" {
		t.Error("a subject is empty")
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "less than a second", -time.Minute: "less than a second", 999 * time.Millisecond: "less than a second", 40 * time.Second: "40 s",
		61 * time.Second: "1 min 1 s", time.Hour: "1 h", time.Hour + 5*time.Second: "1 h", 25 * time.Hour: "1 d 1 h",
	} {
		if got := span(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
