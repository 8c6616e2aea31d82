package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// When the collector runs: once the heap has grown by gcPercent, but not before it has heapFloor. A small heap would be collected
// dozens of times a second under load; a large one with the usual 100 percent would hold much garbage.
const (
	gcPercent = 30
	heapFloor = 28 << 20

	runtimeFloor = 4 << 20 // the heap that Go itself starts with, times the percentage
)

// tuneGC adjusts the collector after each collection, until the process ends. The variable GOGC overrides it.
func tuneGC() {
	if os.Getenv("GOGC") == "" {
		adjustGC(new(sentinel))
	}
}

// sentinel is garbage with a finalizer. It has a pointer, since the smallest objects without one may never be finalized.
type sentinel struct{ _ *byte }

// adjustGC sets the growth at which the collector runs next, and has itself called after that.
func adjustGC(s *sentinel) {
	now := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(now)
	live, roots := now[0].Value.Uint64(), now[1].Value.Uint64()+now[2].Value.Uint64()
	percent := gcPercent
	if live < heapFloor {
		percent = max(percent, int((heapFloor-live)*100/max(live+roots, runtimeFloor)))
	}
	debug.SetGCPercent(percent)
	runtime.SetFinalizer(s, adjustGC)
}
