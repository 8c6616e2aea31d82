package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"golang.org/x/sync/errgroup"

	"sandboxd/internal/catalog"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// askImages is how many images are asked after at the same time.
const askImages = 8

// imageLooks are the words, tones and shapes of an image's states.
var imageLooks = map[catalog.ImageState]views.State{
	catalog.ImageMissing:  {Tone: "still", Icon: "state-todo", Text: "Not built", Why: "built on first use"},
	catalog.ImageBuilt:    {Tone: "good", Icon: "state-done", Text: "Built"},
	catalog.ImageStale:    {Tone: "calm", Icon: "state-stale", Text: "Stale", Why: "the template has changed since; rebuilt on next use"},
	catalog.ImageBuilding: {Tone: "busy", Icon: "state-busy", Text: "Building"},
	catalog.ImageFailed:   {Tone: "bad", Icon: "state-failed", Text: "Failed"},
}

// imageState shows how an image stands and why.
func imageState(st catalog.ImageStatus, now time.Time) views.State {
	look, ok := imageLooks[st.State]
	if !ok {
		look = views.State{Tone: "still", Icon: "state-todo", Text: string(st.State)}
	}
	if st.Cancelled {
		look = views.State{Tone: "still", Icon: "close", Text: "Cancelled"}
	}
	look.Bar = views.BarNone
	if st.State == catalog.ImageMissing && st.Expected.Time > 0 {
		look.Why = "takes " + lengthText(st.Expected)
	}
	look.Why = cmp.Or(st.Problem, look.Why)
	if st.State != catalog.ImageBuilding {
		return look
	}
	look.Bar = views.BarUnknown
	look.Pace = paceOf(st.Pace, now)
	return look
}

func (s *templateHandlers) book(r *request, e catalog.Entry, st catalog.ImageStatus) views.Book {
	t := e.Template
	b := views.Book{
		Name: e.Name, Title: cmp.Or(t.Title, e.Name), Text: t.Description, Icon: cmp.Or(t.Icon, "box"), Tint: tintOf(t),
		Image: imageState(st, s.cfg.Now()), CanMake: r.isAdmin(), Fixed: t.Image != "",
		Facts: []views.Fact{{Icon: "size", Text: sizeText(t.Size)}},
	}
	if t.Profile == catalog.Strict {
		b.Facts = append(b.Facts, views.Fact{Icon: "shield", Text: "strict"})
	}
	for _, p := range t.Ports {
		b.Facts = append(b.Facts, views.Fact{Icon: "globe", Text: strings.TrimSpace(p.Title + " " + strconv.Itoa(p.Number))})
	}
	if st.Cancelled {
		b.Image.Why += " " + buildAgain(b)
	}
	if e.Problem != nil {
		b.Problem = problemView(*e.Problem)
	}
	return b
}

// buildAgain says how an image is made whose build was cancelled.
func buildAgain(b views.Book) string {
	if b.CanMake && !b.Fixed {
		return "Use Build, or create a sandbox, to build it. Finished steps are not done again."
	}
	return "Creating a sandbox makes it."
}

// problemView names the file as a person who edits templates knows it: by the template's folder.
func problemView(p catalog.Problem) *views.Problem {
	dir, file := filepath.Split(p.File)
	where := path.Join(filepath.Base(dir), file)
	if p.Line > 0 {
		where += ":" + strconv.Itoa(p.Line)
	}
	return &views.Problem{Where: where, Text: p.Message}
}

