package docker

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/docker/docker/api/types"

	"sandboxd/internal/metrics"
)

// sizesLimit bounds one measuring of all: the engine reads the length of every file. Callers' own deadlines count as well.
const sizesLimit = 10 * time.Minute

// Sizes measures how much of the engine's disk the sandboxes and volumes of its instance have.
type Sizes struct {
	engine *Engine

	mu      sync.Mutex
	volumes map[string]int64 // bytes by id
}

// NewSizes gives one that asks e.
func NewSizes(e *Engine) *Sizes { return &Sizes{engine: e, volumes: map[string]int64{}} }

// Volumes gives the sizes of volumes, in bytes by id, as Measure and Homes have found them last. It answers from memory.
func (s *Sizes) Volumes() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.volumes)
}

// noteVolumes takes in what was measured: all that there are, or some of them.
func (s *Sizes) noteVolumes(found map[string]int64, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all {
		clear(s.volumes)
	}
	maps.Copy(s.volumes, found)
}

// Homes gives what the homes in the storage pool have, in bytes by id, which the kernel knows; none without a pool. It notes the same of
// volumes. Kinds as for Measure.
func (s *Sizes) Homes(ctx context.Context) (map[string]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	out, volumes := map[string]int64{}, map[string]int64{}
	if err := s.engine.pooledVolumeSizes(ctx, volumes); err != nil {
		return out, err
	}
	s.noteVolumes(volumes, false)
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
	out, volumes := map[string]metrics.Size{}, map[string]int64{}
	for _, v := range used.Volumes {
		if v.UsageData == nil || v.UsageData.Size < 0 {
			continue
		}
		if id, ours := e.idOf(v.Name, v.Labels); ours {
			out[id] = metrics.Size{Home: v.UsageData.Size}
		} else if id, is, ours := e.parseVolume(v.Name); ours && is == partVolume {
			volumes[id] = v.UsageData.Size
		}
	}
	s.noteVolumes(volumes, true)
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
