package web

import (
	"context"

	"sandboxd/internal/repository"
	"sandboxd/views"
)

// liveRepositories keeps the list of the backup repositories up to date.
type liveRepositories struct {
	handlers *repositoryHandlers
	seen     string
	drawn    string // print of the list as the page shows it
}

func (s *repositoryHandlers) openLiveRepositories(_ context.Context, r *request) (livePage, error) {
	if !r.isAdmin() {
		return nil, repository.NotFound("")
	}
	return &liveRepositories{handlers: s, seen: r.query("seen")}, nil
}

func (l *liveRepositories) beside(ctx context.Context, hand func(news)) {
	follow(ctx, l.handlers.cfg.Repositories.Subscribe, func(c *repository.Change) { hand(news{repository: c}) })
}

func (l *liveRepositories) begin(ctx context.Context, out *parts) error {
	l.drawn = l.seen
	return l.tell(ctx, false, out)
}

func (l *liveRepositories) take(n news) bool { return n.repository != nil }

func (l *liveRepositories) tell(_ context.Context, _ bool, out *parts) error {
	list := l.handlers.list()
	if now := printOf(list); now != l.drawn {
		l.drawn = now
		out.add("repositories", views.Replace, views.RepositoriesPart(list))
	}
	return nil
}
