package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"sandboxd/internal/backup"
	"sandboxd/internal/cron"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/schedule"
)

// previewTimes is how many of the next times of a schedule are told.
const previewTimes = 5

// scheduleShape is a schedule as programs see it.
type scheduleShape struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Owner      string            `json:"owner"` // user name
	Enabled    bool              `json:"enabled"`
	Cron       string            `json:"cron"`
	Zone       string            `json:"zone"`
	Target     targetShape       `json:"target"`
	Repository string            `json:"repository"` // "" for the backup folder
	Root       bool              `json:"root"`
	Keep       keepShape         `json:"keep"`
	TestCron   string            `json:"test_cron"` // "" for never
	CreatedAt  time.Time         `json:"created_at"`
	Next       []time.Time       `json:"next"`
	NextTestAt *time.Time        `json:"next_test_at"`
	LastRun    *scheduleRunShape `json:"last_run"` // null when there was none
}

type targetShape struct {
	Kind     string `json:"kind"`
	Sandbox  string `json:"sandbox"` // name; the last known one of one that is deleted, or ""
	Template string `json:"template"`
	Deleted  bool   `json:"deleted"` // the sandbox is; it is not read
}

type keepShape struct {
	Last    int `json:"last"`
	Daily   int `json:"daily"`
	Weekly  int `json:"weekly"`
	Monthly int `json:"monthly"`
}

// scheduleRunShape is a run as programs see it.
type scheduleRunShape struct {
	ID      string         `json:"id"`
	Work    string         `json:"work"`
	State   string         `json:"state"`
	DueAt   *time.Time     `json:"due_at"` // null for one that a person started
	Missed  int            `json:"missed"`
	BeganAt time.Time      `json:"began_at"`
	EndedAt *time.Time     `json:"ended_at"`
	Problem string         `json:"problem"`
	Failed  int            `json:"failed"`
	Items   []runItemShape `json:"items"`
}

// runItemShape is what a run did for one sandbox.
type runItemShape struct {
	Sandbox   string     `json:"sandbox"`
	SandboxID string     `json:"sandbox_id"`
	Backup    string     `json:"backup"` // id; "" for none
	Problem   string     `json:"problem"`
	Tries     int        `json:"tries"`
	EndedAt   *time.Time `json:"ended_at"`
}

type schedulesShape struct {
	Schedules []scheduleShape `json:"schedules"`
}

type scheduleRunsShape struct {
	Runs []scheduleRunShape `json:"runs"`
}

func newRunShape(r schedule.Run) scheduleRunShape {
	out := scheduleRunShape{
		ID: r.ID, Work: string(r.Work), State: string(r.State), DueAt: timeOrNull(r.Due), Missed: r.Missed, BeganAt: r.Began.UTC(), EndedAt: timeOrNull(r.Ended),
		Problem: r.Problem, Failed: r.Failed(), Items: make([]runItemShape, 0, len(r.Items)),
	}
	for _, i := range r.Items {
		out.Items = append(out.Items, runItemShape{i.Sandbox, i.SandboxID, i.Backup, i.Problem, i.Tries, timeOrNull(i.Ended)})
	}
	return out
}

// scheduleSights makes schedules ready to be told. It belongs to one request.
type scheduleSights struct {
	*scheduleHandlers
	names *owners
	boxes []sandbox.Sandbox
}

func (s *scheduleHandlers) sights(ctx context.Context) (*scheduleSights, error) {
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{})
	return &scheduleSights{s, newOwners(s.cfg.Accounts), boxes}, err
}

