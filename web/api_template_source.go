package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/template"
)

// sourceShape is where a template is fetched from. Its key or token is never told.
type sourceShape struct {
	URL        string     `json:"url"`
	Ref        string     `json:"ref"`
	Path       string     `json:"path"`
	HasSecret  bool       `json:"has_secret"`
	HostKey    string     `json:"host_key"` // lines of a known_hosts file; "" without ssh
	Commit     string     `json:"commit"`
	CommitDate *time.Time `json:"commit_date"`
	FetchedAt  *time.Time `json:"fetched_at"` // the last time with success
	TriedAt    *time.Time `json:"tried_at"`
	Problem    string     `json:"problem"` // of the last time
	Fetching   bool       `json:"fetching"`
}

func (s *ownTemplateHandlers) sourceShape(src template.Source) sourceShape {
	return sourceShape{
		URL: src.URL, Ref: src.Ref, Path: src.Path, HasSecret: len(src.Secret) > 0, HostKey: src.HostKeys, Commit: src.Commit, CommitDate: timeOrNull(src.Date),
		FetchedAt: timeOrNull(src.Fetched), TriedAt: timeOrNull(src.Tried), Problem: src.Problem, Fetching: s.cfg.OwnTemplates.Fetching(src.Template),
	}
}

// apiTemplateSource answers with the source of a template from git.
func (s *ownTemplateHandlers) apiTemplateSource(_ context.Context, r *request, _ none) (reply, error) {
	src, err := s.cfg.OwnTemplates.Source(r.param("name"))
	return reply{body: s.sourceShape(src)}, err
}

// sourceBody is a source that is to be fetched. Secrets and the host key that are left out stay while the address does.
type sourceBody struct {
	URL     string `json:"url"`
	Ref     string `json:"ref"`
	Path    string `json:"path"`
	Token   string `json:"token"`
	Key     string `json:"key"`
	HostKey string `json:"host_key"`
}

// apiSetTemplateSource fetches a template from a git repository, and waits for that.
func (s *ownTemplateHandlers) apiSetTemplateSource(ctx context.Context, r *request, in sourceBody) (reply, error) {
	name := r.param("name")
	_, known := s.cfg.OwnTemplates.Source(name)
	src, err := s.cfg.OwnTemplates.SetSource(ctx, name, template.NewSource(in))
	if err != nil {
		return reply{}, err
	}
	status := http.StatusOK
	if known != nil {
		status = http.StatusCreated
	}
	return reply{status: status, body: s.sourceShape(src)}, nil
}

// planShape says when a template is rebuilt by itself.
type planShape struct {
	Cron    string     `json:"cron"` // "" for never
	Zone    string     `json:"zone"`
	NoCache bool       `json:"no_cache"`
	NextAt  *time.Time `json:"next_at"`
}

func newPlanShape(p template.Plan) planShape {
	return planShape{Cron: p.Cron, Zone: p.Zone, NoCache: p.NoCache, NextAt: timeOrNull(p.Next)}
}

// apiRebuildPlan answers with when a template is rebuilt by itself.
func (s *ownTemplateHandlers) apiRebuildPlan(_ context.Context, r *request, _ none) (reply, error) {
	if _, err := s.templates.entry(r.param("name")); err != nil {
		return reply{}, err
	}
	p, ok := s.cfg.OwnTemplates.Plan(r.param("name"))
	if !ok {
		p.Zone = "UTC"
	}
	return reply{body: newPlanShape(p)}, nil
}

// planBody says when a template is to be rebuilt by itself.
type planBody struct {
	Cron    string `json:"cron"` // "" for never
	Zone    string `json:"zone"` // "" for UTC
	NoCache bool   `json:"no_cache"`
}

// apiSetRebuildPlan sets when a template is rebuilt by itself.
func (s *ownTemplateHandlers) apiSetRebuildPlan(ctx context.Context, r *request, in planBody) (reply, error) {
	p, err := s.cfg.OwnTemplates.SetPlan(ctx, template.Plan{Template: r.param("name"), Cron: in.Cron, Zone: in.Zone, NoCache: in.NoCache})
	return reply{body: newPlanShape(p)}, err
}

// buildRecord is one build of a template's image.
type buildRecord struct {
	ID      int64      `json:"id"`
	State   string     `json:"state"` // "running", "done", "failed", "cancelled" or "cut-off"
	Image   string     `json:"image"` // its reference; "" when it did not come to that
	Commit  string     `json:"commit"`
	Why     string     `json:"why"` // "asked", "schedule", "base", or "" when something needed it
	By      string     `json:"by"`  // the user who asked, or the template that builds on it
	Problem string     `json:"problem"`
	BeganAt time.Time  `json:"began_at"`
	EndedAt *time.Time `json:"ended_at"`
	Log     *string    `json:"log,omitempty"`
}

func newBuildRecord(b template.Build) buildRecord {
	return buildRecord{ID: b.ID, State: string(b.State), Image: b.Ref, Commit: b.Commit, Why: b.Why, By: b.By, Problem: b.Problem, BeganAt: b.Began.UTC(), EndedAt: timeOrNull(b.Ended)}
}

type buildsShape struct {
	Builds []buildRecord `json:"builds"`
}

// apiBuilds lists the newest builds of a template, the newest first.
func (s *ownTemplateHandlers) apiBuilds(ctx context.Context, r *request, _ none) (reply, error) {
	e, err := s.templates.entry(r.param("name"))
	if err != nil {
		return reply{}, err
	}
	list, err := s.cfg.OwnTemplates.Builds(ctx, e.Name)
	out := buildsShape{Builds: make([]buildRecord, 0, len(list))}
	for _, b := range list {
		out.Builds = append(out.Builds, newBuildRecord(b))
	}
	return reply{body: out}, err
}

// apiBuild answers with one build and its log.
func (s *ownTemplateHandlers) apiBuild(ctx context.Context, r *request, _ none) (reply, error) {
	b, err := s.build(ctx, r)
	out := newBuildRecord(b)
	out.Log = &b.Log
	return reply{body: out}, err
}

func parseBuildID(text string) (id int64, ok bool) {
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && id > 0
}

// build gives the build that the path names. The log of one that runs is as far as it is.
func (s *ownTemplateHandlers) build(ctx context.Context, r *request) (template.Build, error) {
	id, ok := parseBuildID(r.param("id"))
	if !ok {
		return template.Build{}, fault.New(fault.NotFound, "There is no build %.20q.", r.param("id"))
	}
	b, err := s.cfg.OwnTemplates.Build(ctx, r.param("name"), id)
	if b.State == template.Running {
		b.Log = s.workspace.buildLog(b.Template)
	}
	return b, err
}
