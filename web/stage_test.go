package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"sandboxd/internal/access"
	"sandboxd/internal/activity"
	"sandboxd/internal/activity/activitytest"
	"sandboxd/internal/auth"
	"sandboxd/internal/catalog"
	"sandboxd/internal/event"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/hostname"
	"sandboxd/internal/idle"
	"sandboxd/internal/pace"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/services"
	"sandboxd/internal/sqlite"
	"sandboxd/internal/terminal"
	"sandboxd/internal/visibility"
	"sandboxd/static"
)

// stage is a Server for tests of pages: sandboxes stand exactly as a test puts them, accounts are real.
type stage struct {
	t      *testing.T
	server *Server
	boxes  *fakeBoxes
	images *fakeImages
	seen
	accounts *auth.Service
	users    map[string]auth.User
	sessions map[string]string // by user name: the secret in the cookie
	engine   *fakeEngine
	idle     *fakeIdle
	holds    *fakeHolds
	metrics  *fakeMetrics
	alerts   *fakeAlerts
	insides
}

// insides are what the stage knows of people's pages and of the inside of sandboxes.
type insides struct {
	workspace *sqlite.Workspace
	uses      *fakeUses
	rooms     *fakeRooms
	access    *fakeAccess
	ports     *visibility.Ports
	homes     *stageHomes
	updates   *stageUpdates
}

// seen is what pages see of the inside of sandboxes.
type seen struct {
	terminals *fakeTerminals
	files     *fakeGuest
}

// stageTime is when pages are drawn in tests.
var stageTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// newStage makes a stage with the users root (admin), ada and bob (members), all signed in.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := newEmptyStage(t)
	for name, role := range map[string]auth.Role{"root": auth.Admin, "ada": auth.Member, "bob": auth.Member} {
		u, err := s.accounts.CreateUser(t.Context(), auth.NewUser{Name: name, Role: role, Password: testPassword})
		if err != nil {
			t.Fatal(err)
		}
		s.users[name] = u
		s.signIn(name)
	}
	return s
}

// newEmptyStage makes a stage without users.
func newEmptyStage(t *testing.T) *stage {
	t.Helper()
	hosts, err := hostname.New("http://localhost:8080")
	if err != nil {
		t.Fatal(err)
	}
	db := newDatabase(t)
	s := &stage{
		t: t, boxes: newFakeBoxes(db.Sandboxes()), images: newFakeImages(), seen: seen{newFakeTerminals(t), newFakeGuest()}, engine: &fakeEngine{},
		idle: newFakeIdle(), holds: &fakeHolds{}, metrics: newFakeMetrics(),
		users: map[string]auth.User{}, sessions: map[string]string{},
	}
	log := slog.New(slog.DiscardHandler)
	s.workspace = db.Workspace()
	s.uses = &fakeUses{last: map[string]time.Time{}}
	s.rooms = newFakeRooms()
	s.ports = visibility.New(db.Ports(), log)
	s.accounts = auth.New(db.Auth(), auth.Options{Cost: auth.Cost{Memory: 64, Passes: 1}, Log: log})
	s.terminals.Service = terminal.New(s.boxes, log)
	s.alerts = newFakeAlerts(t, s.boxes.List)
	s.homes = newStageHomes(s.boxes)
	s.access = &fakeAccess{rows: s.boxes, guest: wholeGuest{fakeGuest: s.files, fakeRooms: s.rooms, fakeTerminals: s.terminals}}
	backups := keepBackups(t, s.homes, log)
	catalog, own := ownTemplates(t, stageTemplates{}, s.images)
	shared, served := keepVolumes(t, catalog, log)
	s.server = New(withChat(t, log, namesIn(s.boxes.List), Config{
		Models:  keepModels(t, log, func() time.Time { return stageTime }),
		Agents:  keepAgents(t, log, &fakeCommands{}),
		Volumes: shared, VolumeAccess: served.access(shared, nil),
		Access:    access.New(s.access, s.access.link, access.Tracked(idle.New())),
		Sandboxes: s.boxes, Accounts: s.accounts, Templates: catalog, OwnTemplates: own, Images: s.images, Terminals: s.terminals.Service,
		Commands: exec.New(exec.Config{Starter: &fakeCommands{}}), Hosts: hosts, Assets: static.New(), Log: log,
		Version: Version{Version: "1.2.3"}, Now: func() time.Time { return stageTime },
		Checks: []Check{{Name: "engine", Ask: s.engine.ask}}, Idle: s.idle, Uses: s.idle, Holds: s.holds, Files: files.New(""),
		Services: services.New(s.boxes),
		Ports:    s.ports,
		IDE:      &fakeIDE{},
		Metrics:  s.metrics,
		Activity: activity.New(activity.Config{Store: &activitytest.Memory{}}),
		Alerts:   s.alerts.Service,
		Backups:  backups, Repositories: placesOf(backups),
		Snapshots:   keepSnapshots(t, s.homes, log),
		Preferences: s.workspace, TabNames: s.workspace, LastViews: s.workspace, LastUses: s.uses,
	}))
	s.server.cfg.Schedules = keepSchedules(t, db.Schedules(), s.server.cfg.Backups, s.boxes, s.accounts)
	s.server.cfg.Trials = keepTrials(t, s.homes, s.server.cfg, func(context.Context) error { return nil }, log)
	s.updates = newStageUpdates(s.boxes, s.idle)
	s.server.cfg.Updates = keepUpdates(t, s.updates, s.updates, s.images, stageTemplates{}, s.updates.uses)
	s.server.cfg.Backups.Quota = 1 << 30
	s.server.alarm.grace = time.Time{} // it has run for long
	return s
}

