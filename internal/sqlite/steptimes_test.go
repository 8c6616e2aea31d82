package sqlite

import (
	"fmt"
	"testing"
	"time"
)

func TestStepTimes_KeepsTheLastAndForgetsTheOldest(t *testing.T) {
	d := fresh(t)
	times := map[string]time.Duration{}
	for i := range maxStepTimes {
		times[fmt.Sprint("old", i)] = time.Minute
	}
	for _, put := range []map[string]time.Duration{times, {"old1": time.Hour, "new": 1500 * time.Millisecond}} {
		if err := d.Times().PutStepTimes(t.Context(), put); err != nil {
			t.Fatal(err)
		}
	}
	got, err := d.Times().StepTimes(t.Context())
	if err != nil || len(got) != maxStepTimes || got["old1"] != time.Hour || got["new"] != 1500*time.Millisecond {
		t.Errorf("%d times, %v, %v: %v", len(got), got["old1"], got["new"], err)
	}
}
