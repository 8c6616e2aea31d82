package docker

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sync/errgroup"

	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
)

// Stats reads usage from the engine's statistics. It implements metrics.Source. It works with any engine, and costs it some
// milliseconds for each sandbox. It does not tell of processes killed for want of memory.
type Stats struct{ engine *Engine }

// NewStats gives a source that asks e.
func NewStats(e *Engine) *Stats { return &Stats{e} }

// Read implements metrics.Source.
func (s *Stats) Read(ctx context.Context, ids []string) (map[string]metrics.Reading, error) {
	var mu sync.Mutex
	out := make(map[string]metrics.Reading, len(ids))
	var work errgroup.Group
	work.SetLimit(inspecting)
	for _, id := range ids {
		work.Go(func() error {
			now, err := s.engine.stats(ctx, id)
			if fault.Is(err, fault.NotFound) { // it has come to rest
				return nil
			}
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			out[id] = metrics.Reading{Usage: newMetricsUsage(now), Time: now.Read.UTC()}
			return nil
		})
	}
	err := work.Wait()
	if len(out) > 0 { // of the others there is no point this time
		return out, nil
	}
	return nil, err
}

func newMetricsUsage(s container.StatsResponse) metrics.Usage {
	u := metrics.Usage{
		CPU: time.Duration(s.CPUStats.CPUUsage.TotalUsage), Throttled: time.Duration(s.CPUStats.ThrottlingData.ThrottledTime),
		Memory: held(s.MemoryStats), Cache: int64(s.MemoryStats.Stats["file"] + s.MemoryStats.Stats["total_cache"]),
		Processes: int64(s.PidsStats.Current),
	}
	if limit := s.MemoryStats.Limit; limit < noLimit {
		u.MemoryLimit = int64(limit)
	}
	for name, n := range s.Networks {
		if name != "lo" {
			u.NetworkRx += int64(n.RxBytes)
			u.NetworkTx += int64(n.TxBytes)
		}
	}
	for _, b := range s.BlkioStats.IoServiceBytesRecursive {
		switch strings.ToLower(b.Op) { // in cgroup v1 there are totals beside these
		case "read":
			u.DiskRead += int64(b.Value)
		case "write":
			u.DiskWrite += int64(b.Value)
		}
	}
	return u
}
