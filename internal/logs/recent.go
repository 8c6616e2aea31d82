package logs

import (
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of a Recent. The oldest records go first.
const (
	MaxRecent      = 5000    // records
	MaxRecentBytes = 4 << 20 // of their texts; a longer record is not kept
)

// Recent keeps the newest records of sandboxd's own log in memory: nothing outlives a restart. Safe for concurrent use.
type Recent struct {
	most, bytes int

	mu    sync.Mutex
	lines []Line // oldest first
	size  int    // bytes of their texts
	last  ID
}

// NewRecent makes one that is empty.
func NewRecent() *Recent { return &Recent{most: MaxRecent, bytes: MaxRecentBytes} }

// RecentQuery asks for the newest records. An empty field wants any.
type RecentQuery struct {
	Least  Level  // at least so serious
	Text   string // part of "message name=value name=value", in lower or upper case
	Before ID     // only records before this one; 0 begins with the newest
	After  ID     // only records after this one
	Limit  int    // DefaultLimit when 0, at most MaxLimit
}

// Handler gives a handler for a logger that keeps records from a level on. A record never waits for a reader.
func (r *Recent) Handler(level slog.Leveler) slog.Handler {
	return slog.NewJSONHandler(recentWriter{r}, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		switch {
		case len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime: // a line has one already
			return slog.Attr{}
		case a.Value.Kind() == slog.KindDuration: // which JSON has in nanoseconds
			return slog.String(a.Key, a.Value.Duration().String())
		}
		return a
	}})
}

// recentWriter takes one record as JSON with each Write, as slog.JSONHandler promises.
type recentWriter struct{ to *Recent }

var _ io.Writer = recentWriter{}

// Write implements io.Writer.
func (w recentWriter) Write(record []byte) (int, error) {
	w.to.add(strings.TrimRight(string(record), "\n"), time.Now())
	return len(record), nil
}

func (r *Recent) add(text string, now time.Time) {
	line := Line{Time: now.Round(0).UTC(), Level: fromJSON(text), Text: text}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.last+1, ID(now.UnixMicro()))
	line.ID = r.last
	r.lines = append(r.lines, line)
	r.size += len(text)
	for len(r.lines) > r.most || r.size > r.bytes {
		r.size -= len(r.lines[0].Text)
		r.lines[0] = Line{}
		r.lines = r.lines[1:]
	}
}

// Last gives the ID of the newest record that there was; 0 for none.
func (r *Recent) Last() ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Find gives the newest records that q asks for, newest first. The Text of each is a JSON object, which RecentFields takes apart.
// next is the Before that continues; 0 when there are no more.
func (r *Recent) Find(q RecentQuery) (found []Line, next ID) {
	r.mu.Lock()
	lines := slices.Clone(r.lines)
	r.mu.Unlock()
	limit := min(q.Limit, MaxLimit)
	if limit <= 0 {
		limit = DefaultLimit
	}
	wanted := strings.ToLower(q.Text)
	for _, l := range slices.Backward(lines) {
		if l.ID <= q.After {
			break
		}
		if q.Before != 0 && l.ID >= q.Before || l.Level < q.Least || wanted != "" && !strings.Contains(flat(l), wanted) {
			continue
		}
		if len(found) == limit {
			return found, found[limit-1].ID
		}
		found = append(found, l)
	}
	return found, 0
}

// RecentFields takes a record of a Recent apart: its message, and the other fields in their order, but not the level.
func RecentFields(l Line) (message string, fields []Field) {
	fields, _ = members(l.Text) // of a text that is no object there are none
	if len(fields) < 2 {        // slog.JSONHandler begins with the level and the message
		return l.Text, nil
	}
	return fields[1].Value, fields[2:]
}

// flat is a record as text, in lower case.
func flat(l Line) string {
	message, fields := RecentFields(l)
	var b strings.Builder
	b.WriteString(message)
	for _, f := range fields {
		b.WriteString(" " + f.Name + "=" + f.Value)
	}
	return strings.ToLower(b.String())
}
