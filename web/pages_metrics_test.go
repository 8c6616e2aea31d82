package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
)

// measured puts ada's sandbox lab on the stage, with the figures of someSeries.
func (s *stage) measured() sandbox.Sandbox {
	s.t.Helper()
	box := s.put("ada", "lab", nil)
	s.metrics.series[box.ID] = someSeries(stageTime.Add(-time.Minute))
	return box
}

func TestMetricsPage_IsOfTheOwnerAndAdminsOnly(t *testing.T) {
	s := newStage(t)
	s.measured()
	for _, path := range []string{"/sandboxes/lab/metrics", "/sandboxes/lab/metrics/series"} {
		s.get("bob", path).is(http.StatusNotFound)
		s.get("root", path).is(http.StatusOK)
	}
	for _, topic := range []string{"/sandboxes/lab/metrics", "/sandboxes/lab/metrics/points"} {
		if p := s.refused("bob", topic); p.Status != http.StatusNotFound {
			t.Errorf("%s: bob is told %+v", topic, p)
		}
	}
	if len(s.metrics.asked) != 2 {
		t.Errorf("asked for %v", s.metrics.asked)
	}
}

func TestMetricsPage_TellsTheSizesOnceTheyAreMeasured(t *testing.T) {
	s := newStage(t)
	box := s.measured()
	if n := len(s.get("ada", "/sandboxes/lab/metrics").all("#metrics-size")); n != 0 {
		t.Error("it tells sizes that were not measured")
	}
	s.metrics.sizes = map[string]metrics.Sized{box.ID: {Size: metrics.Size{Home: 1229 << 20, Layer: 30 << 20}, Time: stageTime.Add(-12 * time.Minute)}}
	if got := textOf(s.get("ada", "/sandboxes/lab/metrics").need("#metrics-size")); got != "Home 1.2 GiB, writable layer 30 MiB, measured 12 min ago" {
		t.Errorf("says %q", got)
	}
}

func TestMetricsPage_RangesAreAddresses(t *testing.T) {
	s := newStage(t)
	box := s.measured()
	page := s.get("ada", "/sandboxes/lab/metrics").is(http.StatusOK)
	var current []string
	for _, a := range page.all("a.chip") {
		if attr(a, "aria-current") != "" {
			current = append(current, textOf(a))
		}
		s.get("ada", attr(a, "href")).is(http.StatusOK)
	}
	if strings.Join(current, " ") != "1 h" || len(page.all("a.chip")) != 6 {
		t.Errorf("of %d ranges these are current: %q", len(page.all("a.chip")), current)
	}
	s.metrics.asked = nil
	for _, query := range []string{"range=24h", "since=2026-11-20T10:00:00Z&until=2026-11-20T11:00:00Z", "since=2h", "until=2h"} {
		s.get("ada", "/sandboxes/lab/metrics?"+query).is(http.StatusOK)
	}
	day, custom, hours, until := s.metrics.asked[0], s.metrics.asked[1], s.metrics.asked[2], s.metrics.asked[3]
	if !day.Since.Equal(stageTime.AddDate(0, 0, -1)) || custom.Until.Sub(custom.Since) != time.Hour || !hours.Since.Equal(stageTime.Add(-2*time.Hour)) ||
		!until.Since.Equal(stageTime.Add(-3*time.Hour)) {
		t.Errorf("asked for %v", s.metrics.asked)
	}
	zoomed := s.get("ada", "/sandboxes/lab/metrics?since=2026-11-20T10:00:00Z&until=2026-11-20T11:00:00Z")
	if got := textOf(zoomed.need(".range-span")); got != "20 Nov 10:00:00 UTC – 20 Nov 11:00:00 UTC" {
		t.Errorf("says %q", got)
	}
	for query, status := range map[string]int{"range=2h": 400, "since=soon": 400, "since=1h&until=2h": 400, "range=1h&sandbox_id=" + box.ID: 200, "sandbox_id=0": 410} {
		s.get("ada", "/sandboxes/lab/metrics?"+query).is(status)
		s.get("ada", "/sandboxes/lab/metrics/series?"+query).is(status)
	}
}

