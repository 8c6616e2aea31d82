package docker

import (
	"context"
	"slices"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
)

// The engine makes two networks of one name when a sandboxd is killed in the middle of making its network and the next
// one makes it too. Then the name means neither, so nothing can be started or removed by it. Every look for the network
// therefore removes duplicates.

// presence is what there is of the network.
type presence struct {
	id         string // "" when there is none
	duplicates bool   // there were several, and all but this one were removed
}

// present looks whether the network is there and leaves one of it.
func (n *sandboxNetwork) present(ctx context.Context, cli *client.Client) (presence, error) {
	if err := n.lock(ctx); err != nil {
		return presence{}, classify(err, "look at the sandboxes' network")
	}
	defer n.unlock()
	before, err := n.namesakes(ctx, cli)
	if err != nil {
		return presence{}, err
	}
	found, there, err := n.lookup(ctx, cli)
	if err != nil || !there {
		return presence{}, err
	}
	return presence{id: found.ID, duplicates: len(before) > 1}, nil
}

// lookup gives the network, if there is one, and removes its duplicates. The caller has the turn.
func (n *sandboxNetwork) lookup(ctx context.Context, cli *client.Client) (found network.Summary, there bool, err error) {
	list, err := n.namesakes(ctx, cli)
	if err != nil || len(list) == 0 {
		return network.Summary{}, false, err
	}
	kept := list[0]
	for _, other := range list {
		if other.Labels[labelInstance] != n.instance {
			return other, true, nil // a stranger's, which the caller refuses
		}
	}
	for _, other := range list[1:] {
		drop := other
		err := n.drop(ctx, cli, drop)
		if errdefs.IsPermissionDenied(err) { // running sandboxes are on it, so the one before goes
			drop, kept = kept, other
			err = n.drop(ctx, cli, drop)
		}
		if err != nil {
			return network.Summary{}, false, classify(err, "remove the duplicate of the sandboxes' network")
		}
	}
	return kept, true, nil
}

// namesakes lists the networks that have the name of the sandboxes' network, the oldest first.
func (n *sandboxNetwork) namesakes(ctx context.Context, cli *client.Client) ([]network.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	list, err := cli.NetworkList(ctx, network.ListOptions{Filters: filters.NewArgs(filters.Arg("name", n.name))})
	if err != nil {
		return nil, classify(err, "list its networks")
	}
	list = slices.DeleteFunc(list, func(found network.Summary) bool { return found.Name != n.name }) // the filter takes parts of names, too
	slices.SortFunc(list, func(a, b network.Summary) int { return a.Created.Compare(b.Created) })
	return list, nil
}

// drop removes one network of ours by its id; one that is gone is no error. A stranger's of the same name stays.
func (n *sandboxNetwork) drop(ctx context.Context, cli *client.Client, found network.Summary) error {
	if found.Labels[labelInstance] != n.instance {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if err := cli.NetworkRemove(ctx, found.ID); !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}
