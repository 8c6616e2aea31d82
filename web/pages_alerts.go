package web

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/schedule"
	"sandboxd/views"
)

// alertsPath is the page of alerts.
const alertsPath = "/alerts"

// Bounds of the page.
const (
	shownFiring  = 200
	shownHistory = 50
	shownAlert   = 300 // bytes of an alert's text
)

// alertMargin is how much the page of metrics and the log show before and after an alert.
const alertMargin = 10 * time.Minute

// alertStates are the states to choose from.
var alertStates = []views.Option{{Text: "All"}, {Value: string(alert.Firing), Text: "Firing"}, {Value: string(alert.Resolved), Text: "Resolved"}}

// alertAsk is what an address of the page asks for.
type alertAsk struct {
	sandbox string
	state   alert.State
	before  string
}

func readAlertAsk(r *request) (a alertAsk, err error) {
	a = alertAsk{sandbox: strings.TrimSpace(r.query("sandbox")), before: r.query("before")}
	a.state, err = alertState(r.query("state"))
	return a, err
}

// url is an address of the page with what is asked for.
func (a alertAsk) url(before string) string {
	v := url.Values{}
	for name, value := range map[string]string{"sandbox": a.sandbox, "state": string(a.state), "before": before} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if len(v) == 0 {
		return alertsPath
	}
	return alertsPath + "?" + v.Encode()
}

func (a alertAsk) filtered() bool { return a.sandbox != "" || a.state != "" }

// pageAlerts shows what fires, and what has fired. A script that asks for older alerts gets those alone.
func (s *alertHandlers) pageAlerts(ctx context.Context, r *request) (templ.Component, error) {
	ask, err := readAlertAsk(r)
	if err != nil {
		return nil, err
	}
	if r.byScript() && ask.before != "" {
		history, err := s.history(ctx, r, ask)
		return views.AlertsOver(history), err
	}
	v := views.Alerts{Frame: s.frame(r, "Alerts", "alerts"), State: choiceOf(string(ask.state), alertStates), Filtered: ask.filtered()}
	if v.Sandbox, err = s.sandboxChoice(ctx, r, ask.sandbox); err != nil {
		return nil, err
	}
	if v.List, err = s.alertList(ctx, r, ask); err != nil {
		return nil, err
	}
	if ask.before == "" {
		v.Frame.Live = views.Live{Topic: ask.url(""), Seen: "seen=" + printOf(v.List)}
	}
	return views.AlertsPage(v), nil
}

// sandboxChoice offers the sandboxes that the person may see.
func (s *alertHandlers) sandboxChoice(ctx context.Context, r *request, chosen string) (views.LogChoice, error) {
	boxes, err := s.accounts.tokenSandboxes(ctx, r)
	if err != nil {
		return views.LogChoice{}, err
	}
	options := []views.Option{{Text: "All"}}
	for _, box := range boxes {
		options = append(options, views.Option{Value: box.Text, Text: box.Text})
	}
	return choiceOf(chosen, options), nil
}

func (s *alertHandlers) alertList(ctx context.Context, r *request, ask alertAsk) (l views.AlertList, err error) {
	l.NoFiring, l.NoOver = ask.state == alert.Resolved || ask.before != "", ask.state == alert.Firing
	if !l.NoFiring {
		if l.Firing, err = s.firing(ctx, r, ask); err != nil {
			return l, err
		}
	}
	if !l.NoOver {
		l.History, err = s.history(ctx, r, ask)
	}
	return l, err
}

// firing lists what fires now.
func (s *alertHandlers) firing(ctx context.Context, r *request, ask alertAsk) (f views.FiringAlerts, err error) {
	q := alert.Query{Scope: alertScope(r.who), Sandbox: ask.sandbox, State: alert.Firing, Limit: shownFiring}
	found, next, err := s.cfg.Alerts.Find(ctx, q)
	if err != nil {
		return f, err
	}
	f = views.FiringAlerts{More: next != "", Filtered: ask.sandbox != "", Next: ask.url("")}
	if f.Items, err = s.alertViews(ctx, r, found); err != nil || len(found) > 0 {
		return f, err
	}
	f.Off, err = s.nothingWatched(ctx, r)
	return f, err
}

// nothingWatched says whether no rule is on that could find something for the person.
func (s *alertHandlers) nothingWatched(ctx context.Context, r *request) (bool, error) {
	for _, owner := range []string{"", r.who.User.ID} {
		rules, err := s.cfg.Alerts.Rules(ctx, owner)
		if err != nil || slices.ContainsFunc(rules, func(rule alert.Rule) bool { return !rule.Disabled }) {
			return false, err
		}
	}
	return true, nil
}

// history lists what is over.
func (s *alertHandlers) history(ctx context.Context, r *request, ask alertAsk) (h views.AlertHistory, err error) {
	q := alert.Query{Scope: alertScope(r.who), Sandbox: ask.sandbox, State: alert.Resolved, Before: ask.before, Limit: shownHistory}
	found, next, err := s.cfg.Alerts.Find(ctx, q)
	if err != nil {
		return h, err
	}
	h = views.AlertHistory{First: ask.before == "", Filtered: ask.filtered()}
	if next != "" {
		h.Older = ask.url(next)
	}
	h.Items, err = s.alertViews(ctx, r, found)
	return h, err
}

