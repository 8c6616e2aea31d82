package docker

import (
	"context"
	"time"

	"github.com/docker/docker/api/types"

	"sandboxd/internal/metrics"
)

// sizesLimit bounds one measuring of all: the engine reads the length of every file. Callers' own deadlines count as well.
const sizesLimit = 10 * time.Minute

// Sizes measures how much of the engine's disk the sandboxes of its instance have.
type Sizes struct{ engine *Engine }

// NewSizes gives one that asks e.
func NewSizes(e *Engine) *Sizes { return &Sizes{e} }

// Homes gives what the homes in the storage pool have, in bytes by id, which the kernel knows; none without a pool. Kinds as for Measure.
func (s *Sizes) Homes(ctx context.Context) (map[string]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	out := map[string]int64{}
	return out, s.engine.pooledSizes(ctx, out)
}

// Measure gives the sizes of all sandboxes, by id, also of those that do not run; none is woken. What the engine cannot tell is
// left out. An engine older than 23 measures all its images as well. Kinds: Unavailable, Timeout.
func (s *Sizes) Measure(ctx context.Context) (map[string]metrics.Size, error) {
	e := s.engine
	ctx, cancel := context.WithTimeout(ctx, sizesLimit)
	defer cancel()
	used, err := e.client.Load().DiskUsage(ctx, types.DiskUsageOptions{Types: []types.DiskUsageObject{types.ContainerObject, types.VolumeObject}})
	if err != nil {
		return nil, classify(err, "measure what its containers have on disk")
	}
	out := map[string]metrics.Size{}
	for _, v := range used.Volumes {
		if id, ours := e.idOf(v.Name, v.Labels); ours && v.UsageData != nil && v.UsageData.Size >= 0 {
			out[id] = metrics.Size{Home: v.UsageData.Size}
		}
	}
	homes, err := s.Homes(ctx)
	if err != nil {
		return nil, err
	}
	for id, bytes := range homes {
		out[id] = metrics.Size{Home: bytes}
	}
	for _, c := range used.Containers {
		id, ours := e.idOf(firstName(*c), c.Labels)
		size, known := out[id]
		switch {
		case !ours || !known:
		case c.SizeRw < 0:
			delete(out, id)
		default:
			size.Layer = c.SizeRw
			out[id] = size
		}
	}
	return out, nil
}
