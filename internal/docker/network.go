package docker

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"

	"sandboxd/internal/fault"
)

// optionApart is the bridge option that keeps containers on one network from reaching each other, when "false".
const optionApart = "com.docker.network.bridge.enable_icc"

// sandboxNetwork is the one network of an instance. It is made when the first sandbox needs it and removed with the
// last one. It knows which address belongs to which sandbox, from a sandbox's create until its remove.
type sandboxNetwork struct {
	name     string
	instance string
	wanted   netip.Prefix // configured; zero for any
	firewall Firewall     // may be nil
	log      *slog.Logger
	turn     chan struct{} // holds one token while the network is being looked up, made or removed

	mu     sync.Mutex
	there  bool // the network was there when last looked at, and nobody is removing it
	plan   plan // of the network, or of the last one there was
	held   map[string]netip.Addr
	used   map[netip.Addr]string
	cursor uint32
}

func newNetwork(c Config) (*sandboxNetwork, error) {
	wanted, err := parseSubnet(c.Subnet)
	if err != nil {
		return nil, err
	}
	return &sandboxNetwork{
		name: NetworkName(c.Instance), instance: c.Instance, wanted: wanted, firewall: c.Firewall, log: c.Log, turn: make(chan struct{}, 1),
		held: map[string]netip.Addr{}, used: map[netip.Addr]string{}, cursor: anywhere(),
	}, nil
}

// hold gives id its address, the one it has if it has one, and sees that the network is there. The network stays until
// release.
func (n *sandboxNetwork) hold(ctx context.Context, cli *client.Client, id string) (netip.Addr, error) {
	for {
		if addr, there, err := n.take(id); there || err != nil {
			return addr, err
		}
		if err := n.ensure(ctx, cli); err != nil {
			return netip.Addr{}, err
		}
	}
}

// take reserves id's address; there is false when the network has to be seen to first.
func (n *sandboxNetwork) take(id string) (addr netip.Addr, there bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.there {
		return addr, false, nil
	}
	if addr = n.held[id]; addr.IsValid() && n.plan.subnet.Contains(addr) {
		return addr, true, nil
	}
	delete(n.used, addr)
	addr, ok := n.plan.pick(&n.cursor, func(a netip.Addr) bool { return n.used[a] != "" })
	if !ok {
		return addr, true, fault.New(fault.Unavailable, "The network %s has no free address left. Delete sandboxes, or choose a larger --subnet.", n.plan.subnet)
	}
	n.held[id], n.used[addr] = addr, id
	return addr, true, nil
}

// adopt notes the address of a container that was found on the engine.
func (n *sandboxNetwork) adopt(id, address string) {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.used[addr] == "" {
		delete(n.used, n.held[id])
		n.held[id], n.used[addr] = addr, id
	}
}

// forget makes the next hold look whether the network is there.
func (n *sandboxNetwork) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.there = false
}

// release gives id's address back, and reports whether no sandbox needs the network any more.
func (n *sandboxNetwork) release(id string) (last bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.used, n.held[id])
	delete(n.held, id)
	return len(n.held) == 0
}

// unused reports whether the network is there and no sandbox needs it.
func (n *sandboxNetwork) unused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.there && len(n.held) == 0
}

// removeUnused removes the network if still no sandbox needs it.
func (n *sandboxNetwork) removeUnused(ctx context.Context, cli *client.Client) error {
	if err := n.lock(ctx); err != nil {
		return err
	}
	defer n.unlock()
	return n.remove(ctx, cli)
}

