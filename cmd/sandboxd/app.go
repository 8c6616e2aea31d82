package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/activity"
	"sandboxd/internal/alert"
	"sandboxd/internal/auth"
	"sandboxd/internal/backup"
	"sandboxd/internal/catalog"
	"sandboxd/internal/chat"
	"sandboxd/internal/docker"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/firewall"
	"sandboxd/internal/hostname"
	"sandboxd/internal/link"
	"sandboxd/internal/logs"
	"sandboxd/internal/metrics"
	"sandboxd/internal/pace"
	"sandboxd/internal/proxy"
	"sandboxd/internal/repository"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/schedule"
	"sandboxd/internal/services"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/sqlite"
	"sandboxd/internal/template"
	"sandboxd/internal/terminal"
	"sandboxd/internal/update"
	"sandboxd/internal/volume"
	"sandboxd/static"
	"sandboxd/web"
)

// app is all parts of a server, put together.
type app struct {
	config   *Config
	log      *slog.Logger
	recent   *logs.Recent
	hosts    hostname.Hosts
	db       *sqlite.DB
	accounts *auth.Service
	storage  storage
	engine   *docker.Engine
	catalog  *catalog.Catalog
	images   *catalog.Images
	times    *pace.Times
	links    *link.Hub
	watch
	lifecycle
	outgoing
	modelGateway
	agents
	recorder  *metrics.Recorder
	sizer     *metrics.Sizer
	sizes     *docker.Sizes
	logs      *logs.Keeper
	collector *logs.Collector
	activity  *activity.Log
	alerts    *alert.Service
	alerting  *alertSources
	backups   *backup.Service
	schedules *schedule.Service
	snapshots *snapshot.Service
	updates   *update.Service
	volumes   *volume.Service

	repositories *repository.Service
	templates    *template.Service
	handler      http.Handler // answers HTTP
	closers      []func() error
}

// The parts of the data folder.
func databasePath(c *Config) string   { return filepath.Join(c.Data, "sandboxd.db") }
func linkPath(c *Config) string       { return filepath.Join(c.Data, "link") }
func checkpointPath(c *Config) string { return filepath.Join(c.Data, "checkpoints") }
func templatePath(c *Config) string   { return filepath.Join(c.Data, "templates") }

// How long a start waits for the engine, and how often it looks.
const (
	engineWait  = time.Minute
	engineEvery = 2 * time.Second
)

// networkLinger keeps the sandboxes' network between a delete and the next create.
const networkLinger = 10 * time.Second

// newAccounts makes the auth service over db; a user who still owns sandboxes cannot be deleted.
func newAccounts(db *sqlite.DB) *auth.Service {
	return auth.New(db.Auth(), auth.Options{Owned: func(ctx context.Context, userID string) (int, error) {
		_, n, err := db.Sandboxes().List(ctx, sandbox.Filter{Owner: userID, Limit: 1})
		return n, err
	}})
}

