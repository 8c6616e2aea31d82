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

// contextText is how many bytes of text a page shows before a line, and after it: as HTML they take much more.
const contextText = 256 << 10

// lineAround gives the line that a request names with those before and after it, and the sandboxes that it may see. Kind: NotFound.
func (s *logHandlers) lineAround(ctx context.Context, r *request, each logs.Page) (id logs.ID, lines []logs.Line, boxes logBoxes, err error) {
	if id, err = logs.ParseID(r.param("id")); err != nil {
		return id, nil, nil, fault.Wrap(err, fault.NotFound, "This is not the address of a log line.")
	}
	scope, boxes, err := s.logsScope(ctx, r)
	if err != nil {
		return id, nil, nil, err
	}
	lines, err = s.around(ctx, r, scope, id, each)
	return id, lines, boxes, err
}

// pageLogLine shows a line with those before and after it.
func (s *logHandlers) pageLogLine(ctx context.Context, r *request) (templ.Component, error) {
	n, err := r.intQuery("lines", logContexts[0], 1, logContexts[len(logContexts)-1])
	if err != nil {
		return nil, err
	}
	id, lines, boxes, err := s.lineAround(ctx, r, logs.Page{Lines: n, Text: contextText})
	if err != nil {
		return nil, err
	}
	now := s.cfg.Now()
	v := views.LogLinePage{Frame: s.frame(r, "Log line", "logs"), Lines: logLines(lines, boxes, now)}
	for i, l := range lines {
		if l.ID == id {
			v.Lines[i] = logLine(l, boxes, now, true)
			v.Lines[i].Chosen = true
			v.Title, v.Log = v.Lines[i].Box, v.Lines[i].BoxURL
		}
	}
	for _, more := range logContexts {
		if more > n && len(lines) > n {
			v.More = fmt.Sprintf("%s/lines/%s?lines=%d#l-%[2]s", logsPath, id, more)
			break
		}
	}
	return views.LogAroundPage(v), nil
}

// partLogText is all of a line's text, for the script of the page.
func (s *logHandlers) partLogText(ctx context.Context, r *request) (templ.Component, error) {
	_, lines, boxes, err := s.lineAround(ctx, r, logs.Page{})
	if err != nil {
		return nil, err
	}
	return views.LogText(logLine(lines[0], boxes, s.cfg.Now(), true)), nil
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
		first, leave, err := s.search(ctx, r, q.Query)
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
		if err := s.sendAll(ctx, r, &d, q, first, leave); err != nil {
			s.files.cut(r, err)
		}
		return nil
	})
}

// sendAll sends what was found first, and searches on. It leaves the place of each search.
func (s *logHandlers) sendAll(ctx context.Context, r *request, d *download, q logsQuery, found logs.Result, leave func()) error {
	for {
		err := d.send(found.Lines)
		leave()
		if err != nil {
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
		if found, leave, err = s.search(ctx, r, q.Query); err != nil {
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
	return d.out.lines(len(lines), func(b []byte, i int) []byte {
		v := newLogShape(lines[i], d.boxes)
		if d.json {
			return append(appendJSON(b, v), '\n')
		}
		return fmt.Appendf(b, "%s %s %s %s %s\n", v.Time.Format(time.RFC3339Nano), v.Sandbox, cell(v.Service), v.Level, views.Plain(v.Text, 0))
	})
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
