package gateway

import "context"

// Settings gives the settings of the whole gateway.
func (s *Service) Settings() Settings { return s.table().settings }

// SetSettings changes them. Requests that are under way continue.
func (s *Service) SetSettings(ctx context.Context, to Settings) error {
	return s.change(ctx, func(ctx context.Context) error { return s.c.Store.PutSettings(ctx, to) })
}
