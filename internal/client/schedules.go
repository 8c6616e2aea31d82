package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"sandboxd/internal/text"
)

// Schedule is a schedule of backups, as far as a list shows it.
type Schedule struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	Owner      string         `json:"owner"`
	Enabled    bool           `json:"enabled"`
	Cron       string         `json:"cron"`
	Zone       string         `json:"zone"`
	Target     ScheduleTarget `json:"target"`
	Repository string         `json:"repository"` // "" for the backup folder
	Root       bool           `json:"root"`       // with the root file systems
	Next       []time.Time    `json:"next"`
	LastRun    *ScheduleRun   `json:"last_run"` // nil when there was none
}

// ScheduleTarget is what a schedule covers.
type ScheduleTarget struct {
	Kind     string `json:"kind"` // "sandbox", "mine", "template", "all"
	Sandbox  string `json:"sandbox,omitempty"`
	Template string `json:"template,omitempty"`
	Deleted  bool   `json:"deleted,omitempty"` // the sandbox is; Sandbox is its last known name then, or ""
}

// ScheduleKeep says how many backups of each sandbox stay.
type ScheduleKeep struct {
	Last    int `json:"last"`
	Daily   int `json:"daily"`
	Weekly  int `json:"weekly"`
	Monthly int `json:"monthly"`
}

// ScheduleRun is a run of a schedule.
type ScheduleRun struct {
	Work    string    `json:"work"`  // "backup", "test"
	State   string    `json:"state"` // "running", "done", "missed", "cut-off"
	Began   time.Time `json:"began_at"`
	Problem string    `json:"problem"`
	Failed  int       `json:"failed"` // sandboxes
	Items   []RunItem `json:"items"`
}

// RunItem is what a run did for one sandbox.
type RunItem struct {
	Sandbox string `json:"sandbox"`
	Problem string `json:"problem"` // "" if all is well
}

// NewSchedule is one that is to be made.
type NewSchedule struct {
	Name       string         `json:"name"`
	Cron       string         `json:"cron"`
	Zone       string         `json:"zone"`
	Target     ScheduleTarget `json:"target"`
	Repository string         `json:"repository,omitempty"` // "" for the backup folder
	Root       bool           `json:"root,omitempty"`       // with the root file systems
	Keep       *ScheduleKeep  `json:"keep,omitempty"`       // nil for what the server keeps by default
	TestCron   string         `json:"test_cron"`
}

// clean makes a server's words fit to be shown.
func (s *Schedule) clean() {
	for _, field := range []*string{&s.ID, &s.Name, &s.Owner, &s.Cron, &s.Zone, &s.Target.Kind, &s.Target.Sandbox, &s.Target.Template, &s.Repository} {
		*field = text.OneLine(*field, maxDetail)
	}
	if r := s.LastRun; r != nil {
		r.Work, r.State, r.Problem = text.OneLine(r.Work, maxDetail), text.OneLine(r.State, maxDetail), text.OneLine(r.Problem, maxDetail)
		for i := range r.Items {
			r.Items[i].Sandbox, r.Items[i].Problem = text.OneLine(r.Items[i].Sandbox, maxDetail), text.OneLine(r.Items[i].Problem, maxDetail)
		}
	}
}

func schedulePath(id, rest string) string { return "/schedules/" + url.PathEscape(id) + rest }

// Schedules lists those that the token may see, the oldest first.
func (c *Client) Schedules(ctx context.Context) ([]Schedule, error) {
	var list struct {
		Schedules []Schedule `json:"schedules"`
	}
	if err := c.get(ctx, "/schedules", nil, &list); err != nil {
		return nil, err
	}
	for i := range list.Schedules {
		list.Schedules[i].clean()
	}
	return list.Schedules, nil
}

// CreateSchedule makes one.
func (c *Client) CreateSchedule(ctx context.Context, n NewSchedule) (s Schedule, err error) {
	err = c.post(ctx, "/schedules", n, &s)
	s.clean()
	return s, err
}

// RunSchedule begins a run: of backups, or a test of restores. It does not wait for its end.
func (c *Client) RunSchedule(ctx context.Context, id string, test bool) error {
	body := map[string]string{}
	if test {
		body["work"] = "test"
	}
	return c.post(ctx, schedulePath(id, "/run"), body, new(ScheduleRun))
}

// EnableSchedule resumes one, or pauses it, and gives it.
func (c *Client) EnableSchedule(ctx context.Context, id string, on bool) (s Schedule, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err = c.send(ctx, http.MethodPatch, schedulePath(id, ""), map[string]bool{"enabled": on}, &s)
	s.clean()
	return s, err
}

// DeleteSchedule deletes one.
func (c *Client) DeleteSchedule(ctx context.Context, id string) error {
	return c.del(ctx, schedulePath(id, ""))
}

// post sends JSON and reads the answer. It is tried once: the server may have done it when the answer is lost.
func (c *Client) post(ctx context.Context, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return c.send(ctx, http.MethodPost, path, in, out)
}
