package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/alert"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/views"
)

// ruleKind is how a kind of rules is shown.
type ruleKind struct {
	icon, title string
	what        string     // it watches
	short       string     // the same in a list, with a place for the threshold
	bound, unit string     // of the threshold
	first       alert.Rule // what the form of a new one begins with
}

// hour is an hour, for tables.
const hour = time.Hour

// ruleKinds has every kind.
var ruleKinds = map[alert.Kind]ruleKind{
	alert.ServiceDown: {
		icon: "server", title: "Service down", what: "A service is unhealthy or keeps restarting.", short: "A service is unhealthy or keeps restarting",
		first: alert.Rule{For: time.Minute, Remind: 4 * hour},
	},
	alert.Memory: {
		icon: "size", title: "Memory nearly full", what: "A sandbox uses most of its memory limit.", short: "Uses at least %s %% of its memory limit",
		bound: "At least", unit: "% of the limit", first: alert.Rule{Threshold: 90, For: 5 * time.Minute, Remind: 12 * hour},
	},
	alert.OOMKill: {
		icon: "warn", title: "Out of memory", what: "A process in a sandbox was killed for lack of memory.", short: "A process was killed for lack of memory",
	},
	alert.HomeSize: {
		icon: "folder", title: "Home nearly full", what: "The files in a sandbox's home take a lot of space.", short: "The home is at least %s GiB",
		bound: "At least", unit: "GiB", first: alert.Rule{Threshold: 20, Remind: 24 * hour},
	},
	alert.Broken: {
		icon: "state-failed", title: "Sandbox does not start", what: "A create, start or wake of a sandbox failed.", short: "A create, start or wake failed",
		first: alert.Rule{Remind: 12 * hour},
	},
	alert.BuildFailed: {
		icon: "hammer", title: "Image not built", what: "The image of a template could not be built.", short: "The image of a template could not be built",
		first: alert.Rule{Remind: 24 * hour},
	},
	alert.BackupFailed: {
		icon: "archive", title: "Backup failed", what: "A scheduled backup of a sandbox could not be made.", short: "The last scheduled backup failed",
		first: alert.Rule{Remind: 24 * hour},
	},
	alert.BackupMissed: {
		icon: "clock", title: "Backup missed", what: "A schedule did not run when it was due, or failed at two due times.", short: "A schedule of backups missed a run",
		first: alert.Rule{Remind: 24 * hour},
	},
	alert.BackupTest: {
		icon: "undo", title: "Backup cannot be restored", what: "A scheduled restore test of a backup failed.", short: "The last restore test of a backup failed",
		first: alert.Rule{Remind: 24 * hour},
	},
	alert.HostDisk: {
		icon: "database", title: "Host: disk nearly full", what: "The host's disk, or the storage pool, is nearly full.", short: "At least %s %% of the host's disk is used",
		bound: "At least", unit: "% used", first: alert.Rule{Threshold: 90, For: 5 * time.Minute, Remind: 12 * hour},
	},
	alert.HostMemory: {
		icon: "size", title: "Host: memory nearly full", what: "The host's memory is nearly full.", short: "At least %s %% of the host's memory is used",
		bound: "At least", unit: "% used", first: alert.Rule{Threshold: 95, For: 10 * time.Minute, Remind: 12 * hour},
	},
	alert.Certificate: {
		icon: "lock", title: "Certificate expires soon", what: "The dashboard's certificate was not renewed in time.", short: "The dashboard's certificate expires within %s days",
		bound: "Expires within", unit: "days", first: alert.Rule{Threshold: 14, Remind: 24 * hour},
	},
	alert.LogLine: {
		icon: "note", title: "Log line", what: "A service writes a text to its log, a number of times in five minutes.", short: "A log line matches, at least %s times in five minutes",
		bound: "At least", unit: "times in five minutes", first: alert.Rule{Threshold: 1, Remind: 4 * hour},
	},
}

// ruleText says what a rule watches.
func ruleText(rule alert.Rule) string {
	k := ruleKinds[rule.Kind]
	text := k.short
	if k.unit != "" {
		text = fmt.Sprintf(k.short, figureText(rule.Threshold))
	}
	if rule.Threshold == 1 { // of a kind that counts
		text = strings.NewReplacer("1 times", "once", "1 days", "1 day").Replace(text)
	}
	if rule.Kind == alert.LogLine {
		text += ": " + rule.Pattern
	}
	if rule.For > 0 {
		text += ", for " + spanWords(rule.For)
	}
	return text
}

