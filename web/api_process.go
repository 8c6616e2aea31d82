package web

import (
	"context"
	"net/http"
	"time"
)

// checkTime bounds each question that /readyz asks.
const checkTime = 4 * time.Second

type readiness struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"` // name: "ok" or the problem
}

// apiHealth says that the process answers.
func (s *processHandlers) apiHealth(context.Context, *request, none) (reply, error) {
	return reply{body: map[string]string{"status": "ok"}}, nil
}

// apiReady says whether everything that sandboxd needs answers, and which part does not.
func (s *processHandlers) apiReady(ctx context.Context, r *request, _ none) (reply, error) {
	out := readiness{Ready: true, Checks: map[string]string{}}
	for _, check := range s.cfg.Checks {
		out.Checks[check.Name] = "ok"
		if err := s.ask(ctx, check); err != nil {
			s.log.Warn("not ready", "part", check.Name, "err", err)
			out.Ready, out.Checks[check.Name] = false, "does not answer"
		}
	}
	if !out.Ready {
		askLater(r.head, http.StatusServiceUnavailable, nil)
		return reply{status: http.StatusServiceUnavailable, body: out}, nil
	}
	return reply{body: out}, nil
}

func (s *processHandlers) ask(ctx context.Context, check Check) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	return check.Ask(ctx)
}

func (s *processHandlers) apiVersion(context.Context, *request, none) (reply, error) {
	return reply{body: s.cfg.Version}, nil
}