// openApp opens database, engine and sockets and wires the parts. It starts nothing. The caller must close it.
func openApp(ctx context.Context, c *Config, log logger) (*app, error) {
	a := &app{config: c, log: log.Logger, recent: log.recent}
	err := a.newWatch()
	if err == nil {
		err = a.open(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *app) open(ctx context.Context) (err error) {
	c := a.config
	if a.hosts, err = c.hosts(); err != nil {
		return err
	}
	if err := a.newOutgoing(); err != nil {
		return err
	}
	if err := a.lock(); err != nil {
		return err
	}
	if a.db, err = serverDatabase(ctx, c, a.log); err != nil {
		return err
	}
	a.closers = append(a.closers, a.db.Close)
	a.accounts, a.times = newAccounts(a.db), pace.Open(ctx, a.db.Times(), a.log)
	a.links = link.NewHub(linkPath(c), a.log)
	if a.storage, err = openStorage(ctx, c, a.log); err != nil {
		return err
	}
	a.closers = append(a.closers, a.storage.close)
	if err := a.openEngine(ctx); err != nil {
		return err
	}
	if err := a.newActivity(ctx); err != nil {
		return err
	}
	if a.volumes, err = newVolumes(ctx, a); err != nil {
		return err
	}
	if a.manager, err = a.newManager(); err != nil {
		return err
	}
	if err := a.newReaper(); err != nil {
		return err
	}
	if err := a.newIDE(); err != nil {
		return err
	}
	if err := a.newRecorder(ctx); err != nil {
		return err
	}
	a.newLogs(ctx)
	a.newAlerts()
	if a.repositories, err = newRepositories(ctx, a); err != nil {
		return err
	}
	if err := a.newBackups(ctx); err != nil {
		return err
	}
	a.schedules = newSchedules(a)
	if err := a.newSnapshots(ctx); err != nil {
		return err
	}
	if a.updates, err = newUpdates(ctx, a); err != nil {
		return err
	}
	return openDelivery(ctx, a)
}

func (a *app) close() (err error) {
	for i := len(a.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, a.closers[i]())
	}
	return err
}

// lock keeps a second server off the data folder, which it makes when needed, and finishes a restore of that which was cut off.
func (a *app) lock() error {
	if err := makeData(a.config); err != nil {
		return err
	}
	unlock, err := lockData(a.config)
	if err != nil {
		return err
	}
	a.closers = append(a.closers, unlock)
	if err := dropStaging(a.config.Data); err != nil {
		a.log.Warn("what is left of a backup of the server", "error", err)
	}
	return finishServerRestore(a.config, a.log)
}

// openEngine connects to the engine and reads the templates.
func (a *app) openEngine(ctx context.Context) error {
	instance, err := a.db.Instance(ctx)
	if err != nil {
		return err
	}
	release, err := claimInstance(ctx, instance)
	if err != nil {
		return err
	}
	a.closers = append(a.closers, release)
	guest, err := installGuest(a.config)
	if err != nil {
		return err
	}
	links, err := filepath.Abs(linkPath(a.config))
	if err != nil {
		return err
	}
	certs, bundle, err := hostCertificates(a.config)
	if err != nil {
		return err
	}
	memories, err := filepath.Abs(checkpointPath(a.config))
	if err != nil {
		return err
	}
	versions, err := installIDE(a.config)
	if err != nil {
		return err
	}
	a.engine, err = a.awaitEngine(ctx, docker.Config{
		Instance: instance, GuestBinary: guest, LinkFolder: links, IDEFolder: versions, CAFile: bundle, Subnet: a.config.Subnet, Log: a.log, NetworkLinger: networkLinger,
		Firewall: a.firewall(instance), Listen: a.listen, Watchdog: []string{ownProgram, thawOrphan}, Pool: a.storage.homes(),
		KeepMemory: a.config.MemorySnapshots, CheckpointFolder: memories,
	})
	if err != nil {
		return err
	}
	a.closers = append(a.closers, a.engine.Close)
	if a.catalog, err = openCatalog(a.config); err != nil {
		return err
	}
	if a.templates, err = newTemplates(ctx, a, bundle); err != nil {
		return err
	}
	a.images = catalog.NewImages(a.catalog, a.engine, catalog.ImageOptions{CA: certs, Log: a.log, Made: a.image(), Records: a.templates, Root: a.engine.RootImage, Times: a.times})
	return a.checkPrebuild()
}

// firewall keeps sandboxes off this host, where that can be done, but for the ports that it serves to anybody.
func (a *app) firewall(instance string) docker.Firewall {
	var public []int
	if a.config.proxied() {
		public = []int{80, 443}
	}
	if host, port, err := net.SplitHostPort(a.config.Listen); err == nil && !isLoopback(host) {
		if n, err := net.LookupPort("tcp", port); err == nil {
			public = append(public, n)
		}
	}
	w, err := firewall.Open(instance, public...)
	if err != nil {
		a.log.Warn("sandboxes are not kept off this host", "error", err)
		return nil
	}
	return w
}

func isLoopback(host string) bool {
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && at.IsLoopback()
}

// awaitEngine opens the engine, waiting a while for one that is not there yet: after a start of the machine it may come
// up later than we do.
func (a *app) awaitEngine(ctx context.Context, c docker.Config) (*docker.Engine, error) {
	deadline := time.Now().Add(engineWait)
	for {
		e, err := docker.Open(ctx, c)
		if err == nil || !fault.Is(err, fault.Unavailable) || time.Now().After(deadline) {
			return e, err
		}
		a.log.Warn("no container engine answers yet; waiting for it", "error", err)
		select {
		case <-time.After(engineEvery):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// hostCertificates gives the extra certificates that this host trusts, and the bundle to mount into sandboxes.
func hostCertificates(c *Config) ([]catalog.Certificate, string, error) {
	system := os.Getenv("SSL_CERT_FILE")
	if _, err := os.Stat(system); err != nil {
		system = "" // a stale variable of the shell is no reason not to start
	}
	source := catalog.HostCA(c.CAFile, system)
	extra, err := catalog.ExtraCA(source)
	if err != nil {
		return nil, "", err
	}
	bundle, err := catalog.WriteCABundle(filepath.Join(c.Data, "ca"), source, extra)
	return extra, bundle, err
}

// installGuest copies the guest from beside this binary into the data folder, under the hash of its content, so that
// running sandboxes keep theirs when sandboxd is replaced.
func installGuest(c *Config) (path string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(self), "guest"))
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "The guest program is missing beside sandboxd (%s). Run make build.", filepath.Dir(self))
	}
	sum := sha256.Sum256(text)
	folder, err := filepath.Abs(filepath.Join(c.Data, "bin"))
	if err != nil {
		return "", err
	}
	path = filepath.Join(folder, "guest-"+hex.EncodeToString(sum[:6]))
	if old, err := os.ReadFile(path); err == nil && sha256.Sum256(old) == sum {
		return path, nil
	}
	return path, writeProgram(path, text)
}

