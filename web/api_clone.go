package web

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
)

// cloneBody says what clones are made.
type cloneBody struct {
	Name     string `json:"name"`
	Count    *int   `json:"count"`    // nil for 1
	Snapshot string `json:"snapshot"` // its id; "" for the sandbox as it is
}

// clonesShape tells of the clones that were made, and why others were not.
type clonesShape struct {
	Sandboxes []sandboxShape `json:"sandboxes"`
	Failed    []string       `json:"failed"`
}

// apiClone makes clones of a sandbox, and answers once they run. Without any it is a fault.
func (s *snapshotHandlers) apiClone(ctx context.Context, r *request, in cloneBody) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	ask := snapshot.CloneAsk{Owner: r.who.User.ID, Name: in.Name, Count: 1, Snapshot: in.Snapshot}
	if in.Count != nil {
		ask.Count = *in.Count
	}
	if err := s.checkClone(h, ask); err != nil {
		return reply{}, err
	}
	boxes, err := s.cfg.Snapshots.Clone(ctx, h.Sandbox(), ask)
	r.object = cmp.Or(namesOf(boxes), ask.Name)
	if len(boxes) == 0 && err != nil {
		return reply{}, err
	}
	out := clonesShape{Sandboxes: make([]sandboxShape, 0, len(boxes)), Failed: []string{}}
	names := newOwners(s.cfg.Accounts)
	for _, box := range boxes {
		shape, err := s.sandboxes.shape(ctx, names, box)
		if err != nil {
			return reply{}, err
		}
		out.Sandboxes = append(out.Sandboxes, shape)
	}
	for _, err := range joined(err) {
		out.Failed = append(out.Failed, fault.Message(err))
	}
	return reply{status: http.StatusCreated, body: out}, nil
}

// checkClone finds what is wrong with a request for clones, field by field.
func (s *snapshotHandlers) checkClone(h access.Handle, a snapshot.CloneAsk) error {
	if a.Name != "" {
		if err := hostname.CheckName(a.Name); err != nil {
			return err
		}
	}
	if a.Count < 1 || a.Count > snapshot.MaxClones {
		return fault.Field("count", "The number of clones must be from 1 to %d.", snapshot.MaxClones)
	}
	if a.Snapshot == "" {
		return nil
	}
	if _, err := s.ofBox(h, a.Snapshot); fault.Is(err, fault.NotFound) {
		return fault.Field("snapshot", "%s", fault.Message(err))
	} else if err != nil {
		return err
	}
	return nil
}

func namesOf(boxes []sandbox.Sandbox) string {
	names := make([]string, 0, len(boxes))
	for _, box := range boxes {
		names = append(names, box.Name)
	}
	return strings.Join(names, ", ")
}
