package docker

import (
	"context"

	"github.com/docker/docker/api/types/container"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

// Resize changes the limits of a container. See sandbox.Runtime. The kernel ends programs that hold more than they may, so less than they
// hold is refused before.
func (e *Engine) Resize(ctx context.Context, id string, l sandbox.Limits) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	info := e.facts.Load().info
	all := resources(l, info)
	if err := roomIn(ctx, e, id, l.Memory); err != nil {
		return err
	}
	_, err := e.client.Load().ContainerUpdate(ctx, e.resource(id), container.UpdateConfig{
		Resources: container.Resources{NanoCPUs: all.NanoCPUs, Memory: all.Memory, MemorySwap: all.MemorySwap},
	})
	return classify(err, "change the limits of the container")
}

// roomIn is a Conflict when the programs of a sandbox hold more memory than so many bytes.
func roomIn(ctx context.Context, e *Engine, id string, memory int64) error {
	now, err := e.stats(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound): // it does not run
		return nil
	case err != nil:
		return err
	}
	if pinned := held(now.MemoryStats) - lately(now.MemoryStats); pinned > memory {
		return &fault.Error{Kind: fault.Conflict, Field: "memory",
			Message: "Its programs hold " + text.Size(pinned) + " now. Choose more than that, or end some of them first."}
	}
	return nil
}
