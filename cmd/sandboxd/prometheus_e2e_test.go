//go:build e2e

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// scrape reads the figures as Prometheus does.
func (s *server) scrape(address, token string) families {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "text/plain;version=0.0.4")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("scrape: %s", resp.Status)
	}
	return readFamilies(s.t, resp.Body)
}

// TestPrometheus_SeesWhatIsDone takes a sandbox through its states, and reads what was counted.
func TestPrometheus_SeesWhatIsDone(t *testing.T) {
	t.Parallel()
	const token = "e2e-0123456789abcdef"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddr(t)
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t), "--metrics-listen", address, "--metrics-token-file", file)
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the token: %s", resp.Status)
	}
	s.createEcho("lab", echoProgram(t))
	inState := func(state string, n float64) {
		t.Helper()
		s.until(state+" sandboxes are counted", func() bool {
			return s.scrape(address, token).value("sandboxd_sandboxes", "state", state) == n
		})
	}
	before := s.scrape(address, token)
	for _, state := range []string{"frozen", "asleep"} {
		s.sleeps("lab", state)
		inState(state, 1)
		if status, text, _ := s.get("3000-lab", "/some/page", nil); status != http.StatusOK {
			t.Errorf("page of one that is %s: %d %s", state, status, text)
		}
	}
	s.exec("lab", map[string]any{"command": "timeout 1 yes > /dev/null; exit 3"})
	s.until("its use is told", func() bool {
		f := s.scrape(address, token)
		return f.value("sandboxd_sandbox_cpu_seconds_total", "sandbox", "lab") > .2 && f.value("sandboxd_sandbox_memory_bytes", "sandbox", "lab") > 0
	})
	if status, _ := s.raw("GET", "/sandboxes/none", nil); status != http.StatusNotFound {
		t.Errorf("a sandbox that is not there: %d", status)
	}
	now := s.scrape(address, token)
	now.grewSince(t, before)
	now.has(t, 1, "sandboxd_creates_total", "outcome", "ok")
	now.has(t, 1, "sandboxd_create_duration_seconds", "outcome", "ok")
	now.has(t, 1, "sandboxd_wake_duration_seconds", "from", "frozen", "outcome", "ok")
	inState("running", 1)
	now.has(t, 1, "sandboxd_errors_total", "part", "api", "kind", "not_found")
	now.has(t, 1, "sandboxd_build_info")
	if status, _ := s.raw("DELETE", "/sandboxes/lab", nil); status >= http.StatusBadRequest {
		t.Errorf("delete: %d", status)
	}
	s.until("the delete is counted", func() bool { return s.scrape(address, token).value("sandboxd_deletes_total", "outcome", "ok") == 1 })
	inState("running", 0)
}

// grewSince fails unless what TestPrometheus_SeesWhatIsDone did between two scrapes was counted.
func (f families) grewSince(t *testing.T, before families) {
	t.Helper()
	for _, c := range []struct {
		name   string
		labels []string
		more   float64
	}{
		{"sandboxd_wakes_total", []string{"from", "frozen", "outcome", "ok"}, 1},
		{"sandboxd_wakes_total", []string{"from", "asleep", "outcome", "ok"}, 1},
		{"sandboxd_rests_total", []string{"to", "frozen", "outcome", "ok"}, 1},
		{"sandboxd_rests_total", []string{"to", "asleep", "outcome", "ok"}, 1},
		{"sandboxd_execs_total", []string{"outcome", "ok"}, 1},
		{"sandboxd_http_requests_total", []string{"to", "port", "code", "2xx"}, 2},
	} {
		if got := f.value(c.name, c.labels...) - before.value(c.name, c.labels...); !(got >= c.more) { // a busy engine may take a second try
			t.Errorf("%s%v grew by %v, want %v", c.name, c.labels, got, c.more)
		}
	}
}
