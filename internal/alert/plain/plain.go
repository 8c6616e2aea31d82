// Package plain says in lines of plain text what a message about alerts tells.
//
// It sends nothing, and knows no markup: a sender escapes what it takes from here.
//
// Invariant: what a sandbox or a person wrote stays within its line, without control characters and of bounded length.
package plain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/text"
)

// Bounds of what others wrote, in bytes.
const (
	nameLimit    = 100
	textLimit    = 300
	subjectLimit = 200
)

// Section is a group of alerts under one title.
type Section struct {
	Title   string // "Firing", for example
	Members []Member
	More    int // that Members leaves out
}

// Member is one alert of a section. Each field is one line.
type Member struct {
	Name string // what the alert is about: "lab, service web"
	Text string // how it stands; may be ""
	When string // since when, or how long it was: "lasted 2 h 10 min, until 24 Nov 2026, 10:19 UTC"
}

// String gives the member as one line.
func (m Member) String() string {
	line := m.Name
	if m.Text != "" {
		line += ": " + m.Text
	}
	if m.When != "" {
		line += " (" + m.When + ")"
	}
	return line
}

// Subject gives the message's subject as one line of at most 200 bytes, without controls.
func Subject(m alert.Message) string {
	return cmp.Or(text.Excerpt(strings.ReplaceAll(m.Subject, "\r", " "), subjectLimit), "Alert")
}

// Sections gives what a message tells, with at most limit members in each section. A test has none.
func Sections(m alert.Message, limit int) []Section {
	title := "Firing"
	if m.Event == alert.Reminder {
		title = "Still firing"
	}
	var out []Section
	for _, s := range []struct {
		title  string
		alerts []alert.Alert
	}{{title, m.Firing}, {"Resolved", m.Resolved}} {
		if len(s.alerts) == 0 {
			continue
		}
		shown := s.alerts[:min(limit, len(s.alerts))]
		section := Section{Title: s.title, More: len(s.alerts) - len(shown)}
		for _, a := range shown {
			section.Members = append(section.Members, Member{Name: name(a.Target), Text: text.Excerpt(a.Text, textLimit), When: when(a, m.Time)})
		}
		out = append(out, section)
	}
	return out
}

// Text gives sections as lines, the link to the page of alerts last.
func Text(m alert.Message, limit int) string {
	var b strings.Builder
	if m.Event == alert.Test {
		b.WriteString("This is a test. Messages about alerts arrive here.\n")
	}
	for _, s := range Sections(m, limit) {
		fmt.Fprintf(&b, "%s:\n", s.Title)
		for _, member := range s.Members {
			fmt.Fprintf(&b, "  %s\n", member)
		}
		if s.More > 0 {
			fmt.Fprintf(&b, "  and %d more\n", s.More)
		}
	}
	if m.Link != "" {
		fmt.Fprintf(&b, "%s\n", m.Link)
	}
	return b.String()
}

// name says what a target is.
func name(t alert.Target) string {
	what := "the host"
	switch {
	case t.SandboxID != "" || t.Sandbox != "":
		what = cmp.Or(t.Sandbox, t.SandboxID)
	case t.Template != "":
		what = "template " + t.Template
	}
	if t.Part != "" {
		what += ", " + t.Part
	}
	return text.Excerpt(what, nameLimit)
}

// when says since when an alert has been firing at now, or how long it was.
func when(a alert.Alert, now time.Time) string {
	const form = "2 Jan 2006, 15:04 MST"
	switch {
	case a.Since.IsZero():
		return ""
	case !a.Resolved.IsZero():
		return fmt.Sprintf("lasted %s, until %s", span(a.Resolved.Sub(a.Since)), a.Resolved.UTC().Format(form))
	}
	return fmt.Sprintf("since %s, %s", a.Since.UTC().Format(form), span(now.Sub(a.Since)))
}

// span writes a duration in its two largest units.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	units := []struct {
		of   time.Duration
		name string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	var parts []string
	for _, u := range units {
		n := d / u.of
		d -= n * u.of
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, u.name))
		} else if len(parts) > 0 {
			break
		}
		if len(parts) == 2 {
			break
		}
	}
	return cmp.Or(strings.Join(parts, " "), "less than a second")
}
