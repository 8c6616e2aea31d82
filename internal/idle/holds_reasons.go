package idle

import (
	"slices"
	"strconv"

	"sandboxd/internal/sandbox"
)

// shownHolds is how many holds a Status names, so that what else uses a sandbox is not lost among them.
const shownHolds = 8

// heldReasons gives holds as reasons, details as they came: the oldest by name, and how many more there are. Those with
// the same words are one.
func heldReasons(holds []sandbox.Hold) []Reason {
	var found []Reason
	for _, h := range holds {
		found = merge(found, Reason{Kind: Held, Detail: h.Reason, Since: h.Created, Until: h.Expires}, maxHolds)
	}
	if len(found) <= shownHolds {
		return found
	}
	slices.SortStableFunc(found, func(a, b Reason) int { return a.Since.Compare(b.Since) })
	rest := Reason{Kind: Held, Since: found[shownHolds].Since}
	for _, h := range holds {
		if !slices.ContainsFunc(found[:shownHolds], func(r Reason) bool { return r.Detail == h.Reason }) {
			rest.More++
		}
	}
	rest.Detail = "and " + strconv.Itoa(rest.More) + " more hold"
	if rest.More > 1 {
		rest.Detail += "s"
	}
	return append(found[:shownHolds], rest)
}