// programPiece is how much of a program is written at once. Linux keeps what came in one piece in large pages of its cache, and maps
// such a page as a whole: of a program in one piece, each guest would hold megabytes that it never uses.
const programPiece = 64 << 10

// writeProgram writes an executable file whole or not at all.
func writeProgram(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make folder for the guest: %w", err)
	}
	next := path + ".new"
	if err := writePieces(next, text); err != nil {
		return fault.Wrap(err, fault.Unavailable, "The guest cannot be written to the data folder: %v.", err)
	}
	return os.Rename(next, path)
}

func writePieces(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	for piece := range slices.Chunk(text, programPiece) {
		if _, err = f.Write(piece); err != nil {
			break
		}
	}
	return errors.Join(err, f.Close())
}

// newManager puts the Manager together. No sandbox gets more than this host has.
func (a *app) newManager() (*sandbox.Manager, error) {
	memory, err := memFigure("MemTotal")
	if err != nil {
		return nil, err
	}
	rest, err := a.config.rest()
	if err != nil {
		return nil, err
	}
	var freezer sandbox.Freezer
	if can, _, why := a.engine.FreezeSupport(); can {
		freezer = a.engine
	} else {
		a.log.Warn("unused sandboxes are not frozen, only stopped", "reason", why)
	}
	return sandbox.New(sandbox.Config{
		Store: a.db.Sandboxes(), Runtime: a.engine, Freezer: freezer, Guests: guests{a.links}, Images: a.images,
		Templates: a.catalog, Labels: a.hosts.Labels, Rest: rest, Room: a.room, Volumes: a.volumes.Mounts,
		Homes: a.engine, Snapshots: a.engine, Layers: a.engine, Checkpoints: a.engine, Quota: a.storage.quota(a.engine), Host: sandbox.Limits{CPUs: float64(runtime.NumCPU()), Memory: memory},
		Log: a.log, Times: a.times, Observe: a.observe, Leave: newLastViews(a.links, a.db.Workspace(), a.log).Take,
	}), nil
}