// remove removes the network unless a sandbox has taken hold of it meanwhile. The caller has the turn, so that a
// create that comes now waits until the network is gone, and makes it anew.
func (n *sandboxNetwork) remove(ctx context.Context, cli *client.Client) error {
	n.mu.Lock()
	if len(n.held) > 0 {
		n.mu.Unlock()
		return nil
	}
	n.there = false
	n.mu.Unlock()
	list, err := n.namesakes(ctx, cli)
	for _, found := range list {
		err = n.drop(ctx, cli, found)
		if errdefs.IsPermissionDenied(err) {
			err = nil // a foreign container is on it, or the engine counts one that is gone (20.10, until it is restarted)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		n.unguard(ctx)
	}
	return classify(err, "remove the sandboxes' network")
}

func (n *sandboxNetwork) lock(ctx context.Context) error {
	select {
	case n.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *sandboxNetwork) unlock() { <-n.turn }

// ensure finds the network, or makes it.
func (n *sandboxNetwork) ensure(ctx context.Context, cli *client.Client) error {
	if err := n.lock(ctx); err != nil {
		return classify(err, "make the sandboxes' network")
	}
	defer n.unlock()
	n.mu.Lock()
	there, last := n.there, n.plan.subnet
	n.mu.Unlock()
	if there {
		return nil
	}
	subnet, err := n.find(ctx, cli)
	if err == nil && !subnet.IsValid() {
		subnet, err = n.make(ctx, cli, last)
	}
	if err != nil {
		return err
	}
	n.settle(ctx, cli, subnet)
	return nil
}

// settle notes that the network is there, and guards it.
func (n *sandboxNetwork) settle(ctx context.Context, cli *client.Client, subnet netip.Prefix) {
	n.guard(ctx, cli)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.there, n.plan = true, planFor(subnet)
}

// see looks whether the network is there, and makes nothing.
func (n *sandboxNetwork) see(ctx context.Context, cli *client.Client) error {
	if err := n.lock(ctx); err != nil {
		return classify(err, "list its networks")
	}
	defer n.unlock()
	subnet, err := n.find(ctx, cli)
	if err == nil && subnet.IsValid() {
		n.settle(ctx, cli, subnet)
	}
	return err
}

// find looks for the network; the zero Prefix means that there is none. The caller has the turn.
func (n *sandboxNetwork) find(ctx context.Context, cli *client.Client) (netip.Prefix, error) {
	found, there, err := n.lookup(ctx, cli)
	if err != nil || !there {
		return netip.Prefix{}, err
	}
	p, ok := subnetOf(found)
	if !ok || found.Labels[labelInstance] != n.instance || found.Options[optionApart] != "false" {
		return netip.Prefix{}, fault.New(fault.Invalid, "The engine's network %s is not as sandboxd makes it, so sandboxes on it might not be kept apart. Remove it.", n.name)
	}
	return p, nil
}

// subnetOf gives the one IPv4 subnet of a network of ours.
func subnetOf(found network.Summary) (netip.Prefix, bool) {
	if len(found.IPAM.Config) != 1 {
		return netip.Prefix{}, false
	}
	p, err := netip.ParsePrefix(found.IPAM.Config[0].Subnet)
	return p, err == nil && p.Addr().Is4() && p.Bits() <= smallestSubnet
}

// make makes the network on the first subnet that is free.
func (n *sandboxNetwork) make(ctx context.Context, cli *client.Client, last netip.Prefix) (netip.Prefix, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	taken, err := n.taken(ctx, cli)
	if err != nil {
		return netip.Prefix{}, err
	}
	err = fault.New(fault.Unavailable, "No network between 10.%d.0.0/16 and 10.%d.0.0/16 is free for the sandboxes. Choose one with --subnet.", firstAuto, lastAuto)
	for _, subnet := range candidates(n.wanted, last, taken) {
		_, err = cli.NetworkCreate(ctx, n.name, n.options(planFor(subnet)))
		switch {
		case err == nil:
			return subnet, nil
		case errdefs.IsConflict(err):
			return n.find(ctx, cli)
		case !errdefs.IsPermissionDenied(err) && !errdefs.IsInvalidArgument(err):
			return netip.Prefix{}, refused(err, "make the sandboxes' network")
		} // else another process took that subnet first: try the next one
	}
	return netip.Prefix{}, refused(err, "make the sandboxes' network")
}

func (n *sandboxNetwork) options(p plan) network.CreateOptions {
	return network.CreateOptions{
		Driver:  "bridge",
		IPAM:    &network.IPAM{Config: []network.IPAMConfig{{Subnet: p.subnet.String(), IPRange: p.others.String(), Gateway: p.gateway.String()}}},
		Options: map[string]string{optionApart: "false"},
		Labels:  map[string]string{labelInstance: n.instance},
	}
}

// taken gives the subnets that other networks of the engine, and routes of this host, use.
func (n *sandboxNetwork) taken(ctx context.Context, cli *client.Client) ([]netip.Prefix, error) {
	list, err := cli.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return nil, classify(err, "list its networks")
	}
	var out []netip.Prefix
	for _, found := range list {
		for _, c := range found.IPAM.Config {
			if p, err := netip.ParsePrefix(c.Subnet); err == nil {
				out = append(out, p)
			}
		}
	}
	routes, err := hostRoutes()
	if err != nil {
		return out, nil // not a Linux host, or no /proc: the engine refuses what overlaps with its own networks anyway
	}
	return slices.Concat(out, routes), nil
}
