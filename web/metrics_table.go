package web

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"sandboxd/internal/metrics"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// Bounds of the table, which is for people who read it aloud or without scripts. The plots have every point.
const (
	tableRows   = 60
	tableEvents = 100
)

// metricsTable makes a table of a series, newest first. Each row is of as many points as keep it short.
func metricsTable(s metrics.Series) views.MetricsTable {
	var v views.MetricsTable
	each := max(1, (len(s.Points)+tableRows-1)/tableRows)
	v.Step = lasted(s.Step * time.Duration(each))
	for points := range slices.Chunk(s.Points, each) {
		v.Rows = append(v.Rows, metricsRow(points))
	}
	slices.Reverse(v.Rows)
	for _, c := range slices.Backward(s.Changes) {
		if len(v.Events) == tableEvents {
			break
		}
		v.Events = append(v.Events, views.MetricsEvent{Time: exactTime(c.Time), Text: changeText(c)})
	}
	return v
}

// metricsRow sums up points that follow each other.
func metricsRow(points []metrics.Point) views.MetricsRow {
	last := points[len(points)-1]
	v := views.MetricsRow{Time: exactTime(points[0].Time), State: stateLooks[last.State].Text}
	var sum metrics.Point
	for _, p := range points {
		sum.CPU += p.CPU * p.Measured.Seconds()
		sum.Measured += p.Measured
		sum.Memory, sum.Cache, sum.Processes = max(sum.Memory, p.Memory), max(sum.Cache, p.Cache), max(sum.Processes, p.Processes)
		sum.NetworkRx += p.NetworkRx
		sum.NetworkTx += p.NetworkTx
		sum.DiskRead += p.DiskRead
		sum.DiskWrite += p.DiskWrite
	}
	if sum.Measured <= 0 {
		return v
	}
	seconds := sum.Measured.Seconds()
	rate := func(bytes int64) string { return text.Size(int64(float64(bytes)/seconds)) + "/s" }
	v.Figures = []string{
		strconv.FormatFloat(sum.CPU/seconds, 'f', 2, 64), text.Size(sum.Memory), text.Size(sum.Cache),
		rate(sum.NetworkRx), rate(sum.NetworkTx), rate(sum.DiskRead), rate(sum.DiskWrite), strconv.FormatInt(sum.Processes, 10),
	}
	return v
}

// markTexts are what the marks are called. static/plots/marks.js has the same.
var markTexts = map[metrics.Mark]string{
	metrics.Started: "Started", metrics.Woken: "Woken by use", metrics.Restarted: "Restarted", metrics.OOMKilled: "Out of memory: a process was killed",
}

func changeText(c metrics.Change) string {
	return cmp.Or(markTexts[c.Mark], stateLooks[c.State].Text, string(c.State))
}

// exactTime is a moment for a table. A script writes it in the reader's own time.
func exactTime(t time.Time) views.Time {
	v := timeOf(t, t)
	v.Relative = t.UTC().Format("2 Jan 15:04:05 UTC")
	return v
}
