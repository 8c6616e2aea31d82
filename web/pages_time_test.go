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
