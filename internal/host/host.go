// Package host tells what the machine that sandboxd runs on has and uses.
//
// It reads the kernel's files and changes nothing. It knows nothing of sandboxes or engines: with an engine on another
// machine its figures are still those of this one.
//
// Invariant: a figure that this kernel does not tell is left zero; only a /proc that cannot be read at all is an error.
package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
)

const (
	sectorSize = 512 // bytes, of /proc/diskstats, whatever the disk's own are
	kilobyte   = 1024
)

// Reader reads the figures. Safe for concurrent use.
type Reader struct {
	proc, sys string
	data      string
}

// New gives a reader of this machine. data is a path on the file system whose space counts.
func New(data string) *Reader { return &Reader{proc: "/proc", sys: "/sys", data: data} }

func (r *Reader) open() (procfs.FS, error) {
	fs, err := procfs.NewFS(r.proc)
	return fs, fault.Wrap(err, fault.Unavailable, "The figures of this host cannot be read: %v.", err)
}

// Usage gives what the whole host has used since it was started, and holds now. It implements what a metrics.Recorder asks for.
func (r *Reader) Usage(context.Context) (metrics.Reading, error) {
	fs, err := r.open()
	if err != nil {
		return metrics.Reading{}, err
	}
	stat, err := fs.Stat()
	if err != nil {
		return metrics.Reading{}, fault.Wrap(err, fault.Unavailable, "The figures of this host cannot be read: %v.", err)
	}
	c := stat.CPUTotal
	u := metrics.Usage{CPU: time.Duration((c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal) * float64(time.Second))}
	if m, err := fs.Meminfo(); err == nil {
		u.MemoryLimit, u.Memory, u.Cache = bytesOf(m.MemTotal), bytesOf(m.MemTotal)-bytesOf(m.MemAvailable), bytesOf(m.Cached)
	}
	u.NetworkRx, u.NetworkTx = r.network(fs)
	u.DiskRead, u.DiskWrite = r.disks()
	return metrics.Reading{Usage: u, Time: time.Now()}, nil
}

func bytesOf(kb *uint64) int64 {
	if kb == nil {
		return 0
	}
	return int64(*kb) * kilobyte
}

// network sums the interfaces that lead out of the machine: those with a device behind them. Where none has, as in a container,
// it sums all but loopback, bridges and what hangs on a bridge, which pass the same bytes on.
func (r *Reader) network(fs procfs.FS) (rx, tx int64) {
	all, err := fs.NetDev()
	if err != nil {
		return 0, 0
	}
	real, any := [2]int64{}, [2]int64{}
	found := false
	for name, n := range all {
		if name == "lo" || r.interfaceHas(name, "bridge") || r.interfaceHas(name, "brport") && !r.interfaceHas(name, "device") {
			continue
		}
		any[0], any[1] = any[0]+int64(n.RxBytes), any[1]+int64(n.TxBytes)
		if r.interfaceHas(name, "device") {
			real[0], real[1] = real[0]+int64(n.RxBytes), real[1]+int64(n.TxBytes)
			found = true
		}
	}
	if found {
		return real[0], real[1]
	}
	return any[0], any[1]
}

// interfaceHas reports whether the kernel shows a part of that name below a network interface.
func (r *Reader) interfaceHas(name, part string) bool {
	_, err := os.Stat(filepath.Join(r.sys, "class/net", name, part))
	return err == nil
}

// disks sums the disks, without their partitions and without what is made of other disks.
func (r *Reader) disks() (read, written int64) {
	fs, err := blockdevice.NewFS(r.proc, r.sys)
	if err != nil {
		return 0, 0
	}
	all, err := fs.ProcDiskstats()
	if err != nil {
		return 0, 0
	}
	for _, d := range all {
		if !r.whole(d.DeviceName) {
			continue
		}
		read += int64(d.ReadSectors) * sectorSize
		written += int64(d.WriteSectors) * sectorSize
	}
	return read, written
}

// whole reports whether a block device is a disk: it stands in /sys/block, and is none of those that store on others.
func (r *Reader) whole(name string) bool {
	for _, made := range []string{"loop", "ram", "zram", "dm-", "md", "bcache", "drbd", "zd", "sr", "fd"} {
		if strings.HasPrefix(name, made) {
			return false
		}
	}
	_, err := os.Stat(filepath.Join(r.sys, "block", name))
	return err == nil
}

// Now gives what the host has and uses at this moment, but for what takes two readings to tell.
func (r *Reader) Now(context.Context) (metrics.Host, error) {
	fs, err := r.open()
	if err != nil {
		return metrics.Host{}, err
	}
	stat, err := fs.Stat()
	if err != nil {
		return metrics.Host{}, fault.Wrap(err, fault.Unavailable, "The figures of this host cannot be read: %v.", err)
	}
	h := metrics.Host{Time: time.Now().Round(0), Cores: len(stat.CPU)}
	if m, err := fs.Meminfo(); err == nil {
		h.MemoryTotal, h.Memory = bytesOf(m.MemTotal), bytesOf(m.MemTotal)-bytesOf(m.MemAvailable)
		h.SwapTotal, h.SwapUsed = bytesOf(m.SwapTotal), bytesOf(m.SwapTotal)-bytesOf(m.SwapFree)
	}
	if l, err := fs.LoadAvg(); err == nil {
		h.Load = [3]float64{l.Load1, l.Load5, l.Load15}
	}
	h.Pressure = pressure(fs)
	var s unix.Statfs_t
	if unix.Statfs(r.data, &s) == nil {
		h.DiskUsed, h.DiskFree = int64(s.Blocks-s.Bfree)*s.Bsize, int64(s.Bavail)*s.Bsize
	}
	return h, nil
}

// pressure gives nil where the kernel does not measure it.
func pressure(fs procfs.FS) *metrics.Pressure {
	var p metrics.Pressure
	var errs error
	for resource, share := range map[string]*float64{"cpu": &p.CPU, "memory": &p.Memory, "io": &p.IO} {
		s, err := fs.PSIStatsForResource(resource)
		if err == nil && s.Some == nil {
			err = errors.New("it says nothing")
		}
		if err == nil {
			*share = s.Some.Avg10 / 100
		}
		errs = errors.Join(errs, err)
	}
	if errs != nil {
		return nil
	}
	return &p
}
