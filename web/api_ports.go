package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/visibility"
)

// defaultShareTTL is how long a link to a port lasts when nobody says.
const defaultShareTTL = 24 * time.Hour

// visibilityBody says who may use a port.
type visibilityBody struct {
	Visibility sandbox.Visibility `json:"visibility"`
}

// shareBody asks for a link to a port.
type shareBody struct {
	TTL   shareTTL `json:"ttl"`
	Label string   `json:"label"`
}

// shareTTL is how long a link lasts, in JSON a number of seconds or a text such as "24h" or "7d".
type shareTTL time.Duration

// UnmarshalJSON reads either form. Whether a link may last so long its service says.
func (d *shareTTL) UnmarshalJSON(b []byte) error { return readSpan((*time.Duration)(d), "ttl", b) }

// portParam gives the port that the path names.
func (r *request) portParam() (int, error) {
	number, err := strconv.ParseUint(r.param("port"), 10, 16)
	if err != nil || number == 0 {
		return 0, fault.Field("port", "%.20q is no port. A port is a number between 1 and 65535.", r.param("port"))
	}
	return int(number), nil
}

// onPort answers with what act makes of the port that the path names, of a sandbox that the caller may use.
func (s *portHandlers) onPort(ctx context.Context, r *request, act func(h access.Handle, port int) (reply, error)) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	port, err := r.portParam()
	if err != nil {
		return reply{}, err
	}
	return act(h, port)
}

// apiPorts lists the ports of a sandbox that there is something to tell of. It wakes nothing.
func (s *portHandlers) apiPorts(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	all, err := s.portsOf(ctx, h)
	if err != nil {
		return reply{}, err
	}
	return reply{body: all}, nil
}

// apiSetVisibility says who may use a port beside those who may use the sandbox.
func (s *portHandlers) apiSetVisibility(ctx context.Context, r *request, in visibilityBody) (reply, error) {
	return s.onPort(ctx, r, func(h access.Handle, port int) (reply, error) {
		box := h.Sandbox()
		r.object = fmt.Sprintf("%d: %s", port, in.Visibility)
		if err := s.cfg.Ports.Set(ctx, box, port, in.Visibility); err != nil {
			return reply{}, err
		}
		all, err := s.portsOf(ctx, h)
		if err != nil {
			return reply{}, err
		}
		return reply{body: all.find(port, s.openPort(box.Name, port))}, nil
	})
}

// apiShare makes a link to a port, which is told this once.
func (s *portHandlers) apiShare(ctx context.Context, r *request, in shareBody) (reply, error) {
	return s.onPort(ctx, r, func(h access.Handle, port int) (reply, error) {
		box := h.Sandbox()
		n := visibility.NewShare{Port: port, By: r.who.User.ID, Label: in.Label, TTL: time.Duration(in.TTL)}
		if n.TTL == 0 {
			n.TTL = defaultShareTTL
		}
		share, secret, err := s.cfg.Ports.Share(ctx, box, n)
		if err != nil {
			return reply{}, err
		}
		shape, err := newShareShape(ctx, newOwners(s.cfg.Accounts), share)
		return reply{
			status:   http.StatusCreated,
			location: sandboxPath(box.Name) + "/ports/" + strconv.Itoa(port) + "/shares/" + share.ID,
			body:     newShareReply{shareShape: shape, URL: s.cfg.Hosts.ShareURL(box.Name, port, secret), Secret: secret},
		}, err
	})
}

// apiRevokeShare ends a link to a port now.
func (s *portHandlers) apiRevokeShare(ctx context.Context, r *request, _ none) (reply, error) {
	return s.onPort(ctx, r, func(h access.Handle, port int) (reply, error) {
		box := h.Sandbox()
		return reply{status: http.StatusNoContent}, s.cfg.Ports.Revoke(ctx, box, port, r.param("id"))
	})
}
