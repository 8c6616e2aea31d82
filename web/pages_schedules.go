package web

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/backup"
	"sandboxd/internal/catalog"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/schedule"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// schedulesPath is the page of all schedules.
const schedulesPath = "/schedules"

func scheduleURL(id, act string) string { return schedulesPath + "/" + id + act }

// newScheduleURL is the form of a schedule for a sandbox.
func newScheduleURL(box string) string {
	return schedulesPath + "/new?" + url.Values{"sandbox": {box}}.Encode()
}

// planNames gives the names of the schedules that a person may see, by id.
func (s *scheduleHandlers) planNames(ctx context.Context, r *request) (map[string]string, error) {
	list, err := s.cfg.Schedules.List(ctx, func(one schedule.Schedule) bool { return maySchedule(r, one) })
	names := map[string]string{}
	for _, one := range list {
		names[one.ID] = one.Name
	}
	return names, err
}

// pageSchedules lists the schedules that a person may see.
func (s *scheduleHandlers) pageSchedules(ctx context.Context, r *request) (templ.Component, error) {
	list, err := s.list(ctx, r)
	if err != nil {
		return nil, err
	}
	v := views.Schedules{Frame: s.frame(r, "Backup schedules", "backups"), List: list}
	v.Frame.Live = views.Live{Topic: schedulesPath, Seen: "seen=" + printOf(list)}
	return views.SchedulesPage(v), nil
}

// list is what the page of all shows now.
func (s *scheduleHandlers) list(ctx context.Context, r *request) (views.ScheduleList, error) {
	v := views.ScheduleList{Kept: afterText(catalog.After(s.cfg.Backups.Keep))}
	all, err := s.cfg.Schedules.List(ctx, func(one schedule.Schedule) bool { return maySchedule(r, one) })
	if err != nil {
		return v, err
	}
	sights, err := s.sights(ctx)
	if err != nil {
		return v, err
	}
	for _, one := range all {
		item, err := sights.item(ctx, r, one, schedulesPath)
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, item)
	}
	return v, nil
}

// pageSchedule shows one schedule and its runs.
func (s *scheduleHandlers) pageSchedule(ctx context.Context, r *request) (templ.Component, error) {
	one, err := s.schedule(ctx, r)
	if err != nil {
		return nil, err
	}
	v := views.ScheduleDetail{Frame: s.frame(r, one.Name, "backups")}
	if v.Schedule, v.Runs, err = s.detail(ctx, r, one); err != nil {
		return nil, err
	}
	v.Frame.Live = views.Live{Topic: scheduleURL(one.ID, ""), Seen: "seen=" + printOf(v.Schedule, v.Runs)}
	return views.SchedulePage(v), nil
}

// detail is what the page of a schedule shows now.
func (s *scheduleHandlers) detail(ctx context.Context, r *request, one schedule.Schedule) (v views.Schedule, runs []views.ScheduleRun, err error) {
	sights, err := s.sights(ctx)
	if err != nil {
		return v, nil, err
	}
	if v, err = sights.item(ctx, r, one, scheduleURL(one.ID, "")); err != nil {
		return v, nil, err
	}
	list, err := s.cfg.Schedules.Runs(ctx, one.ID, schedule.KeptRuns)
	for _, run := range list {
		runs = append(runs, sights.runView(r, one, run))
	}
	return v, runs, err
}

// item makes a schedule ready to show.
func (s *scheduleSights) item(ctx context.Context, r *request, one schedule.Schedule, back string) (v views.Schedule, err error) {
	now := s.cfg.Now()
	v = views.Schedule{
		ID: one.ID, Name: one.Name, When: planOf(one.Cron).words(), Zone: one.Zone, Place: one.Repository, Root: one.Root, Keep: "Keeps " + keepText(one.Keep), Paused: !one.Enabled,
		Next: timeOf(one.Next, now), Back: back, Last: views.State{Tone: "still", Icon: "clock", Text: "Not run yet", Bar: views.BarNone},
	}
	if v.Next.Machine != "" {
		v.Next = aheadOf(one.Next, now)
	}
	if one.TestCron != "" {
		v.Test = "Restore test " + lowerFirst(planOf(one.TestCron).words())
	}
	if one.Owner != r.who.User.ID {
		if v.Owner, err = s.names.name(ctx, one.Owner); err != nil {
			return v, err
		}
	}
	_, v.Running = s.cfg.Schedules.Busy(one.ID)
	v.Tests = len(s.cfg.Backups.List(func(b backup.Backup) bool { return b.Schedule == one.ID && b.State == backup.Ready })) > 0
	runs, err := s.cfg.Schedules.Runs(ctx, one.ID, 1)
	if err == nil && len(runs) > 0 {
		v.Last, v.Began = runState(runs[0], one.Zone), timeOf(runs[0].Began, now)
	}
	v.Target, v.URL, v.Over = s.targetText(r, one, runs)
	return v, err
}

// targetText says what a schedule covers. over says that its sandbox is deleted.
func (s *scheduleSights) targetText(r *request, one schedule.Schedule, runs []schedule.Run) (text, url string, over bool) {
	switch one.Target.Kind {
	case schedule.One:
		switch name, deleted := s.boxName(one.Target.SandboxID, runs); {
		case !deleted:
			return name, backupsURL(name), false
		case name != "":
			return name + " (deleted)", "", true
		}
		return "A deleted sandbox", "", true
	case schedule.Mine:
		if one.Owner != r.who.User.ID {
			return "All sandboxes of the owner", "", false
		}
		return "All my sandboxes", "", false
	case schedule.OfTemplate:
		return "All of template " + one.Target.Template, "", false
	}
	return "All sandboxes", "", false
}

