package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// TemplateSource is the git repository that a template comes from.
type TemplateSource struct {
	URL       string    `json:"url"`
	Ref       string    `json:"ref"`
	Path      string    `json:"path"`
	HasSecret bool      `json:"has_secret"`
	HostKey   string    `json:"host_key"`
	Commit    string    `json:"commit"`
	Date      time.Time `json:"commit_date"`
	Fetched   time.Time `json:"fetched_at"`
	Problem   string    `json:"problem"`
}

// NewTemplateSource is one to be fetched. Secrets that are "" stay while the address does.
type NewTemplateSource struct {
	URL     string `json:"url"`
	Ref     string `json:"ref,omitempty"`
	Path    string `json:"path,omitempty"`
	Token   string `json:"token,omitempty"`
	Key     string `json:"key,omitempty"`
	HostKey string `json:"host_key,omitempty"`
}

// TemplateBuild is one build of a template's image.
type TemplateBuild struct {
	ID      int64     `json:"id"`
	State   string    `json:"state"`
	Commit  string    `json:"commit"`
	Why     string    `json:"why"`
	By      string    `json:"by"`
	Problem string    `json:"problem"`
	Began   time.Time `json:"began_at"`
	Ended   time.Time `json:"ended_at"`
	Log     string    `json:"log"`
}

func (b *TemplateBuild) clean() {
	for _, field := range []*string{&b.State, &b.Commit, &b.Why, &b.By, &b.Problem} {
		*field = text.OneLine(*field, maxDetail)
	}
}

// Templates is the part of a Client that is about templates.
type Templates struct{ Client *Client }

func templatePath(name, rest string) string { return "/templates/" + url.PathEscape(name) + rest }

// Source gives the repository that a template comes from.
func (t Templates) Source(ctx context.Context, name string) (s TemplateSource, err error) {
	err = t.Client.get(ctx, templatePath(name, "/source"), nil, &s)
	s.clean()
	return s, err
}

func (s *TemplateSource) clean() {
	for _, field := range []*string{&s.URL, &s.Ref, &s.Path, &s.HostKey, &s.Commit, &s.Problem} {
		*field = text.OneLine(*field, maxDetail)
	}
}

// SetSource has the server fetch a template, and waits for that.
func (t Templates) SetSource(ctx context.Context, name string, n NewTemplateSource) (s TemplateSource, err error) {
	err = t.Client.send(ctx, http.MethodPut, templatePath(name, "/source"), n, &s)
	s.clean()
	return s, err
}

// Rebuild has the server build a template's image. It does not wait for the end.
func (t Templates) Rebuild(ctx context.Context, name string, pull, noCache bool) error {
	var answer struct{}
	return t.Client.send(ctx, http.MethodPost, templatePath(name, "/build"), map[string]bool{"pull": pull, "no_cache": noCache}, &answer)
}

// CancelBuild ends the build of a template's image that is under way or in line.
func (t Templates) CancelBuild(ctx context.Context, name string) error {
	return t.Client.del(ctx, templatePath(name, "/build"))
}

// Builds gives the newest builds of a template, the newest first.
func (t Templates) Builds(ctx context.Context, name string) ([]TemplateBuild, error) {
	var list struct {
		Builds []TemplateBuild `json:"builds"`
	}
	err := t.Client.get(ctx, templatePath(name, "/builds"), nil, &list)
	for i := range list.Builds {
		list.Builds[i].clean()
	}
	return list.Builds, err
}

// Build gives one build with its log.
func (t Templates) Build(ctx context.Context, name string, id int64) (b TemplateBuild, err error) {
	err = t.Client.get(ctx, templatePath(name, "/builds/"+strconv.FormatInt(id, 10)), nil, &b)
	b.clean()
	return b, err
}

// SnapshotTemplate is a template that is to be made of a snapshot.
type SnapshotTemplate struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Home        bool   `json:"home"` // the files of the home, too
}

// MakeFrom has the server make a template of a snapshot of a sandbox, which is named by its id or by its name, and waits until it is there.
// NotFound when there is no such snapshot, Conflict when several have that name.
func (t Templates) MakeFrom(ctx context.Context, box, snapshot string, n SnapshotTemplate) error {
	snapshots := "/sandboxes/" + url.PathEscape(box) + "/snapshots"
	var all struct {
		Snapshots []struct{ ID, Name string } `json:"snapshots"`
	}
	if err := t.Client.get(ctx, snapshots, nil, &all); err != nil {
		return err
	}
	var ids []string
	for _, one := range all.Snapshots {
		if one.ID == snapshot {
			ids = []string{one.ID}
			break
		}
		if one.Name == snapshot {
			ids = append(ids, one.ID)
		}
	}
	switch len(ids) {
	case 0:
		return fault.New(fault.NotFound, "The sandbox %.64s has no snapshot %.80q.", box, snapshot)
	case 1:
		var answer struct{}
		return t.Client.send(ctx, http.MethodPost, snapshots+"/"+url.PathEscape(ids[0])+"/template", n, &answer)
	}
	return fault.New(fault.Conflict, "The sandbox %.64s has %d snapshots %.80q. Give the id of one.", box, len(ids), snapshot)
}