func figureText(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// spanWords writes a length of time as pages do, exactly: "5 min", "12 h", "1h30m".
func spanWords(d time.Duration) string {
	switch {
	case d%hour == 0:
		return count(d, hour, "h")
	case d%time.Minute == 0 && d < hour:
		return count(d, time.Minute, "min")
	case d%time.Second == 0 && d < time.Minute:
		return count(d, time.Second, "s")
	}
	return exactSpan(d)
}

// exactSpan writes a length of time exactly, as forms take it: "5m", "1h30m".
func exactSpan(d time.Duration) string { return catalog.After(d).String() }

// ruleScopeText says which sandboxes a rule watches.
func ruleScopeText(rule alert.Rule, box string) string {
	switch {
	case rule.SandboxID != "":
		return "only " + box
	case rule.Template != "":
		return "template " + rule.Template
	case rule.Kind.OfHost():
		return "the host"
	case rule.Kind == alert.BuildFailed:
		return "all templates"
	}
	if rule.Owner != "" {
		return "all my sandboxes"
	}
	return "all sandboxes"
}

// pageNewRule shows the form of a rule of the kind that the address names, or asks for one.
func (s *alertSettingHandlers) pageNewRule(ctx context.Context, r *request) (templ.Component, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return nil, err
	}
	if kind := alert.Kind(r.query("kind")); kind != "" {
		first, ok := ruleKinds[kind]
		if !ok {
			return nil, fault.Field("kind", "There is no kind %.40q of rules.", string(kind))
		}
		rule := first.first
		rule.Owner, rule.Kind, rule.Name = owner, kind, first.title
		return s.ruleForm(ctx, r, rule, nil)
	}
	v := views.AlertKinds{Title: "Add rule", Text: "What should sandboxd watch?", Next: alertSettingsURL(owner, "")}
	for _, kind := range alert.Kinds() {
		if owner != "" && kind.OfHost() {
			continue
		}
		k := ruleKinds[kind]
		url := alertSettingsPath + "/rules/new?kind=" + string(kind)
		if owner == "" {
			url += "&owner=" + installation
		}
		v.Items = append(v.Items, views.KindChoice{Icon: k.icon, Title: k.title, Text: k.what, URL: url})
	}
	return s.kindsPage(r, v)
}

func (s *alertSettingHandlers) kindsPage(r *request, v views.AlertKinds) (templ.Component, error) {
	if r.byScript() {
		return views.AlertKindsSheet(v), nil
	}
	v.Frame = s.frame(r, v.Title, "settings")
	return views.AlertKindsPage(v), nil
}

// pageRule shows the form of a rule that there is.
func (s *alertSettingHandlers) pageRule(ctx context.Context, r *request) (templ.Component, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return nil, err
	}
	rules, err := s.cfg.Alerts.Rules(ctx, owner)
	if err != nil {
		return nil, err
	}
	at, err := findRule(r, rules)
	if err != nil {
		return nil, err
	}
	return s.ruleForm(ctx, r, rules[at], nil)
}

// ruleForm is the form of a rule. mend may put what was entered in the place of what the rule says.
func (s *alertSettingHandlers) ruleForm(ctx context.Context, r *request, rule alert.Rule, mend func(*views.RuleForm)) (templ.Component, error) {
	k := ruleKinds[rule.Kind]
	v := views.RuleForm{
		ID: rule.ID, Owner: ownerQuery(rule.Owner), Kind: string(rule.Kind), Title: k.title, What: k.what, Unit: k.unit, Bound: k.bound,
		Name: views.Field{Value: rule.Name}, Threshold: views.Field{Value: figureText(rule.Threshold)}, Pattern: views.Field{Value: rule.Pattern},
		Lines: rule.Kind == alert.LogLine, Lasts: !rule.Kind.Once(), For: views.Field{Value: exactSpan(rule.For)},
		Remind: views.Field{Value: exactSpan(rule.Remind)}, On: !rule.Disabled,
	}
	channels, err := s.cfg.Alerts.Channels(ctx, rule.Owner)
	if err != nil {
		return nil, err
	}
	for _, c := range channels {
		v.Channels = append(v.Channels, views.RuleChannel{ID: c.ID, Name: c.Name, Chosen: slices.Contains(rule.Channels, c.ID)})
	}
	if v.Scope, err = s.scopeChoice(ctx, rule); err != nil {
		return nil, err
	}
	if mend != nil {
		mend(&v)
	}
	if r.byScript() {
		return views.RuleSheet(v), nil
	}
	v.Frame = s.frame(r, "Rule", "settings")
	return views.RuleFormPage(v), nil
}

// What the values of the choice of a rule's scope begin with.
const (
	scopeBox      = "sandbox "
	scopeTemplate = "template "
)

// scopeChoice offers what a rule can watch.
func (s *alertSettingHandlers) scopeChoice(ctx context.Context, rule alert.Rule) (views.LogChoice, error) {
	if rule.Kind.OfHost() {
		return views.LogChoice{}, nil
	}
	all := "All sandboxes"
	switch {
	case rule.Kind == alert.BuildFailed:
		all = "All templates"
	case rule.Owner != "":
		all = "All my sandboxes"
	}
	options, value := []views.Option{{Text: all}}, ""
	for _, e := range s.cfg.Templates.List() {
		options = append(options, views.Option{Value: scopeTemplate + e.Name, Text: "Only template " + e.Name})
	}
	if rule.Kind != alert.BuildFailed {
		boxes, err := s.ruleBoxes(ctx, rule.Owner)
		if err != nil {
			return views.LogChoice{}, err
		}
		for _, box := range boxes[:min(len(boxes), mostOptions)] {
			options = append(options, views.Option{Value: scopeBox + box.ID, Text: "Only " + box.Name})
		}
	}
	switch {
	case rule.SandboxID != "":
		value = scopeBox + rule.SandboxID
	case rule.Template != "":
		value = scopeTemplate + rule.Template
	}
	return choiceOf(value, options), nil
}

