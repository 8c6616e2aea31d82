package web

import (
	"context"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

// resolve finds the sandbox called name for who: the only way from a name in a request to a sandbox. One that who may not
// see is NotFound in the very same words as one that is not there. One that who could see and that was deleted lately is Gone.
func (s *Server) resolve(ctx context.Context, who auth.Principal, name string) (access.Handle, error) {
	return s.cfg.Access.Resolve(ctx, name, access.By(who))
}

// named resolves the sandbox that the request names. A page adds "?sandbox_id=" to say which one it shows: Gone when that one was
// deleted and another has its name.
func named(ctx context.Context, s *Server, r *request) (access.Handle, error) {
	h, err := s.resolve(ctx, r.who, r.param("name"))
	if id := r.query("sandbox_id"); err == nil && id != "" && id != h.ID() {
		return access.Handle{}, fault.New(fault.Gone, "The sandbox %s that this page shows was deleted. Another one has its name now.", h.Name())
	}
	if err == nil {
		r.about = h.Sandbox()
	}
	return h, err
}

// owners gives the names of users by id, asking for each once. It belongs to one request.
type owners struct {
	from  *auth.Service
	names map[string]string
}

func newOwners(from *auth.Service) *owners { return &owners{from: from, names: map[string]string{}} }

// name gives the name of the user with this id, or "" for one who is gone.
func (o *owners) name(ctx context.Context, id string) (string, error) {
	if name, ok := o.names[id]; ok {
		return name, nil
	}
	u, err := o.from.User(ctx, id)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	o.names[id] = u.Name
	return u.Name, nil
}
