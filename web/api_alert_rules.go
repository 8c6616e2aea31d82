package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// ruleShape is a rule as programs see it.
type ruleShape struct {
	ID            string     `json:"id"` // "" for a new one
	Name          string     `json:"name"`
	Kind          string     `json:"kind"`
	Sandbox       string     `json:"sandbox"`  // only this one: its name, or its id when it was deleted; "" for all
	Template      string     `json:"template"` // only sandboxes of it; "" for all
	Threshold     float64    `json:"threshold"`
	Pattern       string     `json:"pattern"`
	ForSeconds    int64      `json:"for_seconds"`
	RemindSeconds int64      `json:"remind_seconds"` // 0 for no reminders
	Disabled      bool       `json:"disabled"`
	MutedUntil    *time.Time `json:"muted_until"` // null when it is not
	Channels      []string   `json:"channels"`    // ids
}

type rulesShape struct {
	Rules []ruleShape `json:"rules"`
}

// ruleBoxes are the sandboxes that an owner's rules may name: those of a user, or all for the installation's.
func (s *alertSettingHandlers) ruleBoxes(ctx context.Context, owner string) ([]sandbox.Sandbox, error) {
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{Owner: owner})
	return boxes, err
}

// boxName gives a sandbox's name, or the id of one that is not among boxes.
func boxName(boxes []sandbox.Sandbox, id string) string {
	for _, box := range boxes {
		if box.ID == id {
			return box.Name
		}
	}
	return id
}

// apiAlertRules lists the caller's rules, or the installation's.
func (s *alertSettingHandlers) apiAlertRules(ctx context.Context, r *request, _ none) (reply, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return reply{}, err
	}
	rules, err := s.cfg.Alerts.Rules(ctx, owner)
	if err != nil {
		return reply{}, err
	}
	return s.rulesReply(ctx, owner, rules)
}

func (s *alertSettingHandlers) rulesReply(ctx context.Context, owner string, rules []alert.Rule) (reply, error) {
	boxes, err := s.ruleBoxes(ctx, owner)
	if err != nil {
		return reply{}, err
	}
	out, now := rulesShape{Rules: make([]ruleShape, 0, len(rules))}, s.cfg.Now()
	for _, rule := range rules {
		shape := ruleShape{
			ID: rule.ID, Name: rule.Name, Kind: string(rule.Kind), Sandbox: boxName(boxes, rule.SandboxID), Template: rule.Template,
			Threshold: rule.Threshold, Pattern: rule.Pattern, ForSeconds: int64(rule.For / time.Second),
			RemindSeconds: int64(rule.Remind / time.Second), Disabled: rule.Disabled, Channels: append([]string{}, rule.Channels...),
		}
		if rule.Muted.After(now) {
			shape.MutedUntil = timeOrNull(rule.Muted)
		}
		out.Rules = append(out.Rules, shape)
	}
	return reply{body: out}, nil
}

// apiSetAlertRules puts rules in the place of the caller's, or of the installation's.
func (s *alertSettingHandlers) apiSetAlertRules(ctx context.Context, r *request, in rulesShape) (reply, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return reply{}, err
	}
	if in.Rules == nil {
		return reply{}, fault.Field("rules", "Send the whole list of rules; [] for none.")
	}
	boxes, err := s.ruleBoxes(ctx, owner)
	if err != nil {
		return reply{}, err
	}
	rules, err := s.cfg.Alerts.ChangeRules(ctx, owner, func(before []alert.Rule) ([]alert.Rule, error) {
		return readRules(in.Rules, boxes, before, s.cfg.Now())
	})
	if err != nil {
		return reply{}, asSent(err)
	}
	return s.rulesReply(ctx, owner, rules)
}

// readRules reads rules from what a program sent.
func readRules(sent []ruleShape, boxes []sandbox.Sandbox, before []alert.Rule, now time.Time) ([]alert.Rule, error) {
	rules, faults := make([]alert.Rule, 0, len(sent)), []error(nil)
	for i, shape := range sent {
		rule, err := shape.rule(boxes, before, now)
		if err != nil {
			faults = append(faults, fault.Field(fmt.Sprintf("rules[%d].%s", i, fault.FieldOf(err)), "%s", fault.Message(err)))
		}
		rules = append(rules, rule)
	}
	return rules, errors.Join(faults...)
}

// asSent names the field that an error is about as a program sent it.
func asSent(err error) error {
	at, name, ok := strings.Cut(fault.FieldOf(err), "].")
	if sent := map[string]string{"for": "for_seconds", "remind": "remind_seconds", "muted": "muted_until"}[name]; ok && sent != "" {
		return fault.Field(at+"]."+sent, "%s", fault.Message(err))
	}
	return err
}

// maxRuleSpan bounds the lengths of time of a rule that a body can name, in seconds. The service has bounds of its own.
const maxRuleSpan = int64(maxMute / time.Second)

// rule reads a rule from what a program sent. A sandbox that was deleted may stay in a rule that names it.
func (p ruleShape) rule(boxes []sandbox.Sandbox, before []alert.Rule, now time.Time) (alert.Rule, error) {
	rule := alert.Rule{
		ID: p.ID, Name: p.Name, Kind: alert.Kind(p.Kind), SandboxID: p.Sandbox, Template: p.Template, Threshold: p.Threshold,
		Pattern: p.Pattern, Disabled: p.Disabled, Channels: p.Channels,
	}
	for field, seconds := range map[string]int64{"for_seconds": p.ForSeconds, "remind_seconds": p.RemindSeconds} {
		if seconds < 0 || seconds > maxRuleSpan {
			return rule, fault.Field(field, "%s must be from 0 to %d.", field, maxRuleSpan)
		}
	}
	rule.For, rule.Remind = time.Duration(p.ForSeconds)*time.Second, time.Duration(p.RemindSeconds)*time.Second
	if p.MutedUntil != nil {
		if p.MutedUntil.Sub(now) > maxMute {
			return rule, fault.Field("muted_until", "muted_until can be at most a year from now.")
		}
		rule.Muted = *p.MutedUntil
	}
	if p.Sandbox == "" {
		return rule, nil
	}
	for _, box := range boxes {
		if box.Name == p.Sandbox {
			rule.SandboxID = box.ID
			return rule, nil
		}
	}
	if !slices.ContainsFunc(before, func(b alert.Rule) bool { return b.ID == p.ID && b.SandboxID == p.Sandbox }) {
		return rule, fault.Field("sandbox", "There is no sandbox %.40q that these rules may watch.", p.Sandbox)
	}
	return rule, nil
}
