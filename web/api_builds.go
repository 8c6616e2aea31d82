package web

import (
	"context"
	"net/http"

	"sandboxd/internal/catalog"
	"sandboxd/internal/event"
)

// buildBody says how an image is to be built.
type buildBody struct {
	Pull    bool `json:"pull"`     // fetch the images that the Dockerfile names again
	NoCache bool `json:"no_cache"` // run every step again
}

// apiBuildTemplate begins a build in the background, of a template from git after a look for a newer revision; a running one continues.
func (s *templateHandlers) apiBuildTemplate(ctx context.Context, r *request, in buildBody) (reply, error) {
	e, err := s.entry(r.param("name"))
	if err != nil {
		return reply{}, err
	}
	if err := s.cfg.OwnTemplates.Rebuild(e.Name, orderOf(r, catalog.Order{Pull: in.Pull, NoCache: in.NoCache})); err != nil {
		return reply{}, err
	}
	ready, err := s.poolReady(ctx)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusAccepted, location: apiPrefix + "/templates/" + e.Name + "/build", body: s.templateShape(ctx, e, ready)}, nil
}

// apiCancelBuild ends the build of a template's image that is under way or in line.
func (s *templateHandlers) apiCancelBuild(_ context.Context, r *request, _ none) (reply, error) {
	return reply{status: http.StatusNoContent}, s.cancelBuild(r)
}

func (s *templateHandlers) cancelBuild(r *request) error {
	e, err := s.entry(r.param("name"))
	if err != nil {
		return err
	}
	return s.cfg.Images.Cancel(e.Name, r.who.User.Name)
}

// buildShape is the last build of a template's image.
type buildShape struct {
	Template string         `json:"template"`
	Image    *templateImage `json:"image"`
	Log      []string       `json:"log"`
}

// buildLine is one line of a build that is followed. Image comes when its state changes; the last line has it.
type buildLine struct {
	Type  string         `json:"type"` // "line", "image", "heartbeat"
	Line  string         `json:"line,omitempty"`
	Image *templateImage `json:"image,omitempty"`
}

// apiBuildLog answers with the last build and its log, or follows the build under way as lines of JSON when the caller
// accepts those.
func (s *templateHandlers) apiBuildLog(ctx context.Context, r *request, _ none) (reply, error) {
	e, err := s.entry(r.param("name"))
	if err != nil {
		return reply{}, err
	}
	if r.accepts(lineType) {
		return reply{}, s.followBuild(ctx, r, e.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, handlerTime)
	defer cancel()
	status := s.cfg.Images.Status(ctx, e.Name)
	log := s.cfg.Images.Log(e.Name)
	if log == nil {
		log = []string{}
	}
	return reply{body: buildShape{Template: e.Name, Image: newTemplateImage(status), Log: log}}, nil
}

// followBuild writes the log so far and then new lines, until the build is over or the client leaves.
func (s *templateHandlers) followBuild(ctx context.Context, r *request, name string) error {
	leave, err := s.open.enter(r.who, streams)
	if err != nil {
		return err
	}
	defer leave()
	ctx, end := s.live.whileAllowed(ctx, r)
	defer end()
	changes := s.cfg.Images.Subscribe()
	defer changes.Close()
	status := s.cfg.Images.Status(ctx, name)
	known := len(changes.C) // the log has these already
	log := s.cfg.Images.Log(name)
	f := r.openFlow(lineType)
	defer s.live.keepBeating(ctx, end, func() error { return f.line(buildLine{Type: "heartbeat"}) })()
	for _, line := range log {
		if err := f.line(buildLine{Type: "line", Line: line}); err != nil {
			return nil // the client is gone
		}
	}
	_ = f.line(buildLine{Type: "image", Image: newTemplateImage(status)}) // a client that is gone shows at the next line
	if status.State == catalog.ImageBuilding {
		return tellBuild(ctx, f, name, changes, known)
	}
	return nil
}

// tellBuild hands on what happens with one template's image until it is not being built any more. The lines of the
// first known events have been written before.
func tellBuild(ctx context.Context, f *flow, name string, changes *event.Subscription[catalog.ImageEvent], known int) error {
	for {
		var e *catalog.ImageEvent
		var open bool
		select {
		case <-ctx.Done():
			return nil
		case e, open = <-changes.C:
		}
		if !open {
			return f.line(buildLine{Type: "behind"})
		}
		known--
		if e.Template != name {
			continue
		}
		if e.Line != "" && known < 0 {
			if f.line(buildLine{Type: "line", Line: e.Line}) != nil {
				return nil // the client is gone
			}
		}
		if e.Line == "" || e.Status.State != catalog.ImageBuilding {
			if f.line(buildLine{Type: "image", Image: newTemplateImage(e.Status)}) != nil {
				return nil
			}
		}
		if e.Status.State != catalog.ImageBuilding {
			return nil
		}
	}
}
