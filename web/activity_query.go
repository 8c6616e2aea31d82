package web

import (
	"slices"
	"strings"

	"sandboxd/internal/activity"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

// activityScope says which entries a caller may see: an admin all, a member their own and those about sandboxes that they owned then.
func activityScope(who auth.Principal) activity.Scope {
	return activity.Scope{All: who.User.Role == auth.Admin, User: who.User.ID, SandboxID: who.SandboxID}
}

// The ways and outcomes that a request may ask for.
var (
	activityWays     = []activity.Via{activity.Page, activity.API, activity.SSH, activity.Address, activity.Agent, activity.Itself}
	activityOutcomes = []activity.Outcome{activity.Done, activity.Refused, activity.Failed}
)

// readActivity reads what a request asks for. Kind: Invalid with the parameter's name.
func (s *activityHandlers) readActivity(r *request) (q activity.Query, err error) {
	now := s.cfg.Now()
	q = activity.Query{
		Scope: activityScope(r.who), Sandbox: r.query("sandbox"), User: r.query("user"), Via: activity.Via(r.query("via")),
		Action: r.query("action"), Outcome: activity.Outcome(r.query("outcome")), Text: r.query("q"),
	}
	if q.Since, err = r.momentQuery("since", now); err != nil {
		return q, err
	}
	if q.Until, err = r.momentQuery("until", now); err != nil {
		return q, err
	}
	if q.Limit, err = r.intQuery("limit", activity.DefaultLimit, 1, activity.MaxLimit); err != nil {
		return q, err
	}
	if before := r.query("before"); before != "" {
		if q.Before, err = activity.ParseID(before); err != nil {
			return q, fault.Field("before", "before must be the next of an answer, or the id of an entry.")
		}
	}
	return q, checkActivity(q)
}

// checkActivity refuses what no entry can have.
func checkActivity(q activity.Query) error {
	switch {
	case !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until):
		return fault.Field("until", "The end must be after the beginning.")
	case q.Via != "" && !slices.Contains(activityWays, q.Via):
		return fault.Field("via", "It must be one of %s.", wordsOf(activityWays))
	case q.Outcome != "" && !slices.Contains(activityOutcomes, q.Outcome):
		return fault.Field("outcome", "It must be one of %s.", wordsOf(activityOutcomes))
	case q.Action != "" && !slices.ContainsFunc(activity.Actions, func(k activity.Known) bool {
		return q.Action == string(k.Action) || q.Action == nounOf(k.Action)
	}):
		return fault.Field("action", "There is no action %.40q. It is a noun and a verb such as sandbox.create, or all of a noun such as \"sandbox.\".", q.Action)
	}
	return nil
}

func wordsOf[T ~string](values []T) string {
	texts := make([]string, 0, len(values))
	for _, v := range values {
		texts = append(texts, string(v))
	}
	return strings.Join(texts, ", ")
}

// nounOf gives the noun of an action with its dot: "sandbox.".
func nounOf(a activity.Action) string {
	noun, _, _ := strings.Cut(string(a), ".")
	return noun + "."
}
