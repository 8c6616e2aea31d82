package metrics

import (
	"strconv"
	"testing"
	"time"

	"sandboxd/internal/sandbox"
)

// BenchmarkRecent asks for what a page of the list shows: the last FineLife of 50 sandboxes, and what they use now.
func BenchmarkRecent(b *testing.B) {
	r := New(Config{})
	now := time.Now()
	for i := range 50 {
		t := &track{state: sandbox.Running}
		for j := range fineKept {
			t.fine = append(t.fine, span{from: now.Add(time.Duration(j-fineKept) * FineStep).UnixNano(), took: int64(FineStep), usage: used{cpu: int64(i)}})
		}
		r.tracks[strconv.Itoa(i)] = t
	}
	for b.Loop() {
		for i := range 50 {
			id := strconv.Itoa(i)
			if _, ok := r.Latest(id); !ok || len(r.Recent(id)) == 0 {
				b.Fatal("no figures")
			}
		}
	}
}
