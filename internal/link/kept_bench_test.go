//go:build engine && bench

package link_test

import (
	"context"
	"testing"
	"time"

	"sandboxd/internal/benchtest"
	"sandboxd/internal/wire"
)

func TestBench_KeptProcess(t *testing.T) {
	b := startBox(t, wire.Setup{}, nil)
	w := keptWorldOf(t, b)
	w.start()
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
	defer cancel()
	began := time.Now()
	pourThrough(ctx, t, w, 100<<20, 100, 50)
	took := time.Since(began)
	if t.Failed() {
		return
	}
	for _, c := range []benchtest.Case{
		benchtest.Amount("kept_process: 100 MB through 50 restarts of sandboxd, the guest's memory", "≤ 16", "MiB", b.mostResident(t)),
		benchtest.Amount("kept_process: 100 MB through 50 restarts of sandboxd", "byte for byte", "s", took.Seconds()),
	} {
		benchtest.Record(t, benchtest.Deep, c)
	}
}
