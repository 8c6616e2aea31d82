package web

import (
	"testing"
	"time"
)

func TestRelative_SaysHowLongAgo(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		0: "just now", 9 * time.Second: "just now", -9 * time.Second: "now", 42 * time.Second: "42 s ago", 90 * time.Second: "2 min ago",
		2 * time.Hour: "2 h ago", 3 * 24 * time.Hour: "3 d ago", 10 * 24 * time.Hour: "11 Nov",
		400 * 24 * time.Hour: "17 Oct 2025", -time.Hour: "in 1 h", -40 * 24 * time.Hour: "31 Dec",
	} {
		if got := relative(now.Add(-ago), now); got != want {
			t.Errorf("%v ago: %q, want %q", ago, got, want)
		}
	}
	if got := timeOf(time.Time{}, now); got.Machine != "" || got.Relative != "" {
		t.Errorf("no time is %+v", got)
	}
}

func TestLasted_IsTheNearestWholeUnit(t *testing.T) {
	for d, want := range map[time.Duration]string{
		4*time.Hour - time.Minute: "4 h", 44*time.Minute + 50*time.Second: "45 min", 3*time.Hour + 10*time.Minute: "3 h",
		59*time.Minute + 45*time.Second: "1 h", 59*time.Second + 700*time.Millisecond: "1 min", 23*time.Hour + 40*time.Minute: "1 d",
		-time.Second: "0 s",
	} {
		if got := lasted(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestSpanAndAhead_SayHowLongAndWhen(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		3 * time.Second: "3 s", -time.Second: "0 s", 2 * time.Hour: "2 h", 40 * 24 * time.Hour: "40 d",
	} {
		if got := spanOf(now.Add(-ago), now); got.Relative != want || got.Form != "span" {
			t.Errorf("since %v: %+v, want %q", ago, got, want)
		}
	}
	for ahead, want := range map[time.Duration]string{
		720 * time.Second: "in 12 min", 59 * time.Second: "in 59 s", 8 * time.Second: "in 8 s", time.Second: "in 1 s",
		300 * time.Millisecond: "now", 0: "now", -time.Hour: "now", 8 * 24 * time.Hour: "29 Nov",
	} {
		if got := aheadOf(now.Add(ahead), now); got.Relative != want || got.Form != "ahead" {
			t.Errorf("in %v: %+v, want %q", ahead, got, want)
		}
	}
	for ahead, want := range map[time.Duration]string{8 * time.Hour: "8 h", 40 * 24 * time.Hour: "40 d", 5 * time.Second: "5 s", -time.Hour: "0 s"} {
		if got := leftOf(now.Add(ahead), now); got.Relative != want || got.Form != "left" {
			t.Errorf("%v ahead: %+v, want %q", ahead, got, want)
		}
	}
	for ahead, want := range map[time.Duration]string{2 * time.Hour: "Mon 15:04", 24 * time.Hour: "Mon 15:04", 6 * 24 * time.Hour: "Mon 2 Jan 15:04"} {
		at := now.Add(ahead).UTC()
		if at.YearDay() == now.UTC().YearDay() {
			want = "15:04"
		}
		if got := untilOf(at, now); got.Relative != at.Format(want+" MST") || got.Form != "until" {
			t.Errorf("until in %v: %+v", ahead, got)
		}
	}
	if leftOf(time.Time{}, now).Machine != "" || spanOf(time.Time{}, now).Machine != "" || aheadOf(time.Time{}, now).Machine != "" {
		t.Error("no time is a time")
	}
}
