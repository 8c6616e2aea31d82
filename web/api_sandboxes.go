package web

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Bounds of a page of the list.
const (
	defaultPage = 100
	maxPage     = 1000
)

type createBody struct {
	Name        string            `json:"name"`
	Label       string            `json:"label"`
	Template    string            `json:"template"`
	Image       string            `json:"image"`
	CPUs        float64           `json:"cpus"`
	Memory      memorySize        `json:"memory"`
	Pids        int64             `json:"pids"`
	Disk        diskSize          `json:"disk"`
	Env         map[string]string `json:"env"`
	FreezeAfter *string           `json:"freeze_after"`
	StopAfter   *string           `json:"stop_after"`
}

// apiCreateSandbox accepts a create. 202 while it is being made, whether this request or an earlier one like it began
// that; 200 when one that was asked for in the same way is there already; with ?wait=ready 201 or 200 once it runs.
func (s *sandboxHandlers) apiCreateSandbox(ctx context.Context, r *request, in createBody) (reply, error) {
	w, err := r.waiting("ready")
	if err != nil {
		return reply{}, err
	}
	rest, err := restWish{in.FreezeAfter, in.StopAfter}.change()
	if err != nil {
		return reply{}, err
	}
	accepting, cancel := context.WithTimeout(ctx, handlerTime)
	defer cancel()
	box, created, err := s.cfg.Sandboxes.Create(accepting, sandbox.Request{
		Name: in.Name, Label: in.Label, Owner: r.who.User.ID, Template: in.Template, Image: in.Image, Env: in.Env,
		Limits: sandbox.Limits{CPUs: in.CPUs, Memory: int64(in.Memory), Pids: in.Pids, Disk: int64(in.Disk)}, Rest: rest.Over(catalog.Rest{}),
	})
	if err == nil && w.asked && box.State.Resting() { // it was there already, and is to be ready
		box, err = s.cfg.Sandboxes.Start(accepting, box.Ref())
	}
	if err != nil {
		return reply{}, err
	}
	r.about, r.object = box, cmp.Or(box.Spec.Template, box.Spec.Image)
	if w.asked {
		return s.createdReply(ctx, r, w, box, created)
	}
	status := http.StatusAccepted
	if !created && box.State.Settled() {
		status = http.StatusOK
	}
	out, err := s.sandboxReply(accepting, status, box)
	out.location = sandboxPath(box.Name)
	return out, err
}

func (s *sandboxHandlers) createdReply(ctx context.Context, r *request, w waiting, box sandbox.Sandbox, created bool) (reply, error) {
	status := http.StatusOK
	if box.State == sandbox.Deleting { // the one that was asked for follows it
		next, err := s.nextOf(ctx, r, w, box)
		if err != nil {
			return reply{}, err
		}
		box, created = next, true
	}
	if created {
		status = http.StatusCreated
	}
	out, err := s.await(ctx, w, box, sandbox.Running, status)
	out.location = sandboxPath(box.Name)
	return out, err
}

// nextOf waits until a sandbox is deleted, and gives the one that has its name then.
func (s *sandboxHandlers) nextOf(ctx context.Context, r *request, w waiting, box sandbox.Sandbox) (sandbox.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	if now, err := s.cfg.Sandboxes.Wait(ctx, box.Ref()); !fault.Is(err, fault.Gone) {
		return now, cmp.Or(err, s.unwanted(now))
	}
	h, err := s.resolve(ctx, r.who, box.Name)
	if err == nil && h.Sandbox().Owner != r.who.User.ID { // an admin may see what another user made meanwhile
		err = fault.New(fault.Conflict, "Another user has just made a sandbox called %s. Choose another name.", box.Name)
	}
	return h.Sandbox(), err
}

type listShape struct {
	Sandboxes []sandboxShape `json:"sandboxes"`
	Total     int            `json:"total"` // how many match, on all pages
	Limit     int            `json:"limit"`
	Offset    int            `json:"offset"`
}

// apiListSandboxes lists what the caller may see, newest first: a member's own, for an admin everybody's or ?owner='s.
func (s *sandboxHandlers) apiListSandboxes(ctx context.Context, r *request, _ none) (reply, error) {
	f, err := s.listFilter(ctx, r)
	if err != nil {
		return reply{}, err
	}
	boxes, total, err := s.list(ctx, r.who, f)
	if err != nil {
		return reply{}, err
	}
	out := listShape{Sandboxes: make([]sandboxShape, 0, len(boxes)), Total: total, Limit: f.Limit, Offset: f.Offset}
	names := newOwners(s.cfg.Accounts)
	for _, box := range boxes {
		shape, err := s.shape(ctx, names, box)
		if err != nil {
			return reply{}, err
		}
		out.Sandboxes = append(out.Sandboxes, shape)
	}
	return reply{body: out}, nil
}

