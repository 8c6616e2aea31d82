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

	"sandboxd/internal/guest/thaw"
	"sandboxd/internal/wire"
)

// Bounds of a journal.
const (
	journalSize   = journalBlocks * wire.MaxFrame // bytes that are kept for a sandboxd that is away or slow: a MiB
	journalBlocks = 32
	linesPerSec   = 5000 // that a sandbox may write on and on; at once twice as many
	bytesPerSec   = 2 << 20
	bytesAtOnce   = journalSize / 2        // so that a reader gets what comes at once
	reportsEvery  = time.Second            // about lines that were dropped
	sentLife      = 2 * time.Second        // of lines that were sent: sandboxd has them on its disk in one, and is told again what it had not
	lastSend      = 500 * time.Millisecond // for what is not sent yet when the sandbox ends
	journalPause  = 20 * time.Millisecond  // between what is sent to one who has read all, at least: many services cost as little as one
)

// journal keeps the newest lines of all services, for sandboxd to store. Each has a time of its own, by which a reader goes on
// where it was. Safe for concurrent use.
type journal struct {
	mu      sync.Mutex
	blocks  []block   // oldest first, journalBlocks at most
	spare   [][]byte  // memory of former blocks, for others
	base    uint64    // position of the first block's lines
	last    time.Time // of the newest line
	gone    time.Time // of the newest line that was dropped
	news    chan struct{}
	lines   allowance
	bytes   allowance
	dropped map[string]drops // by service, since the last report
	readers map[*reading]struct{}
	tidy    func() // called now and then while it is read; set before
}

// block is lines that follow each other. A journal lets go of a whole block at a time, and uses its memory again.
type block struct {
	lines []byte    // encoded, each of them whole; wire.MaxFrame bytes at most, so that a frame can hold them
	last  time.Time // of the newest
}

// reading is how far one who reads a journal is. It changes with mu, by who reads alone.
type reading struct {
	at   uint64    // lines before it were sent
	sent time.Time // the last of them
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
	return &journal{lines: allowance{linesPerSec, 2 * linesPerSec, 2 * linesPerSec, now}, bytes: allowance{bytesPerSec, bytesAtOnce, bytesAtOnce, now}, dropped: map[string]drops{}, readers: map[*reading]struct{}{}, tidy: func() {}}
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
	j.append(service, bytes.TrimRight(fmt.Appendf(nil, "[sandboxd] "+format, args...), " "))
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
	line := wire.LogLine{Time: at, Service: service, Text: text}
	if n := len(j.blocks); n == 0 || len(j.blocks[n-1].lines)+line.Size() > wire.MaxFrame {
		j.turn()
	}
	b := &j.blocks[len(j.blocks)-1]
	b.lines, b.last = wire.AppendLogLine(b.lines, line), at
	if j.news != nil {
		close(j.news)
		j.news = nil
	}
}

// turn begins a block, in the place of the oldest when there are enough. It needs mu.
func (j *journal) turn() {
	if len(j.blocks) == journalBlocks {
		j.drop()
	}
	var memory []byte // of the first, it grows: most sandboxes write little
	if n := len(j.spare); n > 0 {
		memory, j.spare = j.spare[n-1], j.spare[:n-1]
	} else if len(j.blocks) > 0 {
		memory = make([]byte, 0, wire.MaxFrame)
	}
	j.blocks = append(j.blocks, block{lines: memory})
}

// drop lets go of the oldest block. It needs mu.
func (j *journal) drop() {
	oldest := j.blocks[0]
	j.gone = oldest.last
	j.base += uint64(len(oldest.lines))
	j.blocks = slices.Delete(j.blocks, 0, 1)
	j.spare = append(j.spare, oldest.lines[:0])
}

// forget lets go of blocks before a position, but for the newest.
func (j *journal) forget(before uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.spare = nil // more than was needed since the last time
	for len(j.blocks) > 1 && j.base+uint64(len(j.blocks[0].lines)) <= before {
		j.drop()
	}
}

