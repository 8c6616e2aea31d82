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

// Of the list with 1,000 running sandboxes.
const (
	benchRunning = 1000
	benchLists   = 200
	benchLimit   = 40 * time.Millisecond
)

// TestBench_ListOfAThousandRunning draws the front page of an admin, with the meters of the rows that a page has.
func TestBench_ListOfAThousandRunning(t *testing.T) {
	s := newStage(t)
	for i := range benchRunning {
		box := s.put("ada", fmt.Sprintf("box-%04d", i), nil)
		s.metrics.uses(box.ID, func(j int) float64 { return float64((i+j)%20) / 10 }, func(j int) float64 { return float64((i+7*j)%50) * (40 << 20) })
	}
	var took []time.Duration
	var size int
	for range benchLists {
		r := httptest.NewRequest(http.MethodGet, "http://localhost:8080/", nil)
		r.AddCookie(&http.Cookie{Name: s.server.sessionCookie(), Value: s.sessions["root"]})
		w := httptest.NewRecorder()
		begin := time.Now()
		s.server.ServeHTTP(w, r)
		took = append(took, time.Since(begin))
		if size = w.Body.Len(); w.Code != http.StatusOK {
			t.Fatalf("status %d", w.Code)
		}
	}
	benchtest.Record(t, benchtest.File, benchtest.Times("list of 1,000 running sandboxes with sparklines", "p95 ≤ 40 ms", took))
	slices.Sort(took)
	p95 := took[len(took)*95/100]
	t.Logf("p50 %s, p95 %s, %d bytes before compression", took[len(took)/2], p95, size)
	if p95 > benchLimit {
		t.Errorf("p95 is %s, %s at most", p95, benchLimit)
	}
}
