package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
	"sandboxd/internal/logs"
	"sandboxd/internal/pace"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/services"
	"sandboxd/internal/sqlite"
	"sandboxd/internal/template/templatetest"
	"sandboxd/internal/visibility"
	"sandboxd/internal/volume"
	"sandboxd/static"
)

// world is a Server over the real Manager, accounts and exec service; below them engine, guests and images are fakes.
type world struct {
	t        *testing.T
	server   *Server
	manager  *sandbox.Manager
	users    auth.Store
	accounts *auth.Service
	store    *sandboxtest.MemStore
	engine   *fakeEngine
	images   *fakeImages
	inside
	resting
	metrics *fakeMetrics
	volumes *fakeVolumes
	logs    *logs.Keeper
	alerts  *fakeAlerts
	log     *lockedBuffer
	tokens  map[string]string // by user name: an API token
	ids     map[string]string // by user name: the user's id
}

// inside is what is in the sandboxes.
type inside struct {
	guests *fakeCommands
	files  *fakeGuest
	homes  *fakeHomes
	access *fakeAccess
}

const testPassword = "a long enough password"

// newWorld makes a world with the users root (admin), ada and bob (members).
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, nil)
}

// newWorldWith makes one whose homes are in a storage pool when quota is not nil.
func newWorldWith(t *testing.T, quota sandbox.Quota) *world {
	t.Helper()
	w := &world{
		t: t, store: sandboxtest.NewMemStore(), engine: &fakeEngine{}, images: newFakeImages(), inside: inside{guests: &fakeCommands{}, files: newFakeGuest(), homes: &fakeHomes{}}, resting: resting{newFakeIdle(), &fakeEngine{}, newFakeRooms()},
		metrics: newFakeMetrics(), log: &lockedBuffer{}, tokens: map[string]string{}, ids: map[string]string{},
	}
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	db := newDatabase(t)
	w.users = db.Auth()
	w.accounts = auth.New(w.users, auth.Options{Cost: auth.Cost{Memory: 64, Passes: 1}, Log: log})
	templates := fakeTemplates{}
	var shared *volume.Service
	shared, w.volumes = keepVolumes(t, templates, log)
	w.manager = sandbox.New(sandbox.Config{
		Store: w.store, Runtime: w.engine, Guests: fakeGuests{}, Images: w.images, Templates: templates,
		Labels: func(string, string) map[string]string { return nil },
		Host:   sandbox.Limits{CPUs: 4, Memory: 8 << 30, Pids: 4096}, Rest: serverRest, Freezer: w.engine, Room: w.room.ask, Log: log,
		Homes: w.homes, Snapshots: allParts{}, Checkpoints: allParts{}, Quota: quota, Volumes: shared.Mounts,
	})
	hosts, err := hostname.New("http://localhost:8080")
	if err != nil {
		t.Fatal(err)
	}
	holds := idle.NewHolds(w.store.Holds(), idle.New())
	w.logs = keepLogs(t, log)
	w.alerts = newFakeAlerts(t, w.manager.List)
	w.access = &fakeAccess{rows: w.manager, guest: wholeGuest{fakeGuest: w.files, fakeRooms: w.rooms}}
	backups := keepBackups(t, w.manager, log)
	catalog, own := ownTemplates(t, templates, w.images)
	w.server = New(withChat(t, log, namesIn(w.manager.List), Config{
		Metrics: w.metrics, Logs: w.logs, Activity: activity.New(activity.Config{Store: &activitytest.Memory{}}), Alerts: w.alerts.Service, Backups: backups, Repositories: placesOf(backups),
		Snapshots: keepSnapshots(t, w.manager, log),
		Access:    access.New(w.access, w.access.link, access.Tracked(idle.New())),
		Sandboxes: w.manager, Accounts: w.accounts, Templates: catalog, OwnTemplates: own, Images: w.images, Commands: exec.New(exec.Config{Starter: w.guests}),
		Hosts: hosts, Assets: static.New(), Version: Version{Version: "1.2.3", Commit: "abcdef", Go: "go1"}, Log: log,
		Checks: []Check{{Name: "store", Ask: func(context.Context) error { return nil }}, {Name: "engine", Ask: w.engine.ask}},
		Idle:   w.idle, Uses: w.idle, Holds: holds, Files: files.New(""), Services: services.New(w.manager),
		Ports: visibility.New(w.store.Ports(), log), IDE: &fakeIDE{}, LastUses: &fakeUses{last: map[string]time.Time{}},
		Models:  keepModels(t, log, nil),
		Agents:  keepAgents(t, log, w.guests),
		Volumes: shared, VolumeAccess: w.volumes.access(shared, wholeGuest{fakeGuest: w.files, fakeRooms: w.rooms}),
	}))
	w.server.cfg.Schedules = keepSchedules(t, db.Schedules(), w.server.cfg.Backups, w.manager, w.accounts)
	w.server.cfg.Updates = keepUpdates(t, w.manager, w.server.cfg.Snapshots, w.images, templates, func(sandbox.Sandbox) []idle.Reason { return nil })
	w.server.cfg.Trials = keepTrials(t, w.manager, w.server.cfg, w.room.ask, log)
	w.live()
	w.user("root", auth.Admin)
	w.user("ada", auth.Member)
	w.user("bob", auth.Member)
	return w
}