func TestMetricsPage_HasATableForThoseWithoutPlots(t *testing.T) {
	s := newStage(t)
	s.measured()
	page := s.get("ada", "/sandboxes/lab/metrics").is(http.StatusOK)
	table := textOf(page.need("#metrics-table"))
	for _, want := range []string{"21 Nov 11:59:00 UTC Running 0.25 300 MiB 40 MiB 66 B/s 133 B/s 273 B/s 546 B/s 12", "21 Nov 11:59:15 UTC Frozen not measured",
		"Out of memory: a process was killed"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in %q", want, table)
		}
	}
	if strings.Index(table, "11:59:15") > strings.Index(table, "11:59:00 UTC Running") {
		t.Error("the newest is not first")
	}
	if page.need("details.fold"); attr(page.find("details.fold"), "open") != "" || page.find("noscript") == nil {
		t.Error("the table is open, or nothing is said without scripts")
	}
	if hasAttr(page.need(".plots"), "hidden") {
		t.Error("the plots have no place until their script runs")
	}
	s.put("ada", "new", nil)
	if !hasAttr(s.get("ada", "/sandboxes/new/metrics").is(http.StatusOK).need(".plots"), "hidden") {
		t.Error("there are plots of nothing")
	}
	part := s.get("ada", "/sandboxes/lab/metrics", "HX-Request", "true").is(http.StatusOK)
	if part.find("main") != nil || part.find("#metrics-table") == nil || part.find("#metrics-ranges") == nil || part.find("#metrics-notes") == nil {
		t.Errorf("a script gets %s", part.Body)
	}
}

func TestMetricsTable_SumsUpManyPoints(t *testing.T) {
	var points []metrics.Point
	for i := range 480 {
		p := metrics.Point{Time: stageTime.Add(time.Duration(i) * time.Second), State: sandbox.Running, Measured: time.Second, CPU: float64(i % 2), Memory: int64(i), NetworkRx: 1024}
		if i >= 400 {
			p = metrics.Point{Time: p.Time, State: sandbox.Asleep}
		}
		points = append(points, p)
	}
	v := metricsTable(metrics.Series{Step: time.Second, Points: points})
	last, first := v.Rows[0], v.Rows[len(v.Rows)-1]
	if len(v.Rows) != tableRows || v.Step != "8 s" || first.Figures[0] != "0.50" || first.Figures[1] != "7 B" || first.Figures[3] != "1 KiB/s" ||
		last.State != "Asleep" || len(last.Figures) != 0 {
		t.Errorf("%d rows of %s, first %+v, last %+v", len(v.Rows), v.Step, first, last)
	}
	if v := metricsTable(metrics.Series{Step: time.Second}); len(v.Rows) != 0 {
		t.Errorf("of nothing %+v", v)
	}
}

func TestMetricsPage_SaysWhyThereAreNoFigures(t *testing.T) {
	s := newStage(t)
	s.put("ada", "new", nil)
	s.put("ada", "resting", func(b *sandbox.Sandbox) { b.State = sandbox.Asleep })
	for path, want := range map[string]string{
		"new/metrics":                   "No figures yet",
		"resting/metrics?range=7d":      "No figures in the last 7 days",
		"new/metrics?since=2h&until=1h": "No figures in this time",
	} {
		empty := s.get("ada", "/sandboxes/"+path).is(http.StatusOK).need("div.empty")
		if !strings.Contains(textOf(empty), want) || attr(empty, "hidden") != "" {
			t.Errorf("%s says %q", path, textOf(empty))
		}
	}
	s.metrics.err = fault.New(fault.Unavailable, "The history is away.")
	page := s.get("ada", "/sandboxes/new/metrics").is(http.StatusOK)
	if got := textOf(page.need("div.notice")); !strings.Contains(got, "The history is away.") || !strings.Contains(got, "Try again") {
		t.Errorf("says %q", got)
	}
	s.get("ada", "/sandboxes/new/metrics/series").is(http.StatusServiceUnavailable)
}

