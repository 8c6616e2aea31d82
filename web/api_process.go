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
		err := s.ask(ctx, check)
		s.noteAnswer(check.Name, err)
		if err != nil {
			out.Ready, out.Checks[check.Name] = false, "does not answer"
		}
	}
	if !out.Ready {
		askLater(r.head, http.StatusServiceUnavailable, nil)
		return reply{status: http.StatusServiceUnavailable, body: out}, nil
	}
	return reply{body: out}, nil
}

// noteAnswer logs that a part does not answer, or answers again, once each: anybody may ask, and often.
func (s *processHandlers) noteAnswer(part string, err error) {
	if err == nil {
		if _, failed := s.failing.LoadAndDelete(part); failed {
			s.log.Info("ready again", "part", part)
		}
		return
	}
	if _, known := s.failing.LoadOrStore(part, true); !known {
		s.log.Warn("not ready", "part", part, "err", err)
	}
}

func (s *processHandlers) ask(ctx context.Context, check Check) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	return check.Ask(ctx)
}

func (s *processHandlers) apiVersion(context.Context, *request, none) (reply, error) {
	return reply{body: s.cfg.Version}, nil
}
