package sandbox

import (
	"sync"
	"time"
)

// pacedReports hands reports on to tell, one every reportEvery at most. The last one of a burst follows when that time is over: what is
// reported on may then say nothing for minutes. Safe for concurrent use; tell is not called after end has returned.
type pacedReports struct {
	tell func(Progress)

	mu    sync.Mutex
	last  time.Time   // when one was handed on
	next  Progress    // while timer runs
	timer *time.Timer // nil while none waits
	ended bool
}

func (r *pacedReports) report(p Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := reportEvery - time.Since(r.last)
	switch {
	case r.ended:
	case r.timer != nil:
		r.next = p
	case wait > 0:
		r.next, r.timer = p, time.AfterFunc(wait, r.flush)
	default:
		r.last = time.Now()
		r.tell(p)
	}
}

// flush hands on what has waited.
func (r *pacedReports) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.timer, r.last = nil, time.Now()
	r.tell(r.next)
}

// end drops what waits.
func (r *pacedReports) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.timer != nil {
		r.timer.Stop()
	}
}
