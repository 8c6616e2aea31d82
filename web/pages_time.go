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

// relative says how long ago t was, or how far ahead; beyond a week it says the date.
func relative(t, now time.Time) string {
	d := now.Sub(t).Round(time.Second)
	ahead := d < 0
	if ahead {
		d = -d
	}
	const day = 24 * time.Hour
	var text string
	switch {
	case d < 10*time.Second:
		return "now"
	case d < time.Minute:
		text = count(d, time.Second, "s")
	case d < time.Hour:
		text = count(d, time.Minute, "min")
	case d < day:
		text = count(d, time.Hour, "h")
	case d < 7*day:
		text = count(d, day, "d")
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
