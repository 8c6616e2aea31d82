package alert

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

// Limits of rules.
const (
	MaxRules    = 50 // of one owner
	MaxName     = 64 // bytes, of a rule or a channel
	MaxFor      = 24 * time.Hour
	LeastRemind = 10 * time.Minute
	MaxRemind   = 30 * 24 * time.Hour
)

// kindOf is what is special about a kind.
type kindOf struct {
	least, most float64 // of Threshold; most is 0 for a kind without one
	whole       bool    // the threshold has no fraction
	unit        string  // of the threshold, for people
	once        bool    // it is something that happens: it fires at once, and lasts until it has not happened for a while
	host        bool    // about the host: only for the installation
	phrase      string  // what is wrong, for a subject
}

var kinds = map[Kind]kindOf{
	ServiceDown: {phrase: "service down"},
	Memory:      {least: 10, most: 100, unit: "percent", phrase: "memory nearly full"},
	OOMKill:     {once: true, phrase: "out of memory"},
	HomeSize:    {least: 0.1, most: 100_000, unit: "GiB", phrase: "home nearly full"},
	Broken:      {once: true, phrase: "does not start"},
	BuildFailed: {once: true, phrase: "image not built"},
	HostDisk:    {least: 10, most: 100, unit: "percent", host: true, phrase: "disk nearly full"},
	HostMemory:  {least: 10, most: 100, unit: "percent", host: true, phrase: "memory nearly full"},
	Certificate: {least: 1, most: 90, whole: true, unit: "days", host: true, phrase: "certificate expires soon"},
	LogLine:     {least: 1, most: 1000, whole: true, unit: "times", once: true, phrase: "log line"},

	BackupFailed: {phrase: "backup failed"},
	BackupMissed: {phrase: "backup missed"},
	BackupTest:   {phrase: "backup not restorable"},
}

// Kinds gives all kinds, in the order of their constants.
func Kinds() []Kind {
	return []Kind{ServiceDown, Memory, OOMKill, HomeSize, Broken, BuildFailed, HostDisk, HostMemory, Certificate, LogLine, BackupFailed, BackupMissed, BackupTest}
}

// Unit is that of a kind's threshold: "percent", "GiB", "days" or "times"; "" for a kind without one.
func (k Kind) Unit() string { return kinds[k].unit }

// OfHost reports whether a kind is about the host, so that only the installation may have rules of it.
func (k Kind) OfHost() bool { return kinds[k].host }

// Once reports whether a kind is about what happens, rather than lasts: it fires at once, and its rules have no For.
func (k Kind) Once() bool { return kinds[k].once }

// Defaults are the rules of an installation that has none when it is started. They have no channels.
func Defaults() []Rule {
	return []Rule{
		{Name: "Service down", Kind: ServiceDown, For: time.Minute, Remind: 4 * time.Hour},
		{Name: "Memory nearly full", Kind: Memory, Threshold: 90, For: 5 * time.Minute, Remind: 12 * time.Hour},
		{Name: "Out of memory", Kind: OOMKill},
		{Name: "Home nearly full", Kind: HomeSize, Threshold: 20, Remind: 24 * time.Hour},
		{Name: "Sandbox does not start", Kind: Broken, Remind: 12 * time.Hour},
		{Name: "Image not built", Kind: BuildFailed, Remind: 24 * time.Hour},
		{Name: "Backup failed", Kind: BackupFailed, Remind: 24 * time.Hour},
		{Name: "Backup missed", Kind: BackupMissed, Remind: 24 * time.Hour},
		{Name: "Backup cannot be restored", Kind: BackupTest, Remind: 24 * time.Hour},
		{Name: "Host: disk nearly full", Kind: HostDisk, Threshold: 90, For: 5 * time.Minute, Remind: 12 * time.Hour},
		{Name: "Host: memory nearly full", Kind: HostMemory, Threshold: 95, For: 10 * time.Minute, Remind: 12 * time.Hour},
		{Name: "Certificate expires soon", Kind: Certificate, Threshold: 14, Remind: 24 * time.Hour},
	}
}

