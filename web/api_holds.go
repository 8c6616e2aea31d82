package web

import (
	"context"
	"net/http"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// holdShape is a hold as programs see it.
type holdShape struct {
	ID        string    `json:"id"`
	Reason    string    `json:"reason"`
	By        string    `json:"by"` // user name; "" for one who is gone
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

type holdsShape struct {
	Holds []holdShape `json:"holds"`
}

func newHoldShape(ctx context.Context, names *owners, h sandbox.Hold) (holdShape, error) {
	by, err := names.name(ctx, h.Owner)
	return holdShape{ID: h.ID, Reason: h.Reason, By: by, CreatedAt: h.Created.UTC(), ExpiresAt: h.Expires.UTC()}, err
}

type placeHoldBody struct {
	Reason string  `json:"reason"`
	TTL    holdTTL `json:"ttl"`
}

type renewHoldBody struct {
	TTL holdTTL `json:"ttl"`
}

// holdTTL is how long a hold lasts, in JSON a number of seconds or a text such as "90s" or "5m".
type holdTTL time.Duration

// UnmarshalJSON reads either form. Whether a hold may last so long its service says.
func (d *holdTTL) UnmarshalJSON(b []byte) error {
	v, err := parseSpan(unquote(b))
	if err != nil {
		return fault.Field("ttl", "%.40s is not a length of time. A hold lasts between 10s and 7d: give seconds, or a text such as \"90s\", \"30m\" or \"24h\".", b)
	}
	*d = holdTTL(v)
	return nil
}

// apiHolds lists the holds on a sandbox that have not ended.
func (s *sandboxHandlers) apiHolds(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	box := h.Sandbox()
	holds, err := s.cfg.Holds.List(ctx, box)
	if err != nil {
		return reply{}, err
	}
	out := holdsShape{Holds: make([]holdShape, 0, len(holds))}
	names := newOwners(s.cfg.Accounts)
	for _, h := range holds {
		shape, err := newHoldShape(ctx, names, h)
		if err != nil {
			return reply{}, err
		}
		out.Holds = append(out.Holds, shape)
	}
	return reply{body: out}, nil
}

// apiPlaceHold keeps a sandbox awake for a while, in the caller's name. One that rests stays at rest until it is used;
// one that its owner has stopped, or that failed, is not kept up by a word.
func (s *sandboxHandlers) apiPlaceHold(ctx context.Context, r *request, in placeHoldBody) (reply, error) {
	out, err := s.hold(ctx, r, http.StatusCreated, func(box sandbox.Sandbox) (sandbox.Hold, error) {
		if err := holdable(box); err != nil {
			return sandbox.Hold{}, err
		}
		return s.cfg.Holds.Place(ctx, box, r.who.User.ID, in.Reason, time.Duration(in.TTL))
	})
	if shape, ok := out.body.(holdShape); ok {
		out.location = sandboxPath(r.param("name")) + "/holds/" + shape.ID
	}
	return out, err
}

// holdable says why there can be no hold on a sandbox, if so.
func holdable(box sandbox.Sandbox) error {
	switch box.State {
	case sandbox.Stopped, sandbox.Stopping:
		return fault.New(fault.Conflict, "%s is stopped, and a hold starts nothing. Start it first.", box.Name)
	case sandbox.Failed:
		return fault.New(fault.Conflict, "%s has failed, and a hold starts nothing. Start it again first.", box.Name)
	}
	return nil
}

// apiRenewHold lets a hold end so much later than now.
func (s *sandboxHandlers) apiRenewHold(ctx context.Context, r *request, in renewHoldBody) (reply, error) {
	return s.hold(ctx, r, http.StatusOK, func(box sandbox.Sandbox) (sandbox.Hold, error) {
		return s.cfg.Holds.Renew(ctx, box, r.param("id"), time.Duration(in.TTL))
	})
}

// hold answers with the hold that do makes of a sandbox.
func (s *sandboxHandlers) hold(ctx context.Context, r *request, status int, do func(sandbox.Sandbox) (sandbox.Hold, error)) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	box := h.Sandbox()
	hold, err := do(box)
	if err != nil {
		return reply{}, err
	}
	shape, err := newHoldShape(ctx, newOwners(s.cfg.Accounts), hold)
	return reply{status: status, body: shape}, err
}

// apiRevokeHold ends a hold now.
func (s *sandboxHandlers) apiRevokeHold(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	box := h.Sandbox()
	return reply{status: http.StatusNoContent}, s.cfg.Holds.Revoke(ctx, box, r.param("id"))
}
