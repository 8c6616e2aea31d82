package web

import (
	"context"
	"strings"
	"sync"
	"time"
)

// Times of looking whether sandboxd has what it needs.
const (
	alarmEvery = 5 * time.Second // between two looks of pages while all is well: with checkTime, a page hears in less than ten
	alarmSoon  = time.Second     // while something is wrong, so that a page says soon that it is over
	alarmGrace = 5 * time.Second // after the start: the first look at the engine is still under way
)

// alarm caches sandboxd's own trouble for all pages. Pages show the cached state and never wait for a check; their
// streams ask anew. Safe for concurrent use.
type alarm struct {
	grace time.Time // until then nothing is said

	mu     sync.Mutex
	asked  time.Time
	asking bool
	amiss  bool // something was wrong when it was last asked, said or not
	text   string
}

// last is the last finding, while it is recent. Without any stream nobody has asked since.
func (a *alarm) last(now time.Time) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.asked) > 2*alarmEvery {
		return ""
	}
	return a.text
}

// pace is the time to the next look. While another page asks it is short, so that all pages hear of what that one finds.
func (a *alarm) pace() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wait()
}

func (a *alarm) wait() time.Duration {
	if a.amiss || a.asking {
		return alarmSoon
	}
	return alarmEvery
}

// begin says whether it is the caller's turn to ask; then it must call done or leave.
func (a *alarm) begin(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asking || now.Sub(a.asked) < a.wait()/2 {
		return false
	}
	a.asking = true
	return true
}

// done takes in a finding.
func (a *alarm) done(now time.Time, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asking, a.asked, a.amiss, a.text = false, now, text != "", text
	if now.Before(a.grace) {
		a.text = ""
	}
}

// leave ends a check that found nothing out.
func (a *alarm) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asking = false
}

// checkAlarm runs the checks, unless another stream has just done so, and gives the trouble as a sentence.
func (s *Server) checkAlarm(ctx context.Context) string {
	if !s.alarm.begin(s.cfg.Now()) {
		return s.alarm.last(s.cfg.Now())
	}
	var silent []string
	for _, check := range s.cfg.Checks {
		if err := s.process.ask(ctx, check); err != nil && ctx.Err() == nil {
			silent = append(silent, check.Name)
		}
	}
	if ctx.Err() != nil { // the stream ended meanwhile
		s.alarm.leave()
	} else {
		s.alarm.done(s.cfg.Now(), alarmText(silent))
	}
	return s.alarm.last(s.cfg.Now())
}

func alarmText(silent []string) string {
	switch len(silent) {
	case 0:
		return ""
	case 1:
		if silent[0] == "engine" {
			return "The container engine does not answer. Sandboxes cannot be started, stopped or reached until it does. “sandboxd doctor” on the host says more."
		}
	}
	return "Part of sandboxd does not answer: " + strings.Join(silent, ", ") + ". “sandboxd doctor” on the host says more."
}

// watchAlarm tells when what sandboxd lacks differs from told, and from then on when it changes, until ctx ends.
func (s *Server) watchAlarm(ctx context.Context, told string, tell chan<- string) {
	say := func(now string) {
		if now == told {
			return
		}
		select {
		case tell <- now:
			told = now
		case <-ctx.Done():
		}
	}
	for {
		if known := s.alarm.last(s.cfg.Now()); known != "" { // a check takes seconds
			say(known)
		}
		say(s.checkAlarm(ctx))
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.alarm.pace()):
		}
	}
}
