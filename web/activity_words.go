package web

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/activity"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// sentence is what was done, as words with the sandbox's name within: "created ", "lab", "".
type sentence struct{ before, box, after string }

// tellsFailure are the actions that failed by what they say.
var tellsFailure = []activity.Action{activity.SandboxFail, activity.SnapshotFail, activity.BackupFail, activity.RepositoryFail, activity.Lost}

// sentenceOf says what was done.
func sentenceOf(e activity.Entry) sentence {
	words := e.Action.Words()
	if e.Outcome != activity.Done && !slices.Contains(tellsFailure, e.Action) {
		words = "tried to " + infinitive(words)
	}
	if e.Sandbox == "" {
		return sentence{before: words}
	}
	if before, after, found := strings.Cut(words, "the sandbox"); found {
		return sentence{before, e.Sandbox, after}
	}
	if e.Action == "ssh.open" {
		return sentence{words + " to ", e.Sandbox, ""}
	}
	return sentence{words + " in ", e.Sandbox, ""}
}

// infinitives are those of the verbs of actions that do not just lose a "d" or "ed".
var infinitives = map[string]string{
	"added": "add", "adopted": "adopt", "began": "begin", "built": "build", "cancelled": "cancel", "checked": "check", "connected": "connect", "copied": "copy",
	"downloaded": "download", "emptied": "empty", "ended": "end", "froze": "freeze",
	"kept": "keep", "let": "let", "made": "make", "opened": "open", "put": "put", "ran": "run", "reset": "reset", "restarted": "restart", "set": "set",
	"signed": "sign", "started": "start", "stopped": "stop", "switched": "switch", "tested": "test", "took": "take", "turned": "turn", "woke": "wake", "wrote": "write",
}

// infinitive gives words such as "disabled or enabled a user" as "disable or enable a user".
func infinitive(words string) string {
	verb, rest, _ := strings.Cut(words, " ")
	if plain := infinitives[verb]; plain != "" {
		verb = plain
	} else {
		verb = strings.TrimSuffix(verb, "d")
	}
	if other, found := strings.CutPrefix(rest, "or "); found {
		rest = "or " + infinitive(other)
	}
	return verb + " " + rest
}

// actorOf names who did it.
func actorOf(e activity.Entry) string {
	switch {
	case e.User != "":
		return e.User
	case e.Via == activity.Itself:
		return "sandboxd"
	}
	return "Unknown user"
}

// objectOf says what else it is about; "" where that is who did it.
func objectOf(e activity.Entry) string {
	if e.Object == e.User {
		return ""
	}
	return e.Object
}

// outcomeStates are how outcomes look.
var outcomeStates = map[activity.Outcome]views.State{
	activity.Done:    {Tone: "still", Icon: "check", Text: "Done", Bar: views.BarNone},
	activity.Refused: {Tone: "busy", Icon: "lock", Text: "Refused", Bar: views.BarNone},
	activity.Failed:  {Tone: "bad", Icon: "warn", Text: "Failed", Bar: views.BarNone},
}

// byTime orders entries by their times, the newest first. Their IDs have another order: a sum gets its own when it is complete, which is up to
// some minutes after the last thing that it sums up.
func byTime(entries []activity.Entry) []activity.Entry {
	return slices.SortedStableFunc(slices.Values(entries), func(a, b activity.Entry) int { return b.Time.Compare(a.Time) })
}

// entryRows makes entries ready to show, the newest first.
func (s *activityHandlers) entryRows(ctx context.Context, r *request, entries []activity.Entry, now time.Time) ([]views.ActivityRow, error) {
	names, err := s.namesIn(ctx, r, entries)
	if err != nil {
		return nil, err
	}
	rows := make([]views.ActivityRow, 0, len(entries))
	for _, e := range byTime(entries) {
		said := sentenceOf(e)
		row := views.ActivityRow{
			ID: e.ID.String(), Time: timeOf(e.Time.UTC(), now), Day: dayOf(e.Time, now), User: actorOf(e),
			Before: said.before, Box: said.box, After: said.after, Object: views.Plain(objectOf(e), 0),
			Way: wayOf(e, names), State: outcomeStates[e.Outcome], Problem: views.Plain(e.Problem, 0),
		}
		row.Time.Relative = e.Time.UTC().Format("15:04")
		if name := names.boxes[e.SandboxID]; name != "" {
			row.BoxURL = sandboxURL(name)
		}
		if e.Count > 1 {
			row.Times = fmt.Sprintf("%d times", e.Count)
		}
		if r.isAdmin() && e.Outcome == activity.Failed && e.Request != "" {
			row.Log = ownLogPath + "?q=" + url.QueryEscape(e.Request)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// wayOf says by which way and from where it was done.
func wayOf(e activity.Entry, names activityNames) string {
	way := ""
	switch e.Via {
	case activity.Page:
		way = "on the dashboard"
	case activity.API:
		way = "by an API token"
		if name := names.tokens[e.Token]; name != "" {
			way = "by API token “" + name + "”"
		}
	case activity.SSH:
		way = "by SSH"
	case activity.Address:
		way = "at a sandbox's address"
	case activity.Agent:
		way = "by an agent"
	}
	if e.From != "" {
		way = strings.TrimSpace(way + " from " + e.From)
	}
	return way
}

// dayOf names the day of a moment, in UTC. A script names it in the reader's own zone.
func dayOf(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	switch t.Format(time.DateOnly) {
	case now.Format(time.DateOnly):
		return "Today"
	case now.AddDate(0, 0, -1).Format(time.DateOnly):
		return "Yesterday"
	}
	return t.Format("Monday 2 January 2006")
}

// activityNames are names that entries have ids of.
type activityNames struct {
	boxes  map[string]string // of the sandboxes that are there and that the reader may see, by id
	tokens map[string]string // of the API tokens that are there and that the reader may see, by id
}

// namesIn looks up the names in some entries.
func (s *activityHandlers) namesIn(ctx context.Context, r *request, entries []activity.Entry) (n activityNames, err error) {
	n = activityNames{map[string]string{}, map[string]string{}}
	users, about := map[string]bool{}, false
	for _, e := range entries {
		about = about || e.SandboxID != ""
		if e.Token == "" || users[e.UserID] || !r.isAdmin() && e.UserID != r.who.User.ID {
			continue
		}
		users[e.UserID] = true
		tokens, err := s.cfg.Accounts.Tokens(ctx, e.UserID)
		if err != nil {
			return n, err
		}
		for _, t := range tokens {
			n.tokens[t.ID] = t.Name
		}
	}
	if !about {
		return n, nil
	}
	f := sandbox.Filter{}
	if !r.isAdmin() {
		f.Owner = r.who.User.ID
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, f)
	for _, box := range boxes {
		n.boxes[box.ID] = box.Name
	}
	return n, err
}
