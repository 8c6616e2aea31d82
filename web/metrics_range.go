package web

import (
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
)

// metricsRange reads the stretch of history that a query asks for with since, until and step. What it leaves out is zero.
func metricsRange(r *request, now time.Time) (metrics.Range, error) {
	var out metrics.Range
	var err error
	if out.Since, err = r.momentQuery("since", now); err != nil {
		return out, err
	}
	if out.Until, err = r.momentQuery("until", now); err != nil {
		return out, err
	}
	if step := r.query("step"); step != "" {
		if out.Step, err = parseSpan(step); err != nil || out.Step <= 0 {
			return out, fault.Field("step", "step must be a length of time such as 15s or 2m, not %.40q.", step)
		}
	}
	until := out.Until
	if until.IsZero() {
		until = now
	}
	if !out.Since.IsZero() && !out.Since.Before(until) {
		return out, fault.Field("since", "since must be before until.")
	}
	return out, nil
}

// momentQuery gives a moment from the query, which is written in RFC 3339, or as the time from then to now ("24h", "30d"). It
// is zero when it is not given.
func (r *request) momentQuery(name string, now time.Time) (time.Time, error) {
	text := r.query(name)
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	back, err := parseSpan(text)
	if err != nil || back < 0 {
		return time.Time{}, fault.Field(name, "%s must be a time such as 2026-01-02T15:04:05Z, or how long ago, such as 24h or 30d, not %.40q.", name, text)
	}
	return now.Add(-back), nil
}
