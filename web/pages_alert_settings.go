package web

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
	"sandboxd/views"
)

// alertSettingsPath is the page of rules and channels.
const alertSettingsPath = "/settings/alerts"

// alertSettingsURL is the page of an owner's, with what has just been done there or "".
func alertSettingsURL(owner, outcome string) string {
	url, sign := alertSettingsPath, "?"
	if owner == "" {
		url, sign = url+"?owner="+installation, "&"
	}
	if outcome != "" {
		url += sign + "done=" + outcome
	}
	return url
}

// ruleOutcomes are what the page says of a rule, behind its name.
var ruleOutcomes = map[string]string{
	"rule-saved": "was saved.", "rule-muted": "is muted.", "rule-unmuted": "is no longer muted.", "rule-on": "is on.", "rule-off": "is off.",
}

// ofThatRule adds to an address with an outcome of which rule it is, and leads to that one.
func ofThatRule(id string) string {
	return "&rule=" + url.QueryEscape(id) + "#rule-" + url.PathEscape(id)
}

// ownerQuery is what an address says of an owner.
func ownerQuery(owner string) string {
	if owner == "" {
		return installation
	}
	return ""
}

// pageAlertSettings lists an owner's rules and channels.
func (s *alertSettingHandlers) pageAlertSettings(ctx context.Context, r *request) (templ.Component, error) {
	return s.alertSettings(ctx, r, views.AlertSettings{Done: outcomes[r.query("done")]})
}

func (s *alertSettingHandlers) alertSettings(ctx context.Context, r *request, v views.AlertSettings) (templ.Component, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return nil, err
	}
	rules, err := s.cfg.Alerts.Rules(ctx, owner)
	if err != nil {
		return nil, err
	}
	channels, err := s.cfg.Alerts.Channels(ctx, owner)
	if err != nil {
		return nil, err
	}
	boxes, err := s.ruleBoxes(ctx, owner)
	if err != nil {
		return nil, err
	}
	for _, rule := range rules {
		one := ruleView(rule, boxName(boxes, rule.SandboxID), channels, s.cfg.Now())
		if said := ruleOutcomes[r.query("done")]; said != "" && r.query("rule") == rule.ID {
			one.Done = rule.Name + " " + said
		}
		v.Rules = append(v.Rules, one)
	}
	for _, c := range channels {
		one, err := s.channelView(ctx, c)
		if err != nil {
			return nil, err
		}
		v.Channels = append(v.Channels, one)
	}
	v.Owner, v.Frame = ownerQuery(owner), s.frame(r, "Alert settings", "settings")
	v.Frame.Here = alertSettingsURL(owner, "")
	return views.AlertSettingsPage(v), nil
}

// againAlertSettings shows the page with what went wrong.
func (s *alertSettingHandlers) againAlertSettings(ctx context.Context, r *request, cause error) (templ.Component, error) {
	if r.byScript() {
		return nil, cause // said over the page that is there
	}
	return s.alertSettings(ctx, r, views.AlertSettings{Fault: fault.Message(cause)})
}

// submitResetRules gives the installation the default rules again.
func (s *alertSettingHandlers) submitResetRules(ctx context.Context, r *request) (string, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err == nil && owner != "" {
		err = fault.New(fault.Invalid, "Only the installation has default rules.")
	}
	if err != nil {
		return "", err
	}
	_, err = s.cfg.Alerts.SetRules(ctx, owner, alert.Defaults())
	return alertSettingsURL(owner, "rules-reset"), err
}

// changeRule changes one of an owner's rules, which the path names; change gives false to take it away.
func (s *alertSettingHandlers) changeRule(ctx context.Context, r *request, outcome string, change func(*alert.Rule) (keep bool)) (string, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return "", err
	}
	_, err = s.cfg.Alerts.ChangeRules(ctx, owner, func(rules []alert.Rule) ([]alert.Rule, error) {
		at, err := findRule(r, rules)
		if err != nil {
			return nil, err
		}
		r.object = rules[at].Name
		if !change(&rules[at]) {
			rules = slices.Delete(rules, at, at+1)
		}
		return rules, nil
	})
	return alertSettingsURL(owner, outcome), err
}

// findRule says which of an owner's rules the path names. Kind: NotFound.
func findRule(r *request, rules []alert.Rule) (at int, err error) {
	at = slices.IndexFunc(rules, func(rule alert.Rule) bool { return rule.ID == r.param("id") })
	if at < 0 {
		return 0, fault.New(fault.NotFound, "There is no such rule. It may have been deleted.")
	}
	return at, nil
}

// submitSwitchRule turns a rule on or off.
func (s *alertSettingHandlers) submitSwitchRule(ctx context.Context, r *request) (string, error) {
	off, outcome := r.form("on") != "true", "rule-on"
	if r.action = "rule.enable"; off {
		r.action, outcome = "rule.disable", "rule-off"
	}
	to, err := s.changeRule(ctx, r, outcome, func(rule *alert.Rule) bool {
		rule.Disabled = off
		return true
	})
	return to + ofThatRule(r.param("id")), err
}

// submitMuteRule keeps a rule from sending messages for a while, or no longer.
func (s *alertSettingHandlers) submitMuteRule(ctx context.Context, r *request) (string, error) {
	until, err := muteUntil(r, s.cfg.Now())
	if err != nil {
		return "", err
	}
	outcome := "rule-muted"
	if until.IsZero() {
		r.action, outcome = "rule.unmute", "rule-unmuted"
	}
	to, err := s.changeRule(ctx, r, outcome, func(rule *alert.Rule) bool {
		rule.Muted = until
		return true
	})
	return to + ofThatRule(r.param("id")), err
}

// submitDeleteRule takes a rule away.
func (s *alertSettingHandlers) submitDeleteRule(ctx context.Context, r *request) (string, error) {
	return s.changeRule(ctx, r, "rule-deleted", func(*alert.Rule) bool { return false })
}

// ruleView makes a rule ready to show.
func ruleView(rule alert.Rule, box string, channels []alert.Channel, now time.Time) views.AlertRule {
	v := views.AlertRule{ID: rule.ID, Name: rule.Name, What: ruleText(rule), Off: rule.Disabled, Facts: []string{ruleScopeText(rule, box)}}
	names := ""
	for _, c := range channels {
		if !slices.Contains(rule.Channels, c.ID) {
			continue
		}
		if names != "" {
			names += ", "
		}
		names += c.Name
	}
	if names == "" {
		v.Facts = append(v.Facts, "sends no messages")
	} else {
		v.Facts = append(v.Facts, "sends to "+names)
		if rule.Remind > 0 {
			v.Facts = append(v.Facts, "reminds every "+spanWords(rule.Remind))
		}
	}
	if rule.Muted.After(now) {
		v.Muted = leftOf(rule.Muted, now)
	}
	return v
}