func TestMetricsSeries_IsInColumns(t *testing.T) {
	s := newStage(t)
	s.measured()
	var got struct {
		Since, Until, Step float64
		Live               bool
		CPULimit           float64 `json:"cpu_limit"`
		Time, Measured     []*float64
		Columns            map[string][]*float64
		Changes            []metricsColumnsMark
	}
	body := s.get("ada", "/sandboxes/lab/metrics/series?range=15m").is(http.StatusOK).Body.Bytes()
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if got.Until != unix(stageTime) || got.Since != unix(stageTime)-900 || got.Step != 15 || !got.Live || got.CPULimit != 2 || len(got.Columns) != len(figuresOf) ||
		*got.Time[1]-*got.Time[0] != 15 || got.Measured[1] != nil || *got.Columns["memory"][0] != 300<<20 || *got.Columns["rx"][0] != 66.6667 ||
		got.Columns["cpu"][1] != nil || got.Changes[0].Mark != "oom" {
		t.Errorf("got %s", body)
	}
	if body := s.get("ada", "/sandboxes/lab/metrics/series?since=2h&until=1h").Body.String(); !strings.Contains(body, `"live":false`) {
		t.Errorf("the past is live: %s", body)
	}
}

func TestMetricsPoints_AreToldWithEveryReading(t *testing.T) {
	s := newStage(t)
	box := s.measured()
	s.metrics.recent[box.ID] = []metrics.Point{{Time: stageTime, Measured: 2 * time.Second, CPU: 0.5, NetworkRx: 3000, MemoryLimit: 7}}
	f := s.page("ada").opens(1, attr(s.get("ada", "/sandboxes/lab/metrics").need("sandbox-metrics"), "data-topic"))
	tick := func() (v tickShape) {
		t.Helper()
		e := f.event()
		if err := json.Unmarshal([]byte(e.Data), &v); err != nil || e.Kind != "tick" {
			t.Fatalf("got %+v: %v", e, err)
		}
		return v
	}
	if v := tick(); v.Now != unix(stageTime) || v.Time != unix(stageTime) || v.Measured != 2 || v.State != "running" || v.Figures["cpu"] != 0.5 || v.Figures["rx"] != 1500 {
		t.Errorf("told %+v", v)
	}
	s.metrics.ticks.Publish(metrics.Tick{Time: stageTime.Add(4 * time.Second)})
	if v := tick(); v.Measured != 0 || v.Figures != nil {
		t.Errorf("the same reading is told twice: %+v", v)
	}
	if _, err := s.boxes.Stop(t.Context(), box.Ref()); err != nil {
		t.Fatal(err)
	}
	if e := f.event(); e.Kind != "change" || e.Data != "stopping" {
		t.Errorf("told %+v", e)
	}
	s.boxes.drop(box)
	if e := f.event(); e.Kind != "ended" || !strings.Contains(e.Data, "has been deleted") {
		t.Errorf("told %+v", e)
	}
}

func TestMetricsPage_KeepsItsStateUpToDate(t *testing.T) {
	s := newStage(t)
	box := s.measured()
	f, first := s.follow("ada", s.topicOf("ada", "/sandboxes/lab/metrics"))
	if !has(first, "metrics-state outerHTML") || !strings.Contains(first, "Running") {
		t.Errorf("begins with %s", first)
	}
	if _, err := s.boxes.Stop(t.Context(), box.Ref()); err != nil {
		t.Fatal(err)
	}
	f.until("Stopping")
	s.boxes.drop(box)
	f.until("Deleted")
	if _, first := s.follow("ada", "/sandboxes/lab/metrics?sandbox_id="+box.ID); !strings.Contains(first, "Deleted") {
		t.Errorf("of a deleted one it begins with %s", first)
	}
}

func TestMetrics_AreAClickAway(t *testing.T) {
	s := newStage(t)
	s.measured()
	for _, path := range []string{"/", "/sandboxes/lab"} {
		found := 0
		for _, a := range s.get("ada", path).all("a.menu-item") {
			if textOf(a) == "Metrics" {
				s.get("ada", attr(a, "href")).is(http.StatusOK)
				found++
			}
		}
		if want := map[string]int{"/": 1, "/sandboxes/lab": 2}[path]; found != want {
			t.Errorf("%s leads to it %d times, want %d", path, found, want)
		}
	}
}