// newHandler puts everything together that answers HTTP.
func (a *app) newHandler() (http.Handler, error) {
	trusted, err := a.config.trusted()
	if err != nil {
		return nil, err
	}
	control := access.New(a.manager, access.FromHub(a.links), access.Tracked(a.tracker)).Noting(a.uses.Note)
	inside := files.New(filepath.Join(a.config.Data, "spool"))
	ssh, ports, err := a.newSSH()
	if err != nil {
		return nil, err
	}
	commands := exec.New(exec.Config{Starter: exec.InGuest(), Ended: a.command()})
	own := newChat(a, control, commands, inside)
	assets := static.New()
	if p := assets.Problem(); p != "" {
		a.log.Warn(p)
	}
	dashboard := web.New(web.Config{
		Access: control, Sandboxes: a.manager, Accounts: a.accounts, Templates: a.catalog, Images: a.images, OwnTemplates: a.templates,
		Commands: commands, Chat: a.chat, Runs: a.runs, ChatStates: a.doing, ChatLinks: chat.NewLinks(a.db.Chat(), nil), ChatBoxes: a.db.Sandboxes().OwnerOf, ChatModels: own.names,
		Agents: a.others, Trials: a.trials, Terminals: terminal.New(a.manager, a.log),
		Files: inside, SSH: ssh, Tunnels: ports, Services: services.New(a.manager), IDE: a.ide, Ports: a.ports,
		Idle: a.reaper, Uses: a.tracker, Holds: a.holds, Metrics: measures{a.recorder, a.sizer}, Logs: a.logs, OwnLog: a.recent, Activity: a.activity, Alerts: a.alerts, Backups: a.backups, Schedules: a.schedules, Repositories: a.repositories, Snapshots: a.snapshots, Updates: a.updates, Preferences: a.db.Workspace(), TabNames: a.db.Workspace(), LastViews: a.db.Workspace(), LastUses: a.uses,
		Handover: proxy.Handover{Hosts: a.hosts, Sandboxes: a.manager, Access: control, Codes: a.accounts},
		Hosts:    a.hosts, Assets: assets, Pool: a.storage.figures(), Models: a.models, Volumes: a.volumes, VolumeAccess: volumeAccess(a),
		Checks: []web.Check{
			{Name: "store", Ask: a.db.Ready},
			{Name: "engine", Ask: a.manager.CheckEngine},
		},
		Version: web.Version{Version: version, Commit: commit(), Go: runtime.Version()},
		Log:     a.log,
	})
	boxes := proxy.New(proxy.Config{
		Hosts: a.hosts, Sandboxes: a.manager, Accounts: a.accounts, Ports: a.ports, Access: control, Tracker: a.tracker,
		Trusted: trusted,
		Assets:  proxy.Assets{Files: assets, Scripts: []string{assets.URL("solo.js")}, Styles: []string{assets.URL("solo.css")}, Icon: assets.URL("icon.svg")},
		Log:     a.log, Step: a.step(),
	})
	return a.requests(a.hosts, split{hosts: a.hosts, dashboard: dashboard, boxes: boxes, trusted: trusted}), nil
}

// prebuild builds the configured images at start and logs each.
func (a *app) prebuild(ctx context.Context) error {
	for _, name := range a.config.Prebuild {
		if t, err := a.catalog.Template(name); err != nil {
			a.log.Error("template to prebuild", "template", name, "error", fault.Message(err))
		} else {
			a.prebuildOne(ctx, t)
		}
	}
	return nil
}

// checkPrebuild refuses names of templates that there are none of. A broken template is no reason not to serve.
func (a *app) checkPrebuild() error {
	for _, name := range a.config.Prebuild {
		if _, err := a.catalog.Template(name); fault.Is(err, fault.NotFound) {
			return fault.Field("prebuild", "--prebuild names %q: %s", name, fault.Message(err))
		}
	}
	return nil
}

// prebuildOne builds one image; its steps are told at most every few seconds.
func (a *app) prebuildOne(ctx context.Context, t catalog.Template) {
	const every = 3 * time.Second
	begun := time.Now()
	told := begun
	_, err := a.images.Ensure(ctx, t, func(e catalog.BuildEvent) {
		if time.Since(told) > every {
			told = time.Now()
			a.log.Info("building image", "template", t.Name, "step", fmt.Sprintf("%d/%d", e.Step, e.Steps), "doing", e.Line)
		}
	})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		a.log.Error("build of an image failed; the templates page has its log", "template", t.Name, "error", fault.Message(err))
	case told != begun:
		a.log.Info("image built", "template", t.Name, "took", time.Since(begun).Round(time.Second))
	}
}

// recallLinks lets the guests come back, and removes link folders that belong neither to a sandbox nor to a container.
func (a *app) recallLinks(ctx context.Context) error {
	known, err := a.manager.Recall(ctx)
	left, leftErr := a.links.Left()
	if err := errors.Join(err, leftErr); err != nil {
		return err
	}
	left = slices.DeleteFunc(left, func(id string) bool { return known[id] })
	if len(left) == 0 {
		return nil
	}
	found, err := a.engine.List(ctx)
	if err != nil {
		return err
	}
	for _, id := range left {
		if !slices.ContainsFunc(found, func(i sandbox.Instance) bool { return i.ID == id }) {
			err = errors.Join(err, a.links.Forget(id))
		}
	}
	return err
}
