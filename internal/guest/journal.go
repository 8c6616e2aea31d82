package guest

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"sandboxd/internal/wire"
)

// Bounds of a journal.
const (
	journalSize  = 1 << 20 // bytes that are kept for a sandboxd that is away or slow
	linesPerSec  = 5000    // that a sandbox may write on and on; at once twice as many
	bytesPerSec  = 2 << 20
	bytesAtOnce  = journalSize / 2        // so that a reader gets what comes at once
	reportsEvery = time.Second            // about lines that were dropped
	journalPause = 100 * time.Millisecond // between two frames that are not full: it saves most of the work
)

// journal keeps the newest lines of all services, for sandboxd to store. Each has a time of its own, by which a reader goes on
// where it was. Safe for concurrent use.
type journal struct {
	mu      sync.Mutex
	buf     []byte // encoded lines; what is before first was dropped
	first   int
	base    uint64    // position of buf[0]
	last    time.Time // of the newest line
	gone    time.Time // of the newest line that was dropped
	news    chan struct{}
	lines   allowance
	bytes   allowance
	dropped map[string]drops // by service, since the last report
}

// drops is what was dropped of a service.
type drops struct{ lines, bytes int64 }

// allowance refills by rate each second, up to most.
type allowance struct {
	rate, most, left float64
	at               time.Time
}

// take takes n, if there is any left.
func (a *allowance) take(n float64, now time.Time) bool {
	a.left = min(a.left+now.Sub(a.at).Seconds()*a.rate, a.most)
	a.at = now
	if a.left <= 0 {
		return false
	}
	a.left -= n
	return true
}

func newJournal() *journal {
	now := time.Now()
	return &journal{lines: allowance{linesPerSec, 2 * linesPerSec, 2 * linesPerSec, now}, bytes: allowance{bytesPerSec, bytesAtOnce, bytesAtOnce, now}, dropped: map[string]drops{}}
}

// add keeps a line of a service, unless the sandbox writes too much.
func (j *journal) add(service string, text []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	if !j.lines.take(1, now) || !j.bytes.take(float64(len(text)), now) {
		if len(j.dropped) == 0 {
			time.AfterFunc(reportsEvery, j.report)
		}
		d := j.dropped[service]
		j.dropped[service] = drops{d.lines + 1, d.bytes + int64(len(text))}
		return
	}
	j.append(service, text)
}

// note keeps a line of our own about a service.
func (j *journal) note(service, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.append(service, fmt.Appendf(nil, "[sandboxd] "+format, args...))
}

// report says how much was dropped.
func (j *journal) report() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, service := range slices.Sorted(maps.Keys(j.dropped)) {
		d := j.dropped[service]
		j.append(service, fmt.Appendf(nil, "[sandboxd] %d lines (%d bytes) were dropped here: this sandbox writes more than %d lines or %d MiB in a second.",
			d.lines, d.bytes, linesPerSec, bytesPerSec>>20))
	}
	clear(j.dropped)
}

// append needs mu. Times are those of the clock, but always later than that of the line before.
func (j *journal) append(service string, text []byte) {
	at := time.Now().Round(0).Truncate(time.Microsecond)
	if !at.After(j.last) {
		at = j.last.Add(time.Microsecond)
	}
	j.last = at
	if j.first > journalSize {
		j.buf = append(j.buf[:0], j.buf[j.first:]...)
		j.base += uint64(j.first)
		j.first = 0
	}
	j.buf = wire.AppendLogLine(j.buf, wire.LogLine{Time: at, Service: service, Text: text})
	for len(j.buf)-j.first > journalSize {
		l, rest, err := wire.NextLogLine(j.buf[j.first:])
		if err != nil { // never: they were encoded here
			j.first = len(j.buf)
			break
		}
		j.gone, j.first = l.Time, len(j.buf)-len(rest)
	}
	if j.news != nil {
		close(j.news)
		j.news = nil
	}
}