// pageTemplates is the gallery. The engine is asked after all images at the same time.
func (s *templateHandlers) pageTemplates(ctx context.Context, r *request) (templ.Component, error) {
	entries := s.cfg.Templates.List()
	v := views.Templates{Frame: s.frame(r, "Templates", "templates"), Done: outcomes[r.query("done")], CanMake: r.isAdmin(), Books: make([]views.Book, len(entries))}
	v.Frame.Live.Topic = "/templates"
	var all errgroup.Group
	all.SetLimit(askImages)
	for i, e := range entries {
		all.Go(func() error {
			v.Books[i] = s.book(r, e, s.imageStatus(ctx, e))
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	return views.TemplatesPage(v), nil
}

// imagesTime bounds the wait for an engine that does not answer, of who asks after images: it is told in their status.
const imagesTime = 8 * time.Second

func (s *templateHandlers) imageStatus(ctx context.Context, e catalog.Entry) catalog.ImageStatus {
	if e.Problem != nil {
		return catalog.ImageStatus{State: catalog.ImageFailed, Problem: "The template is broken."}
	}
	ctx, cancel := context.WithTimeout(ctx, imagesTime)
	defer cancel()
	return s.cfg.Images.Status(ctx, e.Name)
}

// pageTemplate is the page of one template, with the log of its last build.
func (s *templateHandlers) pageTemplate(ctx context.Context, r *request) (templ.Component, error) {
	e, err := s.entry(r.param("name"))
	if err != nil {
		return nil, err
	}
	status := s.imageStatus(ctx, e)
	v := views.Template{
		Frame: s.frame(r, cmp.Or(e.Template.Title, e.Name), "templates"),
		Book:  s.book(r, e, status),
		Log:   s.lastLog(ctx, e.Name, status.State), Readme: views.Prose(e.Readme), Details: templateDetails(e.Template, s.cfg.Pool != nil),
	}
	if v.Upkeep, err = s.ownTemplates.upkeep(ctx, r, e.Name); err != nil {
		return nil, err
	}
	if origin, err := s.cfg.OwnTemplates.Origin(e.Name); err == nil && r.isAdmin() {
		v.Edit = string(origin)
	}
	if r.isAdmin() { // a path of the host
		v.Details = append(v.Details, views.Detail{Name: "Folder", Values: []string{e.Template.Folder}, Mono: true})
	}
	ready, err := s.poolReady(ctx)
	if err != nil {
		return nil, err
	}
	v.Details = append(v.Details, standbyDetails(s.templateRest(e.Name), e.Template.Pool, ready[e.Name])...)
	for _, p := range e.Problems {
		v.Problems = append(v.Problems, *problemView(p))
	}
	if v.Older, err = s.updates.older(ctx, r, e.Name); err != nil {
		return nil, err
	}
	v.Frame.Live = views.Live{Topic: "/templates/" + e.Name, Seen: "seen=" + printOf(v.Upkeep)}
	return views.TemplatePage(v), nil
}

// lastLog is the log of a template's last build: the one in memory, else the one on record. Without any it says so, in agreement with the
// state of the image.
func (s *templateHandlers) lastLog(ctx context.Context, name string, state catalog.ImageState) string {
	if text := s.workspace.buildLog(name); text != "" {
		return text
	}
	if state == catalog.ImageBuilding {
		return "\n" // lines follow
	}
	if text := s.keptLog(ctx, name); text != "" {
		return text
	}
	if state == catalog.ImageBuilt || state == catalog.ImageStale {
		return "The image was not built by this server, so there is no log of it.\n"
	}
	return "No builds yet.\n"
}

// keptLog is the end of the log of the newest build on record, or "".
func (s *templateHandlers) keptLog(ctx context.Context, name string) string {
	builds, err := s.cfg.OwnTemplates.Builds(ctx, name)
	if err != nil || len(builds) == 0 {
		return ""
	}
	b, err := s.cfg.OwnTemplates.Build(ctx, name, builds[0].ID)
	if err != nil {
		s.log.Warn("log of a build cannot be read", "template", name, "err", err)
		return ""
	}
	lines := strings.Split(strings.TrimRight(b.Log, "\n"), "\n")
	return strings.TrimLeft(strings.Join(lines[max(0, len(lines)-shownLog):], "\n")+"\n", "\n")
}

// templateDetails says what a template's sandboxes are; limited whether the size of a home can be.
func templateDetails(t catalog.Template, limited bool) []views.Detail {
	var d []views.Detail
	add := func(name string, mono bool, values ...string) {
		values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
		if len(values) > 0 {
			d = append(d, views.Detail{Name: name, Values: values, Mono: mono})
		}
	}
	add("CPU", false, coresText(t.Size.CPUs))
	add("Memory", false, text.Size(t.Size.Memory))
	add("Processes", false, strconv.FormatInt(t.Size.Pids, 10))
	if t.Size.Disk > 0 && limited {
		add("Disk", false, text.Size(t.Size.Disk))
	} else if t.Size.Disk > 0 {
		add("Disk", false, "about "+text.Size(t.Size.Disk)+", not limited")
	}
	add("Profile", false, profileText(t))
	add("Builds on", true, t.Base)
	add("Image", true, t.Image)
	var ports, services []string
	for _, p := range t.Ports {
		ports = append(ports, strings.TrimSpace(strconv.Itoa(p.Number)+" "+p.Title))
	}
	for _, sv := range t.Services {
		services = append(services, sv.Name)
	}
	add("Ports", false, ports...)
	add("Services", true, services...)
	add("Environment", true, slices.Sorted(maps.Keys(t.Env))...)
	return d
}

// standbyDetails say how a template's sandboxes are kept while nobody uses them.
func standbyDetails(rest sandbox.Resting, pool, ready int) []views.Detail {
	freeze, sleep := restWords(rest.Rest)
	d := []views.Detail{{Name: "While unused", Values: []string{freeze, sleep}}}
	if pool > 0 {
		d = append(d, views.Detail{Name: "Made in advance", Values: []string{fmt.Sprintf("%d of %d ready", ready, pool)}})
	}
	return d
}

func profileText(t catalog.Template) string {
	if t.Profile == catalog.Strict {
		return "strict: no network, no way to more rights, read-only system"
	}
	if t.Namespaces {
		return "dev: packages can be installed, network and user namespaces allowed"
	}
	return "dev: packages can be installed, network allowed"
}

// submitCancelBuild ends the build of a template's image that is under way or in line.
func (s *templateHandlers) submitCancelBuild(_ context.Context, r *request) (string, error) {
	return r.back("/templates/" + r.param("name")), s.cancelBuild(r)
}

// submitBuild starts building a template's image, whether or not one is there.
func (s *templateHandlers) submitBuild(_ context.Context, r *request) (string, error) {
	e, err := s.entry(r.param("name"))
	if err != nil {
		return "", err
	}
	if err := s.cfg.OwnTemplates.Rebuild(e.Name, orderOf(r, catalog.Order{Pull: r.form("pull") != "", NoCache: r.form("no_cache") != ""})); err != nil {
		return "", err
	}
	return r.back("/templates/" + e.Name), nil
}
