package main

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
)

// maxSnapshots bounds how many a sandbox may have: each is an image on the engine, which lists them all.
const maxSnapshots = 10_000

func (c *Config) snapshotFlags(f *pflag.FlagSet) {
	f.StringVar(&c.SnapshotKeep, "snapshot-keep", "7d", `how long an automatic snapshot is kept: a duration such as "24h" or "30d"`)
	f.IntVar(&c.SnapshotAutomatic, "snapshot-automatic", 10, "automatic snapshots of a sandbox that are kept; the oldest are deleted first")
	f.IntVar(&c.SnapshotMost, "snapshot-most", 100, "snapshots that may be taken of a sandbox by hand and kept")
	f.BoolVar(&c.MemorySnapshots, "memory-snapshots", false, "experimental: offer snapshots with the memory of running programs, through CRIU")
}

// snapshotKeep gives how long an automatic snapshot is kept, and refuses bounds that are none.
func (c *Config) snapshotKeep() (time.Duration, error) {
	after, err := catalog.ParseAfter("snapshot-keep", c.SnapshotKeep)
	if err != nil || after <= 0 {
		return 0, fault.Field("snapshot-keep", "--snapshot-keep is %.40q; it must be a duration from 1s to 365d, such as \"24h\" or \"30d\".", c.SnapshotKeep)
	}
	for flag, n := range map[string]int{"snapshot-automatic": c.SnapshotAutomatic, "snapshot-most": c.SnapshotMost} {
		if n < 1 || n > maxSnapshots {
			return 0, fault.Field(flag, "--%s is %d; it must be between 1 and %d.", flag, n, maxSnapshots)
		}
	}
	return time.Duration(after), nil
}

func (a *app) newSnapshots(ctx context.Context) error {
	keep, err := a.config.snapshotKeep()
	if err != nil {
		return err
	}
	a.snapshots, err = snapshot.New(ctx, snapshot.Config{
		Store: a.db.Snapshots(), Sandboxes: a.manager, Parts: a.engine, Memories: a.engine, Keep: keep, Automatic: a.config.SnapshotAutomatic,
		Most: a.config.SnapshotMost, Failed: func(of sandbox.Sandbox, err error) { recordSnapshot(a.activity, of, err) }, Log: a.log,
	})
	if err != nil || !a.config.MemorySnapshots {
		return err
	}
	if why := a.engine.CheckpointSupport(ctx); why != "" {
		a.log.Warn("snapshots cannot have the memory of programs", "cause", why, "help", "run: sandboxd doctor --memory-snapshots --only memory-snapshots")
	}
	return nil
}

// forgetDeleted makes what deletes the snapshots of sandboxes that are deleted, and forgets their tries, until its ctx ends.
func forgetDeleted(a *app) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		sub := a.manager.Subscribe()
		defer func() { sub.Close() }()
		for {
			select {
			case e, ok := <-sub.C:
				if !ok {
					sub = a.manager.Subscribe()
					a.snapshots.Nudge() // which looks for those that were missed
				} else if e.Deleted {
					forgetSnapshotsOf(ctx, a, e.Sandbox)
					a.trials.Forget(e.Sandbox.ID)
				}
			case <-ctx.Done():
				return nil
			}
		}
	}
}

func forgetSnapshotsOf(ctx context.Context, a *app, box sandbox.Sandbox) {
	if err := a.snapshots.Forget(ctx, box.ID); err != nil && ctx.Err() == nil {
		a.log.Warn("snapshots of a deleted sandbox are not deleted yet", "sandbox", box.Name, "error", err)
	}
}
