package web

import (
	"context"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/update"
	"sandboxd/views"
)

// pageUpdate is the page on which the sandboxes of a template are updated.
func (s *updateHandlers) pageUpdate(ctx context.Context, r *request) (templ.Component, error) {
	return s.rollingPage(ctx, r, views.RollingForm{Most: views.Field{Value: "1"}})
}

func (s *updateHandlers) rollingPage(ctx context.Context, r *request, form views.RollingForm) (templ.Component, error) {
	e, err := s.templates.entry(r.param("name"))
	if err != nil {
		return nil, err
	}
	part, err := s.part(ctx, r, e.Name)
	if err != nil {
		return nil, err
	}
	v := views.RollingUpdate{Frame: s.frame(r, "Update sandboxes of "+templateTitle(e), "templates"), Name: e.Name, Title: templateTitle(e)}
	v.Frame.Live = views.Live{Topic: "/templates/" + e.Name + updatePart, Seen: "seen=" + printOf(part)}
	part.Form = form
	v.Part = part
	return views.RollingUpdatePage(v), nil
}

// part is what the page shows now.
func (s *updateHandlers) part(ctx context.Context, r *request, template string) (views.RollingPart, error) {
	older, all, err := s.cfg.Updates.Older(ctx, template)
	if err != nil {
		return views.RollingPart{}, err
	}
	p := views.RollingPart{
		Name: template, Newest: s.cfg.Updates.Newest(template), Text: olderText(len(older), all), Form: views.RollingForm{Most: views.Field{Value: "1"}},
	}
	if all == 0 {
		p.Text = "There are no sandboxes of this template."
	}
	names := newOwners(s.cfg.Accounts)
	last, lastErr := s.cfg.Updates.Last(template)
	if lastErr == nil {
		run, err := s.runView(ctx, r, names, last)
		if err != nil {
			return p, err
		}
		p.Run = &run
		if run.Live {
			return p, nil
		}
	}
	p.Ready = len(older)
	for _, box := range older {
		i := views.UpdateItem{Name: box.Name, URL: sandboxURL(box.Name), State: s.workspace.state(box, s.cfg.Sandboxes.Progress(box.ID))}
		if because := s.workspace.outlook(box).Because; len(because) > 0 {
			i.State.Why = "in use: " + allReasons(because)
		}
		if i.Owner, err = s.otherOwner(ctx, r, names, box.Owner); err != nil {
			return p, err
		}
		p.Older = append(p.Older, i)
	}
	return p, nil
}

// otherOwner names the owner of a sandbox when that is another than who looks.
func (s *updateHandlers) otherOwner(ctx context.Context, r *request, names *owners, id string) (string, error) {
	if id == "" || id == r.who.User.ID {
		return "", nil
	}
	return names.name(ctx, id)
}

// runLooks are how the states of a run look.
var runLooks = map[update.State]views.State{
	update.Running:   {Tone: "busy", Icon: "state-busy", Text: "Running"},
	update.Done:      {Tone: "good", Icon: "check", Text: "Done"},
	update.Stopped:   {Tone: "bad", Icon: "state-failed", Text: "Stopped after a failure"},
	update.Failed:    {Tone: "bad", Icon: "state-failed", Text: "Failed"},
	update.Cancelled: {Tone: "still", Icon: "close", Text: "Cancelled"},
	update.CutOff:    {Tone: "bad", Icon: "warn", Text: "Cut off: sandboxd ended meanwhile"},
}

// itemLooks are how the states of a sandbox in it look.
var itemLooks = map[update.ItemState]views.State{
	update.Waiting:  {Tone: "still", Icon: "state-todo", Text: "Waiting"},
	update.Updating: {Tone: "busy", Icon: "state-busy", Text: "Updating"},
	update.Updated:  {Tone: "good", Icon: "check", Text: "Updated"},
	update.InUse:    {Tone: "calm", Icon: "lock", Text: "In use"},
	update.Broken:   {Tone: "bad", Icon: "state-failed", Text: "Failed"},
	update.Skipped:  {Tone: "still", Icon: "right", Text: "Skipped"},
}

// totals are the states that are counted, in the order of a page.
var totals = []struct {
	state update.ItemState
	text  string
}{
	{update.Updated, "updated"}, {update.Updating, "updating"}, {update.Waiting, "waiting"}, {update.InUse, "in use"}, {update.Broken, "failed"},
	{update.Skipped, "skipped"},
}

