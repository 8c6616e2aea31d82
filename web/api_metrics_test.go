package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
)

const labMetrics = lab + "/metrics"

// someSeries has a point that was measured, one of a sandbox that was frozen, and two changes.
func someSeries(begin time.Time) metrics.Series {
	return metrics.Series{
		Step: 15 * time.Second,
		Points: []metrics.Point{
			{Time: begin, State: sandbox.Running, Measured: 15 * time.Second, CPU: 0.25, Throttled: 1500 * time.Millisecond, Memory: 300 << 20,
				Cache: 40 << 20, MemoryLimit: 2 << 30, NetworkRx: 1000, NetworkTx: 2000, DiskRead: 4096, DiskWrite: 8192, Processes: 12, OOMKills: 1},
			{Time: begin.Add(15 * time.Second), State: sandbox.Frozen},
		},
		Changes: []metrics.Change{{Time: begin, State: sandbox.Running, Mark: metrics.OOMKilled}, {Time: begin.Add(20 * time.Second), State: sandbox.Frozen}},
	}
}

func TestMetrics_ShapesAreAsPinned(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.metrics.series[w.ref("lab").ID()] = someSeries(stageTime)
	w.metrics.series[metrics.HostID] = metrics.Series{Step: 15 * time.Second, Points: []metrics.Point{{Time: stageTime, Measured: time.Second, CPU: 1.5}}}
	w.metrics.host = metrics.Host{Time: stageTime, Cores: 4, CPU: 1.5, Memory: 3 << 30, MemoryTotal: 8 << 30, DiskUsed: 5 << 30, DiskFree: 9 << 30,
		Load: [3]float64{1, 0.5, 0.25}, Pressure: &metrics.Pressure{CPU: 0.1, Memory: 0.2, IO: 0.3}}
	w.metrics.sizes = map[string]metrics.Sized{w.ref("lab").ID(): {Size: metrics.Size{Home: 1200 << 20, Layer: 30 << 20}, Time: stageTime}}
	golden(t, "metrics", w.call("ada", "GET", labMetrics, "").is(http.StatusOK).Body.Bytes())
	golden(t, "metrics_host", w.call("root", "GET", "/api/v1/host/metrics", "").is(http.StatusOK).Body.Bytes())
	w.metrics.host.Pressure, w.metrics.series = nil, nil
	golden(t, "metrics_host_none", w.call("root", "GET", "/api/v1/host/metrics?since=30d", "").is(http.StatusOK).Body.Bytes())
}

func TestMetrics_TheQuerySaysWhichStretch(t *testing.T) {
	w := newWorld(t)
	w.server.cfg.Now = func() time.Time { return stageTime }
	w.box("ada", "lab")
	for query, want := range map[string]metrics.Range{
		"":                         {},
		"?since=24h":               {Since: stageTime.Add(-24 * time.Hour)},
		"?since=30d&step=2m":       {Since: stageTime.AddDate(0, 0, -30), Step: 2 * time.Minute},
		"?since=90&until=30s":      {Since: stageTime.Add(-90 * time.Second), Until: stageTime.Add(-30 * time.Second)},
		"?until=2026-11-20T10:00Z": {}, // without seconds it is no time
		"?until=2026-11-20T10:00:00%2B02:00&since=2026-11-20T07:00:00Z&step=15": {
			Since: time.Date(2026, 11, 20, 7, 0, 0, 0, time.UTC), Until: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), Step: 15 * time.Second},
	} {
		got := w.call("ada", "GET", labMetrics+query, "")
		if query == "?until=2026-11-20T10:00Z" {
			got.problem(http.StatusBadRequest, "invalid", "until")
			continue
		}
		got.is(http.StatusOK)
		asked := w.metrics.asked[len(w.metrics.asked)-1]
		if !asked.Since.Equal(want.Since) || !asked.Until.Equal(want.Until) || asked.Step != want.Step {
			t.Errorf("%q asks for %v, want %v", query, asked, want)
		}
	}
}

func TestMetrics_MistakesNameTheField(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	for query, field := range map[string]string{
		"since=yesterday": "since", "since=-1h": "since", "since=NaN": "since", "since=%00": "since", "since=2026-13-01T00:00:00Z": "since",
		"until=soon": "until", "since=1h&until=2h": "since", "since=2100-01-01T00:00:00Z": "since",
		"step=0": "step", "step=-15s": "step", "step=fast": "step", "step=NaN": "step",
	} {
		for path, user := range map[string]string{labMetrics: "ada", "/api/v1/host/metrics": "root"} {
			w.call(user, "GET", path+"?"+query, "").problem(http.StatusBadRequest, "invalid", field)
		}
	}
	if len(w.metrics.asked) != 0 {
		t.Errorf("it asked for %v", w.metrics.asked)
	}
	w.metrics.err = fault.New(fault.Unavailable, "The history cannot be read now.")
	w.call("ada", "GET", labMetrics, "").problem(http.StatusServiceUnavailable, "unavailable", "")
}

func TestMetrics_AreTheOwnersAndTheHostsTheAdmins(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.box("ada", "other")
	w.tokens["limited"] = w.token("ada", auth.NewToken{Name: "one", Sandbox: "other"})
	w.tokens["limited root"] = w.token("root", auth.NewToken{Name: "one", Sandbox: "other"})
	for _, user := range []string{"bob", "limited", "limited root"} {
		w.call(user, "GET", labMetrics, "").problem(http.StatusNotFound, "not_found", "")
	}
	w.call("", "GET", labMetrics, "").problem(http.StatusUnauthorized, "unauthenticated", "")
	w.call("root", "GET", labMetrics, "").is(http.StatusOK)
	for _, user := range []string{"ada", "limited", "limited root"} {
		w.call(user, "GET", "/api/v1/host/metrics", "").problem(http.StatusForbidden, "forbidden", "")
	}
	got := w.call("ada", "GET", labMetrics, "").Body.String()
	if !strings.Contains(got, `"points":[]`) || !strings.Contains(got, `"changes":[]`) || strings.Contains(got, "home_bytes") {
		t.Errorf("without figures it answers %s", got)
	}
}
