package web

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// reasonForm are the words for one kind of use: in a row, in full without a detail, and around one.
type reasonForm struct{ icon, short, bare, before string }

var reasonForms = map[idle.Kind]reasonForm{
	idle.Web:      {"globe", "requests", "a request", "request: "},
	idle.Stream:   {"globe", "a stream", "an open stream or websocket", "an open stream or websocket: "},
	idle.Terminal: {"terminal", "terminal", "a terminal in use", "a terminal in use: "},
	idle.Exec:     {"code", "a command", "a command", "command: "},
	idle.Files:    {"box", "files", "work on its files", "files: "},
	idle.Held:     {"clock", "a hold", "a hold", "hold: "},
	idle.Agent:    {"chat", "an agent", "an agent", "an agent: "},
	idle.Model:    {"brain", "a model call", "a model call", "a model call: "},
	idle.Work:     {"hammer", "work", "work inside it", "work: "},
}

func formOf(k idle.Kind) reasonForm {
	if form, ok := reasonForms[k]; ok {
		return form
	}
	return reasonForm{"note", string(k), string(k), string(k) + ": "}
}

// shortReason is what uses a sandbox in a word or two, to go after "kept awake by".
func shortReason(r idle.Reason) string {
	if r.Kind == idle.Terminal && r.More > 0 {
		return strconv.Itoa(r.More+1) + " terminals"
	}
	return formOf(r.Kind).short
}

// gathered makes one reason of all terminals: their names tell nobody anything.
func gathered(because []idle.Reason) (list []idle.Reason) {
	for _, r := range because { // the oldest first
		at := slices.IndexFunc(list, func(o idle.Reason) bool { return o.Kind == idle.Terminal })
		switch {
		case r.Kind != idle.Terminal:
		case at < 0:
			r.Detail = ""
		default:
			list[at].More++
			list[at].Detail = strconv.Itoa(list[at].More+1) + " terminals in use"
			continue
		}
		list = append(list, r)
	}
	return list
}

// keptUntil is the end of what a person has begun with Keep awake, or zero.
func keptUntil(because []idle.Reason) time.Time {
	for _, r := range because {
		if byHand(r) {
			return r.Until
		}
	}
	return time.Time{}
}

func byHand(r idle.Reason) bool { return r.Kind == idle.Held && r.Detail == keptByHand }

// reasonText is what uses a sandbox in full.
func reasonText(r idle.Reason) string {
	switch form := formOf(r.Kind); {
	case r.Detail == "":
		return form.bare
	case r.More > 0 || byHand(r):
		return r.Detail
	case r.Kind == idle.Web && strings.HasPrefix(r.Detail, "port "):
		return "a request to " + r.Detail
	default:
		return form.before + r.Detail
	}
}

// keptBy says in a few words what keeps a sandbox awake: the oldest reason, and how many others there are.
func keptBy(because []idle.Reason) string {
	because = gathered(because)
	text := "kept awake by " + shortReason(because[0])
	if n := len(because) - 1; n > 0 {
		text += " +" + strconv.Itoa(n)
	}
	return text
}

// allReasons names everything that uses a sandbox, for a tooltip.
func allReasons(because []idle.Reason) string {
	because = gathered(because)
	texts := make([]string, len(because))
	for i, r := range because {
		texts[i] = reasonText(r)
	}
	return "Kept awake by " + strings.Join(texts, "; ")
}

// stateNotes say beside a state's word what keeps it there and what comes next.
func stateNotes(box sandbox.Sandbox, o idle.Outlook, now time.Time) []views.Note {
	switch box.State {
	case sandbox.Running:
		if until := keptUntil(o.Because); !until.IsZero() {
			return []views.Note{{Text: "awake until", Time: untilOf(until, now)}}
		}
		if len(o.Because) > 0 {
			return []views.Note{{Text: keptBy(o.Because)}}
		}
		if next := nextRest(o, now); len(next) > 0 {
			return next
		}
		return []views.Note{{Text: "never rests"}, {Text: "started", Time: timeOf(box.Changed, now)}}
	case sandbox.Frozen:
		if next := due("sleeps", o.StopsAt, now); len(next) > 0 {
			return next
		}
		return []views.Note{{Text: "wakes on use"}}
	case sandbox.Asleep:
		return []views.Note{{Time: spanOf(box.Changed, now)}, {Text: "wakes on use"}}
	case sandbox.Creating, sandbox.Starting, sandbox.Failed, sandbox.Capturing, sandbox.Restoring:
		return nil // they have a Why
	}
	return []views.Note{{Time: timeOf(box.Changed, now)}}
}

// due is the note about the step at t, or none.
func due(what string, t, now time.Time) []views.Note {
	if t.IsZero() {
		return nil
	}
	return []views.Note{{Text: what, Time: aheadOf(t, now)}}
}

