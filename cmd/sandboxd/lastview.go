package main

import (
	"context"
	"log/slog"
	"time"

	"sandboxd/internal/lastview"
	"sandboxd/internal/link"
)

// newLastViews makes what takes what sandboxes show before they are put to rest.
func newLastViews(links *link.Hub, store lastview.Store, log *slog.Logger) *lastview.Service {
	return &lastview.Service{
		Guest: func(ctx context.Context, id string) (lastview.Guest, error) { return links.Session(ctx, id) },
		Store: store, Now: time.Now, Log: log,
	}
}
