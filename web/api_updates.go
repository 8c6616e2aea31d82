package web

import (
	"context"
	"net/http"
	"time"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/update"
)

// standingShape says how a sandbox stands to the newest image of its template.
type standingShape struct {
	Available    bool   `json:"available"` // it was made from another image than its template gives now
	Image        string `json:"image"`     // of its template, that it was made from; "" when that is not known
	Newest       string `json:"newest"`    // that its template gives now; "" when that is gone or broken
	FromSnapshot bool   `json:"from_snapshot"`
	Failed       string `json:"failed"` // why the last update failed; "" when it did not
}

// standing gives that of a sandbox; nil for one of a plain image.
func (s *updateHandlers) standing(box sandbox.Sandbox) *standingShape {
	if box.Spec.Template == "" {
		return nil
	}
	now := s.cfg.Updates.Standing(box)
	out := &standingShape{Available: now.Older, Image: now.Image, Newest: now.Newest, FromSnapshot: box.Root != ""}
	if _, i, ok := s.cfg.Updates.LastOf(box.ID); ok && now.Older && i.State == update.Broken {
		out.Failed = i.Problem
	}
	return out
}

// updateShape is a run as programs see it.
type updateShape struct {
	ID          string            `json:"id"`
	Template    string            `json:"template"`
	All         bool              `json:"all"` // of all sandboxes of the template
	By          string            `json:"by"`  // user name
	Force       bool              `json:"force"`
	MaxFailures int               `json:"max_failures"`
	State       string            `json:"state"`
	Image       string            `json:"image"`
	Problem     string            `json:"problem"`
	BeganAt     time.Time         `json:"began_at"`
	EndedAt     *time.Time        `json:"ended_at"`
	Totals      map[string]int    `json:"totals"` // sandboxes by state
	Items       []updateItemShape `json:"items"`
}

// updateItemShape is what a run did for one sandbox.
type updateItemShape struct {
	Sandbox   string     `json:"sandbox"`
	SandboxID string     `json:"sandbox_id"`
	State     string     `json:"state"`
	Problem   string     `json:"problem"`
	Log       []string   `json:"log"`
	TakenBack bool       `json:"taken_back"`
	Snapshot  string     `json:"snapshot"` // id of the one that was taken before; "" for none
	BeganAt   *time.Time `json:"began_at"`
	EndedAt   *time.Time `json:"ended_at"`
}

// shape gives a run as programs see it, with only the item of one sandbox unless that is "".
func (s *updateHandlers) shape(ctx context.Context, u update.Run, only string) (updateShape, error) {
	by, err := newOwners(s.cfg.Accounts).name(ctx, u.By)
	out := updateShape{
		ID: u.ID, Template: u.Template, All: u.SandboxID == "", By: by, Force: u.Force, MaxFailures: u.MaxFailures, State: string(u.State), Image: u.Image,
		Problem: u.Problem, BeganAt: u.Began.UTC(), EndedAt: timeOrNull(u.Ended), Totals: map[string]int{}, Items: []updateItemShape{},
	}
	for _, i := range u.Items {
		if only != "" && i.SandboxID != only {
			continue
		}
		out.Totals[string(i.State)]++
		shape := updateItemShape{
			Sandbox: i.Sandbox, SandboxID: i.SandboxID, State: string(i.State), Problem: i.Problem, Log: i.Log, TakenBack: i.TakenBack, Snapshot: i.Safety,
			BeganAt: timeOrNull(i.Began), EndedAt: timeOrNull(i.Ended),
		}
		if shape.Log == nil {
			shape.Log = []string{}
		}
		out.Items = append(out.Items, shape)
	}
	return out, err
}

// apiUpdate answers with the last update of a sandbox, by itself or with the others of its template.
func (s *updateHandlers) apiUpdate(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	u, _, ok := s.cfg.Updates.LastOf(h.ID())
	if !ok {
		return reply{}, update.NotFound(h.Name())
	}
	shape, err := s.shape(ctx, u, h.ID())
	return reply{body: shape}, err
}

// updateBody says how sandboxes are updated.
type updateBody struct {
	Force bool `json:"force"` // also what is in use
}

// updateAllBody says it of all of a template.
type updateAllBody struct {
	Force       bool `json:"force"`
	MaxFailures *int `json:"max_failures"` // 1 without
}

// apiUpdateSandbox begins to update a sandbox: 202, or with ?wait=done 200 once that has ended, however it went.
func (s *updateHandlers) apiUpdateSandbox(ctx context.Context, r *request, in updateBody) (reply, error) {
	w, err := r.waiting("done")
	if err != nil {
		return reply{}, err
	}
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	u, err := s.cfg.Updates.One(ctx, h.Sandbox(), r.who.User.ID, in.Force)
	if err != nil {
		return reply{}, err
	}
	return s.begun(ctx, w, u, h.ID(), sandboxPath(h.Name())+updatePart)
}

// begun answers with a run that has begun, once it has ended if that was asked for.
func (s *updateHandlers) begun(ctx context.Context, w waiting, u update.Run, only, location string) (reply, error) {
	out := reply{status: http.StatusAccepted, location: location}
	if w.asked {
		waiting, cancel := context.WithTimeout(ctx, w.limit)
		defer cancel()
		var err error
		if u, err = s.cfg.Updates.Wait(waiting, u.ID); err != nil {
			return out, err
		}
		out.status = http.StatusOK
	}
	shape, err := s.shape(ctx, u, only)
	out.body = shape
	return out, err
}

// apiUpdates answers with the last update of all sandboxes of a template.
func (s *updateHandlers) apiUpdates(ctx context.Context, r *request, _ none) (reply, error) {
	e, err := s.templates.entry(r.param("name"))
	if err != nil {
		return reply{}, err
	}
	u, err := s.cfg.Updates.Last(e.Name)
	if err != nil {
		return reply{}, err
	}
	shape, err := s.shape(ctx, u, "")
	return reply{body: shape}, err
}

// apiUpdateAll begins to update the sandboxes of a template, as apiUpdateSandbox does.
func (s *updateHandlers) apiUpdateAll(ctx context.Context, r *request, in updateAllBody) (reply, error) {
	w, err := r.waiting("done")
	if err != nil {
		return reply{}, err
	}
	a := update.Ask{Template: r.param("name"), By: r.who.User.ID, Force: in.Force, MaxFailures: 1}
	if in.MaxFailures != nil {
		a.MaxFailures = *in.MaxFailures
	}
	u, err := s.cfg.Updates.All(ctx, a)
	if err != nil {
		return reply{}, err
	}
	return s.begun(ctx, w, u, "", apiPrefix+"/templates/"+u.Template+updatePart)
}

// apiCancelUpdate ends the update of the sandboxes of a template after the one that is under way.
func (s *updateHandlers) apiCancelUpdate(_ context.Context, r *request, _ none) (reply, error) {
	u, err := s.cfg.Updates.Last(r.param("name"))
	if err == nil {
		err = s.cfg.Updates.Cancel(u.ID)
	}
	return reply{status: http.StatusNoContent}, err
}
