package web

import (
	"strconv"
	"time"

	"sandboxd/views"
)

// timeOf makes a moment ready to show. The zero time stays empty. static/js/times.js speaks the same words.
func timeOf(t, now time.Time) views.Time {
	if t.IsZero() {
		return views.Time{}
	}
	return views.Time{
		Machine:  t.UTC().Format(time.RFC3339),
		Absolute: t.Format("Monday 2 January 2006, 15:04:05 MST"),
		Relative: relative(t, now),
	}
}

// spanOf is timeOf for a span since t: "2 h".
func spanOf(t, now time.Time) views.Time {
	v := timeOf(t, now)
	if v.Machine == "" {
		return v
	}
	v.Form, v.Relative = views.SpanForm, lasted(now.Sub(t))
	return v
}

// aheadOf is timeOf for a moment ahead, t: "in 2 h", to the last second "in 8 s", and "now" once that is over.
func aheadOf(t, now time.Time) views.Time {
	v := timeOf(t, now)
	if v.Machine == "" {
		return v
	}
	v.Form = views.AheadForm
	switch left := t.Sub(now).Round(time.Second); {
	case left <= 0:
		v.Relative = "now"
	case left < time.Minute:
		v.Relative = "in " + lasted(left)
	}
	return v
}

// leftOf is timeOf for a moment ahead, as what is left until then: "2 h", also beyond a week, and "0 s" once that is over.
func leftOf(t, now time.Time) views.Time {
	v := timeOf(t, now)
	if v.Machine != "" {
		v.Form, v.Relative = views.LeftForm, lasted(t.Sub(now))
	}
	return v
}

// untilOf is timeOf for a moment ahead, as a clock shows it: "18:28 UTC", "Sat 09:00 UTC" on another day, and with the date from
// six days on. A script writes it in the reader's own zone.
func untilOf(t, now time.Time) views.Time {
	v := timeOf(t, now)
	if v.Machine == "" {
		return v
	}
	t, now = t.UTC(), now.UTC()
	format := "15:04 MST"
	switch {
	case t.Sub(now) >= 6*24*time.Hour: // its weekday could be today's
		format = "Mon 2 Jan " + format
	case t.YearDay() != now.YearDay():
		format = "Mon " + format
	}
	v.Form, v.Relative = views.UntilForm, t.Format(format)
	return v
}

// lasted says how long something has lasted, in the nearest whole unit.
func lasted(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(d, 0)
	for _, u := range []struct {
		unit, bound time.Duration
		word        string
	}{{time.Second, time.Minute, "s"}, {time.Minute, time.Hour, "min"}, {time.Hour, day, "h"}} {
		if rounded := d.Round(u.unit); rounded < u.bound {
			return count(rounded, u.unit, u.word)
		}
	}
	return count(d.Round(day), day, "d")
}

// relative says how long ago t was, or how far ahead; beyond a week it says the date.
func relative(t, now time.Time) string {
	d := now.Sub(t).Round(time.Second)
	ahead := d < 0
	if ahead {
		d = -d
	}
	const week = 7 * 24 * time.Hour
	text := lasted(d)
	switch {
	case d < 10*time.Second && ahead:
		return "now"
	case d < 10*time.Second:
		return "just now"
	case d < week:
	case t.Year() == now.Year():
		return t.Format("2 Jan")
	default:
		return t.Format("2 Jan 2006")
	}
	if ahead {
		return "in " + text
	}
	return text + " ago"
}

func count(d, unit time.Duration, word string) string {
	return strconv.FormatInt(int64(d/unit), 10) + " " + word
}
