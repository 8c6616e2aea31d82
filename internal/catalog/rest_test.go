package catalog

import (
	"testing"
	"time"

	"sandboxd/internal/fault"
)

func TestParseAfter_ReadsWhatStringWrites(t *testing.T) {
	for text, want := range map[string]After{
		"": 0, "default": 0, "never": Never, "Never": Never, "90s": After(90 * time.Second), "15m": After(15 * time.Minute),
		"2h": After(2 * time.Hour), "1h30m": After(90 * time.Minute), "3d": After(72 * time.Hour), "0.5d": After(12 * time.Hour),
	} {
		got, err := ParseAfter("freeze_after", text)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		if again, err := ParseAfter("freeze_after", got.String()); err != nil || again != got {
			t.Errorf("%q is written as %q: %v, %v", text, got, again, err)
		}
	}
	for after, want := range map[After]string{After(15 * time.Minute): "15m", After(2 * time.Hour): "2h", After(10 * time.Second): "10s", After(100 * time.Minute): "1h40m"} {
		if after.String() != want {
			t.Errorf("got %s, want %s", after, want)
		}
	}
	for _, text := range []string{"0s", "-1m", "soon", "10", "400d", "500ms", "nand", "infd", "1e300d", "0x1p5d", "1_0d", "d"} {
		if got, err := ParseAfter("stop_after", text); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestRest_TheNarrowerSettingCounts(t *testing.T) {
	own, wider := Rest{StopAfter: Never}, Rest{FreezeAfter: 5, StopAfter: 7}
	if got := own.Over(wider); got != (Rest{FreezeAfter: 5, StopAfter: Never}) {
		t.Errorf("got %+v", got)
	}
}
