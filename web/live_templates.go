package web

import (
	"context"
	"strings"
	"sync"

	"sandboxd/internal/catalog"
	"sandboxd/internal/template"
	"sandboxd/views"
)

// liveTemplates keeps the gallery, or the page of one template, up to date.
type liveTemplates struct {
	server  *Server
	request *request
	only    string          // the one template of the page, or "" for the gallery
	editor  bool            // the page is the editor of its files, which shows its image and the log alone
	shows   map[string]bool // templates whose image the page shows: not those that are broken, or were made since
	pending map[string]catalog.ImageStatus
	lines   []string
	state   catalog.ImageState // of the one template, as told last
	older   string             // print of what is told of its sandboxes
	upkeep  bool               // how it is kept up to date may have changed
	drawn   string             // print of what the page shows of that
}

// beside tells when the sandboxes of the one template have been updated, and when what keeps that up to date has changed.
func (l *liveTemplates) beside(ctx context.Context, hand func(news)) {
	if l.only == "" {
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { followUpdates(ctx, l.server, hand) })
	follow(ctx, l.server.cfg.OwnTemplates.Subscribe, func(c *template.Change) { hand(news{template: c}) })
}

func (s *templateHandlers) openLiveTemplates(_ context.Context, r *request) (livePage, error) {
	l := &liveTemplates{server: s.Server, request: r, shows: map[string]bool{}, pending: map[string]catalog.ImageStatus{}}
	for _, e := range s.cfg.Templates.List() {
		l.shows[e.Name] = e.Problem == nil
	}
	return l, nil
}

func (s *templateHandlers) openLiveTemplate(_ context.Context, r *request) (livePage, error) {
	e, err := s.entry(r.param("name"))
	if err != nil {
		return nil, err
	}
	editor := r.query("editor") != ""
	return &liveTemplates{
		server: s.Server, request: r, only: e.Name, editor: editor, shows: map[string]bool{e.Name: editor || e.Problem == nil},
		pending: map[string]catalog.ImageStatus{}, upkeep: !editor, drawn: r.query("seen"),
	}, nil
}

// begin draws all that may have changed since the page was drawn: it is little.
func (l *liveTemplates) begin(ctx context.Context, out *parts) error {
	for _, e := range l.server.cfg.Templates.List() {
		if e.Problem == nil && l.shows[e.Name] {
			l.pending[e.Name] = l.server.templates.imageStatus(ctx, e)
		}
	}
	if l.only != "" && l.shows[l.only] {
		l.state = l.pending[l.only].State
		out.add("build-log", views.Replace, views.BuildLog(l.server.templates.lastLog(ctx, l.only, l.state)))
	}
	return l.tell(ctx, false, out)
}

func (l *liveTemplates) take(n news) bool {
	if n.update != nil {
		return !l.editor
	}
	if !l.editor && n.template != nil && (n.template.Template == "" || n.template.Template == l.only) {
		l.upkeep = true
		return true
	}
	if n.image == nil || !l.shows[n.image.Template] {
		return false
	}
	l.pending[n.image.Template] = n.image.Status
	if l.only != "" && n.image.Line != "" {
		l.lines = append(l.lines, n.image.Line)
	}
	return true
}

func (l *liveTemplates) tell(ctx context.Context, _ bool, out *parts) error {
	if l.only != "" && !l.editor {
		if older, err := l.server.updates.older(ctx, l.request, l.only); err == nil && printOf(older) != l.older {
			l.older = printOf(older)
			out.add("template-older", views.Replace, views.OlderBoxesPart(older))
		}
	}
	if l.upkeep {
		l.upkeep = false
		v, err := l.server.ownTemplates.upkeep(ctx, l.request, l.only)
		if err != nil {
			return err
		}
		if now := printOf(v); now != l.drawn {
			l.drawn = now
			out.add("template-upkeep", views.Replace, views.TemplateUpkeep(v))
		}
	}
	for name, status := range l.pending {
		e, err := l.server.templates.entry(name)
		if err != nil { // its folder has gone: the page shows it until it is loaded again
			continue
		}
		book := l.server.templates.book(l.request, e, status)
		if l.only == "" {
			out.add("book-"+name, views.Replace, views.BookFoot(book))
			continue
		}
		out.add("template-image", views.Replace, views.TemplateImage(book))
		l.tellLog(ctx, status, out)
	}
	clear(l.pending)
	return nil
}

// tellLog adds lines to the log; a build that has just begun starts it anew.
func (l *liveTemplates) tellLog(ctx context.Context, status catalog.ImageStatus, out *parts) {
	lines := l.lines
	l.lines = nil
	if status.State == catalog.ImageBuilding && l.state != catalog.ImageBuilding {
		out.add("build-log", views.Replace, views.BuildLog(l.server.templates.lastLog(ctx, l.only, status.State)))
	} else if len(lines) > 0 {
		out.add("build-log", views.Append, views.Text(strings.Join(lines, "\n")+"\n"))
	}
	l.state = status.State
}
