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

// updater is a server whose updates have ended at the first look.
type updater struct {
	mu    sync.Mutex
	asked []string
}

// ServeHTTP implements http.Handler: as much of the API as updates need.
func (u *updater) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	defer u.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api/v1")
	u.asked = append(u.asked, strings.TrimSpace(r.Method+" "+path+" "+string(body)))
	const shape = `{"id":"` + anID + `","state":%q,"image":"i","problem":"","items":[{"sandbox":"lab","state":%q,"problem":%q,"log":["the \u001b[31mend"],"taken_back":%t}]}`
	switch {
	case path == "/sandboxes/used/update":
		answerProblem(w, http.StatusConflict, "used is in use: terminal main.")
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, shape, "running", "waiting", "", false)
	case path == "/templates/base/update":
		fmt.Fprintf(w, shape, "stopped", "failed", "It did not start.", true)
	default:
		fmt.Fprintf(w, shape, "done", "updated", "", false)
	}
}

func TestUpdate_FollowsItToTheEnd(t *testing.T) {
	homeless(t)
	u := &updater{}
	s := httptest.NewServer(u)
	t.Cleanup(s.Close)
	t.Setenv("SANDBOXD_URL", s.URL)
	t.Setenv("SANDBOXD_TOKEN", "sbx_secret")
	if out, err := anywhere(t, "update", "lab", "--force"); err != nil || !strings.Contains(out, "lab: updated") || u.asked[0] != `POST /sandboxes/lab/update {"force":true}` {
		t.Errorf("%q, %v, asks %s", out, err, u.asked)
	}
	u.asked = nil
	out, err := anywhere(t, "template", "update", "base", "--max-failures", "2")
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "1 of 1 sandboxes were not updated") || strings.Contains(out, "\x1b") ||
		!strings.Contains(out, "lab: failed, put back as it was: It did not start.") || !strings.Contains(out, "end") || u.asked[0] != `POST /templates/base/update {"force":false,"max_failures":2}` {
		t.Errorf("%q, %v, asks %s", out, err, u.asked)
	}
	if _, err := anywhere(t, "update", "used"); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "terminal main. With --force it is updated all the same.") {
		t.Error(err)
	}
	for _, args := range [][]string{{"update", "../x"}, {"template", "update", "A B"}} {
		if _, err := anywhere(t, args...); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
