// Package cron reads cron expressions and says when they are due in a time zone.
//
// It runs nothing and keeps no clock: its users ask for the next time.
//
// Invariant: what Check takes is due sometime, and at most every LeastPause.
package cron

import (
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // a host may have no table of time zones

	"github.com/robfig/cron/v3"

	"sandboxd/internal/fault"
)

// Bounds.
const (
	MaxText    = 100 // bytes of an expression
	LeastPause = 15 * time.Minute

	mostPreview  = 100     // times of a preview
	checkedTimes = 200     // whose pauses are looked at
	countedTimes = 100_000 // that may have been missed: 15 minutes each, for nearly three years
)

// parser takes five fields and the short words.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// words are the short words that are taken.
var words = map[string]bool{"@hourly": true, "@daily": true, "@weekly": true, "@monthly": true}

// Times is a parsed expression in its zone. It is a value.
type Times struct{ times *cron.SpecSchedule }

// Next gives the first time after t; zero when there is none within five years.
func (s Times) Next(t time.Time) time.Time { return s.times.Next(t) }

// Dues counts the due times from the first one up to now, and gives the last of them.
func (s Times) Dues(first, now time.Time) (last time.Time, n int) {
	for t := first; !t.IsZero() && !t.After(now) && n < countedTimes; t = s.Next(t) {
		last, n = t, n+1
	}
	return last, n
}

// zones are those that were asked for, by name: there are some hundreds.
var zones sync.Map

// Zone finds a time zone by its IANA name. Invalid with the field "zone".
func Zone(name string) (*time.Location, error) {
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, fault.Field("zone", "There is no time zone %.40q. Use a name such as \"Europe/Berlin\", or \"UTC\".", name)
	}
	zones.Store(name, zone)
	return zone, nil
}

// Parse reads an expression that was checked before. Invalid with that field, or with "zone".
func Parse(field, text, zoneName string) (Times, error) {
	zone, err := Zone(zoneName)
	if err != nil {
		return Times{}, err
	}
	if len(text) > MaxText || strings.Contains(text, "=") || strings.HasPrefix(text, "@") && !words[text] {
		return Times{}, notCron(field, text)
	}
	parsed, err := parser.Parse(sundays(text))
	times, ok := parsed.(*cron.SpecSchedule)
	if err != nil || !ok {
		return Times{}, notCron(field, text)
	}
	times.Location = zone
	return Times{times}, nil
}

// sundays writes the 7 that ends a day of the week, a list or a range of them, as cron has it, as the 0 that the parser knows.
func sundays(text string) string {
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return text
	}
	days := strings.Split(fields[4], ",")
	for i, part := range days {
		span, stepText, stepped := strings.Cut(part, "/")
		firstText, lastText, ranged := strings.Cut(span, "-")
		first, err := strconv.Atoi(firstText)
		step, err2 := 1, error(nil)
		if stepped {
			step, err2 = strconv.Atoi(stepText)
		}
		switch {
		case span == "7" && !stepped:
			days[i] = "0"
		case ranged && lastText == "7" && err == nil && err2 == nil && first >= 0 && first <= 7 && step > 0 && step <= 7:
			var each []string
			for day := first; day <= 7; day += step {
				each = append(each, strconv.Itoa(day%7))
			}
			days[i] = strings.Join(each, ",")
		}
	}
	fields[4] = strings.Join(days, ",")
	return strings.Join(fields, " ")
}

// Check is Parse for an expression that is new: it also refuses what comes never, or too often.
func Check(field, text, zone string) (Times, error) {
	s, err := Parse(field, text, zone)
	if err != nil {
		return s, err
	}
	times := *s.times
	times.Location = time.UTC // where no hour is skipped or comes twice
	last := times.Next(time.Now().UTC())
	if last.IsZero() {
		return s, fault.Field(field, "%.40q never comes: there is no such day within the next five years.", text)
	}
	for range checkedTimes {
		t := times.Next(last)
		if t.IsZero() {
			break
		}
		if t.Sub(last) < LeastPause {
			return s, fault.Field(field, "%.40q comes more often than every %d minutes.", text, int(LeastPause.Minutes()))
		}
		last = t
	}
	return s, nil
}

func notCron(field, text string) error {
	return fault.Field(field, "%.40q is no schedule. Give minute, hour, day, month and day of the week, such as \"30 3 * * *\", or @hourly, @daily, @weekly or @monthly.", text)
}

// Preview gives the next n times, 0 to 100, of an expression after a time, in its zone. Invalid with the field "cron" or "zone".
func Preview(text, zone string, after time.Time, n int) ([]time.Time, error) {
	s, err := Check("cron", text, zone)
	if err != nil {
		return nil, err
	}
	var list []time.Time
	for t := s.Next(after); !t.IsZero() && len(list) < min(n, mostPreview); t = s.Next(t) {
		list = append(list, t)
	}
	return list, nil
}
