package docker

import (
	"context"
	"time"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
)

// guardEvery is how often the firewall is put up again: others who change the host's rules may take it down.
const guardEvery = time.Minute

// optionBridge names a network's bridge; without it the engine takes the beginning of the network's id.
const optionBridge = "com.docker.network.bridge.name"

// bridgeID is how much of a network's id the engine takes.
const bridgeID = 12

// RunFirewall keeps the firewall up until ctx ends. It is put up besides whenever the network is made or found.
func (e *Engine) RunFirewall(ctx context.Context) error {
	tick := time.NewTicker(guardEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if err := e.network.see(ctx, e.client.Load()); err != nil && ctx.Err() == nil {
			e.c.Log.Debug("look at the sandboxes' network", "error", err) // the operation that needs the engine reports it
		}
	}
}

// guard puts the firewall up for the network that there is. A host on which that cannot be done still has sandboxes; doctor
// says what they reach. The caller has the turn.
func (n *sandboxNetwork) guard(ctx context.Context, cli *client.Client) {
	if n.firewall == nil {
		return
	}
	found, there, err := n.lookup(ctx, cli)
	if err == nil && there {
		err = n.firewall.Guard(ctx, bridgeOf(found))
	}
	if err != nil && ctx.Err() == nil {
		n.log.Warn("sandboxes are not kept off this host", "error", err)
	}
}

// unguard takes the firewall down when the network is gone.
func (n *sandboxNetwork) unguard(ctx context.Context) {
	if n.firewall == nil {
		return
	}
	if err := n.firewall.Lift(ctx); err != nil {
		n.log.Warn("rules of the removed network", "error", err)
	}
}

func bridgeOf(found network.Summary) string {
	if name := found.Options[optionBridge]; name != "" {
		return name
	}
	return "br-" + found.ID[:min(bridgeID, len(found.ID))]
}
