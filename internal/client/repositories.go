package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"time"

	"sandboxd/internal/text"
)

// RepositoryPlace is where a backup repository is, without secrets.
type RepositoryPlace struct {
	Kind      string `json:"kind"`
	Path      string `json:"path,omitempty"`
	Endpoint  string `json:"endpoint,omitempty"`
	Bucket    string `json:"bucket,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	Region    string `json:"region,omitempty"`
	AccessKey string `json:"access_key,omitempty"`
	PlainHTTP bool   `json:"plain_http,omitempty"`
	CA        string `json:"ca,omitempty"`
	Host      string `json:"host,omitempty"`
	Port      int    `json:"port,omitempty"`
	User      string `json:"user,omitempty"`
	HostKey   string `json:"host_key,omitempty"`
}

// NewRepository is one to be connected. Secrets that are "" stay as they are.
type NewRepository struct {
	RepositoryPlace
	Password   string `json:"password,omitempty"`
	SecretKey  string `json:"secret_key,omitempty"`
	PrivateKey string `json:"private_key,omitempty"`
	TakeOver   bool   `json:"take_over,omitempty"`
}

// Repository is a backup repository.
type Repository struct {
	Name     string           `json:"name"`
	Kind     string           `json:"kind"`
	Place    *RepositoryPlace `json:"place"` // nil unless the token is an admin's
	Backups  int              `json:"backups"`
	Size     int64            `json:"size"` // bytes
	Seen     time.Time        `json:"seen_at"`
	Problem  string           `json:"problem"`
	Password string           `json:"password"` // that was generated just now
}

// Where says in a line where it is; "" when that is not told.
func (r Repository) Where() string {
	switch p := r.Place; {
	case p == nil:
		return ""
	case p.Bucket != "":
		return text.OneLine(path.Join(p.Endpoint, p.Bucket, p.Prefix), maxDetail)
	case p.Host != "":
		return text.OneLine(p.User+"@"+p.Host+":"+p.Path, maxDetail)
	default:
		return text.OneLine(p.Path, maxDetail)
	}
}

func (r *Repository) clean() {
	for _, field := range []*string{&r.Name, &r.Kind, &r.Problem, &r.Password} {
		*field = text.OneLine(*field, maxDetail)
	}
}

// RepositoryChecked is what a check has found.
type RepositoryChecked struct {
	Backups int      `json:"backups"`
	Size    int64    `json:"size"` // bytes
	Damaged []string `json:"damaged"`
}

func repositoryPath(name, rest string) string { return "/repositories/" + url.PathEscape(name) + rest }

// Repositories are the server's backup repositories.
type Repositories struct{ c *Client }

// Repositories gives them.
func (c *Client) Repositories() Repositories { return Repositories{c} }

// List lists them.
func (r Repositories) List(ctx context.Context) ([]Repository, error) {
	var list struct {
		Repositories []Repository `json:"repositories"`
	}
	err := r.c.get(ctx, "/repositories", nil, &list)
	for i := range list.Repositories {
		list.Repositories[i].clean()
	}
	return list.Repositories, err
}

// Put connects a repository. It blocks until that was tried out.
func (r Repositories) Put(ctx context.Context, name string, n NewRepository) (k Repository, err error) {
	err = r.c.send(ctx, http.MethodPut, repositoryPath(name, ""), n, &k)
	k.clean()
	return k, err
}

// Check has a repository checked, and waits for that.
func (r Repositories) Check(ctx context.Context, name string, contents bool) (found RepositoryChecked, err error) {
	err = r.c.send(ctx, http.MethodPost, repositoryPath(name, "/check"), map[string]bool{"contents": contents}, &found)
	for i := range found.Damaged {
		found.Damaged[i] = text.OneLine(found.Damaged[i], maxDetail)
	}
	return found, err
}

// Delete has the server forget a repository.
func (r Repositories) Delete(ctx context.Context, name string) error {
	return r.c.del(ctx, repositoryPath(name, ""))
}

// send sends JSON once, and reads what comes back, however long that takes.
func (c *Client) send(ctx context.Context, method, path string, body, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	res, err := c.do(ctx, call{method: method, path: path, body: bytes.NewReader(content), accept: "application/json",
		head: http.Header{"Content-Type": {"application/json"}}, slow: true})
	if err != nil {
		return err
	}
	return decode(res, into)
}
