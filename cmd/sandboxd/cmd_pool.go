package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"sandboxd/internal/btrfs"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

func newPoolCmd(c *Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pool",
		Short: "Create and grow the storage pool for homes",
		Long: `A storage pool is a btrfs file system that holds the homes of sandboxes. With it, snapshots and clones take milliseconds
whatever the size of the home, and limits on the size of a home hold. It is a file in the data folder, or a block device.

These commands need root, outside of a container, the same --data as 'sandboxd serve', and Linux 6.7 or newer with btrfs.
'sandboxd doctor --only storage-pool' says what this machine has.`,
		Example: `  sandboxd pool create 50GiB                                make one in the data folder
  sandboxd pool create --device /dev/disk/by-id/nvme-…      make one on an empty block device
  sandboxd pool grow 100GiB                                 make it larger, while sandboxes run
  sandboxd pool status                                      say how full it is`,
	}
	cmd.AddCommand(newPoolCreateCmd(c), newPoolGrowCmd(c), newPoolMountCmd(c), newPoolStatusCmd(c))
	return cmd
}

func newPoolCreateCmd(c *Config) *cobra.Command {
	var device string
	cmd := &cobra.Command{
		Use:   "create [SIZE] | create --device PATH",
		Short: "Make a storage pool, and mount it",
		Long: `create makes a storage pool in a file of the data folder, and reserves SIZE on the disk for it; or it takes all of a block
device, which must be empty. Name a device by a path that stays, such as one below /dev/disk/by-id.

Restart sandboxd afterwards. Homes of new sandboxes are in the pool from then on. A home made before moves in when a
snapshot or a backup of it is restored. The pool cannot be made smaller. At least a twentieth of the disk stays free.`,
		Example: "  sandboxd pool create 50GiB\n  sandboxd pool create --device /dev/disk/by-id/nvme-…",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return createPool(cmd.Context(), c, cmd.OutOrStdout(), args, device)
		},
	}
	cmd.Flags().StringVar(&device, "device", "", "block device that the pool takes, instead of a file")
	return cmd
}

func newPoolGrowCmd(c *Config) *cobra.Command {
	return &cobra.Command{
		Use:   "grow [SIZE]",
		Short: "Make the storage pool larger, while it is in use",
		Long: `grow makes the storage pool larger. SIZE is what it has then, not what is added. A pool on a block device takes no SIZE:
it gets as large as the device is by now. Nothing has to be stopped.`,
		Example: "  sandboxd pool grow 100GiB",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return growPool(cmd.Context(), c, cmd.OutOrStdout(), args)
		},
	}
}

