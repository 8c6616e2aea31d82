package web

import (
	"context"
	"errors"
	"strings"
	"sync"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// Bounds of a search that is answered at once.
const (
	foundDefault = 1000
	foundBytes   = 8 << 20
)

type searchBody struct {
	Path         string `json:"path"`
	PathEncoded  string `json:"path_encoded"`
	Query        string `json:"query"`
	QueryEncoded string `json:"query_encoded"`
	In           string `json:"in"`
	Case         bool   `json:"case"`
	Regex        bool   `json:"regex"`
	Limit        *int   `json:"limit"`
}

func (b searchBody) search() (wire.Search, error) {
	q := wire.Search{In: wire.SearchIn(b.In), Case: b.Case, Regex: b.Regex, Limit: foundDefault}
	if b.In == "" {
		q.In = wire.SearchNames
	}
	if b.Limit != nil {
		q.Limit = *b.Limit
		if q.Limit < 1 {
			return q, fault.Field("limit", "limit must be between 1 and %d.", wire.MaxFound)
		}
	}
	var err error
	if q.Path, err = pathInput("path", b.Path, b.PathEncoded); err != nil {
		return q, err
	}
	q.Query, err = pathInput("query", b.Query, b.QueryEncoded)
	return q, err
}

// foundShape is one thing found. Of a content's line it has what stands before the match, the match, and what stands after it.
type foundShape struct {
	Path        string `json:"path"`
	PathEncoded string `json:"path_encoded,omitempty"`
	Type        string `json:"type"`
	*foundLine
}

type foundLine struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Before string `json:"before"`
	Match  string `json:"match"`
	After  string `json:"after"`
}

func newFoundShape(f wire.Found) foundShape {
	out := foundShape{Type: typeName(f.Type)}
	out.Path, out.PathEncoded = showBytes(f.Path)
	if f.Line > 0 {
		show := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
		out.foundLine = &foundLine{Line: f.Line, Column: f.Column,
			Before: show(f.Text[:f.Start]), Match: show(f.Text[f.Start:f.End]), After: show(f.Text[f.End:])}
	}
	return out
}

type searchShape struct {
	Found []foundShape `json:"found"`
	More  bool         `json:"more"` // there may be more that was not looked for
}

// searchEnd is the last line of a search that is answered bit by bit.
type searchEnd struct {
	End     bool     `json:"end"`
	More    bool     `json:"more"`
	Problem *problem `json:"problem,omitempty"`
}

// errEnough ends a search whose answer is large enough.
var errEnough = errors.New("enough was found")

// apiSearchFiles looks for names or contents below a folder.
func (s *fileHandlers) apiSearchFiles(ctx context.Context, r *request, h access.Handle, in searchBody) (reply, error) {
	q, err := in.search()
	if err != nil {
		return reply{}, err
	}
	if r.accepts(lineType) {
		return reply{}, s.searchLive(ctx, r, h, q)
	}
	out, size := searchShape{Found: []foundShape{}}, 0
	out.More, err = s.cfg.Files.Search(ctx, h, q, func(f wire.Found) error {
		if size += len(f.Path) + len(f.Text) + 64; size > foundBytes {
			return errEnough
		}
		out.Found = append(out.Found, newFoundShape(f))
		return nil
	})
	if errors.Is(err, errEnough) {
		out.More, err = true, nil
	}
	return reply{body: out}, err
}

// searchLive answers with a line of JSON for each thing that is found, when it is found, and a last one.
func (s *fileHandlers) searchLive(ctx context.Context, r *request, h access.Handle, q wire.Search) error {
	out := &lateFlow{r: r}
	more, err := s.cfg.Files.Search(ctx, h, q, func(f wire.Found) error { return out.open().line(newFoundShape(f)) })
	return out.end(more, err)
}

// lateFlow is lines of JSON of which the first opens the stream, so that an error before it is an answer of its own.
type lateFlow struct {
	r   *request
	out *flow
}

func (l *lateFlow) open() *flow {
	if l.out == nil {
		l.out = l.r.openFlow(lineType)
	}
	return l.out
}

