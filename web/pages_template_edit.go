package web

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/template"
	"sandboxd/views"
)

// fetchTime bounds a form that fetches a repository first.
const fetchTime = 2*time.Minute + handlerTime // a fetch is given up after two minutes

const templatesPath = "/templates"

func templateURL(name, act string) string { return templatesPath + "/" + name + act }

// pageEditTemplate shows the files of a template; those of one's own can be written.
func (s *ownTemplateHandlers) pageEditTemplate(ctx context.Context, r *request) (templ.Component, error) {
	e, err := s.templates.entry(r.param("name"))
	if err != nil {
		return nil, err
	}
	origin, err := s.cfg.OwnTemplates.Origin(e.Name)
	if err != nil {
		return nil, err
	}
	v := views.TemplateEdit{Frame: s.frame(r, "Edit "+e.Name, "templates"), Book: s.templates.book(r, e, s.templates.imageStatus(ctx, e)), Writable: origin == template.Own,
		Log: s.workspace.buildLog(e.Name)}
	switch origin {
	case template.Shipped:
		v.Why = "This template comes with sandboxd or from a folder of the server, and cannot be changed here."
	case template.Git:
		v.Why = "This template comes from a git repository. Change it there, then rebuild it."
	}
	v.Frame.Live.Topic = templateURL(e.Name, "") + "?editor=1"
	r.head.Set("Content-Security-Policy", workspacePolicy) // the editor sets styles from script
	return views.TemplateEditPage(v), nil
}

// pageNewTemplate shows the form of a new template, as a copy of the one that the address names.
func (s *ownTemplateHandlers) pageNewTemplate(_ context.Context, r *request) (templ.Component, error) {
	v := views.NewTemplate{From: s.fromChoice(r.query("from"))}
	if from := r.query("from"); from != "" {
		v.Name.Value = s.freeName("my-" + strings.TrimPrefix(from, "my-"))
	}
	return s.newTemplateForm(r, v), nil
}

// freeName gives a name that no template has, or "".
func (s *ownTemplateHandlers) freeName(name string) string {
	for _, suffix := range []string{"", "-2", "-3", "-4", "-5"} {
		if _, err := s.templates.entry(name + suffix); fault.Is(err, fault.NotFound) && catalog.CheckName(name+suffix) == nil {
			return name + suffix
		}
	}
	return ""
}

// fromChoice offers what a new template can begin with.
func (s *ownTemplateHandlers) fromChoice(chosen string) views.LogChoice {
	options := []views.Option{{Text: "Nothing but the base image"}}
	for _, e := range s.cfg.Templates.List() {
		if e.Problem == nil {
			options = append(options, views.Option{Value: e.Name, Text: "A copy of " + e.Name})
		}
	}
	return choiceOf(chosen, options)
}

func (s *ownTemplateHandlers) newTemplateForm(r *request, v views.NewTemplate) templ.Component {
	if r.byScript() {
		return views.NewTemplateSheet(v)
	}
	v.Frame = s.frame(r, "New template", "templates")
	return views.NewTemplatePage(v)
}

// submitNewTemplate makes a template and leads to its editor.
func (s *ownTemplateHandlers) submitNewTemplate(ctx context.Context, r *request) (string, error) {
	name, from := r.field("name"), r.form("from")
	if from != "" {
		_, err := s.cfg.OwnTemplates.Copy(ctx, from, name)
		return templateURL(name, "/edit"), err
	}
	e := template.Edit{Files: map[string]*string{}, Match: func(etag string) bool { return etag == "" }}
	if err := catalog.CheckName(name); err != nil {
		return "", err
	}
	for path, text := range template.Skeleton(name) {
		e.Files[path] = &text
	}
	_, err := s.cfg.OwnTemplates.Put(ctx, name, e)
	if fault.Is(err, fault.Conflict) && fault.FieldOf(err) == "" {
		err = fault.Field("name", "There is a template %.64s of your own already. Choose another name.", name)
	}
	return templateURL(name, "/edit"), err
}

// againNewTemplate shows the form again with what is wrong.
func (s *ownTemplateHandlers) againNewTemplate(_ context.Context, r *request, cause error) (templ.Component, error) {
	v := views.NewTemplate{From: s.fromChoice(r.form("from"))}
	v.Fault = r.fill(map[string]*views.Field{"name": &v.Name}, cause)
	return s.newTemplateForm(r, v), nil
}

// pageNewSource shows the form of a template from a git repository.
func (s *ownTemplateHandlers) pageNewSource(_ context.Context, r *request) (templ.Component, error) {
	return s.sourceForm(r, views.SourceForm{}), nil
}

// pageSource shows that of one that there is.
func (s *ownTemplateHandlers) pageSource(_ context.Context, r *request) (templ.Component, error) {
	src, err := s.cfg.OwnTemplates.Source(r.param("name"))
	if err != nil {
		return nil, err
	}
	field := func(value string) views.Field { return views.Field{Value: value} }
	return s.sourceForm(r, views.SourceForm{Known: true, HasSecret: len(src.Secret) > 0, Name: field(src.Template), URL: field(src.URL), Ref: field(src.Ref),
		Path: field(src.Path), HostKey: field(src.HostKeys)}), nil
}

