package web

import (
	"encoding/json"
	"hash/fnv"
	"strconv"

	"sandboxd/views"
)

// What keeps a sandbox awake changes without any event of the sandbox. A page's stream looks now and then, and sends a
// fragment only when its print differs: relative times are left out of it, the browser keeps those fresh.

// printOf is a fingerprint of what views show, fit for an address.
func printOf(shown ...any) string {
	text, err := json.Marshal(shown)
	if err != nil { // views hold texts, numbers and lists of them
		return ""
	}
	h := fnv.New64a()
	_, _ = h.Write(text) // a hash takes all
	return strconv.FormatUint(h.Sum64(), 36)
}

// statesPrint is a fingerprint of what rows show that changes without an event of their sandbox.
func statesPrint(rows []views.Row) string {
	shown := make([]any, 0, 4*len(rows))
	for _, r := range rows {
		shown = append(shown, r.ID, r.State, r.Badges, r.Used)
	}
	return printOf(shown...)
}
