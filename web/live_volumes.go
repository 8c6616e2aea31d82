package web

import (
	"context"

	"sandboxd/internal/fault"
	"sandboxd/internal/volume"
	"sandboxd/views"
)

// liveVolumes keeps the list of volumes up to date, or what is told of one. Sizes are looked at now and then.
type liveVolumes struct {
	handlers *volumeHandlers
	request  *request
	one      string // its name; "" for the list
	drawn    string // print of what the page shows
}

func (s *volumeHandlers) openLiveVolumes(_ context.Context, r *request) (livePage, error) {
	if !r.isAdmin() {
		return nil, volume.NotFound("")
	}
	return &liveVolumes{handlers: s, request: r, one: r.param("name"), drawn: r.query("seen")}, nil
}

func (l *liveVolumes) beside(ctx context.Context, hand func(news)) {
	followVolumes(ctx, l.handlers.Server, hand)
}

// followVolumes hands on changes of volumes until ctx ends.
func followVolumes(ctx context.Context, s *Server, hand func(news)) {
	follow(ctx, s.cfg.Volumes.Subscribe, func(c *volume.Change) { hand(news{volume: c}) })
}

func (l *liveVolumes) begin(ctx context.Context, out *parts) error { return l.tell(ctx, false, out) }

func (l *liveVolumes) take(n news) bool { return n.volume != nil }

func (l *liveVolumes) tell(ctx context.Context, _ bool, out *parts) error {
	if l.one != "" {
		return l.tellOne(ctx, out)
	}
	list, err := l.handlers.list(ctx, l.request)
	if err != nil {
		return err
	}
	if now := printOf(list); now != l.drawn {
		l.drawn = now
		out.add("volumes", views.Replace, views.VolumesPart(list))
	}
	return nil
}

func (l *liveVolumes) tellOne(ctx context.Context, out *parts) error {
	_, item, err := l.handlers.one(ctx, l.request)
	if fault.Is(err, fault.NotFound) {
		item, err = views.Volume{Name: l.one, Gone: true}, nil
	}
	if err != nil {
		return err
	}
	if now := printOf(item); now != l.drawn {
		l.drawn = now
		out.add("volume-head", views.Replace, views.VolumeHead(item))
	}
	return nil
}