func (s *scheduleSights) shape(ctx context.Context, one schedule.Schedule) (scheduleShape, error) {
	owner, err := s.names.name(ctx, one.Owner)
	if err != nil {
		return scheduleShape{}, err
	}
	out := scheduleShape{
		ID: one.ID, Name: one.Name, Owner: owner, Enabled: one.Enabled, Cron: one.Cron, Zone: one.Zone, Repository: one.Repository, Root: one.Root, Keep: keepShape(one.Keep),
		TestCron: one.TestCron, CreatedAt: one.Created.UTC(), NextTestAt: timeOrNull(one.NextTest), Next: []time.Time{},
	}
	if one.Enabled {
		next, err := cron.Preview(one.Cron, one.Zone, s.cfg.Now(), previewTimes)
		if err != nil {
			return out, err
		}
		for _, t := range next {
			out.Next = append(out.Next, t.UTC())
		}
	}
	runs, err := s.cfg.Schedules.Runs(ctx, one.ID, 1)
	if err == nil && len(runs) > 0 {
		last := newRunShape(runs[0])
		out.LastRun = &last
	}
	out.Target = targetShape{Kind: string(one.Target.Kind), Template: one.Target.Template}
	if one.Target.Kind == schedule.One {
		out.Target.Sandbox, out.Target.Deleted = s.boxName(one.Target.SandboxID, runs)
	}
	return out, err
}

// boxName gives the name of a schedule's sandbox; of one that is deleted that in its backups or in runs, or "".
func (s *scheduleSights) boxName(id string, runs []schedule.Run) (name string, deleted bool) {
	for _, b := range s.boxes {
		if b.ID == id {
			return b.Name, false
		}
	}
	for _, b := range s.cfg.Backups.List(func(b backup.Backup) bool { return b.SandboxID == id }) {
		return b.Sandbox, true
	}
	for _, r := range runs {
		for _, i := range r.Items {
			if i.SandboxID == id {
				return i.Sandbox, true
			}
		}
	}
	return "", true
}

// maySchedule says whether a caller may see and change a schedule.
func maySchedule(r *request, one schedule.Schedule) bool {
	return r.isAdmin() || one.Owner == r.who.User.ID
}

// schedule gives the schedule that the path names. One that the caller may not see is one that is not there.
func (s *scheduleHandlers) schedule(ctx context.Context, r *request) (schedule.Schedule, error) {
	id := r.param("id")
	one, err := s.cfg.Schedules.Schedule(ctx, id)
	if err == nil && !maySchedule(r, one) {
		err = schedule.NotFound(id)
	}
	if err == nil {
		r.object = one.Name
	}
	return one, err
}

// apiSchedules lists the schedules that the caller may see, the oldest first.
func (s *scheduleHandlers) apiSchedules(ctx context.Context, r *request, _ none) (reply, error) {
	list, err := s.cfg.Schedules.List(ctx, func(one schedule.Schedule) bool { return maySchedule(r, one) })
	if err != nil {
		return reply{}, err
	}
	sights, err := s.sights(ctx)
	if err != nil {
		return reply{}, err
	}
	out := schedulesShape{Schedules: make([]scheduleShape, 0, len(list))}
	for _, one := range list {
		shape, err := sights.shape(ctx, one)
		if err != nil {
			return reply{}, err
		}
		out.Schedules = append(out.Schedules, shape)
	}
	return reply{body: out}, nil
}

func (s *scheduleHandlers) scheduleReply(ctx context.Context, status int, one schedule.Schedule) (reply, error) {
	sights, err := s.sights(ctx)
	if err != nil {
		return reply{}, err
	}
	shape, err := sights.shape(ctx, one)
	out := reply{status: status, body: shape}
	if status == http.StatusCreated {
		out.location = apiPrefix + schedulesPath + "/" + one.ID
	}
	return out, err
}

// apiSchedule answers with one.
func (s *scheduleHandlers) apiSchedule(ctx context.Context, r *request, _ none) (reply, error) {
	one, err := s.schedule(ctx, r)
	if err != nil {
		return reply{}, err
	}
	return s.scheduleReply(ctx, http.StatusOK, one)
}

// scheduleBody is a new schedule, or what of one changes.
type scheduleBody struct {
	Name       *string      `json:"name"`
	Enabled    *bool        `json:"enabled"`
	Cron       *string      `json:"cron"`
	Zone       *string      `json:"zone"`
	Target     *targetShape `json:"target"`
	Repository *string      `json:"repository"`
	Root       *bool        `json:"root"`
	Keep       *keepShape   `json:"keep"`
	TestCron   *string      `json:"test_cron"`
}