// find gives the position of the first line that is later than after, and whether lines in between were dropped.
func (j *journal) find(after time.Time) (at uint64, missing bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	rest := j.buf[j.first:]
	for len(rest) > 0 {
		l, next, err := wire.NextLogLine(rest)
		if err != nil || l.Time.After(after) {
			break
		}
		rest = next
	}
	return j.base + uint64(len(j.buf)-len(rest)), j.gone.After(after)
}

// since gives a copy of whole lines from a position on, wire.MaxFrame bytes at most, and the position behind them. missing
// says that some in between were dropped. Where there are none, news is closed when there are.
func (j *journal) since(at uint64) (b []byte, next uint64, missing bool, news <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if first := j.base + uint64(j.first); at < first {
		at, missing = first, true
	}
	rest := j.buf[at-j.base:]
	if len(rest) == 0 {
		if j.news == nil {
			j.news = make(chan struct{})
		}
		return nil, at, missing, j.news
	}
	end := 0
	for end < len(rest) {
		_, after, err := wire.NextLogLine(rest[end:])
		if n := len(rest) - len(after); err != nil || n > wire.MaxFrame {
			break
		} else {
			end = n
		}
	}
	return bytes.Clone(rest[:end]), at + uint64(end), missing, nil
}

// gap is what a reader is told in the place of lines that were dropped before it had them.
const gap = "[sandboxd] Some lines are missing here: sandboxd did not read them in time, and this sandbox keeps only the last MiB."

// serve passes on lines later than the time that is asked for, and those that come, until the request ends.
func (j *journal) serve(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if err != nil {
		fail(w, problem(wire.CodeInvalid, "That is no time."))
		return
	}
	frames := newFramer(w)
	at, missing := j.find(time.UnixMicro(after))
	if frames.send(wire.FrameLines, nil) != nil { // says that there is a journal
		return
	}
	for {
		b, next, lost, news := j.since(at)
		missing = missing || lost
		if missing && len(b) > 0 {
			if frames.send(wire.FrameLines, gapBefore(b)) != nil {
				return
			}
			missing = false
		}
		at = next
		var pause <-chan time.Time
		if len(b) > 0 {
			if frames.send(wire.FrameLines, b) != nil {
				return
			}
			if len(b) > wire.MaxFrame/2 {
				continue
			}
			pause = time.After(journalPause)
		}
		select {
		case <-news:
		case <-pause:
		case <-r.Context().Done():
			return
		}
	}
}

// gapBefore says that lines are missing before those of b.
func gapBefore(b []byte) []byte {
	l, _, err := wire.NextLogLine(b)
	if err != nil { // never: they were encoded here
		return nil
	}
	return wire.AppendLogLine(nil, wire.LogLine{Time: l.Time.Add(-time.Microsecond), Text: []byte(gap)})
}

// lineWriter passes the output of a service on to a journal, line by line. It is for one goroutine.
type lineWriter struct {
	journal *journal
	service string
	part    []byte // the beginning of a line
	cut     int    // how many bytes of that line were left out
}

// Write implements io.Writer. It never fails.
func (l *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			l.keep(p)
			return n, nil
		}
		if len(l.part) == 0 && i <= wire.MaxLogText {
			l.journal.add(l.service, shown(p[:i]))
		} else {
			l.keep(p[:i])
			l.flush()
		}
		p = p[i+1:]
	}
}

func (l *lineWriter) keep(p []byte) {
	fits := min(len(p), wire.MaxLogText-cutMark-len(l.part))
	l.part = append(l.part, p[:fits]...)
	l.cut += len(p) - fits
}

// cutMark is how many bytes are left for saying how many were cut.
const cutMark = 40

// flush ends the line that is begun, if there is one.
func (l *lineWriter) flush() {
	if l.cut > 0 {
		l.part = fmt.Appendf(l.part, "… [%d bytes cut]", l.cut)
	}
	if len(l.part) > 0 {
		l.journal.add(l.service, shown(l.part))
	}
	l.part, l.cut = l.part[:0], 0
}

// shown is what a terminal would leave of a line that goes back to its beginning.
func shown(line []byte) []byte {
	line = bytes.TrimRight(line, "\r")
	return line[bytes.LastIndexByte(line, '\r')+1:]
}
