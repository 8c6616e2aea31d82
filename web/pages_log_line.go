package web

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
	"sandboxd/views"
)

// logContexts are how many lines around one a page shows, from the fewest on.
var logContexts = []int{20, 100, 500}

// lineOf gives the line that a request names, with the sandboxes that it may see. Kind: NotFound.
func (s *logHandlers) lineOf(ctx context.Context, r *request) (logs.Line, logsQuery, error) {
	id, err := logs.ParseID(r.param("id"))
	if err != nil {
		return logs.Line{}, logsQuery{}, fault.Wrap(err, fault.NotFound, "This is not the address of a log line.")
	}
	var q logsQuery
	if q.Scope, q.boxes, err = s.logsScope(ctx, r); err != nil {
		return logs.Line{}, q, err
	}
	line, err := s.cfg.Logs.Line(ctx, q.Scope, id)
	return line, q, err
}

// pageLogLine shows a line with those before and after it.
func (s *logHandlers) pageLogLine(ctx context.Context, r *request) (templ.Component, error) {
	n, err := r.intQuery("lines", logContexts[0], 1, logContexts[len(logContexts)-1])
	if err != nil {
		return nil, err
	}
	line, q, err := s.lineOf(ctx, r)
	if err != nil {
		return nil, err
	}
	lines, err := s.cfg.Logs.Around(ctx, q.Scope, line.Sandbox, line.ID, n)
	if err != nil {
		return nil, err
	}
	now := s.cfg.Now()
	v := views.LogLinePage{Frame: s.frame(r, "Log line", "logs"), Lines: logLines(lines, q.boxes, now)}
	for i, l := range lines {
		if l.ID == line.ID {
			v.Lines[i] = logLine(l, q.boxes, now, true)
			v.Lines[i].Chosen = true
			v.Title, v.Log = v.Lines[i].Box, v.Lines[i].BoxURL
		}
	}
	for _, more := range logContexts {
		if more > n && len(lines) > n {
			v.More = fmt.Sprintf("%s/lines/%s?lines=%d#l-%[2]s", logsPath, line.ID, more)
			break
		}
	}
	return views.LogAroundPage(v), nil
}

// partLogText is all of a line's text, for the script of the page.
func (s *logHandlers) partLogText(ctx context.Context, r *request) (templ.Component, error) {
	line, q, err := s.lineOf(ctx, r)
	if err != nil {
		return nil, err
	}
	return views.LogText(logLine(line, q.boxes, s.cfg.Now(), true)), nil
}

// Bounds of a download.
const (
	mostDownloaded = 100_000 // lines
	downloadTime   = 10 * time.Minute
)

// downloadLogs answers with the lines that match, newest first, as text or as JSON lines.
func (s *logHandlers) downloadLogs(ctx context.Context, r *request, _ none) (reply, error) {
	format := r.query("format")
	if format != "text" && format != "json" {
		return reply{}, fault.Field("format", "The format is text or json.")
	}
	begin := func(ctx context.Context, r *request) (logsQuery, func(), error) {
		q, err := s.read(ctx, r, readLogAddress(r.http.URL.Query(), logFields, s.cfg.Now()))
		return q, func() {}, err
	}
	return reply{}, admit(s.live, r, streams, begin, func(ctx context.Context, _ func(), q logsQuery) error {
		ctx, cancel := context.WithTimeout(ctx, downloadTime)
		defer cancel()
		q.Limit = logs.MaxLimit
		first, err := s.search(ctx, r, q.Query)
		if err != nil {
			return err
		}
		name, kind := "logs-"+s.cfg.Now().UTC().Format("20060102-150405"), "text/plain; charset=utf-8"
		if format == "json" {
			kind, name = lineType, name+".ndjson"
		} else {
			name += ".txt"
		}
		r.head.Set("Content-Disposition", attachment(name))
		r.head.Set("X-Content-Type-Options", "nosniff")
		d := download{out: r.openFlow(kind), json: format == "json", boxes: q.boxes}
		if err := s.sendAll(ctx, r, &d, q, first); err != nil {
			s.files.cut(r, err)
		}
		return nil
	})
}

// sendAll sends what was found first, and searches on.
func (s *logHandlers) sendAll(ctx context.Context, r *request, d *download, q logsQuery, found logs.Result) error {
	for {
		if err := d.send(found.Lines); err != nil {
			return err
		}
		if found.Next == 0 {
			return nil
		}
		if d.sent >= mostDownloaded {
			return d.end()
		}
		q.Before = found.Next
		q.Limit = min(logs.MaxLimit, mostDownloaded-d.sent)
		var err error
		if found, err = s.search(ctx, r, q.Query); err != nil {
			return err
		}
	}
}

// download is a file of lines under way.
type download struct {
	out   *flow
	json  bool
	boxes logBoxes
	sent  int
}

// send writes lines. Text has no control characters: it may be shown on a terminal.
func (d *download) send(lines []logs.Line) error {
	d.sent += len(lines)
	var b strings.Builder
	for _, l := range lines {
		v := newLogShape(l, d.boxes)
		if d.json {
			if err := d.out.line(v); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(&b, "%s %s %s %s %s\n", v.Time.Format(time.RFC3339Nano), v.Sandbox, cell(v.Service), v.Level, views.Plain(v.Text, 0))
	}
	if b.Len() == 0 {
		return nil
	}
	return d.out.write([]byte(b.String()))
}

// end says that there are more lines.
func (d *download) end() error {
	text := fmt.Sprintf("Only the newest %d lines are here.", d.sent)
	if d.json {
		return d.out.line(map[string]string{"type": "limit", "detail": text})
	}
	return d.out.write([]byte(text + "\n"))
}

// cell is a text without spaces, with a sign for what is empty.
func cell(text string) string {
	return cmp.Or(strings.Join(strings.Fields(views.Plain(text, 0)), "_"), "-")
}