// keepLogs runs a Keeper of its own until the test ends.
func keepLogs(t *testing.T, log *slog.Logger) *logs.Keeper {
	t.Helper()
	store := sqlite.OpenLogs(t.Context(), filepath.Join(t.TempDir(), "logs.db"), log)
	k := logs.New(logs.Config{Store: store, Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = k.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// live runs the Manager until the test ends.
func (w *world) live() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.manager.Run(ctx); err != nil {
			w.t.Errorf("run manager: %v", err)
		}
	})
	w.t.Cleanup(func() { cancel(); running.Wait() })
}

// user adds a user with a token.
func (w *world) user(name string, role auth.Role) {
	w.t.Helper()
	u, err := w.accounts.CreateUser(w.t.Context(), auth.NewUser{Name: name, Role: role, Password: testPassword})
	if err != nil {
		w.t.Fatal(err)
	}
	w.ids[name] = u.ID
	w.tokens[name] = w.token(name, auth.NewToken{Name: "test"})
}

func (w *world) token(user string, n auth.NewToken) string {
	w.t.Helper()
	if n.Sandbox != "" {
		n.SandboxID = "none"
		if s, err := w.manager.Sandbox(w.t.Context(), n.Sandbox); err == nil {
			n.SandboxID = s.ID
		}
	}
	secret, _, err := w.accounts.CreateToken(w.t.Context(), w.ids[user], n)
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// ref names the sandbox that has a name now.
func (w *world) ref(name string) sandbox.Ref {
	w.t.Helper()
	s, err := w.manager.Sandbox(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Ref()
}

// box makes a running sandbox of user's.
func (w *world) box(user, name string) {
	w.t.Helper()
	r := sandbox.Request{Name: name, Owner: w.ids[user], Template: "base"}
	if _, _, err := w.manager.Create(w.t.Context(), r); err != nil {
		w.t.Fatal(err)
	}
	if s, err := w.manager.Wait(w.t.Context(), w.ref(name)); err != nil || s.State != sandbox.Running {
		w.t.Fatalf("sandbox %s is %s: %v", name, s.State, err)
	}
}

// answer is what came back.
type answer struct {
	*httptest.ResponseRecorder
	t *testing.T
}

// call asks the API as user; body is JSON text, or "" for none. What goes in and comes out is held against the document.
func (w *world) call(user, method, path, body string, headers ...string) answer {
	w.t.Helper()
	r := httptest.NewRequest(method, "http://localhost:8080"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if secret, ok := w.tokens[user]; ok {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return w.send(r, body)
}

func (w *world) send(r *http.Request, body string) answer {
	w.t.Helper()
	got := answer{httptest.NewRecorder(), w.t}
	w.server.ServeHTTP(got, r)
	checkDocumented(w.t, r, body, got.ResponseRecorder)
	return got
}

// is fails the test unless the status is as wanted.
func (a answer) is(status int) answer {
	a.t.Helper()
	if a.Code != status {
		a.t.Fatalf("status %d, want %d: %.300s", a.Code, status, a.Body)
	}
	return a
}

// problem fails the test unless the answer is a problem of that status, code and field.
func (a answer) problem(status int, code, field string) problem {
	a.t.Helper()
	a.is(status)
	if got := a.Header().Get("Content-Type"); got != "application/problem+json" {
		a.t.Errorf("content type %q", got)
	}
	var p problem
	a.into(&p)
	if p.Code != code || p.Field != field || p.Status != status || p.Detail == "" || p.RequestID == "" ||
		p.RequestID != a.Header().Get("X-Request-Id") {
		a.t.Errorf("problem %+v, want code %s about %q", p, code, field)
	}
	return p
}

func (a answer) into(v any) {
	a.t.Helper()
	if err := json.Unmarshal(a.Body.Bytes(), v); err != nil {
		a.t.Fatalf("%v in %.300s", err, a.Body)
	}
}

func (a answer) sandbox() sandboxShape {
	a.t.Helper()
	var s sandboxShape
	a.into(&s)
	return s
}

// lockedBuffer is a log that many goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// fakeEngine has every sandbox that it was asked for.
type fakeEngine struct {
	mu   sync.Mutex
	away error         // what every call gives
	gate chan struct{} // Remove waits for its end
}

func (e *fakeEngine) ask(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.away
}

func (e *fakeEngine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.away = err
}

func (e *fakeEngine) Create(ctx context.Context, _ sandbox.ContainerSpec) error { return e.ask(ctx) }

func (e *fakeEngine) Recreate(ctx context.Context, _ sandbox.ContainerSpec) error  { return e.ask(ctx) }
func (e *fakeEngine) Remount(ctx context.Context, _ sandbox.ContainerSpec) error   { return e.ask(ctx) }
func (e *fakeEngine) Start(ctx context.Context, _ string) error                    { return e.ask(ctx) }
func (e *fakeEngine) Resize(ctx context.Context, _ string, _ sandbox.Limits) error { return e.ask(ctx) }

func (e *fakeEngine) Remove(ctx context.Context, _ string) error {
	e.mu.Lock()
	gate := e.gate
	e.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return e.ask(ctx)
}

func (e *fakeEngine) Stop(ctx context.Context, _ string, _ time.Duration) error { return e.ask(ctx) }

func (e *fakeEngine) Freeze(ctx context.Context, _ string) error { return e.ask(ctx) }
func (e *fakeEngine) Pause(ctx context.Context, _ string) error  { return e.ask(ctx) }
func (e *fakeEngine) Thaw(ctx context.Context, _ string) error   { return e.ask(ctx) }

func (e *fakeEngine) Usage(ctx context.Context, _ string) (sandbox.Usage, error) {
	return sandbox.Usage{}, e.ask(ctx)
}

func (e *fakeEngine) Ping(context.Context) error { return nil }

func (e *fakeEngine) List(context.Context) ([]sandbox.Instance, error) { return nil, errUnseen }

// Watch sees nothing, so that the Manager leaves the fake alone.
func (e *fakeEngine) Watch(ctx context.Context, _ func(), _ func(sandbox.Instance)) error {
	<-ctx.Done()
	return ctx.Err()
}

var errUnseen = fault.New(fault.Unavailable, "The fake engine cannot be looked at.")

type fakeGuests struct{}

func (fakeGuests) Expect(string, sandbox.Setup) (string, error) { return "", nil }
func (fakeGuests) Ready(context.Context, string) error          { return nil }
func (fakeGuests) HangUp(context.Context, string) error         { return nil }
func (fakeGuests) Forget(string) error                          { return nil }

// fakeTemplates has the template base, and the broken one torn.
type fakeTemplates struct{}

func (f fakeTemplates) Template(name string) (catalog.Template, error) {
	for _, e := range f.List() {
		if e.Name == name && e.Problem != nil {
			return catalog.Template{}, fault.New(fault.Invalid, "The template torn is broken: %s", e.Problem.Error())
		}
		if e.Name == name {
			return e.Template, nil
		}
	}
	return catalog.Template{}, fault.New(fault.NotFound, "There is no template %q. There are: base, torn.", name)
}

func (fakeTemplates) List() []catalog.Entry {
	base := catalog.Template{
		Name: "base", Title: "Base", Description: "A bare Debian.", Icon: "box", Profile: catalog.Dev, Size: catalog.DefaultSize,
		Ports: []catalog.Port{{Number: 3000, Title: "Web"}}, Services: []catalog.Service{{Name: "web", Command: []string{"serve"}}},
	}
	return []catalog.Entry{
		{Name: "base", Template: base, Readme: "# Base\n"},
		{Name: "torn", Problem: &catalog.Problem{File: "/t/torn/template.yaml", Line: 3, Message: "There is no field titel."}},
	}
}

// fakeImages has every image at once, unless it is told to hold or to fail.
type fakeImages struct {
	bus *event.Bus[catalog.ImageEvent]

	mu     sync.Mutex
	hold   chan struct{} // Ensure waits for its end
	err    error
	status catalog.ImageStatus
	log    []string
	built  int // that were asked for
	git    *fakeFetcher
	roots  templatetest.Roots
	users  []string // sandboxes of every template

	pace      pace.Pace // of what is built; the zero value for nothing
	abandoned []string  // templates
}

func (i *fakeImages) Pace(catalog.Template) (pace.Pace, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pace, i.pace != pace.Pace{}
}

// builds has them build an image that has come so far.
func (i *fakeImages) builds(p pace.Pace) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pace = p
}

func (i *fakeImages) Abandon(t catalog.Template, by string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.abandoned = append(i.abandoned, t.Name+" by "+by)
}

func newFakeImages() *fakeImages {
	return &fakeImages{git: &fakeFetcher{}, bus: event.NewBus[catalog.ImageEvent](8), status: catalog.ImageStatus{State: catalog.ImageBuilt, Progress: 1}}
}

func (i *fakeImages) Ensure(ctx context.Context, _ catalog.Template, _ func(catalog.BuildEvent)) (string, error) {
	i.mu.Lock()
	hold, err := i.hold, i.err
	i.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "ref", err
}

func (i *fakeImages) Reference(catalog.Template) (string, error) { return "ref", nil }

// keep makes Ensure wait until release is called, and then give err.
func (i *fakeImages) keep(err error) (release func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	hold := make(chan struct{})
	i.hold, i.err = hold, err
	return sync.OnceFunc(func() { close(hold) })
}

func (i *fakeImages) Status(context.Context, string) catalog.ImageStatus {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.status
}

func (i *fakeImages) Log(string) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.log
}

func (i *fakeImages) Cancel(_, by string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.status.State != catalog.ImageBuilding {
		return fault.New(fault.Conflict, "It is not being built.")
	}
	i.status = catalog.ImageStatus{State: catalog.ImageFailed, Problem: "The build was cancelled by " + by + "."}
	return nil
}

func (i *fakeImages) Subscribe() *event.Subscription[catalog.ImageEvent] { return i.bus.Subscribe() }

func (i commandInput) Write(b []byte) (int, error) {
	select {
	case i.p.input <- bytes.Clone(b):
		return len(b), nil
	case <-i.p.ended:
		return 0, errors.New("command has ended")
	}
}

func (i commandInput) Close() error {
	close(i.p.input)
	return nil
}

// unsized is a create by user whose length nobody is told.
func unsized(w *world, user, body string) *http.Request {
	r := httptest.NewRequest("POST", "http://localhost:8080/api/v1/sandboxes", io.MultiReader(strings.NewReader(body)))
	r.ContentLength = -1
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.tokens[user])
	return r
}
