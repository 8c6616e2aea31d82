//go:build bench

package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"sandboxd/internal/benchtest"
)

// hostLimit is what the page of a host with benchRunning sandboxes may take.
const hostLimit = 100 * time.Millisecond

// TestBench_HostOfAThousandRunning draws the page of the host.
func TestBench_HostOfAThousandRunning(t *testing.T) {
	s := newStage(t)
	for i := range benchRunning {
		box := s.put([]string{"ada", "bob"}[i%2], fmt.Sprintf("box-%04d", i), nil)
		s.metrics.uses(box.ID, steadily(float64(i)/1000), steadily(float64(i<<20)))
	}
	var took []time.Duration
	for range benchLists {
		r := httptest.NewRequest(http.MethodGet, "http://localhost:8080/host", nil)
		r.AddCookie(&http.Cookie{Name: s.server.sessionCookie(), Value: s.sessions["root"]})
		w := httptest.NewRecorder()
		begin := time.Now()
		s.server.ServeHTTP(w, r)
		took = append(took, time.Since(begin))
		if w.Code != http.StatusOK {
			t.Fatalf("status %d", w.Code)
		}
	}
	benchtest.Record(t, benchtest.File, benchtest.Times("page of the host with 1,000 running sandboxes", "p95 ≤ 100 ms", took))
	slices.Sort(took)
	p95 := took[len(took)*95/100]
	t.Logf("p50 %s, p95 %s", took[len(took)/2], p95)
	if p95 > hostLimit {
		t.Errorf("p95 is %s, %s at most", p95, hostLimit)
	}
}