func (s *sandboxHandlers) listFilter(ctx context.Context, r *request) (f sandbox.Filter, err error) {
	f.Query, f.State = r.query("q"), sandbox.State(r.query("state"))
	if f.State != "" && !knownState(f.State) {
		return f, fault.Field("state", "%.40q is not a state. The states are %s.", f.State, strings.Join(stateNames(), ", "))
	}
	if f.Limit, err = r.intQuery("limit", defaultPage, 1, maxPage); err != nil {
		return f, err
	}
	if f.Offset, err = r.intQuery("offset", 0, 0, 1<<31-1); err != nil {
		return f, err
	}
	f.Owner, err = s.listOwner(ctx, r)
	return f, err
}

// listOwner gives the user id whose sandboxes are asked for: the caller's own, unless an admin asks for others.
func (s *sandboxHandlers) listOwner(ctx context.Context, r *request) (string, error) {
	name, who := r.query("owner"), r.who.User
	if name == "" && who.Role == auth.Admin {
		return "", nil
	}
	if name == "" || name == "me" || name == who.Name {
		return who.ID, nil
	}
	if who.Role != auth.Admin {
		return "", fault.New(fault.Forbidden, "Only an admin may list other people's sandboxes.")
	}
	u, err := s.cfg.Accounts.UserByName(ctx, name)
	return u.ID, err
}

// list gives the sandboxes that match f and that who may see. f.Owner has been decided by listOwner.
func (s *sandboxHandlers) list(ctx context.Context, who auth.Principal, f sandbox.Filter) ([]sandbox.Sandbox, int, error) {
	if who.SandboxID == "" {
		return s.cfg.Sandboxes.List(ctx, f)
	}
	h, err := s.resolve(ctx, who, who.Sandbox)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Gone) {
		return nil, 0, nil
	}
	box := h.Sandbox()
	if err != nil || !matches(box, f) {
		return nil, 0, err
	}
	if f.Offset > 0 {
		return nil, 1, nil
	}
	return []sandbox.Sandbox{box}, 1, nil
}

// matches is the store's filter for the one sandbox that a limited token sees.
func matches(box sandbox.Sandbox, f sandbox.Filter) bool {
	text := strings.ToLower(strings.Join([]string{box.Name, box.Label, box.Spec.Template, box.Spec.Image}, "\n"))
	return (f.Owner == "" || f.Owner == box.Owner) && (f.State == "" || f.State == box.State) &&
		strings.Contains(text, strings.ToLower(f.Query))
}

var allStates = []sandbox.State{
	sandbox.Creating, sandbox.Starting, sandbox.Running, sandbox.Frozen, sandbox.Sleeping, sandbox.Asleep,
	sandbox.Stopping, sandbox.Stopped, sandbox.Failed, sandbox.Deleting,
	sandbox.Capturing, sandbox.Restoring,
}

func stateNames() []string {
	names := make([]string, len(allStates))
	for i, state := range allStates {
		names[i] = string(state)
	}
	return names
}

func knownState(s sandbox.State) bool {
	for _, known := range allStates {
		if s == known {
			return true
		}
	}
	return false
}

// apiSandbox answers with one sandbox.
func (s *sandboxHandlers) apiSandbox(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	box := h.Sandbox()
	return s.sandboxReply(ctx, http.StatusOK, box)
}

// changeBody holds the fields that can be changed; absent ones stay.
type changeBody struct {
	Label       *string     `json:"label"`
	CPUs        *float64    `json:"cpus"`
	Memory      *memorySize `json:"memory"`
	Disk        *diskSize   `json:"disk"` // 0 for no limit
	FreezeAfter *string     `json:"freeze_after"`
	StopAfter   *string     `json:"stop_after"`
}

// apiChangeSandbox changes what the body has. All of it is checked before anything is changed.
func (s *sandboxHandlers) apiChangeSandbox(ctx context.Context, r *request, in changeBody) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	box := h.Sandbox()
	wish := restWish{in.FreezeAfter, in.StopAfter}
	rest, err := wish.change()
	if err != nil {
		return reply{}, err
	}
	if in.Label != nil {
		if err := sandbox.CheckLabel(*in.Label); err != nil {
			return reply{}, err
		}
	}
	if in.CPUs != nil || in.Memory != nil || in.Disk != nil {
		if box, err = s.resize(ctx, r, h, sandbox.LimitsChange{CPUs: in.CPUs, Memory: (*int64)(in.Memory), Disk: (*int64)(in.Disk)}); err != nil {
			return reply{}, err
		}
	}
	if in.Label != nil {
		if box, err = s.cfg.Sandboxes.Rename(ctx, h.Ref(), *in.Label); err != nil {
			return reply{}, err
		}
	}
	if wish.says() {
		if box, err = s.cfg.Sandboxes.SetRest(ctx, h.Ref(), rest); err != nil {
			return reply{}, err
		}
	}
	return s.sandboxReply(ctx, http.StatusOK, box)
}

// resize changes limits of a sandbox. A token that may be inside it cannot.
func (s *sandboxHandlers) resize(ctx context.Context, r *request, h access.Handle, c sandbox.LimitsChange) (sandbox.Sandbox, error) {
	if r.who.SandboxID != "" {
		return sandbox.Sandbox{}, fault.New(fault.Forbidden, "A token that is limited to a sandbox cannot change its limits.")
	}
	return s.cfg.Sandboxes.Resize(ctx, h.Ref(), c)
}