// over puts what the body says into a schedule.
func (b scheduleBody) over(one *schedule.Schedule, target schedule.Target) {
	for to, from := range map[*string]*string{&one.Name: b.Name, &one.Cron: b.Cron, &one.Zone: b.Zone, &one.Repository: b.Repository, &one.TestCron: b.TestCron} {
		if from != nil {
			*to = *from
		}
	}
	if b.Enabled != nil {
		one.Enabled = *b.Enabled
	}
	if b.Root != nil {
		one.Root = *b.Root
	}
	if b.Keep != nil {
		one.Keep = schedule.Keep(*b.Keep)
	}
	if b.Target != nil {
		one.Target = target
	}
}

// target finds the sandbox that a body names, which must be one that the caller may use.
func (s *scheduleHandlers) target(ctx context.Context, r *request, t *targetShape) (schedule.Target, error) {
	if t == nil {
		return schedule.Target{}, nil
	}
	out := schedule.Target{Kind: schedule.Kind(t.Kind), Template: t.Template}
	if out.Kind != schedule.One {
		return out, nil
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{})
	if err != nil {
		return out, err
	}
	at := slices.IndexFunc(boxes, func(b sandbox.Sandbox) bool { return b.Name == t.Sandbox && r.who.May(b.Owner, b.ID) })
	if at < 0 {
		return out, fault.Field("sandbox", "There is no sandbox %.64q.", t.Sandbox)
	}
	out.SandboxID = boxes[at].ID
	return out, nil
}

// apiCreateSchedule adds a schedule of the caller.
func (s *scheduleHandlers) apiCreateSchedule(ctx context.Context, r *request, in scheduleBody) (reply, error) {
	target, err := s.target(ctx, r, in.Target)
	if err != nil {
		return reply{}, err
	}
	one := schedule.Schedule{Owner: r.who.User.ID, Enabled: true, Keep: defaultKeep}
	in.over(&one, target)
	r.object = one.Name
	if one, err = s.cfg.Schedules.Create(ctx, one); err != nil {
		return reply{}, err
	}
	return s.scheduleReply(ctx, http.StatusCreated, one)
}

// apiChangeSchedule changes what the body names.
func (s *scheduleHandlers) apiChangeSchedule(ctx context.Context, r *request, in scheduleBody) (reply, error) {
	one, err := s.schedule(ctx, r)
	if err != nil {
		return reply{}, err
	}
	target, err := s.target(ctx, r, in.Target)
	if err != nil {
		return reply{}, err
	}
	if one, err = s.cfg.Schedules.Update(ctx, one.ID, func(c *schedule.Schedule) { in.over(c, target) }); err != nil {
		return reply{}, err
	}
	return s.scheduleReply(ctx, http.StatusOK, one)
}

// apiDeleteSchedule deletes a schedule. Its backups stay for a while.
func (s *scheduleHandlers) apiDeleteSchedule(ctx context.Context, r *request, _ none) (reply, error) {
	one, err := s.schedule(ctx, r)
	if err == nil {
		err = s.cfg.Schedules.Delete(ctx, one.ID)
	}
	return reply{status: http.StatusNoContent}, err
}

// runBody says what a run does.
type runBody struct {
	Work string `json:"work"` // "" for backups
}

// apiRunSchedule begins a run now.
func (s *scheduleHandlers) apiRunSchedule(ctx context.Context, r *request, in runBody) (reply, error) {
	one, err := s.schedule(ctx, r)
	if err != nil {
		return reply{}, err
	}
	work := schedule.Work(in.Work)
	if in.Work == "" {
		work = schedule.Backups
	}
	run, err := s.cfg.Schedules.RunNow(ctx, one.ID, work)
	return reply{status: http.StatusAccepted, body: newRunShape(run)}, err
}

// apiScheduleRuns lists the newest runs of a schedule, the newest first.
func (s *scheduleHandlers) apiScheduleRuns(ctx context.Context, r *request, _ none) (reply, error) {
	one, err := s.schedule(ctx, r)
	if err != nil {
		return reply{}, err
	}
	runs, err := s.cfg.Schedules.Runs(ctx, one.ID, schedule.KeptRuns)
	out := scheduleRunsShape{Runs: make([]scheduleRunShape, 0, len(runs))}
	for _, run := range runs {
		out.Runs = append(out.Runs, newRunShape(run))
	}
	return reply{body: out}, err
}
