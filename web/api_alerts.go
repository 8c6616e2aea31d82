package web

import (
	"context"
	"net/http"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// maxMute bounds how long an alert or a rule can be muted.
const maxMute = 365 * 24 * time.Hour

// alertShape is an alert as programs see it.
type alertShape struct {
	ID         string     `json:"id"`
	Rule       string     `json:"rule"` // its name then
	RuleID     string     `json:"rule_id"`
	Owner      string     `json:"owner"` // of the rule: a user's name, or "" for the installation
	Kind       string     `json:"kind"`
	State      string     `json:"state"`
	Text       string     `json:"text"`
	Sandbox    string     `json:"sandbox"` // its name then; "" for what is about none
	SandboxID  string     `json:"sandbox_id"`
	Template   string     `json:"template"`
	Part       string     `json:"part"`
	Since      time.Time  `json:"since"`
	FiredAt    *time.Time `json:"fired_at"`
	ResolvedAt *time.Time `json:"resolved_at"`
	MutedUntil *time.Time `json:"muted_until"` // null when it is not
}

// alertsShape is a page of alerts: those that fire, then the others, newest first.
type alertsShape struct {
	Alerts []alertShape `json:"alerts"`
	Next   *string      `json:"next"` // continues; null when nothing is left
}

// alertScope gives the alerts that a caller may see.
func alertScope(who auth.Principal) alert.Scope {
	return alert.Scope{All: who.User.Role == auth.Admin, User: who.User.ID, SandboxID: who.SandboxID}
}

// apiAlerts answers with the alerts that match.
func (s *alertHandlers) apiAlerts(ctx context.Context, r *request, _ none) (reply, error) {
	q := alert.Query{Scope: alertScope(r.who), Sandbox: r.query("sandbox"), Before: r.query("before")}
	var err error
	if q.State, err = alertState(r.query("state")); err != nil {
		return reply{}, err
	}
	if q.Limit, err = r.intQuery("limit", 100, 1, 1000); err != nil {
		return reply{}, err
	}
	found, next, err := s.cfg.Alerts.Find(ctx, q)
	if err != nil {
		return reply{}, err
	}
	out := alertsShape{Alerts: make([]alertShape, 0, len(found))}
	if next != "" {
		out.Next = &next
	}
	names, now := newOwners(s.cfg.Accounts), s.cfg.Now()
	for _, a := range found {
		shape, err := newAlertShape(ctx, names, a, now)
		if err != nil {
			return reply{}, err
		}
		out.Alerts = append(out.Alerts, shape)
	}
	return reply{body: out}, nil
}

// alertState reads which alerts are asked for: those that fire, those that are resolved, or both.
func alertState(text string) (alert.State, error) {
	switch state := alert.State(text); state {
	case "", alert.Firing, alert.Resolved:
		return state, nil
	}
	return "", fault.Field("state", "state must be firing or resolved, not %.40q.", text)
}

func newAlertShape(ctx context.Context, names *owners, a alert.Alert, now time.Time) (shape alertShape, err error) {
	shape = alertShape{
		ID: a.ID, Rule: a.Rule, RuleID: a.RuleID, Kind: string(a.Kind), State: string(a.State), Text: a.Text,
		Sandbox: a.Target.Sandbox, SandboxID: a.Target.SandboxID, Template: a.Target.Template, Part: a.Target.Part,
		Since: a.Since.UTC(), FiredAt: timeOrNull(a.Fired), ResolvedAt: timeOrNull(a.Resolved),
	}
	if a.Muted.After(now) {
		shape.MutedUntil = timeOrNull(a.Muted)
	}
	if a.Owner != "" {
		shape.Owner, err = names.name(ctx, a.Owner)
	}
	return shape, err
}

// muteBody says until when, or for how long.
type muteBody struct {
	Until      *time.Time `json:"until"`
	ForSeconds *int64     `json:"for_seconds"` // 0 ends it
}

// moment gives the time that the body names; zero ends the muting.
func (m muteBody) moment(now time.Time) (time.Time, error) {
	switch {
	case m.Until != nil && m.ForSeconds != nil, m.Until == nil && m.ForSeconds == nil:
		return time.Time{}, fault.Field("until", "Give either until or for_seconds.")
	case m.Until != nil && m.Until.Sub(now) > maxMute:
		return time.Time{}, fault.Field("until", "until can be at most a year from now.")
	case m.Until != nil && !m.Until.After(now):
		return time.Time{}, nil
	case m.Until != nil:
		return *m.Until, nil
	case *m.ForSeconds < 0 || *m.ForSeconds > int64(maxMute/time.Second):
		return time.Time{}, fault.Field("for_seconds", "for_seconds must be from 0 to %d: a year.", int64(maxMute/time.Second))
	case *m.ForSeconds == 0:
		return time.Time{}, nil
	}
	return now.Add(time.Duration(*m.ForSeconds) * time.Second), nil
}

// apiMuteAlert keeps an alert from sending messages for a while.
func (s *alertHandlers) apiMuteAlert(ctx context.Context, r *request, in muteBody) (reply, error) {
	until, err := in.moment(s.cfg.Now())
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, s.mute(ctx, r, until)
}

// mute mutes the alert that the path names until a time; zero ends that.
func (s *alertHandlers) mute(ctx context.Context, r *request, until time.Time) error {
	if until.IsZero() {
		r.action = "alert.unmute"
	}
	a, err := s.cfg.Alerts.Mute(ctx, alertScope(r.who), r.param("id"), until)
	if err != nil {
		return err
	}
	r.object = a.Rule
	r.about = sandbox.Sandbox{ID: a.Target.SandboxID, Name: a.Target.Sandbox, Owner: a.Target.Owner}
	return nil
}

// installation is what a query names the owner of rules and channels that admins keep for all.
const installation = "installation"

// alertOwner gives the owner whose rules or channels a request is about: the caller's id, or "" for the installation, which it notes
// for the record. Kinds: Invalid, Forbidden.
func alertOwner(r *request, name string) (string, error) {
	r.ofAll = name == installation
	switch {
	case name == "":
		return r.who.User.ID, nil
	case name != installation:
		return "", fault.Field("owner", "owner must be %q, or left out for your own.", installation)
	case !r.isAdmin():
		return "", fault.New(fault.Forbidden, "Only an admin may see and change the installation's alerts.")
	}
	return "", nil
}
