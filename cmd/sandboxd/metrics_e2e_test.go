//go:build e2e

package main

import (
	"net/http"
	"os"
	"slices"
	"testing"
	"time"
)

// metricsBody is a stretch of history in the API.
type metricsBody struct {
	Step   float64 `json:"step"`
	Points []struct {
		Time   time.Time `json:"time"`
		State  string    `json:"state"`
		CPU    float64   `json:"cpu_cores"`
		Memory int64     `json:"memory_bytes"`
		Limit  int64     `json:"memory_limit_bytes"`
	} `json:"points"`
	Changes []struct {
		State string `json:"state"`
		Mark  string `json:"mark"`
	} `json:"changes"`
	Now struct {
		Cores       int   `json:"cores"`
		MemoryTotal int64 `json:"memory_total_bytes"`
	} `json:"now"`
	Home int64 `json:"home_bytes"`
}

// metrics gives the last minutes of a path's figures.
func (s *server) metrics(path string) (m metricsBody) {
	s.t.Helper()
	if status := s.call("GET", path+"?since=10m&step=2s", nil, &m); status != http.StatusOK {
		s.t.Fatalf("%s: %d", path, status)
	}
	return m
}

// busiest gives the most cores and bytes of a step.
func (m metricsBody) busiest() (cores float64, memory int64) {
	for _, p := range m.Points {
		cores, memory = max(cores, p.CPU), max(memory, p.Memory)
	}
	return cores, memory
}

// marks gives what happened, oldest first.
func (m metricsBody) marks() (out []string) {
	for _, c := range m.Changes {
		if c.Mark != "" {
			out = append(out, c.Mark)
		}
	}
	return out
}

// TestMetrics_TellWhatASandboxUsedAlsoWhileItSleepsAndAfterACrash makes a sandbox busy, lets it sleep, and kills sandboxd.
func TestMetrics_TellWhatASandboxUsedAlsoWhileItSleepsAndAfterACrash(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.createEcho("lab", echoProgram(t))
	const path = "/sandboxes/lab/metrics"
	s.until("the sandbox's work is seen", func() bool {
		s.exec("lab", map[string]any{"command": "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; head -c 64M /dev/zero | tail -c 64M | wc -c"})
		cores, memory := s.metrics(path).busiest()
		return cores > 0.05 && memory > 32<<20
	})
	if m := s.metrics(path); m.Points[len(m.Points)-2].Limit <= 0 || !slices.Equal(m.marks(), []string{"start"}) {
		t.Errorf("%+v, marks %q", m.Points[len(m.Points)-2], m.marks())
	}
	for _, state := range []string{"frozen", "asleep"} {
		s.sleeps("lab", state)
		s.until("the history says "+state, func() bool {
			m := s.metrics(path)
			return m.Points[len(m.Points)-1].State == state
		})
		if status, _ := s.raw("POST", "/sandboxes/lab/start?wait=ready", nil); status != http.StatusOK {
			t.Fatalf("start: %d", status)
		}
	}
	if got := s.metrics(path).marks(); !slices.Equal(got, []string{"start", "wake", "wake"}) {
		t.Errorf("marks %q", got)
	}
	kept := func() (cores float64) { // what is in the file, as it is read with a longer step
		var m metricsBody
		if status := s.call("GET", path+"?since=10m&step=15s", nil, &m); status != http.StatusOK {
			t.Fatal(status)
		}
		cores, _ = m.busiest()
		return cores
	}
	begun := time.Now() // of the end of the work, which is written a quarter of a minute later at most
	s.until("the work is written", func() bool { return time.Since(begun) > 35*time.Second && kept() > 0 })
	before := kept()
	s.kill()
	s.start()
	if after := kept(); after < before/2 {
		t.Errorf("%.3f cores before the crash, %.3f after", before, after)
	}
	host := s.metrics("/host/metrics")
	if cores, memory := host.busiest(); host.Now.Cores < 1 || host.Now.MemoryTotal < 1<<20 || memory < 1<<20 || cores < 0 {
		t.Errorf("the host: %+v, %.2f cores, %d bytes", host.Now, cores, memory)
	}
	s.stop()
	if err := os.WriteFile(historyPath(&Config{Data: s.data}), []byte("this is no database, this is no database, this is no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start() // with a damaged history
	if cores := kept(); cores > before/2 {
		t.Errorf("%.3f cores out of a damaged file", cores)
	}
	s.until("its home is measured", func() bool { return s.metrics(path).Home > 1<<20 }) // its program is there
}
