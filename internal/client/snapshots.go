package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"sandboxd/internal/text"
)

// Snapshot is one of a sandbox.
type Snapshot struct {
	ID         string       `json:"id"`
	Sandbox    string       `json:"sandbox"`
	Name       string       `json:"name"` // "" for none
	Note       string       `json:"note"`
	Parent     string       `json:"parent"` // id; "" for none
	Kind       string       `json:"kind"`   // "manual", "automatic", "safety"
	State      string       `json:"state"`  // "making", "ready", "failed"
	Problem    string       `json:"problem"`
	Created    time.Time    `json:"created_at"`
	Files      int64        `json:"files"` // these are 0 in a storage pool
	Folders    int64        `json:"folders"`
	Bytes      int64        `json:"bytes"`      // of the home
	Consistent bool         `json:"consistent"` // nothing in the sandbox ran meanwhile
	PausedMS   int64        `json:"paused_ms"`
	Memory     int64        `json:"memory_bytes"` // 0 without that
	Lost       []BackupLoss `json:"lost"`
	MoreLost   int64        `json:"more_lost"`
}

// The states of a snapshot that is not ready.
const (
	SnapshotMaking = BackupMaking
	SnapshotFailed = "failed"
)

// clean makes a server's words fit to be shown.
func (s *Snapshot) clean() {
	for _, field := range []*string{&s.ID, &s.Sandbox, &s.Name, &s.Note, &s.Parent, &s.Kind, &s.State, &s.Problem} {
		*field = text.OneLine(*field, maxDetail)
	}
	for i := range s.Lost {
		l := &s.Lost[i]
		l.Path, l.Reason = text.OneLine(l.Path, maxDetail), text.OneLine(l.Reason, maxDetail)
	}
}

// SnapshotList has the snapshots of a sandbox, the newest first.
type SnapshotList struct {
	Snapshots []Snapshot `json:"snapshots"`
	Head      string     `json:"head"` // id of the one that the sandbox is based on; "" for none
	Undo      string     `json:"undo"` // id of the one that undoes the last restore or update; "" for none
}

// NewSnapshot is one that is to be taken.
type NewSnapshot struct {
	Name      string `json:"name,omitempty"`
	Note      string `json:"note,omitempty"`
	Automatic bool   `json:"automatic,omitempty"` // the server deletes it when it is too old, or there are too many
	Memory    bool   `json:"memory,omitempty"`    // of running programs, too
}

// SnapshotChange is what is asked for of a snapshot. What is nil stays.
type SnapshotChange struct {
	Name *string `json:"name,omitempty"`
	Note *string `json:"note,omitempty"`
}

// Snapshots is the part of a Client that is about the snapshots of one sandbox.
type Snapshots struct {
	Client  *Client
	Sandbox string // its name
}

func (s Snapshots) path(id, rest string) string {
	path := sandboxPath(s.Sandbox, "/snapshots")
	if id != "" {
		path += "/" + url.PathEscape(id)
	}
	return path + rest
}

// List lists them.
func (s Snapshots) List(ctx context.Context) (SnapshotList, error) {
	var got SnapshotList
	if err := s.Client.get(ctx, s.path("", ""), nil, &got); err != nil {
		return SnapshotList{}, err
	}
	list := SnapshotList{Head: text.OneLine(got.Head, maxDetail), Undo: text.OneLine(got.Undo, maxDetail)}
	seen := map[string]bool{}
	for _, one := range got.Snapshots {
		if one.clean(); !seen[one.ID] {
			list.Snapshots = append(list.Snapshots, one)
		}
		seen[one.ID] = true
	}
	return list, nil
}

// Begin has the server begin to take one. begun is false when it was taking the same already, and gives that.
func (s Snapshots) Begin(ctx context.Context, n NewSnapshot) (snap Snapshot, begun bool, err error) {
	body, err := json.Marshal(n)
	if err != nil {
		return snap, false, err
	}
	ask := call{method: http.MethodPost, path: s.path("", ""), body: bytes.NewReader(body), accept: "application/json"}
	ask.head = http.Header{"Content-Type": {"application/json"}}
	res, err := s.Client.do(ctx, ask)
	if err != nil {
		return snap, false, err
	}
	begun = res.StatusCode == http.StatusAccepted
	err = decode(res, &snap)
	snap.clean()
	return snap, begun, err
}