func (s *stage) signIn(name string) {
	s.t.Helper()
	secret, _, err := s.accounts.Login(s.t.Context(), "192.0.2.1", name, testPassword, false)
	if err != nil {
		s.t.Fatal(err)
	}
	s.sessions[name] = secret
}

// put puts a sandbox of a user's on the stage and gives it.
func (s *stage) put(user, name string, change func(*sandbox.Sandbox)) sandbox.Sandbox {
	s.t.Helper()
	s.boxes.made++
	box := sandbox.Sandbox{
		ID: fmt.Sprintf("%016x", s.boxes.made), Name: name, Owner: s.users[user].ID, State: sandbox.Running,
		Spec:    sandbox.Spec{Template: "base", Limits: sandbox.Limits{CPUs: 2, Memory: 2 << 30, Pids: 1024}},
		Created: stageTime.Add(-time.Hour + time.Duration(s.boxes.made)*time.Second), Changed: stageTime.Add(-30 * time.Minute),
	}
	if change != nil {
		change(&box)
	}
	if err := s.boxes.store.Insert(s.t.Context(), box); err != nil {
		s.t.Fatal(err)
	}
	s.uses.set(box.ID, box.Changed)
	return box
}

// ref names a sandbox that is on the stage.
func (s *stage) ref(name string) sandbox.Ref {
	s.t.Helper()
	box, err := s.boxes.Sandbox(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return box.Ref()
}

// used sets the outlook of a sandbox and tells everybody.
func (s *stage) used(name string, o idle.Outlook) {
	s.t.Helper()
	s.idle.change(s.ref(name).ID(), name, o)
}

// handle is what a sandbox's owner gets.
func (s *stage) handle(name string) access.Handle {
	s.t.Helper()
	h, err := s.server.resolve(s.t.Context(), auth.Principal{User: auth.User{Role: auth.Admin}}, name)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// view is an answer whose body is a page or a part of one.
type view struct {
	*httptest.ResponseRecorder
	t   *testing.T
	doc *html.Node
}

// get opens a page as user ("" for nobody).
func (s *stage) get(user, path string, headers ...string) view {
	s.t.Helper()
	return s.ask(user, http.MethodGet, path, nil, headers...)
}

// post posts a form as user.
func (s *stage) post(user, path string, fields url.Values, headers ...string) view {
	s.t.Helper()
	return s.ask(user, http.MethodPost, path, fields, headers...)
}

func (s *stage) ask(user, method, path string, fields url.Values, headers ...string) view {
	s.t.Helper()
	r := httptest.NewRequest(method, "http://localhost:8080"+path, strings.NewReader(fields.Encode()))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://localhost:8080")
	}
	if user != "" {
		r.AddCookie(&http.Cookie{Name: s.server.sessionCookie(), Value: s.sessions[user]})
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	doc, err := html.Parse(strings.NewReader(w.Body.String()))
	if err != nil {
		s.t.Fatal(err)
	}
	return view{w, s.t, doc}
}

// is fails the test unless the status is as wanted.
func (v view) is(status int) view {
	v.t.Helper()
	if v.Code != status {
		v.t.Fatalf("status %d, want %d: %s", v.Code, status, v.Body)
	}
	return v
}

// leads fails the test unless the answer leads to path.
func (v view) leads(path string) view {
	v.t.Helper()
	v.is(http.StatusSeeOther)
	if got := v.Header().Get("Location"); got != path {
		v.t.Fatalf("leads to %q, want %q", got, path)
	}
	return v
}

// fakeBoxes stands for the Manager: what is asked of it happens at once up to the state in which work continues.
type fakeBoxes struct {
	store *sqlite.Sandboxes
	bus   *event.Bus[sandbox.Event]
	made  int

	mu       sync.Mutex
	progress map[string]sandbox.Progress
	err      error // what every change gives
	unlisted error // what List gives
	last     sandbox.Request
	orphans  []sandbox.Instance
	mounts   map[string][]sandbox.Mount // by id; what has none is not known
}

// OffersIDE implements Sandboxes.
func (*fakeBoxes) OffersIDE(s sandbox.Sandbox) bool {
	return s.Overrides.IDE != nil && *s.Overrides.IDE
}

// Mounted implements Sandboxes.
func (f *fakeBoxes) Mounted(id string) ([]sandbox.Mount, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list, ok := f.mounts[id]
	return list, ok
}

func newFakeBoxes(store *sqlite.Sandboxes) *fakeBoxes {
	return &fakeBoxes{
		store: store, bus: event.NewBus[sandbox.Event](64), progress: map[string]sandbox.Progress{},
	}
}

func (f *fakeBoxes) Sandbox(ctx context.Context, name string) (sandbox.Sandbox, error) {
	return f.store.ByName(ctx, name)
}

func (f *fakeBoxes) Current(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	box, err := f.store.ByName(ctx, ref.Name())
	if fault.Is(err, fault.NotFound) || err == nil && box.ID != ref.ID() {
		return box, fault.New(fault.Gone, "%s has been deleted.", ref.Name())
	}
	return box, err
}

func (f *fakeBoxes) List(ctx context.Context, q sandbox.Filter) ([]sandbox.Sandbox, int, error) {
	if f.unlisted != nil {
		return nil, 0, f.unlisted
	}
	return f.store.List(ctx, q)
}

func (f *fakeBoxes) Progress(id string) sandbox.Progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.progress[id]
}

// report sets how far a sandbox's work has come and tells everybody.
func (f *fakeBoxes) report(box sandbox.Sandbox, p sandbox.Progress) {
	f.mu.Lock()
	f.progress[box.ID] = p
	f.mu.Unlock()
	f.bus.Publish(sandbox.Event{Sandbox: box, Progress: p})
}

// refuse makes every change fail.
func (f *fakeBoxes) refuse(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeBoxes) refusal() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// asked is the last request for a new sandbox.
func (f *fakeBoxes) asked() sandbox.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

func (f *fakeBoxes) Create(ctx context.Context, r sandbox.Request) (sandbox.Sandbox, bool, error) {
	f.mu.Lock()
	f.last = r
	f.mu.Unlock()
	if err := f.refusal(); err != nil {
		return sandbox.Sandbox{}, false, err
	}
	box := sandbox.Sandbox{
		ID: sandbox.NewID(), Name: r.Name, Label: r.Label, Owner: r.Owner, State: sandbox.Creating,
		Spec: sandbox.Spec{Template: r.Template, Image: r.Image}, Created: stageTime, Changed: stageTime,
	}
	if box.Name == "" {
		box.Name = "quiet-otter"
	}
	if old, err := f.store.ByName(ctx, box.Name); err == nil && old.Owner == r.Owner && old.Spec.Template == r.Template {
		return old, false, nil
	}
	if err := f.store.Insert(ctx, box); err != nil {
		return sandbox.Sandbox{}, false, err
	}
	f.bus.Publish(sandbox.Event{Sandbox: box})
	return box, true, nil
}

// change changes a sandbox and tells everybody.
func (f *fakeBoxes) change(ctx context.Context, ref sandbox.Ref, change func(*sandbox.Sandbox)) (sandbox.Sandbox, error) {
	if err := f.refusal(); err != nil {
		return sandbox.Sandbox{}, err
	}
	box, err := f.Current(ctx, ref)
	if err != nil {
		return box, err
	}
	change(&box)
	box.Changed = box.Changed.Add(time.Second)
	if err := f.store.Update(ctx, box); err != nil {
		return box, err
	}
	f.bus.Publish(sandbox.Event{Sandbox: box})
	return box, nil
}

func (f *fakeBoxes) Rename(ctx context.Context, ref sandbox.Ref, label string) (sandbox.Sandbox, error) {
	return f.change(ctx, ref, func(b *sandbox.Sandbox) { b.Label = label })
}

func (f *fakeBoxes) Resize(ctx context.Context, ref sandbox.Ref, c sandbox.LimitsChange) (sandbox.Sandbox, error) {
	return f.change(ctx, ref, func(b *sandbox.Sandbox) { b.Spec.Limits = c.Over(b.Spec.Limits) })
}

func (f *fakeBoxes) Delete(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	return f.change(ctx, ref, func(b *sandbox.Sandbox) { b.State = sandbox.Deleting })
}

func (f *fakeBoxes) Cancel(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	if box, err := f.Current(ctx, ref); err == nil && box.State != sandbox.Creating {
		return box, fault.New(fault.Conflict, "%s is not being created any more.", box.Name)
	}
	return f.Delete(ctx, ref)
}

func (f *fakeBoxes) PhaseLength(_ sandbox.Spec, p sandbox.Phase) pace.Length {
	if p == sandbox.PhaseImage {
		return pace.Length{}
	}
	return pace.Length{Time: time.Second, Measured: time.Second}
}

// drop makes a sandbox vanish.
func (f *fakeBoxes) drop(box sandbox.Sandbox) {
	_ = f.store.Delete(context.Background(), box.ID)
	f.bus.Publish(sandbox.Event{Sandbox: box, Deleted: true})
}

func (f *fakeBoxes) Start(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	return f.change(ctx, ref, func(b *sandbox.Sandbox) { b.State = sandbox.Starting })
}

func (f *fakeBoxes) Stop(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	return f.change(ctx, ref, func(b *sandbox.Sandbox) { b.State = sandbox.Stopping })
}

func (f *fakeBoxes) Restart(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	return f.Start(ctx, ref)
}

func (f *fakeBoxes) Wait(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	return f.Current(ctx, ref)
}

func (f *fakeBoxes) Subscribe() *event.Subscription[sandbox.Event] { return f.bus.Subscribe() }

// stageTemplates are like those that come with sandboxd, and a broken one.
type stageTemplates struct{}

func (stageTemplates) Template(name string) (catalog.Template, error) {
	for _, e := range (stageTemplates{}).List() {
		if e.Name == name && e.Problem == nil {
			return e.Template, nil
		}
	}
	return catalog.Template{}, fault.New(fault.NotFound, "There is no template %q.", name)
}

func (stageTemplates) List() []catalog.Entry {
	size := func(cpus float64, memory int64) catalog.Size {
		return catalog.Size{CPUs: cpus, Memory: memory << 30, Pids: 1024, Disk: 10 << 30}
	}
	make := func(name, title, text, icon string, size catalog.Size, ports ...catalog.Port) catalog.Entry {
		return catalog.Entry{Name: name, Readme: stageReadme, Template: catalog.Template{
			Name: name, Title: title, Description: text, Icon: icon, Size: size, Ports: ports, Profile: catalog.Dev,
			Source: catalog.Source{Folder: "/usr/share/sandboxd/templates/sandbox/" + name}, Env: map[string]string{"EDITOR": "vim"},
		}}
	}
	pooled := func(n int, e catalog.Entry) catalog.Entry {
		e.Template.Pool = n
		return e
	}
	broken := catalog.Problem{File: "/srv/templates/rust-edge/template.yaml", Line: 7, Message: "There is no field “titel”. Did you mean “title”?"}
	return []catalog.Entry{
		make("base", "Base", "Debian with git, tmux, vim, build tools, Python 3 and Node. A clean start for any work.", "terminal", size(2, 2)),
		make("data-analysis", "Data analysis", "pandas, seaborn, statsmodels, SQLite and csvkit, with a Jupyter notebook that opens on an example.", "chart", size(2, 4), catalog.Port{Number: 8888, Title: "Notebook"}),
		pooled(2, make("node-api", "Node API", "A small JSON API on plain Node that is already running. Edit ~/app and it restarts with your change.", "server", size(1, 1), catalog.Port{Number: 3000, Title: "API"})),
		make("python-ml", "Python for machine learning", "NumPy, SciPy, pandas, scikit-learn and Matplotlib, with a Jupyter notebook one click away.", "brain", size(2, 4), catalog.Port{Number: 8888, Title: "Notebook"}),
		{Name: "rust-edge", Problem: &broken, Problems: []catalog.Problem{broken}},
	}
}

const stageReadme = "# What is inside\n\nA sandbox with `git`, **vim** and <b>tools</b>. See [the docs](https://example.com/docs).\n\n" +
	"## Start\n\n- open a terminal\n- type `make`\n\n```\nmake run\n  # and wait\n```\n\n[bad](javascript:alert(1))\n"
