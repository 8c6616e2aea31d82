//go:build bench

package sqlite

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/benchtest"
	"sandboxd/internal/gateway"
)

// TestBenchGateway asks for what pages show of a full log, and of the usage of a busy month.
func TestBenchGateway(t *testing.T) {
	const (
		more      = 1000
		mostCalls = 200 * time.Millisecond
		mostUsage = time.Second
	)
	d := gatewayDB(t)
	manyCalls(t, d, gateway.MaxCalls+more)
	s, now := d.Gateway(), time.Now()
	questions := gatewayQuestions(s, now)
	for _, name := range slices.Sorted(maps.Keys(questions)) {
		begun := time.Now()
		n, err := questions[name](t.Context())
		took, most := time.Since(begun), mostCalls
		if strings.HasPrefix(name, "usage") {
			most = mostUsage
		}
		t.Logf("%s: %d in %s", name, n, took.Round(100*time.Microsecond))
		if err != nil || n == 0 || took > most {
			t.Errorf("%s: %d in %s, %v", name, n, took, err)
		}
		if name == "usage: month by user" {
			benchtest.Record(t, benchtest.Deep, benchtest.Amount("models: usage of a month with 200,000 calls, by user", "≤ 1000", "ms", float64(took.Milliseconds())))
		}
	}
	begun := time.Now()
	must(t, s.SweepCalls(t.Context(), now.Add(-gateway.KeepCalls), now))
	t.Logf("swept in %s", time.Since(begun).Round(time.Millisecond))
	var left int
	must(t, d.reader.QueryRowContext(t.Context(), `SELECT count(*) FROM gateway_calls`).Scan(&left))
	if left != gateway.MaxCalls {
		t.Errorf("%d calls are left", left)
	}
	info, err := os.Stat(d.path)
	must(t, err)
	t.Logf("the file has %d MiB", info.Size()>>20)
}
