package web

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"sandboxd/internal/backup"
	"sandboxd/internal/catalog"
	"sandboxd/internal/cron"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/schedule"
	"sandboxd/views"
)

// defaultKeep is what a schedule keeps unless it says otherwise.
var defaultKeep = schedule.Keep{Last: 3, Daily: 7, Weekly: 4}

// testChoices are the times of restore tests that the form offers.
var testChoices = []views.Option{{Text: "Never"}, {Value: "0 5 * * *", Text: "Every day at 05:00"}, {Value: "0 5 * * 0", Text: "Every week, on Sunday at 05:00"},
	{Value: "0 5 1 * *", Text: "Every month, on the 1st at 05:00"}}

// pageNewSchedule shows the form of a new schedule, of the sandbox that the address names.
func (s *scheduleHandlers) pageNewSchedule(ctx context.Context, r *request) (templ.Component, error) {
	boxes, err := s.mine(ctx, r)
	if err != nil {
		return nil, err
	}
	one := schedule.Schedule{Cron: firstPlan.expression(), Zone: "UTC", Keep: defaultKeep, Target: schedule.Target{Kind: schedule.Mine}}
	for _, b := range boxes {
		if b.Name == r.query("sandbox") {
			one.Name, one.Target = b.Name, schedule.Target{Kind: schedule.One, SandboxID: b.ID}
		}
	}
	v, err := s.formOf(ctx, r, one)
	v.OwnZone = true
	return s.scheduleForm(r, v), err
}

// pageEditSchedule shows the form of a schedule that there is.
func (s *scheduleHandlers) pageEditSchedule(ctx context.Context, r *request) (templ.Component, error) {
	one, err := s.schedule(ctx, r)
	if err != nil {
		return nil, err
	}
	v, err := s.formOf(ctx, r, one)
	return s.scheduleForm(r, v), err
}

func (s *scheduleHandlers) scheduleForm(r *request, v views.ScheduleForm) templ.Component {
	v.Next = r.origin(schedulesPath)
	if r.byScript() {
		return views.ScheduleSheet(v)
	}
	v.Frame = s.frame(r, "Backup schedule", "backups")
	return views.ScheduleFormPage(v)
}

// formOf is the form of a schedule.
func (s *scheduleHandlers) formOf(ctx context.Context, r *request, one schedule.Schedule) (views.ScheduleForm, error) {
	p, number := planOf(one.Cron), func(n int) views.Field { return views.Field{Value: strconv.Itoa(n)} }
	v := views.ScheduleForm{
		ID: one.ID, Name: views.Field{Value: one.Name}, Every: choiceOf(p.every, everyChoices), At: views.Field{Value: p.at}, Weekday: choiceOf(p.weekday, weekdayChoices()),
		Cron: views.Field{Value: one.Cron}, Zone: views.Field{Value: one.Zone}, Last: number(one.Keep.Last), Daily: number(one.Keep.Daily), Weekly: number(one.Keep.Weekly),
		Monthly: number(one.Keep.Monthly), Test: choiceOf(one.TestCron, testChoices), Preview: s.preview(one), Place: s.placeChoice(one.Repository), Root: one.Root,
	}
	var err error
	v.Target, err = s.targetChoice(ctx, r, one.Target)
	return v, err
}

// targetChoice offers what a schedule can cover.
func (s *scheduleHandlers) targetChoice(ctx context.Context, r *request, t schedule.Target) (views.LogChoice, error) {
	boxes, err := s.mine(ctx, r)
	if err != nil {
		return views.LogChoice{}, err
	}
	options := []views.Option{{Value: string(schedule.Mine), Text: "All my sandboxes"}}
	if r.isAdmin() {
		options = append(options, views.Option{Value: string(schedule.All), Text: "All sandboxes, of everyone"})
		for _, e := range s.cfg.Templates.List() {
			options = append(options, views.Option{Value: scopeTemplate + e.Name, Text: "All of template " + e.Name})
		}
	}
	there := false
	for i, b := range boxes {
		if mine := b.ID == t.SandboxID; i < mostOptions || mine {
			there = there || mine
			options = append(options, views.Option{Value: scopeBox + b.ID, Text: b.Name})
		}
	}
	value := string(t.Kind)
	switch t.Kind {
	case schedule.One:
		if value = scopeBox + t.SandboxID; !there {
			options = append(options, views.Option{Value: value, Text: "A deleted sandbox"})
		}
	case schedule.OfTemplate:
		value = scopeTemplate + t.Template
	}
	return choiceOf(value, options), nil
}

