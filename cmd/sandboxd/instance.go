package main

import (
	"context"
	"errors"
	"net"
	"syscall"

	"sandboxd/internal/fault"
)

// claimInstance keeps a second server of one instance off this machine, as a restore into another data folder makes one: both would take the same
// containers and repositories for theirs. It holds a socket that has a name and no file, which the kernel forgets with the process. Conflict
// when another process has it. Containers have sockets of their own, so it does not see a server in another one.
func claimInstance(ctx context.Context, instance string) (release func() error, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", "@sandboxd-"+instance)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fault.Wrap(err, fault.Conflict, "Another sandboxd on this machine, with another data folder, is the same server (instance %s): one of them was restored or copied from the other. "+
			"Stop the old one for good, and start this one again.", instance)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The instance %s cannot be claimed on this machine: %v.", instance, err)
	}
	return l.Close, nil
}
