package web

import (
	"context"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// metricsURL is the page of what a sandbox uses.
func metricsURL(box sandbox.Sandbox) string { return sameURL(box, "/metrics") }

// pageRanges are the stretches of time to choose from, up to now.
var pageRanges = []struct {
	value, text, title string
	span               time.Duration
}{
	{"15m", "15 min", "the last 15 minutes", 15 * time.Minute},
	{"1h", "1 h", "the last hour", time.Hour},
	{"6h", "6 h", "the last 6 hours", 6 * time.Hour},
	{"24h", "24 h", "the last 24 hours", 24 * time.Hour},
	{"7d", "7 d", "the last 7 days", 7 * 24 * time.Hour},
	{"30d", "30 d", "the last 30 days", 30 * 24 * time.Hour},
}

// usualRange is the one of a page whose address names none.
const usualRange = "1h"

// pageRange is the stretch of time that a page shows.
type pageRange struct {
	metrics.Range        // Since is set
	name          string // of pageRanges; "" for any other
	title         string // "the last hour"; "" when it has no name
}

// readPageRange reads it from the query: the name of a range, or since and until.
func readPageRange(r *request, now time.Time) (pageRange, error) {
	name := r.query("range")
	if name == "" && r.query("since")+r.query("until") != "" {
		asked, err := metricsRange(r, now)
		if err == nil && asked.Since.IsZero() {
			asked.Since = asked.Until.Add(-time.Hour)
		}
		return pageRange{Range: asked}, err
	}
	if name == "" {
		name = usualRange
	}
	for _, one := range pageRanges {
		if one.value == name {
			return pageRange{metrics.Range{Since: now.Add(-one.span)}, one.value, one.title}, nil
		}
	}
	return pageRange{}, fault.Field("range", "There is no range %.40q. There are 15m, 1h, 6h, 24h, 7d and 30d.", name)
}

// until is where the stretch ends, at most now.
func (p pageRange) until(now time.Time) time.Time {
	if p.Until.IsZero() || p.Until.After(now) {
		return now
	}
	return p.Until
}

// pageMetrics shows what a sandbox used, as plots and as a table. It wakes nothing. A script gets the parts that a range
// changes.
func (s *metricsHandlers) pageMetrics(ctx context.Context, r *request) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	v, asked, err := s.rangePart(ctx, r, h.ID(), metricsURL(box))
	if err != nil {
		return nil, err
	}
	v.None = noFigures(box, asked)
	if r.byScript() {
		return views.MetricsRangePart(v), nil
	}
	page := views.Metrics{
		Frame: s.frame(r, "Metrics of "+boxTitle(box), "sandboxes"), Name: box.Name, Title: boxTitle(box), Range: v,
		State:  s.workspace.state(box, s.cfg.Sandboxes.Progress(box.ID)),
		Series: sameURL(box, "/metrics/series"), Points: sameURL(box, "/metrics/points"), Page: metricsURL(box),
	}
	if size, at, ok := s.cfg.Metrics.Size(box.ID); ok {
		page.Size = homeText(size.Home, box.Spec.Limits.Disk) + ", writable layer " + text.Size(size.Layer)
		page.Sized = timeOf(at, s.cfg.Now())
	}
	page.Frame.Plots = true
	page.Frame.Live.Topic = metricsURL(box)
	return views.MetricsPage(page), nil
}

// rangePart shows the stretch of the history of an id that a page's address asks for. url is that address without it, with a
// query. None is left to the caller.
func (s *metricsHandlers) rangePart(ctx context.Context, r *request, id, url string) (views.MetricsRange, pageRange, error) {
	now := s.cfg.Now()
	asked, err := readPageRange(r, now)
	if err != nil {
		return views.MetricsRange{}, asked, err
	}
	series, err := s.cfg.Metrics.Series(ctx, id, asked.Range)
	problem := ""
	if fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout) {
		problem, err = fault.Message(err), nil
	}
	return views.MetricsRange{
		Ranges: rangeChips(url, asked), Span: spanText(asked, now), Wider: url + "&range=" + usualRange, Problem: problem, Here: r.here(),
		Table: metricsTable(series), Empty: problem == "" && !anyMeasured(series.Points),
	}, asked, err
}

// rangeChips are the links to the ranges, at a page's address.
func rangeChips(url string, asked pageRange) []views.Chip {
	chips := make([]views.Chip, 0, len(pageRanges))
	for _, one := range pageRanges {
		chips = append(chips, views.Chip{Text: one.text, Value: one.value, Current: one.value == asked.name,
			URL: url + "&range=" + one.value})
	}
	return chips
}

// spanText says a stretch that has no name; it is zero for one that has.
func spanText(asked pageRange, now time.Time) views.Stretch {
	if asked.name != "" {
		return views.Stretch{}
	}
	return views.Stretch{From: exactTime(asked.Since), Until: exactTime(asked.until(now))}
}

func anyMeasured(points []metrics.Point) bool {
	for _, p := range points {
		if p.Measured > 0 {
			return true
		}
	}
	return false
}

// noFigures says why a stretch of time has none.
func noFigures(box sandbox.Sandbox, asked pageRange) views.Still {
	v := views.Still{Title: "No figures in this time", Text: "Either it did not run, or sandboxd did not."}
	switch {
	case asked.name == "":
	case box.State == sandbox.Running:
		v.Title, v.Text = "No figures yet", "The first come a few seconds after it starts."
	case still(box.State), box.State == sandbox.Failed:
		v.Title = "No figures in " + asked.title
		v.Text = "A sandbox that does not run uses no CPU and is not measured. A longer range shows what it used before."
	default:
		v.Title, v.Text = "No figures yet", "They come once it runs."
	}
	return v
}
