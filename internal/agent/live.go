package agent

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// live is where a tool writes while it runs: it tells each write as an event, and keeps the head and the tail.
type live struct {
	emit func(Event)
	call Call

	mu    sync.Mutex
	over  bool   // the tool has returned
	rest  []byte // the beginning of a character, whose end is yet to come
	shown int64
	total int64
	head  []byte
	tail  []byte // at most twice maxKept
}

// maxPiece bounds the text of one event.
const maxPiece = 32 << 10

// Write takes any amount and never fails.
func (l *live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.keep(p)
		l.show(p)
	}
	return len(p), nil
}

func (l *live) keep(p []byte) {
	l.total += int64(len(p))
	n := min(len(p), maxKept-len(l.head))
	l.head, p = append(l.head, p[:n]...), p[n:]
	p = p[max(0, len(p)-maxKept):]
	l.tail = append(l.tail, p...)
	if len(l.tail) > 2*maxKept {
		l.tail = append(l.tail[:0], l.tail[len(l.tail)-maxKept:]...)
	}
}

// show tells what fits.
func (l *live) show(p []byte) {
	for len(p) > 0 && l.shown < maxLive {
		n := min(len(p), maxPiece)
		piece := append(l.rest, p[:n]...)
		p = p[n:]
		cut := whole(piece)
		l.rest = append([]byte(nil), piece[cut:]...)
		l.tell(string(piece[:cut]))
	}
}

func (l *live) tell(s string) {
	if s == "" {
		return
	}
	l.shown += int64(len(s))
	if l.shown >= maxLive {
		s += "\n(More of it is not shown while it runs.)\n"
	}
	l.emit(Event{Kind: ToolOutput, CallID: l.call.ID, Text: strings.ToValidUTF8(s, "\uFFFD")})
}

// whole gives the length of p without a character at its end of which only the beginning is there.
func whole(p []byte) int {
	for i := 1; i <= min(len(p), utf8.UTFMax-1); i++ {
		if at := len(p) - i; utf8.RuneStart(p[at]) {
			if utf8.FullRune(p[at:]) {
				return len(p)
			}
			return at
		}
	}
	return len(p)
}

// end stops it, and gives what was kept.
func (l *live) end() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.shown < maxLive {
		l.tell(string(l.rest))
	}
	tail := l.tail[max(0, len(l.tail)-maxKept):]
	missing := l.total - int64(len(l.head)) - int64(len(tail))
	if missing > 0 {
		return strings.ToValidUTF8(string(l.head)+leftOut(missing)+string(tail), "\uFFFD")
	}
	return strings.ToValidUTF8(string(l.head)+string(tail), "\uFFFD")
}