// checkRules gives an owner's new rules as they are kept. Kind: Invalid.
func (s *Service) checkRules(ctx context.Context, owner string, before, rules []Rule) ([]Rule, error) {
	if len(rules) > MaxRules {
		return nil, fault.Field("rules", "There can be at most %d rules.", MaxRules)
	}
	channels, err := s.Channels(ctx, owner)
	if err != nil {
		return nil, err
	}
	out := make([]Rule, 0, len(rules))
	seen := map[string]bool{}
	for i, r := range rules {
		field := func(name string) string { return fmt.Sprintf("rules[%d].%s", i, name) }
		r.Owner = owner
		at := slices.IndexFunc(before, func(b Rule) bool { return b.ID == r.ID })
		switch {
		case r.ID == "":
			r.ID = sandbox.NewID()
		case at < 0 || seen[r.ID]:
			return nil, fault.Field(field("id"), "There is no such rule, or it is there twice. Leave the id out for a new rule.")
		}
		seen[r.ID] = true
		if r, err = tidyRule(r, field); err != nil {
			return nil, err
		}
		if err := checkNamed(r, channels, field); err != nil {
			return nil, err
		}
		if r.SandboxID != "" && (at < 0 || before[at].SandboxID != r.SandboxID) {
			if err := s.checkSandbox(ctx, r, field); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// tidyRule checks what a rule says by itself.
func tidyRule(r Rule, field func(string) string) (Rule, error) {
	k, ok := kinds[r.Kind]
	r.Name = text.Trim(r.Name)
	switch {
	case r.Name == "" || len(r.Name) > MaxName || text.Unprintable(r.Name):
		return r, fault.Field(field("name"), "The name has 1 to %d bytes of printable characters.", MaxName)
	case !ok:
		return r, fault.Field(field("kind"), "There is no kind %.40q of rules.", string(r.Kind))
	case r.Owner != "" && k.host:
		return r, fault.Field(field("kind"), "Only the installation's rules can watch the host.")
	case r.SandboxID != "" && (k.host || r.Kind == BuildFailed):
		return r, fault.Field(field("sandbox"), "Such a rule is about no sandbox.")
	case r.Template != "" && k.host:
		return r, fault.Field(field("template"), "Such a rule is about no template.")
	case r.SandboxID != "" && r.Template != "":
		return r, fault.Field(field("template"), "Name a sandbox or a template, or neither for all.")
	case len(r.Template) > 2*MaxName || text.Unprintable(r.Template):
		return r, fault.Field(field("template"), "There is no such template.")
	case r.For < 0 || r.For > MaxFor:
		return r, fault.Field(field("for"), "It has to last for 0 to 24 hours before it fires.")
	case k.once && r.For != 0:
		return r, fault.Field(field("for"), "Such a rule fires at once. Leave the time out.")
	case r.Remind != 0 && (r.Remind < LeastRemind || r.Remind > MaxRemind):
		return r, fault.Field(field("remind"), "Reminders are between 10 minutes and 30 days apart, or 0 for none.")
	case r.Muted.After(time.Now().Add(mutedLimit)):
		return r, fault.Field(field("muted"), "A rule can be muted for at most a year. Disable it instead.")
	}
	if err := checkThreshold(r, k, field("threshold")); err != nil {
		return r, err
	}
	r.Muted = r.Muted.Round(0)
	return r, checkPattern(r, field("pattern"))
}

func checkThreshold(r Rule, k kindOf, field string) error {
	switch {
	case k.most == 0 && r.Threshold != 0:
		return fault.Field(field, "Such a rule has no threshold.")
	case !(r.Threshold >= k.least && r.Threshold <= k.most):
		return fault.Field(field, "The threshold is %v to %v %s.", k.least, k.most, k.unit)
	case k.whole && r.Threshold != math.Trunc(r.Threshold):
		return fault.Field(field, "The threshold is a whole number.")
	}
	return nil
}

func checkPattern(r Rule, field string) error {
	if r.Kind != LogLine {
		if r.Pattern != "" {
			return fault.Field(field, "Only rules about log lines have a pattern.")
		}
		return nil
	}
	terms, err := logs.CheckText(r.Pattern)
	if err != nil {
		return fault.Field(field, "%s", fault.Message(err))
	}
	if terms == 0 {
		return fault.Field(field, "Say what the log line has: a word, or \"several words\" in quotes.")
	}
	return nil
}

// checkNamed refuses channels that are not the owner's.
func checkNamed(r Rule, channels []Channel, field func(string) string) error {
	if len(r.Channels) > MaxChannels {
		return fault.Field(field("channels"), "A rule has at most %d channels.", MaxChannels)
	}
	for i, id := range r.Channels {
		if slices.Contains(r.Channels[:i], id) || !slices.ContainsFunc(channels, func(c Channel) bool { return c.ID == id }) {
			return fault.Field(field("channels"), "There is no channel %.40q, or it is named twice.", id)
		}
	}
	return nil
}

// checkSandbox refuses a sandbox that is not there, and to members one of others.
func (s *Service) checkSandbox(ctx context.Context, r Rule, field func(string) string) error {
	if s.c.Sources.Sandboxes == nil {
		return nil
	}
	all, err := s.c.Sources.Sandboxes(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(b sandbox.Sandbox) bool {
		return b.ID == r.SandboxID && (r.Owner == "" || r.Owner == b.Owner)
	}) {
		return fault.Field(field("sandbox"), "There is no such sandbox.")
	}
	return nil
}