// end writes the last line, unless err is all that there is.
func (l *lateFlow) end(more bool, err error) error {
	if l.out == nil && err != nil {
		return err
	}
	end := searchEnd{End: true, More: more}
	if err != nil {
		p := problemOf(err)
		p.RequestID = l.r.id
		end.Problem = &p
	}
	return errors.Join(l.open().line(end), err)
}

// namesShape is files in a folder: names that are text, and those that are not, percent-encoded.
type namesShape struct {
	Folder        string   `json:"folder"`
	FolderEncoded string   `json:"folder_encoded,omitempty"`
	Names         []string `json:"names,omitempty"`
	Encoded       []string `json:"encoded,omitempty"`
}

func newNamesShape(folder string, names []string) (out namesShape) {
	out.Folder, out.FolderEncoded = showBytes(folder)
	for _, n := range names {
		if _, encoded := showBytes(n); encoded != "" {
			out.Encoded = append(out.Encoded, encoded)
		} else {
			out.Names = append(out.Names, n)
		}
	}
	return out
}

// fileNames answers with a line of JSON for each folder below the home that has files, and a last one, for the page's quick open.
func (s *fileHandlers) fileNames(ctx context.Context, r *request, h access.Handle) (reply, error) {
	out := &lateFlow{r: r}
	more, err := s.cfg.Files.Names(ctx, h, wire.HomePath, func(folder string, names []string) error {
		return out.open().line(newNamesShape(folder, names))
	})
	return reply{}, out.end(more, err)
}

// apiWatchFiles is openFolders for programs, which are told why it ends.
func (s *fileHandlers) apiWatchFiles(ctx context.Context, r *request) (pump, func(), error) {
	watch, release, err := s.openFolders(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, out events) error {
		if err := watch(ctx, out); err != nil && ctx.Err() == nil {
			return eventJSON(out, "ended", behindShape{Detail: fault.Message(err)})
		}
		return nil
	}, release, nil
}

// openFolders tells of folders in which something changes. It wakes nothing, and ends when the sandbox goes to rest.
func (s *fileHandlers) openFolders(ctx context.Context, r *request) (pump, func(), error) {
	r.guard()
	if err := r.checkQuery(); err != nil {
		return nil, nil, err
	}
	h, err := s.find(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	w := s.startWatch(ctx, h, r.http.URL.Query()["path"])
	first, err := w.first(ctx)
	if err != nil {
		w.end()
		return nil, nil, s.fileError(ctx, r, h, err)
	}
	return func(ctx context.Context, out events) error {
		if err := folderChanged(out, first); err != nil {
			return err
		}
		return w.tell(ctx, out)
	}, w.end, nil
}

// changedShape is a folder in which something has changed, by the path that was asked for.
type changedShape struct {
	Path        string `json:"path"`
	PathEncoded string `json:"path_encoded,omitempty"`
}

func folderChanged(out events, folder string) error {
	var shape changedShape
	shape.Path, shape.PathEncoded = showBytes(folder)
	return eventJSON(out, "changed", shape)
}

// fileWatch is a watch under way.
type fileWatch struct {
	changed chan string
	ended   chan error
	end     func() // waits
}

func (s *fileHandlers) startWatch(ctx context.Context, h access.Handle, paths []string) *fileWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &fileWatch{changed: make(chan string), ended: make(chan error, 1)}
	var running sync.WaitGroup
	w.end = func() { cancel(); running.Wait() }
	running.Go(func() {
		w.ended <- s.cfg.Files.Watch(ctx, h, paths, func(folder string) error {
			select {
			case w.changed <- folder:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	return w
}

// first waits until the watch is on, which each folder is told of for.
func (w *fileWatch) first(ctx context.Context) (folder string, err error) {
	ctx, cancel := context.WithTimeout(ctx, handlerTime)
	defer cancel()
	select {
	case folder = <-w.changed:
		return folder, nil
	case err = <-w.ended:
		return "", err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// tell hands on what changes until the watch ends, and gives why.
func (w *fileWatch) tell(ctx context.Context, out events) error {
	for {
		select {
		case folder := <-w.changed:
			if err := folderChanged(out, folder); err != nil {
				return err
			}
		case err := <-w.ended:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}
