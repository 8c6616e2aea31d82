package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"sandboxd/internal/fault"
)

// planner is a server with one schedule.
type planner struct {
	mu    sync.Mutex
	asked []string
}

// ServeHTTP implements http.Handler: as much of the API as schedules need.
func (p *planner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api/v1")
	p.asked = append(p.asked, strings.TrimSpace(r.Method+" "+path+" "+string(body)))
	const shape = `{"id":"` + anID + `","name":"night\u001b[31mly","owner":"ada","enabled":true,"cron":"30 3 * * *","zone":"UTC","target":{"kind":"sandbox","sandbox":"lab"},
		"next":["2026-11-26T03:30:00Z"],"last_run":{"work":"backup","state":"done","began_at":"2026-11-25T03:30:00Z","problem":"","failed":2,
		"items":[{"sandbox":"den","problem":""},{"sandbox":"lab","problem":"The disk is full."}]}}`
	switch r.Method + " " + path {
	case "GET /schedules":
		named := func(id, name string) string {
			return `{"id":"` + id + `","name":"` + name + `","enabled":true,"target":{"kind":"sandbox","sandbox":"old","deleted":true},"next":[]}`
		}
		fmt.Fprintf(w, `{"schedules":[%s]}`, strings.Join([]string{named("0000000000000001", "twice"), named("0000000000000002", "twice"), named(anID, "weekly"), shape}, ","))
	case "POST /schedules":
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, shape)
	case "PATCH /schedules/" + anID:
		io.WriteString(w, shape)
	case "POST /schedules/" + anID + "/run":
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, `{"state":"running"}`)
	case "DELETE /schedules/" + anID:
		w.WriteHeader(http.StatusNoContent)
	default:
		answerProblem(w, http.StatusNotFound, "There is no such thing.")
	}
}

func newPlanner(t *testing.T) *planner {
	t.Helper()
	homeless(t)
	p := &planner{}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	t.Setenv("SANDBOXD_URL", s.URL)
	t.Setenv("SANDBOXD_TOKEN", "sbx_secret")
	t.Setenv("TZ", "UTC")
	return p
}

func TestSchedule_ListsCreatesRunsAndDeletes(t *testing.T) {
	p := newPlanner(t)
	for _, c := range []struct{ line, want, asks string }{
		{"schedule list", "2 failed", "GET /schedules"},
		{"schedule create nightly --cron 30_3_*_*_* --zone UTC --sandbox lab --keep-last 2 --keep-daily 0 --keep-weekly 0", "Created the schedule",
			`POST /schedules {"name":"nightly","cron":"30 3 * * *","zone":"UTC","target":{"kind":"sandbox","sandbox":"lab"},"keep":{"last":2,"daily":0,"weekly":0,"monthly":0},"test_cron":""}`},
		{"schedule create all --cron @daily --zone UTC --all", "Created", `POST /schedules {"name":"all","cron":"@daily","zone":"UTC","target":{"kind":"all"},"keep":{"last":3,"daily":7,"weekly":4,"monthly":0},"test_cron":""}`},
		{"schedule run " + anID, "has begun", "POST /schedules/" + anID + "/run {}"},
		{"schedule run --test " + anID, "has begun", "POST /schedules/" + anID + `/run {"work":"test"}`},
		{"schedule list", "lab: The disk is full.", "GET /schedules"},
		{"schedule list", "old (deleted)", "GET /schedules"},
		{"schedule run weekly", "has begun", "POST /schedules/" + anID + "/run {}"},
		{"schedule pause weekly", "Paused the schedule", "PATCH /schedules/" + anID + ` {"enabled":false}`},
		{"schedule resume " + anID, "is due at 2026-11-26 03:30", "PATCH /schedules/" + anID + ` {"enabled":true}`},
		{"schedule delete " + anID, "Deleted the schedule", "DELETE /schedules/" + anID},
	} {
		args := strings.Fields(c.line)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
		}
		out, err := anywhere(t, args...)
		if err != nil || !strings.Contains(out, c.want) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: %q, %v", c.line, out, err)
		}
		if last := p.asked[len(p.asked)-1]; last != c.asks {
			t.Errorf("%s: asks %s", c.line, last)
		}
	}
}

func TestSchedule_RefusesWhatMakesNoSense(t *testing.T) {
	newPlanner(t)
	for line, kind := range map[string]fault.Kind{"run none": fault.NotFound, "delete twice": fault.Conflict, "pause none": fault.NotFound, "create x --all --sandbox lab": fault.Invalid} {
		if _, err := anywhere(t, append([]string{"schedule"}, strings.Fields(line)...)...); !fault.Is(err, kind) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