func newPoolMountCmd(c *Config) *cobra.Command {
	return &cobra.Command{
		Use:   "mount",
		Short: "Mount the storage pool",
		Long: `mount mounts the storage pool at 'pool' in the data folder. 'sandboxd serve' does so itself at its start, and leaves the pool
mounted when it ends. To unmount it, stop sandboxd and all sandboxes first.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withPool(cmd.Context(), c, func(ctx context.Context, disk btrfs.Disk) error {
				return tellPool(cmd.OutOrStdout(), disk)
			})
		},
	}
}

func newPoolStatusCmd(c *Config) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say how large and how full the storage pool is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			disk, err := existingPool(c)
			if err != nil {
				return err
			}
			return tellPool(cmd.OutOrStdout(), disk)
		},
	}
}

// existingPool is NotFound when the data folder has no storage pool.
func existingPool(c *Config) (btrfs.Disk, error) {
	disk, err := poolDisk(c)
	if err != nil {
		return disk, err
	}
	has, err := disk.Exists()
	if err == nil && !has {
		err = fault.New(fault.NotFound, "There is no storage pool in the data folder %s. Make one: sandboxd pool create SIZE", c.Data)
	}
	return disk, err
}

func needRoot() error {
	if os.Geteuid() != 0 {
		return fault.New(fault.Invalid, "This takes the rights of root. Try again with sudo, and with the --data that sandboxd is served with.")
	}
	return nil
}

// withPool runs f with the mounted storage pool, while no other command changes it.
func withPool(ctx context.Context, c *Config, f func(context.Context, btrfs.Disk) error) error {
	if err := needRoot(); err != nil {
		return err
	}
	disk, err := existingPool(c)
	if err != nil {
		return err
	}
	done, err := poolTurn(ctx, c)
	if err != nil {
		return err
	}
	if err = mountPool(ctx, disk); err == nil {
		err = f(ctx, disk)
	}
	return errors.Join(err, done())
}

// createPool leaves nothing when it fails, but what it has written to a block device.
func createPool(ctx context.Context, c *Config, out io.Writer, args []string, device string) error {
	if err := needRoot(); err != nil {
		return err
	}
	if device != "" && len(args) > 0 {
		return fault.New(fault.Invalid, "The pool takes all of the device. Leave the size out.")
	}
	if err := makeData(c); err != nil {
		return err
	}
	done, err := poolTurn(ctx, c)
	if err != nil {
		return err
	}
	return errors.Join(createInTurn(ctx, c, out, args, device), done())
}

func createInTurn(ctx context.Context, c *Config, out io.Writer, args []string, device string) error {
	disk, err := poolDisk(c)
	if err != nil {
		return err
	}
	has, err := disk.Exists()
	if err != nil || has {
		return errors.Join(err, fault.New(fault.Conflict, "There is a storage pool already, on %s. Make it larger: sandboxd pool grow SIZE", disk))
	}
	if err := lostPool(disk); err != nil {
		return err
	}
	var size int64
	if device == "" {
		if size, err = poolSize(disk, args); err != nil {
			return err
		}
	} else if disk.Path, err = filepath.Abs(device); err != nil {
		return err
	}
	if err := disk.Format(ctx, size); err != nil {
		return err
	}
	if err := mountPool(ctx, disk); err != nil {
		return errors.Join(err, disk.Remove()) // a server would not start with it
	}
	if err := tellPool(out, disk); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "\nRestart sandboxd if it runs. Homes of new sandboxes are in the pool from then on.")
	return err
}

// poolSize reads the size, or says which one would do.
func poolSize(disk btrfs.Disk, args []string) (int64, error) {
	if len(args) > 0 {
		return parsePoolSize(args[0])
	}
	free, err := disk.Room()
	if err != nil {
		return 0, err
	}
	half := free / 2 >> 30 << 30
	if half == 0 {
		half = free / 2 >> 20 << 20
	}
	if half < btrfs.MinSize {
		return 0, fault.New(fault.Invalid, "Name a size, such as 50GiB. The disk has room for %s only.", text.Size(free))
	}
	return 0, fault.New(fault.Invalid, "Name a size. Half of the room on the disk would be: sandboxd pool create %s", strings.ReplaceAll(units.BytesSize(float64(half)), " ", ""))
}

func parsePoolSize(given string) (int64, error) {
	size, err := units.RAMInBytes(strings.TrimSpace(given))
	if err != nil || size <= 0 {
		return 0, fault.New(fault.Invalid, "%.40q is no size. Write it like 50GiB.", given)
	}
	return size, nil
}

func growPool(ctx context.Context, c *Config, out io.Writer, args []string) error {
	return withPool(ctx, c, func(ctx context.Context, disk btrfs.Disk) (err error) {
		var size int64
		switch {
		case disk.Path != "" && len(args) > 0:
			return fault.New(fault.Invalid, "The pool takes all of %s. Make that larger, and leave the size out.", disk)
		case disk.Path == "" && len(args) == 0:
			return fault.New(fault.Invalid, "Name the size that the pool is to have, such as 100GiB.")
		case disk.Path == "":
			if size, err = parsePoolSize(args[0]); err != nil {
				return err
			}
		}
		if err := disk.Grow(ctx, size); err != nil {
			return err
		}
		return tellPool(out, disk)
	})
}

// tellPool says what the storage pool is and has.
func tellPool(out io.Writer, disk btrfs.Disk) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "Storage pool\t%s\n", disk)
	is, err := disk.Mounted()
	if err != nil {
		return err
	}
	if !is {
		fmt.Fprintln(w, "Mounted\tno; 'sandboxd serve' and 'sandboxd pool mount' mount it")
		return w.Flush()
	}
	space, err := disk.Space()
	if err != nil {
		return err
	}
	at := disk.Dir
	if space.ReadOnly {
		at += ", read-only: the kernel's log (dmesg) says why"
	}
	used := space.Size - space.Free
	fmt.Fprintf(w, "Mounted\t%s\nSize\t%s\nUsed\t%s (%d %%)\nFree\t%s\n", at, text.Size(space.Size), text.Size(used), percentOf(used, space.Size), text.Size(space.Free))
	return w.Flush()
}

func percentOf(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return part * 100 / whole
}