// Follow waits until a snapshot is taken, and gives it as it was last seen. A server that is away for a while does not end the wait. The
// error of one that has failed is a Conflict that says why.
func (s Snapshots) Follow(ctx context.Context, snap Snapshot) (Snapshot, error) {
	look := func() (now Snapshot, err error) {
		err = s.Client.get(ctx, s.path(snap.ID, ""), nil, &now)
		now.clean()
		return now, err
	}
	return follow(ctx, snap, look, func(now Snapshot) (state, problem string) { return now.State, now.Problem })
}

// Change changes what one is called.
func (s Snapshots) Change(ctx context.Context, id string, c SnapshotChange) (snap Snapshot, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err = s.Client.send(ctx, http.MethodPatch, s.path(id, ""), c, &snap)
	snap.clean()
	return snap, err
}

// Delete deletes one, or cancels one that is being taken.
func (s Snapshots) Delete(ctx context.Context, id string) error {
	return s.Client.del(ctx, s.path(id, ""))
}

// Restore restores the sandbox to one, and gives the sandbox once that is done, and the id of the snapshot that undoes it. However long
// that takes: the server continues when ctx ends.
func (s Snapshots) Restore(ctx context.Context, id string) (box Sandbox, safety string, err error) {
	var done struct {
		Sandbox Sandbox `json:"sandbox"`
		Safety  string  `json:"safety"`
	}
	err = s.Client.send(ctx, http.MethodPost, s.path(id, "/restore"), struct{}{}, &done)
	done.Sandbox.clean()
	return done.Sandbox, text.OneLine(done.Safety, maxDetail), err
}

// Difference is something in the home that has changed since a snapshot.
type Difference struct {
	Path   string `json:"path"`
	Change string `json:"change"` // "added", "changed", "deleted"
	Kind   string `json:"kind"`   // "file", "folder", "link", "other"
	Size   int64  `json:"size"`   // bytes
}

// Diff tells what has changed in the home since one, and whether there is more than that. However long that takes.
func (s Snapshots) Diff(ctx context.Context, id string) (list []Difference, more bool, err error) {
	var got struct {
		Changes []Difference `json:"changes"`
		More    bool         `json:"more"`
	}
	err = s.look(ctx, s.path(id, "/diff"), nil, &got)
	for i := range got.Changes {
		for _, field := range []*string{&got.Changes[i].Path, &got.Changes[i].Change, &got.Changes[i].Kind} {
			*field = text.OneLine(*field, maxDetail)
		}
	}
	return got.Changes, got.More, err
}

// FileDiff is what has changed in one file.
type FileDiff struct {
	Change string `json:"change"` // "" when the content is the same
	Binary bool   `json:"binary"`
	Cut    bool   `json:"cut"`  // only the beginning was compared
	Diff   string `json:"diff"` // in the unified format, as the sandbox has it: not fit to be shown
}

// FileDiff tells which lines of the file of that path in the home have changed since one.
func (s Snapshots) FileDiff(ctx context.Context, id, path string) (d FileDiff, err error) {
	err = s.look(ctx, s.path(id, "/diff/file"), url.Values{"path": {path}}, &d)
	return d, err
}

// look asks for what may take long to find out.
func (s Snapshots) look(ctx context.Context, path string, query url.Values, into any) error {
	return again(ctx, func() error {
		res, err := s.Client.do(ctx, call{method: http.MethodGet, path: path, query: query, accept: "application/json", slow: true})
		if err != nil {
			return err
		}
		return decode(res, into)
	})
}

// NewClones are clones that are to be made.
type NewClones struct {
	Name     string `json:"name,omitempty"` // of the one, or what the names of several begin with; "" for automatic ones
	Count    int    `json:"count"`
	Snapshot string `json:"snapshot,omitempty"` // id; "" for the sandbox as it is
}

// Clone makes clones, and gives those that were made once they run, and why others were not. However long that takes: the server
// continues when ctx ends.
func (s Snapshots) Clone(ctx context.Context, n NewClones) (made []Sandbox, failed []string, err error) {
	var done struct {
		Sandboxes []Sandbox `json:"sandboxes"`
		Failed    []string  `json:"failed"`
	}
	err = s.Client.send(ctx, http.MethodPost, sandboxPath(s.Sandbox, "/clone"), n, &done)
	for i := range done.Sandboxes {
		done.Sandboxes[i].clean()
	}
	for i := range done.Failed {
		done.Failed[i] = text.OneLine(done.Failed[i], maxDetail)
	}
	return done.Sandboxes, done.Failed, err
}