// placeChoice offers where backups can go, if there is more than the folder.
func (s *scheduleHandlers) placeChoice(chosen string) views.LogChoice {
	names := s.cfg.Repositories.Names()
	options := []views.Option{{Text: "Backup folder"}}
	for _, name := range names {
		options = append(options, views.Option{Value: name, Text: "Repository " + name})
	}
	if chosen != "" && !slices.Contains(names, chosen) {
		options = append(options, views.Option{Value: chosen, Text: "Repository " + chosen + " (removed)"})
	}
	if len(options) == 1 {
		return views.LogChoice{}
	}
	return choiceOf(chosen, options)
}

// readSchedule puts a form's entries into a schedule. What cannot be read is Invalid.
func readSchedule(r *request, values func(string) string, one *schedule.Schedule) error {
	entered := func(name string) string { return strings.TrimSpace(values(name)) }
	p := plan{every: entered("every"), at: entered("at"), weekday: entered("weekday"), cron: entered("cron")}
	one.Name, one.Cron, one.Zone, one.Repository, one.TestCron = entered("name"), p.expression(), entered("zone"), entered("repository"), entered("test")
	one.Root = entered("root") != ""
	switch target := values("target"); {
	case strings.HasPrefix(target, scopeBox):
		one.Target = schedule.Target{Kind: schedule.One, SandboxID: strings.TrimPrefix(target, scopeBox)}
	case strings.HasPrefix(target, scopeTemplate):
		one.Target = schedule.Target{Kind: schedule.OfTemplate, Template: strings.TrimPrefix(target, scopeTemplate)}
	default:
		one.Target = schedule.Target{Kind: schedule.Kind(target)}
	}
	for name, to := range map[string]*int{"last": &one.Keep.Last, "daily": &one.Keep.Daily, "weekly": &one.Keep.Weekly, "monthly": &one.Keep.Monthly} {
		text := entered(name)
		n, err := strconv.Atoi(text)
		if text != "" && err != nil {
			return fault.Field("keep", "%.20q is not a whole number.", text)
		}
		*to = n
	}
	if strings.HasPrefix(one.Cron, "?") {
		return fault.Field("at", "Enter a time such as 03:30.")
	}
	return nil
}

// submitNewSchedule makes a schedule.
func (s *scheduleHandlers) submitNewSchedule(ctx context.Context, r *request) (string, error) {
	one := schedule.Schedule{Owner: r.who.User.ID, Enabled: true}
	if err := readSchedule(r, r.form, &one); err != nil {
		return "", err
	}
	if err := s.mayTarget(ctx, r, one.Target); err != nil {
		return "", err
	}
	one, err := s.cfg.Schedules.Create(ctx, one)
	return schedulesPath, err
}

// mayTarget refuses a sandbox that the person may not use.
func (s *scheduleHandlers) mayTarget(ctx context.Context, r *request, t schedule.Target) error {
	if t.Kind != schedule.One {
		return nil
	}
	boxes, err := s.mine(ctx, r)
	if err == nil && !slices.ContainsFunc(boxes, func(b sandbox.Sandbox) bool { return b.ID == t.SandboxID }) {
		err = fault.Field("target", "This sandbox was deleted. Choose another.")
	}
	return err
}

// submitEditSchedule changes a schedule.
func (s *scheduleHandlers) submitEditSchedule(ctx context.Context, r *request) (string, error) {
	one, err := s.schedule(ctx, r)
	if err != nil {
		return "", err
	}
	entered := one
	if err := readSchedule(r, r.form, &entered); err != nil {
		return "", err
	}
	if entered.Target != one.Target {
		if err := s.mayTarget(ctx, r, entered.Target); err != nil {
			return "", err
		}
	}
	_, err = s.cfg.Schedules.Update(ctx, one.ID, func(c *schedule.Schedule) {
		c.Name, c.Cron, c.Zone, c.Target, c.Repository, c.Root, c.Keep, c.TestCron = entered.Name, entered.Cron, entered.Zone, entered.Target, entered.Repository, entered.Root, entered.Keep, entered.TestCron
	})
	return r.back(scheduleURL(one.ID, "")), err
}

