package idle

import (
	"testing"
	"time"

	"sandboxd/internal/sandbox"
)

func TestWork_AveragesAndWords(t *testing.T) {
	for _, c := range []struct {
		cpu           time.Duration
		network, disk int64
		want          string
	}{
		{0, 0, 0, ""},
		{499 * time.Millisecond, 100_000, 100_000, ""},
		{500 * time.Millisecond, 0, 0, "0.05 cores"},
		{19 * time.Second, 0, 0, "1.9 cores"},
		{160 * time.Second, 0, 0, "16 cores"},
		{0, 40 << 20, 1 << 20, "4.2 MB/s network"},
		{0, 200_000, 200_000, "20 kB/s network"},
		{0, 100_000, 300_000, "30 kB/s disk"},
		{0, 0, 1_234_567_890, "123 MB/s disk"},
	} {
		now := usageOf(c.cpu, c.network, c.disk)
		if got, works := work(usageOf(0, 0, 0), now, 10*time.Second); got != c.want || works != (c.want != "") {
			t.Errorf("%+v: %q, %v, want %q", now, got, works, c.want)
		}
	}
}

func usageOf(cpu time.Duration, network, disk int64) sandbox.Usage {
	return sandbox.Usage{CPU: cpu, Network: network, Disk: disk}
}
