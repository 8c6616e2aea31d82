package schedule

import (
	"fmt"
	"time"
)

// Retain says which backups, made at these times, stay. The times are in order, the newest first. Days, weeks (ISO) and months are those
// of the zone.
func Retain(times []time.Time, k Keep, zone *time.Location) []bool {
	kept := make([]bool, len(times))
	for i := range times {
		kept[i] = i < max(k.Last, 1)
	}
	each := func(n int, nameOf func(time.Time) string) {
		last := ""
		for i, t := range times {
			name := nameOf(t.In(zone))
			if name == last {
				continue
			}
			if n--; n < 0 {
				return
			}
			last, kept[i] = name, true
		}
	}
	each(k.Daily, func(t time.Time) string { return t.Format(time.DateOnly) })
	each(k.Weekly, func(t time.Time) string {
		year, week := t.ISOWeek()
		return fmt.Sprint(year, "-", week)
	})
	each(k.Monthly, func(t time.Time) string { return t.Format("2006-01") })
	return kept
}
