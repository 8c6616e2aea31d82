//go:build bench

package benchtest

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
)

// bound is a goal that can be judged without knowing more of its case, such as "p50 ≤ 15 ms", "≤ 16" and "p50 ≤ 1.5 ms more than raw".
var bound = regexp.MustCompile(`^(?:(p50|p95|p99) )?([≤≥]) ([0-9.]+) ?(ms|s|MiB|MB|% of a core|%)?( more than .+)?$`)

// Judge gives the case with Missed set when its figure is beyond its goal, and logs that. A goal that is no bound is not judged, and one
// that names no percentile of times is about the 95th.
func Judge(t testing.TB, c Case) Case {
	t.Helper()
	m := bound.FindStringSubmatch(c.Goal)
	if m == nil || c.Missed != "" {
		return c
	}
	limit, err := strconv.ParseFloat(m[3], 64)
	if err != nil {
		t.Fatalf("%s: the goal %q: %v", c.Name, c.Goal, err)
	}
	got, unit := c.figure(m[1], m[4])
	if m[5] != "" {
		got -= c.Base
	}
	if m[2] == "≤" && got <= limit || m[2] == "≥" && got >= limit {
		return c
	}
	c.Missed = fmt.Sprintf("%.4g %s, the goal is %s", got, unit, c.Goal)
	t.Logf("GOAL MISSED: %s: %s", c.Name, c.Missed)
	return c
}

// figure is what a goal about a percentile, in a unit, is about. Both may be "".
func (c Case) figure(percentile, unit string) (got float64, in string) {
	got = map[string]float64{"p50": c.P50, "p99": c.P99}[percentile]
	if percentile == "p95" || percentile == "" {
		got = c.P95
	}
	switch {
	case c.Unit != "":
		return got, c.Unit
	case unit == "%":
		return 100 * c.Ratio, unit
	case unit == "s":
		return got / 1000, unit
	}
	return got, "ms"
}