// againSchedule shows the form again with what is wrong.
func (s *scheduleHandlers) againSchedule(ctx context.Context, r *request, cause error) (templ.Component, error) {
	one := schedule.Schedule{}
	if id := r.param("id"); id != "" {
		found, err := s.schedule(ctx, r)
		if err != nil {
			return nil, err
		}
		one = found
	}
	_ = readSchedule(r, r.form, &one) // cause says what is wrong
	v, err := s.formOf(ctx, r, one)
	if err != nil {
		return nil, err
	}
	field := &v.Cron
	if v.Every.Value != byCron {
		field = &v.At
	}
	var target, place, test views.Field
	v.Fault = r.fill(map[string]*views.Field{"name": &v.Name, "zone": &v.Zone, "last": &v.Last, "daily": &v.Daily, "weekly": &v.Weekly, "monthly": &v.Monthly, "at": &v.At,
		"keep": &v.Keep, "target": &target, "repository": &place, "test_cron": &test}, cause)
	if name := fault.FieldOf(cause); v.Fault != "" && name == "cron" {
		field.Fault, v.Fault = v.Fault, ""
	} else if v.Fault != "" && (name == "sandbox" || name == "template") {
		target.Fault, v.Fault = v.Fault, ""
	}
	v.Target.Fault, v.Place.Fault, v.Test.Fault = target.Fault, place.Fault, test.Fault
	v.Every = choiceOf(r.form("every"), everyChoices)
	return s.scheduleForm(r, v), nil
}

// partPreview says what a schedule will do that is being entered.
func (s *scheduleHandlers) partPreview(_ context.Context, r *request) (templ.Component, error) {
	one := schedule.Schedule{}
	if err := readSchedule(r, r.query, &one); err != nil {
		return views.SchedulePreviewPart(views.SchedulePreview{Fault: fault.Message(err)}), nil
	}
	return views.SchedulePreviewPart(s.preview(one)), nil
}

// preview gives the next times of a schedule, and what it keeps.
func (s *scheduleHandlers) preview(one schedule.Schedule) (v views.SchedulePreview) {
	times, err := cron.Preview(one.Cron, one.Zone, s.cfg.Now(), previewTimes)
	if err != nil {
		return views.SchedulePreview{Fault: fault.Message(err)}
	}
	for _, t := range times {
		v.Times = append(v.Times, inZone(t, one.Zone))
	}
	k := one.Keep
	switch {
	case min(k.Last, k.Daily, k.Weekly, k.Monthly) < 0 || max(k.Last, k.Daily, k.Weekly, k.Monthly) > schedule.MaxKeep:
		v.Keep = fmt.Sprintf("Each number of backups to keep is 0 to %d.", schedule.MaxKeep)
	case k == schedule.Keep{}:
		v.Keep = "Enter how many backups to keep."
	default:
		v.Keep = "Keeps " + keepText(k) + " of each sandbox."
	}
	return v
}

// submitRunSchedule begins a run.
func (s *scheduleHandlers) submitRunSchedule(ctx context.Context, r *request) (string, error) {
	one, err := s.schedule(ctx, r)
	if err != nil {
		return "", err
	}
	work := schedule.Backups
	if r.form("work") != "" {
		work = schedule.Work(r.form("work"))
	}
	_, err = s.cfg.Schedules.RunNow(ctx, one.ID, work)
	return r.back(scheduleURL(one.ID, "")), err
}

// submitSwitchSchedule pauses a schedule, or resumes it.
func (s *scheduleHandlers) submitSwitchSchedule(ctx context.Context, r *request) (string, error) {
	one, err := s.schedule(ctx, r)
	if err == nil {
		_, err = s.cfg.Schedules.Update(ctx, one.ID, func(c *schedule.Schedule) { c.Enabled = r.form("on") == "true" })
	}
	return r.back(schedulesPath), err
}

// pageDeleteSchedule asks before a schedule is deleted; a script gets the question as a sheet.
func (s *scheduleHandlers) pageDeleteSchedule(ctx context.Context, r *request) (templ.Component, error) {
	one, err := s.schedule(ctx, r)
	if err != nil {
		return nil, err
	}
	v := views.DeleteSchedule{ID: one.ID, Name: one.Name, Next: r.origin(schedulesPath)}
	if n := len(s.cfg.Backups.List(func(b backup.Backup) bool { return b.Schedule == one.ID && b.State == backup.Ready })); n > 0 {
		v.Backups = fmt.Sprintf("Its %s kept for %s more.", map[bool]string{true: "backup is", false: grouped(int64(n)) + " backups are"}[n == 1], afterText(catalog.After(s.cfg.Backups.Keep)))
	}
	if r.byScript() {
		return views.DeleteScheduleSheet(v), nil
	}
	v.Frame = s.frame(r, "Delete a schedule", "backups")
	return views.DeleteSchedulePage(v), nil
}

// submitDeleteSchedule deletes a schedule.
func (s *scheduleHandlers) submitDeleteSchedule(ctx context.Context, r *request) (string, error) {
	one, err := s.schedule(ctx, r)
	if err == nil {
		err = s.cfg.Schedules.Delete(ctx, one.ID)
	}
	return schedulesPath, err
}
