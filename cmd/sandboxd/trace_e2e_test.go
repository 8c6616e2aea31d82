//go:build e2e

package main

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/trace/tracetest"
)

// TestTrace_FollowsARequestThroughTheWake asks for a page of a sandbox that rests, and reads what a collector got.
func TestTrace_FollowsARequestThroughTheWake(t *testing.T) {
	t.Parallel()
	collector := tracetest.New(t)
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t), "--otlp-endpoint", collector.URL)
	s.createEcho("lab", echoProgram(t))
	for state, step := range map[string]string{"frozen": "thaw", "asleep": "start"} {
		s.sleeps("lab", state)
		if status, text, _ := s.get("3000-lab", "/private-path?private-query=1", http.Header{"Cookie": {"private-cookie=1"}}); status != http.StatusOK {
			t.Fatalf("page of one that is %s: %d %s", state, status, text)
		}
		var steps map[string]tracetest.Span
		s.until("the trace of the wake has come", func() bool {
			steps = traceWith(collector.Spans(), step)
			return steps["request"].ID != ""
		})
		request, wake := steps["request"], steps["wake"]
		for name, parent := range map[string]string{"request": "", "resolve": request.ID, "wake": request.ID, step: wake.ID, "proxy": request.ID} {
			if got := steps[name]; got.ID == "" || got.Parent != parent || got.Failed {
				t.Errorf("of one that is %s, step %s is %+v", state, name, got)
			}
			if got := steps[name]; got.Begin.Before(request.Begin) || got.End.After(request.End) {
				t.Errorf("of one that is %s, step %s is outside its request", state, name)
			}
		}
		if request.Attributes["sandboxd.sandbox"] != "lab" || request.Attributes["sandboxd.to"] != "port" {
			t.Errorf("the request is %v", request.Attributes)
		}
		t.Logf("%s: %s until the first byte, of which %s for the %s", state, request.End.Sub(request.Begin), steps[step].End.Sub(steps[step].Begin), step)
	}
	text := collector.Text()
	for _, secret := range []string{"private", s.token} {
		if strings.Contains(text, secret) {
			t.Errorf("a span has %q", secret)
		}
	}
	if p := collector.Problem(); p != "" {
		t.Error(p)
	}
}

// traceWith gives the steps of the trace that has a step of that name.
func traceWith(spans []tracetest.Span, name string) map[string]tracetest.Span {
	steps := map[string]tracetest.Span{}
	for _, with := range spans {
		for _, s := range spans {
			if with.Name == name && s.Trace == with.Trace {
				steps[s.Name] = s
			}
		}
	}
	return steps
}