func (s *ownTemplateHandlers) sourceForm(r *request, v views.SourceForm) templ.Component {
	if r.byScript() {
		return views.SourceSheet(v)
	}
	v.Frame = s.frame(r, "Template from a git repository", "templates")
	return views.SourcePage(v)
}

// submitSource fetches a template, and waits for that.
func (s *ownTemplateHandlers) submitSource(ctx context.Context, r *request) (string, error) {
	name := cmp.Or(r.param("name"), r.field("name"))
	_, err := s.cfg.OwnTemplates.SetSource(ctx, name, template.NewSource{URL: r.field("url"), Ref: r.field("ref"), Path: r.field("path"), Token: r.field("token"),
		Key: r.form("key"), HostKey: r.form("host_key")})
	return templateURL(name, ""), err
}

// againSource shows the form again with what is wrong. Secrets have to be entered again.
func (s *ownTemplateHandlers) againSource(_ context.Context, r *request, cause error) (templ.Component, error) {
	v := views.SourceForm{Known: r.param("name") != ""}
	v.Fault = r.fill(map[string]*views.Field{"name": &v.Name, "url": &v.URL, "ref": &v.Ref, "path": &v.Path, "token": &v.Token, "key": &v.Key, "host_key": &v.HostKey}, cause)
	if v.Known {
		src, err := s.cfg.OwnTemplates.Source(r.param("name"))
		if err != nil {
			return nil, err
		}
		v.Name.Value, v.HasSecret = src.Template, len(src.Secret) > 0
	}
	v.Token.Value, v.Key.Value = "", ""
	return s.sourceForm(r, v), nil
}

// never is the choice of a template that is not rebuilt by itself.
var never = views.Option{Text: "Never"}

// pagePlan shows the form of when a template is rebuilt by itself.
func (s *ownTemplateHandlers) pagePlan(_ context.Context, r *request) (templ.Component, error) {
	e, err := s.templates.entry(r.param("name"))
	if err != nil {
		return nil, err
	}
	p, ok := s.cfg.OwnTemplates.Plan(e.Name)
	v := views.PlanForm{Name: e.Name, OwnZone: !ok, NoCache: !ok || p.NoCache, Zone: views.Field{Value: cmp.Or(p.Zone, "UTC")}, Cron: views.Field{Value: p.Cron}}
	at := plan{at: "04:00", weekday: "1"}
	if ok {
		at = planOf(p.Cron)
	}
	v.At.Value = at.at
	v.Every, v.Weekday = choiceOf(at.every, append([]views.Option{never}, everyChoices...)), choiceOf(at.weekday, weekdayChoices())
	return s.planForm(r, v), nil
}

func (s *ownTemplateHandlers) planForm(r *request, v views.PlanForm) templ.Component {
	if r.byScript() {
		return views.PlanSheet(v)
	}
	v.Frame = s.frame(r, "Rebuild "+v.Name, "templates")
	return views.PlanPage(v)
}

// submitPlan says when a template is rebuilt by itself.
func (s *ownTemplateHandlers) submitPlan(ctx context.Context, r *request) (string, error) {
	p := template.Plan{Template: r.param("name"), Zone: r.field("zone"), NoCache: r.form("no_cache") != ""}
	if every := r.form("every"); every != "" {
		p.Cron = plan{every: every, at: r.field("at"), weekday: r.form("weekday"), cron: r.field("cron")}.expression()
		if strings.HasPrefix(p.Cron, "?") {
			return "", fault.Field("at", "Enter a time such as 04:00.")
		}
		if p.Cron == "" {
			return "", fault.Field("cron", "Enter a cron expression such as 0 4 * * 1.")
		}
	}
	_, err := s.cfg.OwnTemplates.SetPlan(ctx, p)
	return templateURL(p.Template, ""), err
}

// againPlan shows the form again with what is wrong.
func (s *ownTemplateHandlers) againPlan(_ context.Context, r *request, cause error) (templ.Component, error) {
	v := views.PlanForm{Name: r.param("name"), NoCache: r.form("no_cache") != ""}
	v.Fault = r.fill(map[string]*views.Field{"at": &v.At, "cron": &v.Cron, "zone": &v.Zone}, cause)
	v.Every, v.Weekday = choiceOf(r.form("every"), append([]views.Option{never}, everyChoices...)), choiceOf(r.form("weekday"), weekdayChoices())
	return s.planForm(r, v), nil
}

// pageDeleteTemplate asks before a template is deleted.
func (s *ownTemplateHandlers) pageDeleteTemplate(_ context.Context, r *request) (templ.Component, error) {
	return s.deleteForm(r, "")
}

