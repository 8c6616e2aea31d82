package web

import (
	"testing"
	"time"
)

func TestRelative_SaysHowLongAgo(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		0: "now", 9 * time.Second: "now", 42 * time.Second: "42 s ago", 90 * time.Second: "1 min ago",
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

func TestBytesText_HasNoNeedlessDecimals(t *testing.T) {
	for n, want := range map[int64]string{2 << 30: "2 GiB", 512 << 20: "512 MiB", 1536 << 20: "1.5 GiB", 0: "0 B"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
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
		720 * time.Second: "in 12 min", 3 * time.Second: "now", -time.Hour: "now", 8 * 24 * time.Hour: "29 Nov",
	} {
		if got := aheadOf(now.Add(ahead), now); got.Relative != want || got.Form != "ahead" {
			t.Errorf("in %v: %+v, want %q", ahead, got, want)
		}
	}
	if spanOf(time.Time{}, now).Machine != "" || aheadOf(time.Time{}, now).Machine != "" {
		t.Error("no time is a time")
	}
}
