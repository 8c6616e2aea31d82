package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxNote bounds what a model is told of each stream of a run, in bytes.
const maxNote = 8 << 10

// RunNote says to a model what came of a run, and whether the message that is before it asked for that; "" for an item that is no run.
func (it Item) RunNote() (note string, auto bool) {
	var r Run
	if it.Kind != RunItem || json.Unmarshal(it.Data, &r) != nil {
		return "", false
	}
	var b strings.Builder
	if r.Auto {
		fmt.Fprintf(&b, "[The %s code in this message was run in the sandbox. ", r.Language)
	} else {
		first, _, _ := strings.Cut(strings.TrimSpace(r.Code), "\n")
		fmt.Fprintf(&b, "[The person ran the %s code that begins with %q in the sandbox. ", r.Language, cutAt(first, 80))
	}
	b.WriteString(r.ending())
	for _, stream := range []struct{ name, text string }{{"stdout", it.Output}, {"stderr", it.Text}} {
		if text := strings.TrimSpace(stream.text); text != "" {
			fmt.Fprintf(&b, "\n%s:\n%s", stream.name, middleOut(text, maxNote))
		}
	}
	if n := len(r.Pictures); n > 0 {
		fmt.Fprintf(&b, "\nIt made %d pictures, which the person sees.", n)
	}
	b.WriteString("]")
	return b.String(), r.Auto
}

func (r Run) ending() string {
	switch {
	case r.Status == "timeout":
		return fmt.Sprintf("It was ended after %d minutes.", int(runLimit.Minutes()))
	case r.Status == "cancelled":
		return "The person stopped it."
	case r.Status == "":
		return "It had not ended when this was sent."
	case r.Status == "interrupted":
		return "It was interrupted."
	case r.Exit == nil:
		return "It could not be run: " + r.Problem
	}
	return fmt.Sprintf("Its exit code was %d.", *r.Exit)
}

// middleOut leaves the middle of a text out that is longer than n bytes.
func middleOut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	head, at := cutAt(s, n/2), len(s)-n/2
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return fmt.Sprintf("%s\n… %d bytes left out …\n%s", head, at-len(head), s[at:])
}