func lowerFirst(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// keepText says which backups stay.
func keepText(k schedule.Keep) string {
	var parts []string
	switch {
	case k.Last > 1:
		parts = append(parts, fmt.Sprintf("the last %d", k.Last))
	case k.Last == 1 || k == schedule.Keep{}:
		parts = append(parts, "the last one")
	}
	for _, one := range []struct {
		n    int
		word string
	}{{k.Daily, "day"}, {k.Weekly, "week"}, {k.Monthly, "month"}} {
		if one.n > 0 {
			parts = append(parts, "one a "+one.word+" for "+amount(int64(one.n), one.word))
		}
	}
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// runState says how a run went. A time in it is in that zone.
func runState(r schedule.Run, zone string) views.State {
	v := views.State{Bar: views.BarNone}
	failed := r.Failed()
	switch {
	case r.State == schedule.Running:
		v.Tone, v.Icon, v.Text = "busy", "state-busy", "Running"
		if !r.Retry.IsZero() {
			v.Icon, v.Text, v.Why = "clock", "Trying again at "+r.Retry.In(zoneOr(zone)).Format("15:04"), fmt.Sprintf("%d of %s failed so far", failed, amount(int64(len(r.Items)), "sandbox", "sandboxes"))
		} else if len(r.Items) > 1 {
			v.Why = fmt.Sprintf("%d of %d done", len(r.Items)-pending(r), len(r.Items))
		}
	case r.State == schedule.Missed:
		v.Tone, v.Icon, v.Text = "bad", "warn", "Missed"
	case r.State == schedule.CutOff:
		v.Tone, v.Icon, v.Text = "bad", "warn", "Cut off"
	case r.Problem != "":
		v.Tone, v.Icon, v.Text = "bad", "state-failed", "Failed"
	case failed > 0:
		v.Tone, v.Icon, v.Text = "bad", "state-failed", "Failed"
		v.Why = fmt.Sprintf("%d of %s", failed, amount(int64(len(r.Items)), "sandbox", "sandboxes"))
	default:
		v.Tone, v.Icon, v.Text = "good", "check", "Done"
	}
	return v
}

// pending counts the items that are not done.
func pending(r schedule.Run) (n int) {
	for _, i := range r.Items {
		if i.Ended.IsZero() {
			n++
		}
	}
	return n
}

// runView makes a run ready to show.
func (s *scheduleSights) runView(q *request, one schedule.Schedule, r schedule.Run) views.ScheduleRun {
	now := s.cfg.Now()
	v := views.ScheduleRun{ID: r.ID, Work: "Backups", State: runState(r, one.Zone), Began: timeOf(r.Began, now), Due: "started by hand", Problem: r.Problem, Open: r.Failed() > 0 || r.State == schedule.Running}
	if r.Work == schedule.Tests {
		v.Work = "Restore test"
	}
	if !r.Due.IsZero() {
		v.Due = "due " + inZone(r.Due, one.Zone)
	}
	if !r.Ended.IsZero() && r.State == schedule.Done {
		v.Took = lasted(r.Ended.Sub(r.Began))
	}
	switch {
	case r.State == schedule.Missed:
		v.Notes = append(v.Notes, "the run before was still under way")
	case r.State == schedule.CutOff:
		v.Notes = append(v.Notes, "sandboxd ended meanwhile")
	}
	if r.Missed > 0 && r.State != schedule.Missed {
		v.Notes = append(v.Notes, "made up for "+amount(int64(r.Missed), "missed time"))
	}
	if r.State != schedule.Missed {
		v.Summary = amount(int64(len(r.Items)), "sandbox", "sandboxes")
	}
	for _, i := range r.Items {
		item := views.RunItem{Sandbox: i.Sandbox, State: itemState(r, i), Problem: i.Problem}
		if b, err := s.cfg.Backups.Backup(i.Backup); err == nil && mayBackup(q.who, b) {
			item.URL, item.Size = s.backupURL(b), text.Size(b.Size)
		}
		v.Items = append(v.Items, item)
	}
	return v
}

// backupURL is where a backup is listed.
func (s *scheduleSights) backupURL(b backup.Backup) string {
	page := backupAsk{name: b.Sandbox}.url()
	if slices.ContainsFunc(s.boxes, func(box sandbox.Sandbox) bool { return box.ID == b.SandboxID }) {
		page = backupsURL(b.Sandbox)
	}
	return page + "#backup-" + b.ID
}

// itemState says how it went for one sandbox.
func itemState(r schedule.Run, i schedule.Item) views.State {
	v := views.State{Tone: "good", Icon: "check", Text: "Backed up", Bar: views.BarNone}
	switch {
	case i.Problem != "":
		v.Tone, v.Icon, v.Text = "bad", "state-failed", "Failed"
	case i.Ended.IsZero() && r.State == schedule.Running:
		v.Tone, v.Icon, v.Text = "busy", "state-busy", "Not done yet"
	case i.Ended.IsZero():
		v.Tone, v.Icon, v.Text = "bad", "warn", "Not done"
	case r.Work == schedule.Tests:
		v.Text = "Restored"
	}
	return v
}

// zoneOr finds a time zone, or gives UTC.
func zoneOr(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

// inZone writes a moment in a zone.
func inZone(t time.Time, name string) string {
	return t.In(zoneOr(name)).Format("Mon 2 Jan 2006, 15:04 MST")
}

// mine gives the sandboxes that a person may schedule backups of.
func (s *scheduleHandlers) mine(ctx context.Context, r *request) ([]sandbox.Sandbox, error) {
	f := sandbox.Filter{}
	if !r.isAdmin() {
		f.Owner = r.who.User.ID
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, f)
	return boxes, err
}
