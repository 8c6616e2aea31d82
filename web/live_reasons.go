package web

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"sandboxd/views"
)

// What keeps a sandbox awake changes without any event of the sandbox. A page's stream looks now and then, and sends a
// fragment only when its print differs: relative times are left out of it, the browser keeps those fresh.

// statePrint is a print of what a state shows.
func statePrint(s views.State) string {
	return fmt.Sprintf("%s %q %q %d %s", s.Text, s.Why, s.Title, s.Bar, notesPrint(s.Notes))
}

// restPrint is a print of what the menu of reasons shows.
func restPrint(r views.Rest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q %s", r.Title, r.Text, r.Rule, notesPrint(r.Notes))
	for _, reason := range r.Reasons {
		fmt.Fprintf(&b, " %q %s %s", reason.Text, reason.Since.Machine, reason.Until.Machine)
	}
	return b.String()
}

func notesPrint(notes []views.Note) string {
	var b strings.Builder
	for _, n := range notes {
		fmt.Fprintf(&b, "[%q %s]", n.Text, n.Time.Machine)
	}
	return b.String()
}

// shortPrint makes prints fit for an address.
func shortPrint(prints ...string) string {
	h := fnv.New64a()
	for _, p := range prints {
		fmt.Fprintln(h, p)
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// rowsPrint is a print of the states that rows show.
func rowsPrint(rows []views.Row) string {
	prints := make([]string, len(rows))
	for i, r := range rows {
		prints[i] = r.ID + statePrint(r.State)
	}
	return shortPrint(prints...)
}
