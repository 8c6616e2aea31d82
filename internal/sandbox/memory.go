package sandbox

import (
	"context"

	"sandboxd/internal/fault"
)

// keepsMemory is a Conflict when the memory of s cannot be kept.
func (k *keeper) keepsMemory(ctx context.Context, s Sandbox) error {
	if k.checkpoints == nil || k.rester.freezer == nil {
		return fault.New(fault.Conflict, "The memory of sandboxes cannot be kept on this host.")
	}
	if why := k.checkpoints.CheckpointSupport(ctx); why != "" {
		return fault.New(fault.Conflict, "The memory of sandboxes cannot be kept on this host: %s", why)
	}
	if s.State != Running && s.State != Frozen {
		return fault.New(fault.Conflict, "%s is %s: nothing is in its memory. Start it, or take a snapshot without memory.", s.Name, s.State)
	}
	return nil
}

// hangUp ends the connection of a guest until it is expected again.
func (k *keeper) hangUp(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, hangUpLimit)
	defer cancel()
	return k.containers.guests.HangUp(ctx, id)
}

// startFrom starts s, which is as the snapshot that it is reverted to, with the memory of that. When that fails it is started without, and its
// Problem says so.
func (k *keeper) startFrom(ctx context.Context, s Sandbox) error {
	err := k.wakeFrom(ctx, s)
	if err == nil {
		_, err = k.set(ctx, s, Running, "")
		return err
	}
	if k.life.Err() != nil { // the next Run reverts it again
		return err
	}
	k.log.Warn("sandbox is started without the memory of its snapshot", "sandbox", s.Name, "error", err)
	why := "Its files are those of the snapshot, but its memory could not be brought back, so its programs were started anew: " + clean(fault.Message(err))
	if err := k.containers.stopContainer(ctx, s); err != nil {
		return err
	}
	if err := k.containers.recreate(ctx, s); err != nil { // engines may refuse to start one with which that has failed
		return err
	}
	if s, err = k.containers.finishStart(ctx, s, Running); err == nil && s.State == Running {
		_, err = k.set(ctx, s, Running, why)
	}
	return err
}

// wakeFrom starts the container of s with a memory, and waits for its guest.
func (k *keeper) wakeFrom(ctx context.Context, s Sandbox) error {
	if k.checkpoints == nil {
		return fault.New(fault.Conflict, "The memory of sandboxes cannot be kept on this host.")
	}
	err := k.settings.expect(s)
	if err == nil {
		k.report(s, Progress{Phase: PhaseStart})
		k.settings.keepLimit(ctx, s)
		starting, cancel := context.WithTimeout(ctx, memoryLimit)
		err = k.checkpoints.StartFrom(starting, s.ID, s.Revert.Snapshot)
		cancel()
	}
	if err == nil {
		err = k.containers.awaitReady(ctx, s)
	}
	return err
}
