package web

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// metersEvery is the least time between two updates of the figures that a page shows.
const metersEvery = 10 * time.Second

// Shares of a limit from which people are told.
const (
	busyShare = 0.75
	fullShare = 0.9
)

// What sparklines are drawn by where there is no limit.
const (
	usualCores  = 1.0
	usualMemory = 1 << 30
)

// metersOf gives what a running sandbox uses, from memory. It is the zero value for one that rests, and before the first
// figures are known.
func metersOf(m Metrics, box sandbox.Sandbox) views.Meters {
	if box.State != sandbox.Running {
		return views.Meters{}
	}
	now, known := m.Latest(box.ID)
	if !known {
		return views.Meters{}
	}
	lately := m.Recent(box.ID)
	limit := box.Spec.Limits.Memory
	if limit == 0 {
		limit = now.MemoryLimit
	}
	return views.Meters{
		CPU:    cpuUse(now.CPU, box.Spec.Limits.CPUs, lately),
		Memory: memoryUse(now.Memory, limit, lately),
	}
}

// workspaceMeters is metersOf with the use of the home, if that has a limit. Its size is measured from time to time.
func workspaceMeters(m Metrics, box sandbox.Sandbox) views.Meters {
	v := metersOf(m, box)
	size, _, sized := m.Size(box.ID)
	if limit := box.Spec.Limits.Disk; limit > 0 && sized && v != (views.Meters{}) {
		v.Disk = diskUse(size.Home, limit)
	}
	return v
}

func diskUse(home, limit int64) views.Use {
	u := views.Use{Name: "Disk", Now: text.SizeBeside(home, limit), Of: text.Size(limit)}
	share := float64(home) / float64(limit)
	u.Part = partText(share)
	u.Label = "Home when it was last measured: " + text.Size(home) + " of " + u.Of + ", " + u.Part + " %"
	switch {
	case share >= fullShare:
		u.Tone = "bad"
		u.Label += ", near its limit"
	case share >= busyShare:
		u.Tone = "busy"
	}
	u.Label += "."
	return u
}

// homeText is the size of a home, beside its limit if there is one.
func homeText(home, limit int64) string {
	if limit <= 0 {
		return "Home " + text.Size(home)
	}
	return "Home " + text.Size(home) + " of " + text.Size(limit)
}

func cpuUse(now, limit float64, lately []metrics.Point) views.Use {
	line, peak := sparkline(lately, cmp.Or(limit, usualCores), func(p metrics.Point) float64 { return p.CPU })
	u := views.Use{Name: "CPU", Now: cores(now), Line: line}
	u.Label = "CPU: " + u.Now + " cores"
	if limit > 0 {
		u.Of, u.Part = cores(limit), partText(now/limit)
		u.Label = "CPU: " + u.Now + " of " + coresText(limit) + ", " + u.Part + " %"
		if now >= fullShare*limit {
			u.Tone = "busy"
		}
	}
	u.Label += ". Most in the last 15 minutes: " + cores(max(peak, now)) + "."
	return u
}

func memoryUse(now, limit int64, lately []metrics.Point) views.Use {
	line, peak := sparkline(lately, float64(cmp.Or(limit, usualMemory)), func(p metrics.Point) float64 { return float64(p.Memory) })
	u := views.Use{Name: "Mem", Now: text.Size(now), Line: line}
	u.Label = "Memory: " + u.Now
	most := max(int64(peak), now)
	if limit > 0 {
		u.Now, u.Of = text.SizeBeside(now, limit), text.Size(limit)
		share := float64(now) / float64(limit)
		u.Part = partText(share)
		u.Label += " of " + u.Of + ", " + u.Part + " %"
		switch {
		case share >= fullShare:
			u.Tone = "bad"
			u.Label += ", near its limit"
		case share >= busyShare:
			u.Tone = "busy"
		}
	}
	u.Label += ". Most in the last 15 minutes: " + text.Size(most) + "."
	return u
}

// partText is a share as a whole number from 0 to 100.
func partText(share float64) string { return strconv.Itoa(int(100*min(max(share, 0), 1) + 0.5)) }

// cores is a number of cores, short: "0.42", "1.5", "12".
func cores(n float64) string {
	decimals := 2
	if n >= 10 {
		decimals = 1
	}
	return text.Shorten(strconv.FormatFloat(n, 'f', decimals, 64))
}

// sparkline draws points as steps over the last metrics.FineLife, and gives the largest figure. Its top is a quarter of
// the limit at least, so that little looks little. A stretch without figures is a gap.
func sparkline(points []metrics.Point, limit float64, figure func(metrics.Point) float64) (path string, peak float64) {
	for _, p := range points {
		peak = max(peak, figure(p))
	}
	top := max(peak, limit/4)
	if len(points) == 0 || top <= 0 {
		return "", peak
	}
	var b strings.Builder
	const step = views.LineWidth * recentStep / metrics.FineLife
	end := points[len(points)-1].Time.Add(recentStep)
	at, height := -1, 0 // where the drawn area ends, and how high it is there
	for _, p := range points {
		x := views.LineWidth - int(views.LineWidth*end.Sub(p.Time)/metrics.FineLife)
		if p.Measured == 0 || x < 0 {
			continue
		}
		h := max(1, int(views.LineHeight*figure(p)/top+0.5))
		if x != at { // after a gap
			if at >= 0 {
				fmt.Fprintf(&b, "V%dZ", views.LineHeight)
			}
			fmt.Fprintf(&b, "M%d %d", x, views.LineHeight)
			height = 0
		}
		if h != height {
			fmt.Fprintf(&b, "V%d", views.LineHeight-h)
		}
		at, height = x+int(step), h
		fmt.Fprintf(&b, "H%d", at)
	}
	if at >= 0 {
		fmt.Fprintf(&b, "V%dZ", views.LineHeight)
	}
	return b.String(), peak
}

// recentStep is the time between two points of Metrics.Recent.
const recentStep = 30 * time.Second

// tellFigures hands on that there are new figures, every metersEvery, until ctx ends. A page that is hidden is told when it is
// shown again.
func tellFigures(ctx context.Context, s *Server, r *request, hand func(news)) {
	last := s.cfg.Now()
	for ctx.Err() == nil {
		ticks := s.cfg.Metrics.Subscribe()
		last = handTicks(ctx, ticks.C, last, func() bool {
			if r.unseen() {
				return false
			}
			hand(news{figures: true})
			return true
		})
		ticks.Close() // it was dropped, or ctx ended
	}
}

// handTicks calls tell for the first tick that comes metersEvery after last, and so on from each that tell took, until ctx
// or the ticks end. It gives when it told last.
func handTicks(ctx context.Context, ticks <-chan *metrics.Tick, last time.Time, tell func() bool) time.Time {
	for {
		select {
		case <-ctx.Done():
			return last
		case tick, ok := <-ticks:
			if !ok {
				return last
			}
			if since := tick.Time.Sub(last); since >= 0 && since < metersEvery {
				continue // before last the clock was put back
			}
			if tell() {
				last = tick.Time
			}
		}
	}
}
