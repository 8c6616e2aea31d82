package main

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sandboxd/internal/alert"
	"sandboxd/internal/catalog"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

const (
	alertsPage     = "/alerts"
	serviceLimit   = 2 * time.Second // for one guest to say how its services stand
	servicesAtOnce = 16              // guests that are asked
	maxFailures    = 10_000          // that wait to be looked at
	relistEvery    = 5 * time.Second // while the sandboxes are not known
	relistLimit    = 10 * time.Second
)

// newAlerts puts together what watches sandboxes and the host.
func (a *app) newAlerts() {
	a.alerting = &alertSources{boxes: a.manager, images: a.images, catalog: a.catalog, links: a.links, builds: map[string]alert.Build{}, listed: make(chan struct{})}
	from := alert.Sources{
		Sandboxes: a.alerting.sandboxes, Services: a.alerting.services, Usage: a.recorder.Latest, OOMKills: a.recorder.OOMKills, HomeSize: a.homeSize,
		Failures: a.alerting.takeFailures, Builds: a.alerting.lastBuilds, Host: a.recorder.Host, Lines: a.logs.SearchApart, Pool: a.storage.alerts(), Backups: func() []alert.BackupTrouble { return backupTroubles(a) },
	}
	if a.hosts.Scheme == "https" {
		from.Certificate = func(ctx context.Context) (time.Time, error) { return certificateEnd(ctx, a.hosts) }
	}
	a.alerts = alert.New(alert.Config{Store: a.db.Alerts(), Senders: a.senders(), Sources: from, Link: a.hosts.DashboardURL() + alertsPage, Log: a.log})
}

// homeSize gives the size of a sandbox's home in bytes, and when it was measured.
func (a *app) homeSize(id string) (size int64, at time.Time, ok bool) {
	measured, at, ok := a.sizer.Size(id)
	return measured.Home, at, ok
}

// alertBoxes is what alertSources ask of sandbox.Manager.
type alertBoxes interface {
	List(ctx context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error)
	Services(s sandbox.Sandbox) []catalog.Service
	Subscribe() *event.Subscription[sandbox.Event]
}

// alertSources say how sandboxes and images stand, for alerts. It wakes nothing, and what it asks is no use.
type alertSources struct {
	boxes   alertBoxes
	images  *catalog.Images
	catalog *catalog.Catalog
	links   *link.Hub
	listed  chan struct{} // closed when the sandboxes were asked for once

	mu       sync.Mutex
	rows     map[string]sandbox.Sandbox // by id; nil while they are not known
	list     []sandbox.Sandbox          // the same, until one changes; never changed itself
	failures []alert.Failure            // since they were asked for
	builds   map[string]alert.Build
}

