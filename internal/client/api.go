package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// Sandbox is one, as far as a list shows it.
type Sandbox struct {
	Name     string    `json:"name"`
	Label    string    `json:"label"`
	Template string    `json:"template"`
	Image    string    `json:"image"`
	State    string    `json:"state"`
	Problem  string    `json:"problem"`
	Owner    string    `json:"owner"`
	Created  time.Time `json:"created_at"`
	Update   *Standing `json:"update"` // nil for one of a plain image
}

// Standing says how the image of a sandbox stands to that of its template.
type Standing struct {
	Available bool `json:"available"` // the template gives another image now
}

// maxPages bounds a list.
const (
	pageSize = 1000
	maxPages = 100
)

// Sandboxes lists all that the token may see.
func (c *Client) Sandboxes(ctx context.Context) (all []Sandbox, err error) {
	for range maxPages {
		var page struct {
			Sandboxes []Sandbox `json:"sandboxes"`
			Total     int       `json:"total"`
		}
		q := url.Values{"limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(len(all))}}
		if err := c.get(ctx, "/sandboxes", q, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Sandboxes...)
		if len(page.Sandboxes) == 0 || len(all) >= page.Total {
			break
		}
	}
	for i := range all {
		all[i].clean()
	}
	return all, nil
}

// clean makes a server's words fit to be shown.
func (s *Sandbox) clean() {
	for _, field := range []*string{&s.Name, &s.Label, &s.Template, &s.Image, &s.State, &s.Problem, &s.Owner} {
		*field = text.OneLine(*field, maxDetail)
	}
}

// Me tells whom the token speaks for, and the one sandbox that it is limited to, or "".
func (c *Client) Me(ctx context.Context) (user, sandbox string, err error) {
	var me struct{ Name, Sandbox string }
	err = c.get(ctx, "/users/me", nil, &me)
	return text.OneLine(me.Name, maxDetail), text.OneLine(me.Sandbox, maxDetail), err
}

// Services gives the names of a sandbox's services.
func (c *Client) Services(ctx context.Context, name string) ([]string, error) {
	var list struct {
		Services []struct {
			Name string `json:"name"`
		} `json:"services"`
	}
	if err := c.get(ctx, sandboxPath(name, "/services"), nil, &list); err != nil {
		return nil, err
	}
	var names []string
	for _, s := range list.Services {
		names = append(names, text.OneLine(s.Name, maxDetail))
	}
	return names, nil
}

// Log opens the log of a service; with follow it stays open for new output. The caller must close it.
func (c *Client) Log(ctx context.Context, name, service string, follow bool) (io.ReadCloser, error) {
	q := url.Values{}
	if follow {
		q.Set("follow", "true")
	}
	var res *http.Response
	err := again(ctx, func() (err error) {
		res, err = c.do(ctx, call{method: http.MethodGet, path: sandboxPath(name, "/services/"+url.PathEscape(service)+"/log"), query: q, accept: "text/plain"})
		return err
	})
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// Entry is something in a sandbox.
type Entry struct {
	Name       string `json:"name"`
	Type       string `json:"type"` // "file", "folder", "link", "other"
	Size       int64  `json:"size"`
	Target     string `json:"target"`
	TargetType string `json:"target_type"`
}

// Folder says whether it is one, or a link to one.
func (e Entry) Folder() bool {
	return e.Type == "folder" || e.Type == "link" && e.TargetType == "folder"
}

// Stat describes a path of a sandbox. An Entry without a type means that nothing is there.
func (c *Client) Stat(ctx context.Context, name, path string) (e Entry, err error) {
	err = c.get(ctx, sandboxPath(name, "/files"), url.Values{"path": {path}, "stat": {"true"}}, &e)
	if fault.Is(err, fault.NotFound) {
		_, there := c.Sandbox(ctx, name)
		if there == nil {
			return Entry{}, nil
		}
		return Entry{}, there
	}
	return e, err
}

// Sandbox tells of one.
func (c *Client) Sandbox(ctx context.Context, name string) (s Sandbox, err error) {
	err = c.get(ctx, sandboxPath(name, ""), nil, &s)
	s.clean()
	return s, err
}

// Pack opens a tar of the entry name in a folder of a sandbox, or of all entries if name is "". The caller must
// close it.
func (c *Client) Pack(ctx context.Context, sandbox, folder, name string) (io.ReadCloser, error) {
	q := url.Values{"path": {folder}, "archive": {"tar"}}
	if name != "" {
		q.Set("name", name)
	}
	res, err := c.do(ctx, call{method: http.MethodGet, path: sandboxPath(sandbox, "/files"), query: q})
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// Unpack extracts a tar in a folder of a sandbox. Symbolic links are made as they are, and never followed.
func (c *Client) Unpack(ctx context.Context, sandbox, folder string, tar io.Reader) error {
	q := url.Values{"path": {folder}, "extract": {"tar"}, "links": {"keep"}}
	ask := call{method: http.MethodPut, path: sandboxPath(sandbox, "/files"), query: q, body: tar, accept: "application/json", slow: true}
	ask.head = http.Header{"Content-Type": {"application/x-tar"}}
	res, err := c.do(ctx, ask)
	if err != nil {
		return err
	}
	var made struct{ Entries int64 }
	return decode(res, &made)
}
