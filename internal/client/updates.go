package client

import (
	"context"

	"sandboxd/internal/text"
)

// Update is an update of sandboxes to the newest image of their template.
type Update struct {
	ID      string       `json:"id"`
	State   string       `json:"state"` // "running", "done", "stopped", "failed", "cancelled", "cut-off"
	Image   string       `json:"image"`
	Problem string       `json:"problem"`
	Items   []UpdateItem `json:"items"`
}

// UpdateItem is what it does for one sandbox.
type UpdateItem struct {
	Sandbox   string   `json:"sandbox"`
	State     string   `json:"state"` // "waiting", "updating", "updated", "in-use", "failed", "skipped"
	Problem   string   `json:"problem"`
	Log       []string `json:"log"`
	TakenBack bool     `json:"taken_back"`
}

// clean makes a server's words fit to be shown.
func (u *Update) clean() {
	for _, field := range []*string{&u.ID, &u.State, &u.Image, &u.Problem} {
		*field = text.OneLine(*field, maxDetail)
	}
	for n := range u.Items {
		i := &u.Items[n]
		for _, field := range []*string{&i.Sandbox, &i.State, &i.Problem} {
			*field = text.OneLine(*field, maxDetail)
		}
		for l := range i.Log {
			i.Log[l] = text.OneLine(i.Log[l], maxDetail)
		}
	}
}

// Updates is the part of a Client that is about updates.
type Updates struct{ Client *Client }

// Sandbox begins to update a sandbox; force also when it is in use. Conflict when it is, or is up to date.
func (s Updates) Sandbox(ctx context.Context, name string, force bool) (u Update, err error) {
	err = s.Client.post(ctx, sandboxPath(name, "/update"), map[string]bool{"force": force}, &u)
	u.clean()
	return u, err
}

// LastOfSandbox tells of the last update of a sandbox.
func (s Updates) LastOfSandbox(ctx context.Context, name string) (u Update, err error) {
	err = s.Client.get(ctx, sandboxPath(name, "/update"), nil, &u)
	u.clean()
	return u, err
}

// Template begins to update the sandboxes of a template that are on an older image, until maxFailures of them have failed.
func (s Updates) Template(ctx context.Context, name string, force bool, maxFailures int) (u Update, err error) {
	err = s.Client.post(ctx, templatePath(name, "/update"), map[string]any{"force": force, "max_failures": maxFailures}, &u)
	u.clean()
	return u, err
}

// LastOfTemplate tells of the last update of the sandboxes of a template.
func (s Updates) LastOfTemplate(ctx context.Context, name string) (u Update, err error) {
	err = s.Client.get(ctx, templatePath(name, "/update"), nil, &u)
	u.clean()
	return u, err
}
