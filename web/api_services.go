package web

import (
	"context"
	"errors"
	"net/http"

	"sandboxd/internal/access"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/services"
)

// errServicesChanged is services.ErrChanged in HTTP's words.
var errServicesChanged = &statusError{http.StatusPreconditionFailed, "precondition_failed",
	"The services have been changed meanwhile, so they do not have the ETag of If-Match any more. Look at them again."}

// onServices answers with what act makes of the services of the sandbox that the path names.
func (s *serviceHandlers) onServices(ctx context.Context, r *request, act func(ctx context.Context, h access.Handle) (reply, error)) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	out, err := act(ctx, h)
	if errors.Is(err, services.ErrChanged) {
		return reply{}, errServicesChanged
	}
	return out, err
}

// changeServices is onServices for a change, which may be bound to what the caller has seen.
func (s *serviceHandlers) changeServices(ctx context.Context, r *request, act func(ctx context.Context, h access.Handle, m services.Match) (reply, error)) (reply, error) {
	match, none, err := r.conditions()
	if none {
		err = fault.New(fault.Invalid, "If-None-Match is not understood here. Send If-Match with the ETag that you have seen.")
	}
	if err != nil {
		return reply{}, err
	}
	return s.onServices(ctx, r, func(ctx context.Context, h access.Handle) (reply, error) {
		return act(ctx, h, func(etag string) bool { return match == "" || match == "*" || match == etag })
	})
}

// servicesReply answers with a whole list.
func (s *serviceHandlers) servicesReply(ctx context.Context, r *request, l services.List) reply {
	r.head.Set("ETag", l.ETag)
	out := servicesShape{Services: make([]serviceShape, 0, len(l.Services)), Overridden: l.Overridden}
	for _, one := range l.Services {
		out.Services = append(out.Services, s.serviceShape(ctx, r.param("name"), one))
	}
	return reply{body: out}
}

// apiServices lists the services with their state. It wakes nothing.
func (s *serviceHandlers) apiServices(ctx context.Context, r *request, _ none) (reply, error) {
	return s.onServices(ctx, r, func(ctx context.Context, h access.Handle) (reply, error) {
		l, err := s.cfg.Services.List(ctx, h)
		if err != nil {
			return reply{}, err
		}
		return s.servicesReply(ctx, r, l), nil
	})
}

// apiPutServices declares the whole list.
func (s *serviceHandlers) apiPutServices(ctx context.Context, r *request, in servicesBody) (reply, error) {
	if in.Services == nil {
		return reply{}, fault.Field("services", "services must be a list. DELETE gives the sandbox its template's services again.")
	}
	list := make([]catalog.Service, 0, len(*in.Services))
	for _, one := range *in.Services {
		list = append(list, one.service())
	}
	return s.putServices(ctx, r, list)
}

// apiResetServices gives a sandbox its template's services again.
func (s *serviceHandlers) apiResetServices(ctx context.Context, r *request, _ none) (reply, error) {
	return s.putServices(ctx, r, nil)
}

func (s *serviceHandlers) putServices(ctx context.Context, r *request, list []catalog.Service) (reply, error) {
	return s.changeServices(ctx, r, func(ctx context.Context, h access.Handle, m services.Match) (reply, error) {
		l, err := s.cfg.Services.Put(ctx, h, list, m)
		if err != nil {
			return reply{}, err
		}
		return s.servicesReply(ctx, r, l), nil
	})
}

// apiService shows one service. It wakes nothing.
func (s *serviceHandlers) apiService(ctx context.Context, r *request, _ none) (reply, error) {
	return s.onServices(ctx, r, func(ctx context.Context, h access.Handle) (reply, error) {
		l, err := s.cfg.Services.List(ctx, h)
		if err != nil {
			return reply{}, err
		}
		return s.serviceReply(ctx, r, http.StatusOK, l)
	})
}

// serviceReply answers with the service that the path names.
func (s *serviceHandlers) serviceReply(ctx context.Context, r *request, status int, l services.List) (reply, error) {
	one, err := l.Find(r.param("service"))
	if err != nil {
		return reply{}, err
	}
	r.head.Set("ETag", l.ETag)
	return reply{status: status, body: s.serviceShape(ctx, r.param("name"), one)}, nil
}

// apiPutService declares one service.
func (s *serviceHandlers) apiPutService(ctx context.Context, r *request, in serviceBody) (reply, error) {
	called := r.param("service")
	if in.Name != "" && in.Name != called {
		return reply{}, fault.Field("name", "The body names the service %.64q, the address %.64q. Leave the name out, or delete the one and make the other.", in.Name, called)
	}
	in.Name = called
	return s.changeServices(ctx, r, func(ctx context.Context, h access.Handle, m services.Match) (reply, error) {
		l, created, err := s.cfg.Services.Set(ctx, h, in.service(), m)
		if err != nil {
			return reply{}, err
		}
		if !created {
			return s.serviceReply(ctx, r, http.StatusOK, l)
		}
		r.action = "service.add"
		out, err := s.serviceReply(ctx, r, http.StatusCreated, l)
		out.location = sandboxPath(h.Name()) + "/services/" + called
		return out, err
	})
}

// apiDeleteService takes a service away; it ends if it runs.
func (s *serviceHandlers) apiDeleteService(ctx context.Context, r *request, _ none) (reply, error) {
	return s.changeServices(ctx, r, func(ctx context.Context, h access.Handle, m services.Match) (reply, error) {
		l, err := s.cfg.Services.Delete(ctx, h, r.param("service"), m)
		if err != nil {
			return reply{}, err
		}
		r.head.Set("ETag", l.ETag)
		return reply{status: http.StatusNoContent}, nil
	})
}

// switchService makes the action that starts, stops or restarts a service. It wakes the sandbox first.
func (s *serviceHandlers) switchService(do func(ctx context.Context, h access.Handle, service string) (services.Status, error)) func(context.Context, *request, none) (reply, error) {
	return func(ctx context.Context, r *request, _ none) (reply, error) {
		return s.onServices(ctx, r, func(ctx context.Context, h access.Handle) (reply, error) {
			one, err := do(ctx, h, r.param("service"))
			if err != nil {
				return reply{}, err
			}
			return reply{body: s.serviceShape(ctx, h.Name(), one)}, nil
		})
	}
}
