package schedule_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/schedule"
)

func TestCreate_RefusesWhatMakesNoSense(t *testing.T) {
	within(t, func(w *world) {
		w.box("cave", boss)
		for _, c := range []struct {
			change func(*schedule.Schedule)
			field  string
		}{
			{func(s *schedule.Schedule) { s.Name = " " }, "name"},
			{func(s *schedule.Schedule) { s.Name = strings.Repeat("x", 65) }, "name"},
			{func(s *schedule.Schedule) { s.Cron = "" }, "cron"},
			{func(s *schedule.Schedule) { s.Cron = "* * * * *" }, "cron"},
			{func(s *schedule.Schedule) { s.Cron = "0,10 3 * * *" }, "cron"},
			{func(s *schedule.Schedule) { s.Cron = "0 0 30 2 *" }, "cron"},
			{func(s *schedule.Schedule) { s.Cron = "@every 1h" }, "cron"},
			{func(s *schedule.Schedule) { s.Cron = "TZ=UTC 0 3 * * *" }, "cron"},
			{func(s *schedule.Schedule) { s.Cron = "0 0 3 * * *" }, "cron"},
			{func(s *schedule.Schedule) { s.Zone = "Mars/Olympus" }, "zone"},
			{func(s *schedule.Schedule) { s.Zone = "Local" }, "zone"},
			{func(s *schedule.Schedule) { s.TestCron = "no" }, "test_cron"},
			{func(s *schedule.Schedule) { s.Keep = schedule.Keep{} }, "keep"},
			{func(s *schedule.Schedule) { s.Keep.Daily = -1 }, "keep"},
			{func(s *schedule.Schedule) { s.Repository = "other" }, "repository"},
			{func(s *schedule.Schedule) { s.Target.Kind = "some" }, "target"},
			{func(s *schedule.Schedule) { s.Target.Kind = schedule.All }, "target"},
			{func(s *schedule.Schedule) { s.Target.SandboxID = "none" }, "sandbox"},
			{func(s *schedule.Schedule) { s.Target.SandboxID = "cave-id" }, "sandbox"},
			{func(s *schedule.Schedule) {
				s.Owner, s.Target = boss, schedule.Target{Kind: schedule.OfTemplate, Template: "x"}
			}, "template"},
		} {
			s := nightly(c.change)
			if _, err := w.Create(w.t.Context(), s); !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != c.field {
				t.Errorf("%+v: %v about %q, want %q", s, err, fault.FieldOf(err), c.field)
			}
		}
		for range schedule.MaxSchedules {
			w.create(nightly(func(s *schedule.Schedule) { s.Repository, s.Enabled = "nas", false }))
		}
		if _, err := w.Create(w.t.Context(), nightly(nil)); !fault.Is(err, fault.Conflict) {
			t.Errorf("one too many: %v", err)
		}
	})
}

func TestRetain_KeepsTheNewestOfEach(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse("2006-01-02 15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	times := []time.Time{at("2026-11-21 15:00"), at("2026-11-21 03:00"), at("2026-11-20 03:00"), at("2026-11-16 03:00"), at("2026-11-15 03:00"), at("2026-10-01 03:00"), at("2026-09-30 23:30")}
	for _, c := range []struct {
		keep schedule.Keep
		zone string
		want []int
	}{
		{schedule.Keep{Last: 2}, "UTC", []int{0, 1}},
		{schedule.Keep{Daily: 3}, "UTC", []int{0, 2, 3}},
		{schedule.Keep{Weekly: 2}, "UTC", []int{0, 4}},
		{schedule.Keep{Monthly: 9}, "UTC", []int{0, 5, 6}},
		{schedule.Keep{Monthly: 9}, "Europe/Berlin", []int{0, 5}},
		{schedule.Keep{Last: 1, Daily: 2, Weekly: 3, Monthly: 2}, "UTC", []int{0, 2, 4, 5}},
		{schedule.Keep{}, "UTC", []int{0}},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for i, kept := range schedule.Retain(times, c.keep, zone) {
			if kept {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v in %s: %v, want %v", c.keep, c.zone, got, c.want)
		}
	}
}

// TestRetain_ForAnyTimes holds what must be so for any times: the newest ones stay, no more than all numbers together do, asking again
// changes nothing, and keeping more never deletes more.
func TestRetain_ForAnyTimes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		times := make([]time.Time, random.IntN(40))
		for i := range times {
			times[i] = time.Unix(1_790_000_000+random.Int64N(100*24*3600), 0)
		}
		slices.SortFunc(times, func(a, b time.Time) int { return b.Compare(a) })
		k := schedule.Keep{Last: random.IntN(5), Daily: random.IntN(5), Weekly: random.IntN(5), Monthly: random.IntN(5)}
		kept := schedule.Retain(times, k, time.UTC)
		var left []time.Time
		for i, stays := range kept {
			if stays {
				left = append(left, times[i])
			} else if i < max(k.Last, 1) {
				t.Fatalf("%+v deletes number %d of %v", k, i, times)
			}
		}
		if len(left) > max(k.Last, 1)+k.Daily+k.Weekly+k.Monthly || len(left) == 0 && len(times) > 0 {
			t.Fatalf("%+v keeps %d of %d", k, len(left), len(times))
		}
		if slices.Contains(schedule.Retain(left, k, time.UTC), false) {
			t.Fatalf("%+v deletes more of %v the second time", k, left)
		}
		k.Daily++
		for i, stays := range schedule.Retain(times, k, time.UTC) {
			if kept[i] && !stays {
				t.Fatalf("%+v deletes what a smaller one keeps", k)
			}
		}
	}
}
