package web

import (
	"context"

	"sandboxd/internal/metrics"
)

// apiMetrics answers with what a sandbox used in a stretch of time. It wakes nothing and counts as no use.
func (s *metricsHandlers) apiMetrics(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	series, err := s.seriesOf(ctx, r, h.ID())
	if err != nil {
		return reply{}, err
	}
	return reply{body: boxMetricsShape{newMetricsShape(series), s.sizeOf(h.ID())}}, nil
}

// apiHostMetrics answers with what the host used in a stretch of time, and with what it has and uses now.
func (s *metricsHandlers) apiHostMetrics(ctx context.Context, r *request, _ none) (reply, error) {
	series, err := s.seriesOf(ctx, r, metrics.HostID)
	if err != nil {
		return reply{}, err
	}
	now, err := s.cfg.Metrics.Host(ctx)
	if err != nil {
		return reply{}, err
	}
	out := hostMetricsShape{newMetricsShape(series), newHostShape(now)}
	if used, size, ok := storagePool(ctx, s.Server); ok {
		out.Now.Pool = &poolShape{used, size}
	}
	return reply{body: out}, nil
}

// seriesOf gives the stretch of an id's history that the query asks for.
func (s *metricsHandlers) seriesOf(ctx context.Context, r *request, id string) (metrics.Series, error) {
	asked, err := metricsRange(r, s.cfg.Now())
	if err != nil {
		return metrics.Series{}, err
	}
	return s.cfg.Metrics.Series(ctx, id, asked)
}