// runView makes a run ready to show.
func (s *updateHandlers) runView(ctx context.Context, r *request, names *owners, u update.Run) (views.UpdateRun, error) {
	now := s.cfg.Now()
	v := views.UpdateRun{ID: u.ID, State: runLooks[u.State], Live: u.State == update.Running, Began: timeOf(u.Began, now), Problem: u.Problem}
	v.State.Bar = views.BarNone
	if u.State == update.Done && u.Count(update.Broken) > 0 {
		v.State.Tone, v.State.Icon, v.State.Text = "bad", "warn", "Done, with failures"
	}
	if !u.Ended.IsZero() {
		v.Took = lasted(u.Ended.Sub(u.Began))
	}
	var err error
	if v.By, err = names.name(ctx, u.By); err != nil {
		return v, err
	}
	for _, t := range totals {
		if n := u.Count(t.state); n > 0 {
			v.Totals = append(v.Totals, views.Total{Text: t.text, Count: n})
		}
	}
	if v.Live && u.Image == "" {
		v.State.Why = "The image is made first."
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{Query: u.Template})
	if err != nil {
		return v, err
	}
	there := make(map[string]sandbox.Sandbox, len(boxes))
	for _, b := range boxes {
		there[b.ID] = b
	}
	for _, i := range u.Items {
		item := s.itemView(u, i, there)
		if item.Owner, err = s.otherOwner(ctx, r, names, i.Owner); err != nil {
			return v, err
		}
		v.Items = append(v.Items, item)
	}
	return v, nil
}

// itemView makes what a run did for one sandbox ready to show.
func (s *updateHandlers) itemView(u update.Run, i update.Item, there map[string]sandbox.Sandbox) views.UpdateItem {
	v := views.UpdateItem{Name: i.Sandbox, State: itemLooks[i.State], Problem: i.Problem, Log: i.Log}
	v.State.Bar = views.BarNone
	box, ok := there[i.SandboxID]
	if ok {
		v.Name, v.URL = box.Name, sandboxURL(box.Name)
	}
	if i.State == update.Updating && u.State == update.Running {
		v.State.Bar, v.State.Why = views.BarUnknown, "Preparing"
		if now := s.workspace.state(box, s.cfg.Sandboxes.Progress(box.ID)); ok && !box.State.Settled() {
			v.State.Why = strings.TrimSuffix(now.Text+" · "+now.Why, " · ")
		}
	}
	if i.State == update.InUse {
		v.State.Why, v.Problem = i.Problem, ""
	}
	if i.TakenBack {
		v.State.Text = "Failed, put back as it was"
	}
	if ok && i.State == update.Broken {
		v.Logs = logsURL(box)
	}
	if ok && i.State == update.Updated && i.Safety != "" {
		v.Undo = snapshotsURL(box.Name)
	}
	return v
}

// submitUpdate begins to update the sandboxes of a template.
func (s *updateHandlers) submitUpdate(ctx context.Context, r *request) (string, error) {
	e, err := s.templates.entry(r.param("name"))
	if err != nil {
		return "", err
	}
	most, err := strconv.Atoi(r.field("max_failures"))
	if err != nil {
		return "", fault.Field("max_failures", "The number of failures is 1 to %d.", update.MaxFailures)
	}
	_, err = s.cfg.Updates.All(ctx, update.Ask{Template: e.Name, By: r.who.User.ID, Force: r.form("force") != "", MaxFailures: most})
	return "/templates/" + e.Name + updatePart, err
}

func (s *updateHandlers) againUpdate(ctx context.Context, r *request, cause error) (templ.Component, error) {
	f := views.RollingForm{Force: r.form("force") != ""}
	f.Fault = r.fill(map[string]*views.Field{"max_failures": &f.Most}, cause)
	return s.rollingPage(ctx, r, f)
}

// submitCancelUpdate ends a run after the sandbox that is being updated.
func (s *updateHandlers) submitCancelUpdate(_ context.Context, r *request) (string, error) {
	e, err := s.templates.entry(r.param("name"))
	if err == nil {
		err = s.cfg.Updates.Cancel(r.field("run"))
	}
	return "/templates/" + e.Name + updatePart, err
}
