package web

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/alert"
	"sandboxd/internal/backup"
	"sandboxd/internal/catalog"
	"sandboxd/internal/chat"
	"sandboxd/internal/idle"
	"sandboxd/internal/repository"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/schedule"
	"sandboxd/internal/services"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/template"
	"sandboxd/internal/trials"
	"sandboxd/internal/update"
	"sandboxd/internal/volume"
	"sandboxd/internal/wire"
	"sandboxd/views"
)

// livePace is the least time between two events for a page. The first change goes out at once; what follows
// within this time goes out together.
const livePace = 80 * time.Millisecond

// Times of what keeps sandboxes awake, which is looked at rather than told.
const (
	reasonsPace  = time.Second      // the least time between two looks, however often it changes
	reasonsEvery = 15 * time.Second // the most: what ends by time alone is told by nobody
)

// parts collects fragments of a page for one event.
type parts struct{ list []templ.Component }

func (p *parts) add(id, how string, c templ.Component) {
	p.list = append(p.list, views.Part(id, how, c))
}

// title changes what the browser calls the page.
func (p *parts) title(text string) { p.list = append(p.list, views.Title(text)) }

func (p *parts) gone(id string) { p.list = append(p.list, views.Gone(id)) }

// send renders the collected parts into one event. It sends nothing when there are none.
func (p *parts) send(ctx context.Context, to events) error {
	if len(p.list) == 0 {
		return nil
	}
	var b bytes.Buffer
	for _, c := range p.list {
		if err := c.Render(ctx, &b); err != nil {
			return err
		}
	}
	p.list = nil
	return to.event("parts", b.String())
}

// news is one change: of a sandbox, of an image, of what uses a sandbox, of what listens in one, of its services, of an
// alert that the reader may see, of a backup, of a snapshot, of a schedule, of what an agent
// does, or of all figures.
type news struct {
	box      *sandbox.Event
	image    *catalog.ImageEvent
	uses     *idle.Change
	ports    *[]wire.PortOpen
	services *services.List
	alert    *alert.Alert
	backup   *backup.Change   // the zero value says that any may have changed
	snapshot *snapshot.Change // the same
	schedule *schedule.Change // the same
	update   *update.Change   // the same
	agent    *chat.Activity
	trial    *trials.Change // the zero value says that any may have changed
	figures  bool

	repository *repository.Change
	volume     *volume.Change
	template   *template.Change // the zero value says that any may have changed
}

// livePage is what differs from page to page about being kept up to date. It is used by one goroutine.
type livePage interface {
	// begin collects the changes since the page was drawn.
	begin(ctx context.Context, out *parts) error
	// take takes in one change, and says whether the page shows it.
	take(n news) bool
	// tell collects the parts of the page that differ after the changes taken in. With reasons it also looks at what
	// keeps the sandboxes of the page awake; else it leaves that for later.
	tell(ctx context.Context, reasons bool, out *parts) error
	// beside hands on what changes in the sandbox itself, until ctx ends or nothing more will come.
	beside(ctx context.Context, hand func(news))
}

// urgentPage is a livePage with changes that a person waits for: they do not wait for the pace.
type urgentPage interface{ urgent() bool }

// nothingBeside is for pages that show nothing of the inside of sandboxes.
type nothingBeside struct{}

func (nothingBeside) beside(context.Context, func(news)) {}

// live makes a topic of a page's parts: open does what can fail.
func (s *liveHandlers) live(open func(ctx context.Context, r *request) (livePage, error)) opener {
	return func(ctx context.Context, r *request) (pump, func(), error) {
		from := s.listen().withUses(s.cfg.Uses).follow(s.cfg.Alerts, r, s.cfg.Now()).withAgents(s.Server, r) // before the page looks at the store, so that no change falls between
		page, err := open(ctx, r)
		if err != nil {
			from.close()
			return nil, nil, err
		}
		return func(ctx context.Context, to events) error { return s.pump(ctx, to, page, from) }, from.close, nil
	}
}

// pump tells what a page shows until ctx ends, its reader was too slow, or something fails. Then the page asks anew, and
// begin brings it up to date.
func (s *liveHandlers) pump(ctx context.Context, to events, page livePage, from *changes) error {
	ctx, cancel := context.WithCancel(ctx)
	alarms := make(chan string)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	now := s.alarm.last(s.cfg.Now())
	running.Go(func() { s.watchAlarm(ctx, now, alarms) })
	inside := make(chan news)

	var out parts
	out.add("alarm", views.Replace, views.Alarm(now))
	from.alerts.tell(&out)
	if err := page.begin(ctx, &out); err != nil {
		return err
	}
	if err := out.send(ctx, to); err != nil {
		return err
	}
	running.Go(func() {
		page.beside(ctx, func(n news) {
			select {
			case inside <- n:
			case <-ctx.Done():
			}
		})
	})
	from.inside = inside
	return s.relay(ctx, to, page, from, alarms)
}

// relay hands on what changes: a change of a sandbox at once, a change of what keeps it awake with some patience.
func (s *liveHandlers) relay(ctx context.Context, to events, page livePage, from *changes, alarms <-chan string) error {
	glance := time.Tick(s.reasons)
	// Each is not nil while the last event is too recent for another, or, of alerts, while more are awaited, to be told together.
	var pace, reasonPace, alertPace <-chan time.Time
	var out parts
	for changed, reasons, more := false, false, true; more; {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-from.boxes.C:
			more = ok
			changed = ok && page.take(news{box: e}) || changed
		case e, ok := <-from.images.C:
			more = ok
			changed = ok && page.take(news{image: e}) || changed
		case e, ok := <-from.uses.C:
			reasons = !ok || page.take(news{uses: e}) || reasons
			if !ok { // too many at once: looking is as good
				from.withUses(s.cfg.Uses)
			}
		case e, ok := <-from.alerts.C:
			more = ok
			if ok && from.alerts.take(*e) {
				changed = page.take(news{alert: e}) || changed
				alertPace = cmp.Or(alertPace, time.After(livePace))
			}
		case e, ok := <-from.agents.C:
			more = ok
			changed = ok && page.take(news{agent: e}) || changed
			from.agents.tell(ctx, e, &out)
		case <-alertPace:
			alertPace = nil
			from.alerts.tell(&out)
		case n := <-from.inside:
			changed = page.take(n) || changed
		case <-glance:
			reasons = true
		case text := <-alarms:
			out.add("alarm", views.Replace, views.Alarm(text))
		case <-pace:
			pace = nil
		case <-reasonPace:
			reasonPace = nil
		}
		look := reasons && reasonPace == nil
		if urgent, ok := page.(urgentPage); (changed || look) && (pace == nil || ok && urgent.urgent()) {
			if err := page.tell(ctx, look, &out); err != nil {
				return err
			}
			changed, pace = false, time.After(s.pace)
			if look {
				reasons, reasonPace = false, time.After(reasonsPace)
			}
		}
		if err := out.send(ctx, to); err != nil {
			return err
		}
	}
	return nil
}