// readRule reads the posted form into a rule, with all that cannot be read.
func readRule(r *request, rule alert.Rule) (alert.Rule, []error) {
	var faults []error
	rule.Name, rule.Pattern, rule.Disabled = r.field("name"), r.field("pattern"), r.form("on") == ""
	rule.Channels = r.http.PostForm["channel"]
	rule.SandboxID, rule.Template = "", ""
	switch scope := r.form("scope"); {
	case strings.HasPrefix(scope, scopeBox):
		rule.SandboxID = strings.TrimPrefix(scope, scopeBox)
	case strings.HasPrefix(scope, scopeTemplate):
		rule.Template = strings.TrimPrefix(scope, scopeTemplate)
	}
	if rule.Threshold = 0; ruleKinds[rule.Kind].unit != "" {
		var err error
		if rule.Threshold, err = strconv.ParseFloat(r.field("threshold"), 64); err != nil {
			faults = append(faults, fault.Field("threshold", "%.40q is not a number.", r.field("threshold")))
		}
	}
	for name, into := range map[string]*time.Duration{"for": &rule.For, "remind": &rule.Remind} {
		*into = 0
		text := r.field(name)
		if text == "" || name == "for" && rule.Kind.Once() {
			continue
		}
		span, err := parseSpan(text)
		if err != nil {
			faults = append(faults, fault.Field(name, "%.40q is not a length of time, such as 5m or 4h.", text))
		}
		*into = span
	}
	return rule, faults
}

// submitRule adds a rule, or changes the one that the path names.
func (s *alertSettingHandlers) submitRule(ctx context.Context, r *request) (string, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return "", err
	}
	at := 0
	saved, err := s.cfg.Alerts.ChangeRules(ctx, owner, func(rules []alert.Rule) ([]alert.Rule, error) {
		if rules, at, err = rulesWith(r, owner, rules); err != nil {
			return nil, err
		}
		var faults []error
		rules[at], faults = readRule(r, rules[at])
		if _, known := ruleKinds[rules[at].Kind]; !known {
			return nil, fault.Field("kind", "Choose what the rule watches.")
		}
		return rules, errors.Join(faults...)
	})
	if err != nil {
		return "", ofRule(err, at)
	}
	return alertSettingsURL(owner, "rule-saved") + ofThatRule(saved[at].ID), nil
}

// rulesWith says which of an owner's rules the form is about: the one that the path names, or a new one at the end. Kind: NotFound.
func rulesWith(r *request, owner string, rules []alert.Rule) ([]alert.Rule, int, error) {
	if r.param("id") != "" {
		at, err := findRule(r, rules)
		return rules, at, err
	}
	return append(rules, alert.Rule{Owner: owner, Kind: alert.Kind(r.form("kind"))}), len(rules), nil
}

// ofRule names the field of an error about one of several rules as its form does.
func ofRule(err error, at int) error {
	name, ok := strings.CutPrefix(fault.FieldOf(err), fmt.Sprintf("rules[%d].", at))
	if !ok {
		return err
	}
	return fault.Field(name, "%s", fault.Message(err))
}

// againRule shows the form again with its values, and the error beside its field.
func (s *alertSettingHandlers) againRule(ctx context.Context, r *request, cause error) (templ.Component, error) {
	owner, err := alertOwner(r, r.query("owner"))
	if err != nil {
		return nil, err
	}
	rules, err := s.cfg.Alerts.Rules(ctx, owner)
	if err != nil {
		return nil, err
	}
	rules, at, err := rulesWith(r, owner, rules)
	if err != nil {
		return nil, err
	}
	rule, _ := readRule(r, rules[at]) // its faults are in cause, and it has what could be read
	if _, known := ruleKinds[rule.Kind]; !known {
		return nil, cause
	}
	return s.ruleForm(ctx, r, rule, func(v *views.RuleForm) {
		v.Fault = r.fill(map[string]*views.Field{
			"name": &v.Name, "threshold": &v.Threshold, "pattern": &v.Pattern, "for": &v.For, "remind": &v.Remind,
			"sandbox": &v.Scope.Field, "template": new(views.Field), "channels": &v.Sends,
		}, cause)
		v.Scope.Value = r.form("scope")
		if fault.FieldOf(cause) == "template" {
			v.Scope.Fault = fault.Message(cause)
		}
	})
}