func (s *ownTemplateHandlers) deleteForm(r *request, wrong string) (templ.Component, error) {
	e, err := s.templates.entry(r.param("name"))
	if err != nil {
		return nil, err
	}
	v := views.DeleteTemplate{Name: e.Name, Fault: wrong, Text: "Its files and the record of its builds are deleted. Images that were built stay on the engine."}
	if e.Template.Root != "" {
		v.Text = "Its files and the record of its builds are deleted, and its images when no other template uses what they were made of."
	}
	if e.Replaces != "" {
		v.Text = "Its files are deleted, and the template of the same name that it has taken the place of is used again."
	}
	if r.byScript() {
		return views.DeleteTemplateSheet(v), nil
	}
	v.Frame = s.frame(r, "Delete a template", "templates")
	return views.DeleteTemplatePage(v), nil
}

// submitDeleteTemplate deletes a template.
func (s *ownTemplateHandlers) submitDeleteTemplate(ctx context.Context, r *request) (string, error) {
	return done(templatesPath, "template-deleted"), s.cfg.OwnTemplates.Delete(ctx, r.param("name"))
}

// againDeleteTemplate shows the question again with what is wrong.
func (s *ownTemplateHandlers) againDeleteTemplate(_ context.Context, r *request, cause error) (templ.Component, error) {
	return s.deleteForm(r, fault.Message(cause))
}

// upkeep is how a template is kept up to date, for the reader of a page.
func (s *ownTemplateHandlers) upkeep(ctx context.Context, r *request, name string) (views.Upkeep, error) {
	now := s.cfg.Now()
	v := views.Upkeep{Name: name, CanMake: r.isAdmin(), Fetching: s.cfg.OwnTemplates.Fetching(name)}
	if p, ok := s.cfg.OwnTemplates.Plan(name); ok {
		words := planOf(p.Cron).words()
		v.Plan, v.Next = "Rebuilt "+strings.ToLower(words[:1])+words[1:]+", "+p.Zone, timeOf(p.Next, now)
	}
	if src, err := s.cfg.OwnTemplates.Source(name); err == nil && r.isAdmin() {
		v.Git = gitView(src, now)
	}
	list, err := s.cfg.OwnTemplates.Builds(ctx, name)
	for _, b := range list {
		v.Builds = append(v.Builds, buildItem(b, now))
	}
	return v, err
}

// shortCommit is how much of a commit's id is shown.
const shortCommit = 10

func gitView(src template.Source, now time.Time) *views.GitSource {
	v := &views.GitSource{URL: src.URL, Ref: src.Ref, Path: src.Path, Full: src.Commit, Commit: src.Commit[:min(shortCommit, len(src.Commit))], Problem: views.Plain(src.Problem, 0)}
	if !src.Date.IsZero() {
		v.Date = timeOf(src.Date, now)
	}
	if !src.Fetched.IsZero() {
		v.Fetched = timeOf(src.Fetched, now)
	}
	return v
}

// buildStates are how the states of builds look.
var buildStates = map[template.State]views.State{
	template.Running:   {Tone: "busy", Icon: "state-busy", Text: "Building", Bar: views.BarNone},
	template.Done:      {Tone: "good", Icon: "state-done", Text: "Built", Bar: views.BarNone},
	template.Failed:    {Tone: "bad", Icon: "state-failed", Text: "Failed", Bar: views.BarNone},
	template.Cancelled: {Tone: "still", Icon: "close", Text: "Cancelled", Bar: views.BarNone},
	template.CutOff:    {Tone: "bad", Icon: "warn", Text: "Cut off when sandboxd ended", Bar: views.BarNone},
}

// buildItem makes a build ready to show.
func buildItem(b template.Build, now time.Time) views.BuildItem {
	v := views.BuildItem{ID: strconv.FormatInt(b.ID, 10), State: buildStates[b.State], Began: timeOf(b.Began, now), Facts: []string{whyBuilt(b)}}
	if b.Commit != "" {
		v.Facts = append(v.Facts, "commit "+b.Commit[:min(shortCommit, len(b.Commit))])
	}
	if !b.Ended.IsZero() {
		v.Facts = append(v.Facts, "took "+b.Ended.Sub(b.Began).Round(time.Second).String())
	}
	first, _, _ := strings.Cut(b.Problem, "\n")
	v.Problem = views.Plain(first, 0)
	return v
}

// whyBuilt says why an image was built.
func whyBuilt(b template.Build) string {
	switch b.Why {
	case catalog.WhyAsked:
		return "by " + cmp.Or(b.By, "a deleted user")
	case catalog.WhySchedule:
		return "by schedule"
	case catalog.WhyBase:
		return "for " + b.By
	}
	return "for a sandbox that needed it"
}

// pageBuild shows one build with its log.
func (s *ownTemplateHandlers) pageBuild(ctx context.Context, r *request) (templ.Component, error) {
	b, err := s.build(ctx, r)
	if err != nil {
		return nil, err
	}
	v := views.BuildDetail{Frame: s.frame(r, "Build of "+b.Template, "templates"), Name: b.Template, Build: buildItem(b, s.cfg.Now()), Ref: b.Ref, Full: b.Problem, Log: b.Log,
		CanCancel: b.State == template.Running && r.isAdmin()}
	return views.BuildPage(v), nil
}
