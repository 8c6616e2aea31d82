package idle_test

import (
	"strconv"
	"testing"

	"sandboxd/internal/idle"
)

func BenchmarkTracker(b *testing.B) {
	use := idle.Use{Kind: idle.Web, Detail: "GET /index.html"}
	b.Run("begin and end", func(b *testing.B) {
		t := idle.New()
		b.ReportAllocs()
		for b.Loop() {
			t.Begin("box", use).End()
		}
	})
	b.Run("touch of a lease", func(b *testing.B) {
		l := idle.New().Watch("box", use)
		for b.Loop() {
			l.Touch(true)
		}
	})
	b.Run("touch", func(b *testing.B) {
		t := idle.New()
		for b.Loop() {
			t.Touch("box", use)
		}
	})
	b.Run("begin and end, 500 sandboxes at once", func(b *testing.B) {
		t := idle.New()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				t.Begin("box-"+strconv.Itoa(i%500), use).End()
			}
		})
	})
	b.Run("heartbeat, memory full", func(b *testing.B) {
		t := idle.New()
		for i := 0; b.Loop(); i++ {
			t.Heartbeat("box", strconv.Itoa(i%60))
		}
	})
}