// nextRest is the note of the next step towards rest, or none: an unused sandbox freezes, and later sleeps.
func nextRest(o idle.Outlook, now time.Time) []views.Note {
	if sleepsFirst(o) {
		return due("sleeps", o.StopsAt, now)
	}
	return due("freezes", o.FreezesAt, now)
}

// sleepsFirst says whether a sandbox never gets to freeze.
func sleepsFirst(o idle.Outlook) bool {
	return o.FreezesAt.IsZero() || !o.StopsAt.IsZero() && o.StopsAt.Before(o.FreezesAt)
}

// restView is the menu below the state of a sandbox's page.
func restView(box sandbox.Sandbox, o idle.Outlook, r sandbox.Resting, now time.Time) views.Rest {
	if box.State != sandbox.Running && !box.State.Resting() {
		return views.Rest{}
	}
	v := views.Rest{URL: sameURL(box, "/rest"), Metrics: metricsURL(box), Rule: restRule(r)}
	if box.State == sandbox.Running {
		v.Keep = sameURL(box, "/holds")
		if r.FreezeAfter > 0 {
			v.Rule += " Frozen programs pause, and continue at once when used."
		}
	}
	switch {
	case box.State == sandbox.Sleeping:
		v.Title, v.Text = "Going to sleep", "Its programs are asked to end. Any use wakes it."
	case box.State == sandbox.Asleep:
		v.Title, v.Text = "Asleep", "Its programs have ended, its files are kept. Any use wakes it."
	case box.State == sandbox.Frozen:
		v.Title, v.Text = "Frozen", "Its programs are paused and resume at once when it is used."
		v.Notes = due("Sleeps", o.StopsAt, now)
	case len(o.Because) > 0:
		v.Title = "Kept awake by"
		for _, reason := range gathered(o.Because) {
			v.Reasons = append(v.Reasons, restReason(box, reason, now))
		}
	case o.FreezesAt.IsZero() && o.StopsAt.IsZero():
		v.Title = "It never rests by itself"
	default:
		v.Title = "Nothing uses it now"
		v.Notes = restSteps(o, now)
	}
	return v
}

// restSteps are the notes of what comes next, in order.
func restSteps(o idle.Outlook, now time.Time) []views.Note {
	if sleepsFirst(o) {
		return due("Sleeps", o.StopsAt, now)
	}
	return append(due("Freezes", o.FreezesAt, now), due("sleeps", o.StopsAt, now)...)
}

// restReason is one line of that menu.
func restReason(box sandbox.Sandbox, r idle.Reason, now time.Time) views.Reason {
	v := views.Reason{Icon: formOf(r.Kind).icon, Text: reasonText(r)}
	if byHand(r) {
		v.Until, v.Left, v.End = untilOf(r.Until, now), leftOf(r.Until, now), sameURL(box, "/holds/end")
		return v
	}
	v.Notes = []views.Note{{Text: "began", Time: timeOf(r.Since, now)}}
	if !r.Until.IsZero() {
		v.Notes = append(v.Notes, views.Note{Text: "ends", Time: aheadOf(r.Until, now)})
	}
	return v
}

// restRule says a sandbox's times of rest and who set them.
func restRule(r sandbox.Resting) string {
	freeze, sleep := restWords(r.Rest)
	if r.FreezeFrom != r.StopFrom {
		freeze += setBy(r.FreezeFrom)
	}
	rule := "Unused, it " + freeze + " and " + sleep + setBy(r.StopFrom) + "."
	if note := restOrder(r.Rest); note != "" {
		rule += " " + note
	}
	return rule
}

// restWords are the two steps of rest with their times.
func restWords(r catalog.Rest) (freeze, sleep string) {
	freeze, sleep = "never freezes", "never sleeps"
	if r.FreezeAfter > 0 {
		freeze = "freezes after " + afterText(r.FreezeAfter)
	}
	if r.StopAfter > 0 {
		sleep = "sleeps after " + afterText(r.StopAfter)
	}
	return freeze, sleep
}

// restOrder says so when the second step comes before the first, else "".
func restOrder(r catalog.Rest) string {
	if r.StopAfter > 0 && r.StopAfter < r.FreezeAfter {
		return "It sleeps before it would freeze."
	}
	return ""
}

// setBy names who set a time, where that is not the sandbox itself.
func setBy(from string) string {
	if from == sandbox.FromSandbox {
		return ""
	}
	return " (the " + from + "'s default)"
}

// afterText is a time of rest in words: "15 min", "1 h 30 min", "3 d", "never".
func afterText(a catalog.After) string {
	if a <= 0 {
		return "never"
	}
	var parts []string
	left := time.Duration(a)
	for _, u := range []struct {
		size time.Duration
		word string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := left / u.size; n > 0 {
			parts = append(parts, count(n*u.size, u.size, u.word))
			left %= u.size
		}
	}
	return strings.Join(parts, " ")
}

// afterWord is a time of rest as programs see it: "15m", "never".
func afterWord(a catalog.After) string {
	if a == 0 { // nobody has said anything
		a = catalog.Never
	}
	return a.String()
}
