package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// Backup is one that a server has, or is making.
type Backup struct {
	ID         string       `json:"id"`
	Sandbox    string       `json:"sandbox"`   // its name at that time
	State      string       `json:"state"`     // "making", "ready", "failed"
	Root       bool         `json:"root"`      // it has the root file system, too
	Comparing  bool         `json:"comparing"` // that is being read
	Checking   bool         `json:"checking"`
	Consistent bool         `json:"consistent"` // nothing in the sandbox ran meanwhile
	Problem    string       `json:"problem"`    // why it failed
	Created    time.Time    `json:"created_at"`
	Expires    time.Time    `json:"expires_at"`
	Size       int64        `json:"size"` // of the archive, so far
	Files      int64        `json:"files"`
	Folders    int64        `json:"folders"`
	Bytes      int64        `json:"bytes"` // of the home, so far
	Lost       []BackupLoss `json:"lost"`
	MoreLost   int64        `json:"more_lost"`
	Repository string       `json:"repository"` // "" for the server's backup folder
}

// BackupLoss is something that is not in a backup, or not as it was.
type BackupLoss struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// The states of a backup.
const (
	BackupMaking = "making"
	BackupReady  = "ready"
)

// clean makes a server's words fit to be shown.
func (b *Backup) clean() {
	for _, field := range []*string{&b.ID, &b.Sandbox, &b.State, &b.Problem, &b.Repository} {
		*field = text.OneLine(*field, maxDetail)
	}
	for i := range b.Lost {
		l := &b.Lost[i]
		l.Path, l.Reason = text.OneLine(l.Path, maxDetail), text.OneLine(l.Reason, maxDetail)
	}
}

func backupPath(id, rest string) string { return "/backups/" + url.PathEscape(id) + rest }

// Backups lists those that the token may see, the newest first: all, or those of the sandboxes with that name.
func (c *Client) Backups(ctx context.Context, sandbox string) ([]Backup, error) {
	q := url.Values{}
	if sandbox != "" {
		q.Set("sandbox", sandbox)
	}
	var list struct {
		Backups []Backup `json:"backups"`
	}
	if err := c.get(ctx, "/backups", q, &list); err != nil {
		return nil, err
	}
	for i := range list.Backups {
		list.Backups[i].clean()
	}
	return list.Backups, nil
}

// Backup tells of one, and how far it is.
func (c *Client) Backup(ctx context.Context, id string) (b Backup, err error) {
	err = c.get(ctx, backupPath(id, ""), nil, &b)
	b.clean()
	return b, err
}

// NewBackup says how a backup is made.
type NewBackup struct {
	Live       bool   `json:"live"`       // a running sandbox is not frozen meanwhile
	Root       bool   `json:"root"`       // with its root file system
	Repository string `json:"repository"` // where it is to be; "" for the server's backup folder
}

// BeginBackup has the server begin a backup of a sandbox, or gives the one that it is making of it already.
func (c *Client) BeginBackup(ctx context.Context, sandbox string, n NewBackup) (b Backup, err error) {
	body, err := json.Marshal(n)
	if err != nil {
		return b, err
	}
	ask := call{method: http.MethodPost, path: sandboxPath(sandbox, "/backups"), body: bytes.NewReader(body), accept: "application/json"}
	ask.head = http.Header{"Content-Type": {"application/json"}}
	res, err := c.do(ctx, ask)
	if err != nil {
		return b, err
	}
	err = decode(res, &b)
	b.clean()
	return b, err
}

// followEvery is how often something that is being made is looked at.
const followEvery = 500 * time.Millisecond

// FollowBackup waits until a backup is made, and gives it as it was last seen. tell hears how far it is; it may be nil. A server that is
// away for a while does not end the wait. The error of a backup that has failed is a Conflict that says why.
func (c *Client) FollowBackup(ctx context.Context, b Backup, tell func(Backup)) (Backup, error) {
	look := func() (Backup, error) { return c.Backup(ctx, b.ID) }
	return follow(ctx, b, look, func(now Backup) (state, problem string) {
		if tell != nil && now.State == BackupMaking {
			tell(now)
		}
		return now.State, now.Problem
	})
}

// follow looks at something time and again until the server has made it, and gives it as it was last seen. at gives its state and why it has
// failed. Errors are as for FollowBackup.
func follow[T any](ctx context.Context, last T, look func() (T, error), at func(T) (state, problem string)) (T, error) {
	every := time.NewTicker(followEvery)
	defer every.Stop()
	for {
		err := stubborn(ctx, func() (moved bool, err error) {
			now, err := look()
			if err == nil {
				last = now
			}
			return false, err
		})
		if err != nil {
			return last, err
		}
		switch state, problem := at(last); state {
		case BackupReady:
			return last, nil
		case BackupMaking:
		default:
			return last, fault.New(fault.Conflict, "%s", problem)
		}
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-every.C:
		}
	}
}

// DeleteBackup deletes a backup, or cancels one that is being made.
func (c *Client) DeleteBackup(ctx context.Context, id string) error {
	return c.del(ctx, backupPath(id, ""))
}

// Restoring is a home that is to be restored.
type Restoring struct {
	Sandbox   string    // of this name
	New       bool      // which there is not yet
	Template  string    // that a new one is made from; "" for what the archive says
	SaveFirst bool      // what an existing one has is backed up before
	HomeOnly  bool      // a root file system that the archive has is not restored
	Backup    string    // id of a backup that the server has; "" for From
	From      io.Reader // the archive
}

// Restore restores a home, and gives its sandbox once that is done. When ctx ends while the archive is sent, nothing is changed; later
// the server continues.
func (c *Client) Restore(ctx context.Context, r Restoring) (s Sandbox, err error) {
	ask := call{method: http.MethodPut, path: sandboxPath(r.Sandbox, "/restore"), query: url.Values{}, accept: "application/json", slow: true}
	if r.New {
		ask.method, ask.path = http.MethodPost, "/restore"
		ask.query.Set("name", r.Sandbox)
	}
	if r.Template != "" {
		ask.query.Set("template", r.Template)
	}
	if r.SaveFirst {
		ask.query.Set("save_first", "true")
	}
	if r.HomeOnly {
		ask.query.Set("home_only", "true")
	}
	if r.Backup != "" {
		ask.query.Set("backup", r.Backup)
	} else {
		ask.body = r.From
		ask.head = http.Header{"Content-Type": {"application/octet-stream"}, "Expect": {"100-continue"}} // a refusal comes before the body
	}
	res, err := c.do(ctx, ask)
	if err != nil {
		return s, err
	}
	err = decode(res, &s)
	s.clean()
	return s, err
}

// CancelRestore cuts off what is being restored to a sandbox. NotFound when nothing is.
func (c *Client) CancelRestore(ctx context.Context, sandbox string) error {
	return c.del(ctx, sandboxPath(sandbox, "/restore"))
}

// del deletes something. It does not matter whether an earlier try has done so.
func (c *Client) del(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return again(ctx, func() error {
		res, err := c.do(ctx, call{method: http.MethodDelete, path: path, accept: "application/json"})
		if err != nil {
			return err
		}
		return res.Body.Close()
	})
}
