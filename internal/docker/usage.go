package docker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

const (
	usageLimit  = 5 * time.Second // an engine that takes longer is overloaded; who asks does so again
	usageAnswer = 1 << 20         // bytes; an answer is a few thousand
)

// Usage gives what a running sandbox has used since its start. See sandbox.Freezer. It also works for a frozen one.
func (e *Engine) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	s, err := e.stats(ctx, id)
	if err != nil {
		return sandbox.Usage{}, err
	}
	return newUsage(s), nil
}

// stats gives the engine's statistics of a running sandbox; NotFound when it is not there or does not run.
func (e *Engine) stats(ctx context.Context, id string) (s container.StatsResponse, err error) {
	ctx, cancel := context.WithTimeout(ctx, usageLimit)
	defer cancel()
	answer, err := e.client.Load().ContainerStatsOneShot(ctx, e.resource(id))
	if errdefs.IsNotFound(err) {
		return s, fault.Wrap(err, fault.NotFound, "The container engine does not have this sandbox's container.")
	}
	if err != nil {
		return s, classify(err, "tell a container's usage")
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, usageAnswer)).Decode(&s)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return s, classify(err, "tell a container's usage")
	}
	if s.Read.IsZero() { // the engine's way to say that it does not run
		return s, fault.New(fault.NotFound, "The sandbox does not run.")
	}
	return s, nil
}

func newUsage(s container.StatsResponse) sandbox.Usage {
	u := sandbox.Usage{CPU: time.Duration(s.CPUStats.CPUUsage.TotalUsage), Memory: held(s.MemoryStats)}
	for name, n := range s.Networks {
		if name != "lo" {
			u.Network += int64(n.RxBytes + n.TxBytes)
		}
	}
	for _, b := range s.BlkioStats.IoServiceBytesRecursive { // in cgroup v1 there are totals beside these
		if op := strings.ToLower(b.Op); op == "read" || op == "write" {
			u.Disk += int64(b.Value)
		}
	}
	return u
}

// held is the memory that is in use: without the files that are cached and were not used lately.
func held(m container.MemoryStats) int64 {
	return int64(m.Usage - min(ofFiles(m, "inactive_file"), m.Usage))
}

// lately is the part of it that are cached files. The kernel gives them up when the memory is needed.
func lately(m container.MemoryStats) int64 { return int64(min(ofFiles(m, "active_file"), m.Usage)) }

// ofFiles reads a figure of the memory of a container and all groups in it, which cgroup v1 has beside its own alone.
func ofFiles(m container.MemoryStats, name string) uint64 {
	if total, v1 := m.Stats["total_"+name]; v1 {
		return total
	}
	return m.Stats[name]
}
