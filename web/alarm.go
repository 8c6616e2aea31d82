package web

import (
	"context"
	"strings"
	"sync"
	"time"
)

// alarmEvery is how often pages ask whether sandboxd has what it needs.
const alarmEvery = 10 * time.Second

// alarm remembers, for all pages, what sandboxd lacks now. Pages show what is remembered and never wait for it; their
// streams ask anew. Safe for concurrent use.
type alarm struct {
	mu     sync.Mutex
	asked  time.Time
	asking bool
	text   string
}

func (a *alarm) last() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text
}

// begin says whether it is the caller's turn to ask; then it must call done.
func (a *alarm) begin(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asking || now.Sub(a.asked) < alarmEvery/2 {
		return false
	}
	a.asking = true
	return true
}

func (a *alarm) done(now time.Time, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asking, a.asked, a.text = false, now, text
}

// checkAlarm asks what sandboxd needs, unless another stream has just done so, and gives what is wrong as a sentence.
func (s *Server) checkAlarm(ctx context.Context) string {
	if !s.alarm.begin(s.cfg.Now()) {
		return s.alarm.last()
	}
	var silent []string
	for _, check := range s.cfg.Checks {
		if err := s.ask(ctx, check); err != nil && ctx.Err() == nil {
			silent = append(silent, check.Name)
		}
	}
	text := alarmText(silent)
	if ctx.Err() != nil { // the stream ended meanwhile: nothing was learnt
		text = s.alarm.last()
	}
	s.alarm.done(s.cfg.Now(), text)
	return text
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
