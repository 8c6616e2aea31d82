package web

import (
	"context"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// visible finds the sandbox called name for who. It is the only way from a name in a request to a sandbox: one that
// who may not see is NotFound in the very same words as one that is not there. One that who could see and that was
// deleted lately is Gone.
func (s *Server) visible(ctx context.Context, who auth.Principal, name string) (sandbox.Sandbox, error) {
	if who.Sandbox != "" && who.Sandbox != name {
		return sandbox.Sandbox{}, noSandbox(name)
	}
	box, err := s.cfg.Sandboxes.Sandbox(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return sandbox.Sandbox{}, s.missing(ctx, who, name)
	}
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	if !who.May(box.Owner, box.Name) {
		return sandbox.Sandbox{}, noSandbox(name)
	}
	return box, nil
}

// missing says why there is no sandbox called name: it was deleted, for who could see it, else that there is none.
func (s *Server) missing(ctx context.Context, who auth.Principal, name string) error {
	tombstone, err := s.cfg.Sandboxes.Tombstone(ctx, name)
	switch {
	case fault.Is(err, fault.NotFound), err == nil && !who.May(tombstone.Owner, tombstone.Name):
		return noSandbox(name)
	case err != nil:
		return err
	}
	return fault.New(fault.Gone, "%s was deleted on %s, with everything in it. It does not come back.",
		tombstone.Name, tombstone.Deleted.UTC().Format("2 January 2006 at 15:04 MST"))
}

// since gives err of what was asked of a sandbox that was there when the request came: when that is that there is none, it
// was deleted meanwhile, and is told as visible tells it.
func (s *Server) since(ctx context.Context, who auth.Principal, name string, err error) error {
	if fault.Is(err, fault.NotFound) {
		if _, now := s.visible(ctx, who, name); now != nil {
			return now
		}
	}
	return err
}

func noSandbox(name string) error {
	return fault.New(fault.NotFound, "There is no sandbox called %.64q.", name)
}

// owners gives the names of users by id, asking for each once. It belongs to one request.
type owners struct {
	from  userReader
	names map[string]string
}

func (s *Server) owners() *owners { return &owners{from: s.cfg.Accounts, names: map[string]string{}} }

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