func (s *alertHandlers) alertViews(ctx context.Context, r *request, found []alert.Alert) ([]views.Alert, error) {
	out, names, now := make([]views.Alert, 0, len(found)), newOwners(s.cfg.Accounts), s.cfg.Now()
	rules, err := s.rulesOf(ctx, found)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, a := range found {
		rule, id := rules[a.RuleID], a.Target.SandboxID
		if _, known := there[id]; !known && id != "" {
			h, err := s.resolve(ctx, r.who, a.Target.Sandbox)
			there[id] = err == nil && h.ID() == id
		}
		v := s.alertView(r, a, rule)
		if id != "" && !there[id] { // its pages are gone with it
			v.URL, v.Links = "", nil
		}
		if ofSchedules[a.Kind] {
			if err := s.tellSchedule(ctx, r, a, &v); err != nil {
				return nil, err
			}
		}
		if a.State == alert.Firing && rule.Muted.After(now) {
			v.Quiet = leftOf(rule.Muted, now)
		}
		if v.Own = a.Owner != "" && a.Owner == r.who.User.ID; a.Owner != "" && !v.Own {
			if v.Of, err = names.name(ctx, a.Owner); err != nil {
				return nil, err
			}
		}
		out = append(out, v)
	}
	return out, nil
}

// ofSchedules are the kinds of alerts that are about schedules of backups.
var ofSchedules = map[alert.Kind]bool{alert.BackupFailed: true, alert.BackupMissed: true, alert.BackupTest: true}

// tellSchedule has an alert lead to the schedule that it is about, or to all when its name does not tell which.
func (s *alertHandlers) tellSchedule(ctx context.Context, r *request, a alert.Alert, v *views.Alert) error {
	list, err := s.cfg.Schedules.List(ctx, func(one schedule.Schedule) bool { return maySchedule(r, one) && one.Name == a.Target.Part })
	if err != nil {
		return err
	}
	to := schedulesPath
	if len(list) == 1 {
		to = scheduleURL(list[0].ID, "")
	}
	v.Links = []views.Link{{Text: "Schedule", Title: "The schedule and its runs", URL: to}}
	if a.Target.SandboxID == "" {
		v.About, v.URL = "backups", to
	}
	return nil
}

// rulesOf gives the rules of alerts, by id, as far as there still are such.
func (s *alertHandlers) rulesOf(ctx context.Context, found []alert.Alert) (map[string]alert.Rule, error) {
	out, asked := map[string]alert.Rule{}, map[string]bool{}
	for _, a := range found {
		if asked[a.Owner] {
			continue
		}
		asked[a.Owner] = true
		rules, err := s.cfg.Alerts.Rules(ctx, a.Owner)
		if err != nil {
			return nil, err
		}
		for _, rule := range rules {
			out[rule.ID] = rule
		}
	}
	return out, nil
}

// alertView makes an alert ready to show. Its rule may be one without an id, when there is no such rule any more.
func (s *alertHandlers) alertView(r *request, a alert.Alert, rule alert.Rule) views.Alert {
	now := s.cfg.Now()
	v := views.Alert{
		ID: a.ID, Rule: a.Rule, Mutes: r.isAdmin() || a.Owner == r.who.User.ID, Part: plainText(a.Target.Part), Text: plainText(a.Text), Begun: timeOf(a.Since, now), Over: timeOf(a.Resolved, now),
	}
	if !a.Resolved.IsZero() {
		v.Long = lasted(a.Resolved.Sub(a.Since))
	}
	if a.Muted.After(now) && a.State == alert.Firing {
		v.Muted = leftOf(a.Muted, now)
	}
	switch {
	case a.Target.SandboxID != "":
		box := sandbox.Sandbox{ID: a.Target.SandboxID, Name: a.Target.Sandbox}
		span := "since=" + stamp(a.Since.Add(-alertMargin))
		if end := a.Resolved.Add(alertMargin); !a.Resolved.IsZero() && end.Before(now) {
			span += "&until=" + stamp(end)
		}
		log := logsURL(box) + "&" + span
		switch {
		case a.Kind == alert.ServiceDown:
			log += "&service=" + url.QueryEscape(a.Target.Part)
		case rule.Pattern != "" && v.Mutes: // else the rule is not for them to see
			log += "&q=" + url.QueryEscape(rule.Pattern)
		}
		v.About, v.URL = box.Name, sameURL(box, "")
		v.Links = []views.Link{
			{Text: "Metrics", Title: "Its metrics at that time", URL: metricsURL(box) + "&" + span},
			{Text: "Log", Title: "Its log at that time", URL: log},
		}
	case a.Target.Template != "":
		v.About, v.URL = "template "+a.Target.Template, "/templates/"+url.PathEscape(a.Target.Template)
	default:
		v.About = "the host"
		if r.isAdmin() {
			v.URL = hostPath
		}
	}
	return v
}

func stamp(t time.Time) string { return url.QueryEscape(t.UTC().Format(time.RFC3339)) }

// plainText is a text that a sandbox had a part in, short and with nothing in it that acts.
func plainText(text string) string { return views.Plain(text, shownAlert) }

// submitMuteAlert keeps an alert from sending messages for a while, or no longer.
func (s *alertHandlers) submitMuteAlert(ctx context.Context, r *request) (string, error) {
	until, err := muteUntil(r, s.cfg.Now())
	if err != nil {
		return "", err
	}
	return r.back(alertsPath), s.mute(ctx, r, until)
}

// muteUntil gives the end of the muting that a form asks for; zero ends it now.
func muteUntil(r *request, now time.Time) (time.Time, error) {
	span, err := parseSpan(r.form("for"))
	switch {
	case err != nil || span < 0 || span > maxMute:
		return time.Time{}, fault.Field("for", "Choose how long to mute it.")
	case span == 0:
		return time.Time{}, nil
	}
	return now.Add(span), nil
}
