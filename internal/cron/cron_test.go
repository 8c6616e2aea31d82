package cron_test

import (
	"strings"
	"testing"
	"time"

	"sandboxd/internal/cron"
	"sandboxd/internal/fault"
)

func TestPreview_FollowsTheZoneOverAChangeOfItsClock(t *testing.T) {
	for _, c := range []struct{ cron, from, want string }{
		// On 28 March 2027 the clock in Berlin goes from 2:00 to 3:00, on 31 October 2027 from 3:00 to 2:00.
		{"0 12 * * *", "2027-03-27T12:00:00Z", "28 10:00 29 10:00 30 10:00"},
		{"30 2 * * *", "2027-03-27T12:00:00Z", "29 00:30 30 00:30 31 00:30"}, // there is no 2:30 on the 28th
		{"30 2 * * *", "2027-10-30T12:00:00Z", "31 00:30 31 01:30 01 01:30"}, // and two on the 31st
		{"@hourly", "2027-10-31T00:00:00Z", "31 01:00 31 02:00 31 03:00"},
	} {
		from, err := time.Parse(time.RFC3339, c.from)
		if err != nil {
			t.Fatal(err)
		}
		list, err := cron.Preview(c.cron, "Europe/Berlin", from, 3)
		var got []string
		for _, at := range list {
			got = append(got, at.UTC().Format("02 15:04"))
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s after %s: %s, %v, want %s", c.cron, c.from, strings.Join(got, " "), err, c.want)
		}
	}
}

func TestCheck_RefusesWhatMakesNoSense(t *testing.T) {
	for _, c := range []struct{ text, zone, field string }{
		{"", "UTC", "cron"}, {"* * * *", "UTC", "cron"}, {"*/5 * * * *", "UTC", "cron"}, {"0 0 30 2 *", "UTC", "cron"}, {"@reboot", "UTC", "cron"},
		{"TZ=UTC 0 0 * * *", "UTC", "cron"}, {strings.Repeat("0,", 60) + "1 * * * *", "UTC", "cron"}, {"@daily", "Mars", "zone"}, {"@daily", "", "zone"},
	} {
		if _, err := cron.Check("cron", c.text, c.zone); !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != c.field {
			t.Errorf("%q in %q gives %v", c.text, c.zone, err)
		}
	}
}

func TestPreview_TakesSevenForSunday(t *testing.T) {
	from := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) // a Saturday
	for text, want := range map[string]string{
		"0 0 * * 7":     "Sun Sun Sun Sun",
		"0 0 * * 0":     "Sun Sun Sun Sun",
		"0 0 * * 5-7":   "Sun Fri Sat Sun",
		"0 0 * * 0-7":   "Sun Mon Tue Wed",
		"0 0 * * 1-7/3": "Sun Mon Thu Sun",
		"0 0 * * 3,7":   "Sun Wed Sun Wed",
		"0 0 * * */7":   "Sun Sun Sun Sun",
		"0 0 * * mon,7": "Sun Mon Sun Mon",
		"0 0 7 7 *":     "Wed Fri Sat Sun",
	} {
		list, err := cron.Preview(text, "UTC", from, 4)
		var got []string
		for _, at := range list {
			got = append(got, at.Format("Mon"))
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"0 0 * * 8", "0 0 * * 7-2", "0 0 * * 5-7/0", "0 0 * * 1-7/9223372036854775807", "0 0 * * -7", "0 0 * * 7-", "0 24 * * 7"} {
		if _, err := cron.Preview(text, "UTC", from, 4); fault.FieldOf(err) != "cron" {
			t.Errorf("%s: %v", text, err)
		}
	}
	if list, err := cron.Preview("@daily", "UTC", from, -1); err != nil || len(list) != 0 {
		t.Errorf("none: %v, %v", list, err)
	}
}
