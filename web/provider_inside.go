package web

import (
	"context"
	"slices"
	"strconv"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

const (
	ollamaPort    = "11434"
	wakeAllowance = time.Minute // what a check of a provider in a sandbox may take longer, because that has to wake
)

// insideOf gives the port of the sandbox of a name. A user's own provider has to be in a sandbox of theirs.
func (s *providerHandlers) insideOf(ctx context.Context, r *request, owner, name string, port int) (gateway.Inside, error) {
	if name == "" {
		return gateway.Inside{}, fault.Field("sandbox", "Choose the sandbox in which the server of models runs.")
	}
	h, err := s.resolve(ctx, r.who, name)
	if err == nil && owner != "" && h.Sandbox().Owner != owner {
		err = access.NotFound(name)
	}
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Gone) {
		return gateway.Inside{}, fault.Field("sandbox", "%s", fault.Message(err))
	}
	if err != nil {
		return gateway.Inside{}, err
	}
	return gateway.Inside{Sandbox: h.ID(), Name: h.Name(), Port: port}, nil
}

// postedInside is that by the form.
func (s *providerHandlers) postedInside(ctx context.Context, r *request, owner string) (gateway.Inside, error) {
	port, err := strconv.Atoi(r.field("port"))
	if err != nil {
		return gateway.Inside{}, fault.Field("port", "A port is a number between 1 and 65535.")
	}
	return s.insideOf(ctx, r, owner, r.field("sandbox"), port)
}

// offerSandboxes puts the caller's sandboxes into a form, and the one that is chosen, which may be another's or be deleted.
func (s *providerHandlers) offerSandboxes(ctx context.Context, r *request, v *views.ProviderForm) error {
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{Owner: r.who.User.ID})
	if err != nil {
		return err
	}
	for _, box := range boxes {
		v.Sandboxes = append(v.Sandboxes, box.Name)
		if box.Spec.Template == "llm" && v.Sandbox.Value == "" {
			v.Sandbox.Value = box.Name
		}
	}
	if v.Known && v.Sandbox.Value != "" && !slices.Contains(v.Sandboxes, v.Sandbox.Value) {
		v.Sandboxes = append(v.Sandboxes, v.Sandbox.Value)
	}
	slices.Sort(v.Sandboxes)
	return nil
}