// Run follows sandboxes and builds until ctx ends.
func (w *alertSources) Run(ctx context.Context) error {
	changes, builds := w.boxes.Subscribe(), w.images.Subscribe()
	defer func() { changes.Close(); builds.Close() }()
	retry := time.NewTicker(relistEvery)
	defer retry.Stop()
	w.relist(ctx)
	close(w.listed)
	for {
		select {
		case e, ok := <-changes.C:
			if !ok { // there were too many at once
				changes = w.boxes.Subscribe()
				w.relist(ctx)
				continue
			}
			w.see(*e)
		case e, ok := <-builds.C:
			if !ok {
				builds = w.images.Subscribe()
				continue
			}
			if e.Status.State == catalog.ImageBuilt || e.Status.State == catalog.ImageFailed {
				w.built(e.Template, e.Status)
			}
		case <-retry.C:
			if _, err := w.sandboxes(ctx); err != nil {
				w.relist(ctx)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// relist reads all sandboxes anew.
func (w *alertSources) relist(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, relistLimit)
	defer cancel()
	all, _, err := w.boxes.List(ctx, sandbox.Filter{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rows, w.list = nil, nil; err != nil {
		return // the alerts say so
	}
	w.rows = make(map[string]sandbox.Sandbox, len(all))
	for _, b := range all {
		w.rows[b.ID] = b
	}
}

// see notes what has happened to a sandbox.
func (w *alertSources) see(e sandbox.Event) {
	if e.Failed != nil && !fault.Is(e.Failed, fault.Gone) {
		w.note(alert.Failure{SandboxID: e.Sandbox.ID, Problem: fault.Message(e.Failed)})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rows == nil || e.Sandbox.Pooled {
		return
	}
	if w.list = nil; e.Deleted {
		delete(w.rows, e.Sandbox.ID)
	} else {
		w.rows[e.Sandbox.ID] = e.Sandbox
	}
}

func (w *alertSources) note(f alert.Failure) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.failures) < maxFailures {
		w.failures = append(w.failures, f)
	}
}

func (w *alertSources) built(template string, s catalog.ImageStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Cancelled {
		return // a user wanted that
	}
	b := alert.Build{Known: true}
	if s.State == catalog.ImageFailed {
		b.Problem = s.Problem
	}
	w.builds[template] = b
}

func (w *alertSources) takeFailures() []alert.Failure {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.failures
	w.failures = nil
	return out
}

// lastBuilds gives those of the templates that there are.
func (w *alertSources) lastBuilds() map[string]alert.Build {
	templates := w.catalog.List()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := make(map[string]alert.Build, len(templates))
	for _, t := range templates {
		now[t.Template.Name] = w.builds[t.Template.Name]
	}
	return now
}

// errNotListed says that the sandboxes are not known yet.
var errNotListed = fault.New(fault.Unavailable, "The sandboxes cannot be listed now. Try again in a moment.")

// sandboxes gives all, from memory: reading the rows of a thousand takes longer than all else that a look does.
func (w *alertSources) sandboxes(ctx context.Context) ([]sandbox.Sandbox, error) {
	select {
	case <-w.listed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rows == nil {
		return nil, errNotListed
	}
	if w.list == nil {
		w.list = slices.AppendSeq(make([]sandbox.Sandbox, 0, len(w.rows)), maps.Values(w.rows))
	}
	return w.list, nil
}

// services asks the guests of those that run. One that does not answer at once is left out.
func (w *alertSources) services(ctx context.Context, all []sandbox.Sandbox) (map[string][]wire.ServiceStatus, error) {
	var mu sync.Mutex
	out := make(map[string][]wire.ServiceStatus, len(all))
	var g errgroup.Group
	g.SetLimit(servicesAtOnce)
	for _, b := range all {
		if b.State != sandbox.Running {
			continue
		}
		if len(w.boxes.Services(b)) == 0 {
			mu.Lock()
			out[b.ID] = nil
			mu.Unlock()
			continue
		}
		g.Go(func() error {
			if list, err := w.servicesOf(ctx, b.ID); err == nil {
				mu.Lock()
				defer mu.Unlock()
				out[b.ID] = list
			}
			return nil
		})
	}
	_ = g.Wait() // none fails
	return out, ctx.Err()
}

func (w *alertSources) servicesOf(ctx context.Context, id string) ([]wire.ServiceStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, serviceLimit)
	defer cancel()
	session, err := w.links.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	return session.Services(ctx)
}

// certificateEnd asks the dashboard's own address for its certificate, as a browser does. Whether it is trusted is the browsers'
// business: only its end is read.
func certificateEnd(ctx context.Context, hosts hostname.Hosts) (time.Time, error) {
	dashboard := hostname.Target{Kind: hostname.Dashboard}
	port := hosts.Port
	if port == "" {
		port = "443"
	}
	d := tls.Dialer{Config: &tls.Config{ServerName: hosts.Host(dashboard), InsecureSkipVerify: true}}
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(hosts.Host(dashboard), port))
	if err != nil {
		return time.Time{}, fault.Wrap(err, fault.Unavailable, "%s does not answer this host: %v.", hosts.DashboardURL(), err)
	}
	defer c.Close()
	return c.(*tls.Conn).ConnectionState().PeerCertificates[0].NotAfter, nil // a handshake always gives one
}