// find gives the position of the first line that is later than after, and whether lines in between were dropped.
func (j *journal) find(after time.Time) (at uint64, missing bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at, missing = j.base, j.gone.After(after)
	for _, b := range j.blocks {
		if !b.last.After(after) {
			at += uint64(len(b.lines))
			continue
		}
		rest := b.lines
		for len(rest) > 0 {
			l, next, err := wire.NextLogLine(rest)
			if err != nil || l.Time.After(after) {
				break
			}
			rest = next
		}
		return at + uint64(len(b.lines)-len(rest)), missing
	}
	return at, missing
}

// portion is some lines of a journal.
type portion struct {
	lines   []byte // encoded, each of them whole; wire.MaxFrame bytes at most
	next    uint64 // the position behind them
	missing bool   // some before them were dropped
	more    bool   // there are others after them
}

// since gives the lines from a position on, copied to the memory of buf.
func (j *journal) since(at uint64, buf []byte) portion {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := portion{next: max(at, j.base), missing: at < j.base}
	begin := j.base
	for i, b := range j.blocks {
		end := begin + uint64(len(b.lines))
		if p.next < end {
			p.lines, p.next = append(buf[:0], b.lines[p.next-begin:]...), end
			p.more = i+1 < len(j.blocks)
			return p
		}
		begin = end
	}
	return p
}

// already is a channel that is closed.
var already = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// beyond gives a channel that is closed once there are lines from a position on.
func (j *journal) beyond(at uint64) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.end() > at {
		return already
	}
	if j.news == nil {
		j.news = make(chan struct{})
	}
	return j.news
}

// end is the position behind the last line. It needs mu.
func (j *journal) end() uint64 {
	end := j.base
	for _, b := range j.blocks {
		end += uint64(len(b.lines))
	}
	return end
}

// drain waits until all who read have been sent all lines, for lastSend at most.
func (j *journal) drain() {
	j.report()
	for left := thaw.NewBudget(lastSend); !j.isRead() && !left.Spent(); {
		time.Sleep(sweepPace)
	}
}

// isRead says whether all who read have been sent all lines. What was sent just now may still be on its way to the connection.
func (j *journal) isRead() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for r := range j.readers {
		if r.at < j.end() || time.Since(r.sent) < journalPause {
			return false
		}
	}
	return true
}

// beginReading counts one who reads from a position on, until done is called.
func (j *journal) beginReading(at uint64) (r *reading, done func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r = &reading{at: at}
	j.readers[r] = struct{}{}
	return r, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.readers, r)
	}
}

// wasSent notes that lines before a position were sent.
func (j *journal) wasSent(r *reading, at uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.at, r.sent = at, time.Now()
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
	reader, done := j.beginReading(at)
	defer done()
	if frames.send(wire.FrameLines, nil) != nil { // says that there is a journal
		return
	}
	care := caretaker{journal: j, sent: at, noted: time.Now(), tidied: time.Now()}
	var buf []byte
	for {
		p := j.since(at, buf)
		missing = missing || p.missing
		if missing && len(p.lines) > 0 {
			if frames.send(wire.FrameLines, gapBefore(p.lines)) != nil {
				return
			}
			missing = false
		}
		at = p.next
		if len(p.lines) > 0 {
			buf = p.lines
			if frames.send(wire.FrameLines, p.lines) != nil {
				return
			}
			j.wasSent(reader, at)
			care.look(at)
			if p.more {
				continue
			}
		}
		select {
		case <-j.beyond(at):
		case <-r.Context().Done():
			return
		}
		if rest := journalPause - time.Since(reader.sent); rest > 0 {
			doze(rest, r.Context().Done())
		}
	}
}

// caretaker keeps the memory small that goes into lines while they are read.
type caretaker struct {
	journal *journal
	sent    uint64    // lines before it were sent when that was noted
	noted   time.Time // when
	tidied  time.Time // when memory was given back
}

// look is called when lines before a position were sent.
func (c *caretaker) look(sent uint64) {
	now := time.Now()
	if now.Sub(c.noted) > sentLife {
		c.journal.forget(c.sent)
		c.sent, c.noted = sent, now
	}
	if now.Sub(c.tidied) > tidyEvery {
		c.tidied = now
		c.journal.tidy()
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
