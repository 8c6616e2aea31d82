package web

import (
	"context"
	"strconv"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/event"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// maxNews bounds the alerts that begin to fire and are told of one by one.
const maxNews = 20

// alertFeed is what the frame of a page is told of alerts: how many fire, and which have just begun to. It is used by one goroutine.
type alertFeed struct {
	*event.Subscription[alert.Alert]
	from  *alert.Service
	scope alert.Scope
	since time.Time       // what fired before is no news
	told  map[string]bool // ids of those that fire and were news
	news  []alert.Alert
	shown int // how many the page shows; -1 when it is not known
}

// follow makes c listen to alerts too, for the frame of a request's page.
func (c *changes) follow(from *alert.Service, r *request, now time.Time) *changes {
	c.alerts = &alertFeed{
		Subscription: from.Subscribe(), from: from, scope: alertScope(r.who), since: now, told: map[string]bool{}, shown: -1,
	}
	return c
}

// seenNumber gives a number that a page says that it shows; -1 when it does not.
func seenNumber(r *request, name string) int {
	n, err := strconv.Atoi(r.query(name))
	if err != nil {
		return -1
	}
	return n
}

// take takes in a change, and says whether the page's reader may know of it.
func (f *alertFeed) take(a alert.Alert) bool {
	if !f.scope.Has(a) {
		return false
	}
	switch {
	case a.State != alert.Firing:
		delete(f.told, a.ID)
	case !f.told[a.ID] && !a.Fired.Before(f.since) && a.Muted.IsZero() && len(f.news) < maxNews:
		f.told[a.ID] = true
		f.news = append(f.news, a)
	}
	return true
}

// tell collects the number of alerts that fire, when the page shows another, and the news.
func (f *alertFeed) tell(out *parts) {
	if now := f.from.Firing(f.scope); now != f.shown {
		f.shown = now
		out.add("alert-count", views.Replace, views.AlertCount(now))
	}
	for _, a := range f.news {
		out.add("alert-news", views.Append, views.AlertNews(newsText(a), alertsPath))
	}
	f.news = nil
}

// newsText says in a line what has begun to fire.
func newsText(a alert.Alert) string {
	about := a.Target.Sandbox
	if about == "" {
		about = a.Target.Template
	}
	for _, part := range []string{a.Target.Part, a.Text} {
		switch {
		case about == "":
			about = part
		case part == a.Text:
			about += ": " + part
		case part != "":
			about += ", " + part
		}
	}
	return plainText(a.Rule + " – " + about)
}

// framePath is the topic of pages of which nothing but the frame changes.
const framePath = "/frame"

// liveFrame is such a page.
type liveFrame struct{ nothingBeside }

func openLiveFrame(context.Context, *request) (livePage, error) { return liveFrame{}, nil }

func (liveFrame) begin(context.Context, *parts) error      { return nil }
func (liveFrame) take(news) bool                           { return false }
func (liveFrame) tell(context.Context, bool, *parts) error { return nil }

// liveAlerts keeps the page of alerts up to date.
type liveAlerts struct {
	nothingBeside
	handlers *alertHandlers
	request  *request
	ask      alertAsk
	drawn    string // print of what fires, as the page shows it
	over     []alert.Alert
	changed  bool
}

func (s *alertHandlers) openLiveAlerts(_ context.Context, r *request) (livePage, error) {
	ask, err := readAlertAsk(r)
	ask.before = ""
	return &liveAlerts{handlers: s, request: r, ask: ask}, err
}

func (l *liveAlerts) begin(ctx context.Context, out *parts) error {
	list, err := l.handlers.alertList(ctx, l.request, l.ask)
	if err != nil {
		return err
	}
	l.drawn = printOf(list.Firing)
	if l.request.query("seen") != printOf(list) {
		out.add("alerts", views.Replace, views.AlertLists(list))
	}
	return nil
}

func (l *liveAlerts) take(n news) bool {
	if n.alert == nil || l.ask.sandbox != "" && l.ask.sandbox != n.alert.Target.Sandbox && l.ask.sandbox != n.alert.Target.SandboxID {
		return false
	}
	if l.changed = true; n.alert.State == alert.Resolved {
		l.over = append(l.over, *n.alert)
	}
	return true
}

func (l *liveAlerts) tell(ctx context.Context, _ bool, out *parts) error {
	if !l.changed {
		return nil
	}
	over := l.over
	l.over, l.changed = nil, false
	if l.ask.state != alert.Resolved {
		firing, err := l.handlers.firing(ctx, l.request, l.ask)
		if err != nil {
			return err
		}
		if now := printOf(firing); now != l.drawn {
			l.drawn = now
			out.add("alerts-firing", views.Replace, views.AlertsFiring(firing))
		}
	}
	if len(over) == 0 || l.ask.state == alert.Firing {
		return nil
	}
	items, err := l.handlers.alertViews(ctx, l.request, over)
	if err != nil {
		return err
	}
	out.gone("alerts-none")
	for i := range items {
		out.add("alerts-history", views.Prepend, views.AlertsOver(views.AlertHistory{Items: items[i : i+1]}))
	}
	return nil
}

// alertSign is the sign in the workspace of a sandbox, and how many of its alerts fire.
func (s *alertHandlers) alertSign(r *request, box sandbox.Sandbox) views.AlertSignal {
	scope := alertScope(r.who)
	scope.SandboxID = box.ID
	n := s.cfg.Alerts.Firing(scope)
	return views.AlertSignal{Count: n, URL: alertAsk{sandbox: box.Name}.url("")}
}
