package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
)

// machine writes the files of a kernel; a name that ends in a slash is an empty folder.
func machine(t *testing.T, files map[string]string) *Reader {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		folder := strings.HasSuffix(name, "/")
		name = filepath.Join(root, name)
		if folder {
			if err := os.MkdirAll(name, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &Reader{proc: filepath.Join(root, "proc"), sys: filepath.Join(root, "sys"), data: root}
}

var files = map[string]string{
	"proc/stat": "cpu  1000 200 300 9999 50 10 20 30 0 0\ncpu0 500 100 150 5000 25 5 10 15 0 0\ncpu1 500 100 150 4999 25 5 10 15 0 0\nbtime 1\nprocesses 9\n",
	"proc/meminfo": "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\nBuffers: 1 kB\nCached:          250 kB\n" +
		"SwapTotal:       50 kB\nSwapFree:        20 kB\n",
	"proc/loadavg": "0.50 1.25 2.00 3/400 12345\n",
	"proc/net/dev": "Inter-|   Receive                                                |  Transmit\n" +
		" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n" +
		"    lo:     9       9    0    0    0     0          0         0      9       9    0    0    0     0       0          0\n" +
		"  eth0:  1000       5    0    0    0     0          0         0   2000       6    0    0    0     0       0          0\n" +
		" veth1:    77       5    0    0    0     0          0         0     88       6    0    0    0     0       0          0\n",
	"proc/diskstats": "   8       0 sda 10 0 100 5 20 0 200 6 0 7 8\n   8       1 sda1 10 0 90 5 20 0 190 6 0 7 8\n 253       0 dm-0 10 0 100 5 20 0 200 6 0 7 8\n" +
		"   7       0 loop0 10 0 100 5 20 0 200 6 0 7 8\n",
	"sys/block/sda/size": "1", "sys/block/dm-0/size": "1", "sys/block/loop0/size": "1", "sys/class/net/eth0/device/vendor": "1",
	"proc/pressure/cpu":    "some avg10=12.50 avg60=0.00 avg300=0.00 total=1\n",
	"proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
	"proc/pressure/io":     "some avg10=50.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
}

func TestUsage_CountsCPUDisksAndTheWayOut(t *testing.T) {
	got, err := machine(t, files).Usage(t.Context())
	want := metrics.Usage{CPU: 15600 * time.Millisecond, Memory: 600 << 10, Cache: 250 << 10, MemoryLimit: 1000 << 10,
		NetworkRx: 1000, NetworkTx: 2000, DiskRead: 100 * 512, DiskWrite: 200 * 512}
	got.CPU = got.CPU.Round(time.Millisecond)
	if diff := cmp.Diff(want, got.Usage); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestUsage_WithoutADeviceAllInterfacesCount(t *testing.T) {
	inside := map[string]string{"proc/stat": files["proc/stat"], "proc/net/dev": files["proc/net/dev"]}
	got, err := machine(t, inside).Usage(t.Context())
	if err != nil || got.NetworkRx != 1077 || got.NetworkTx != 2088 || got.MemoryLimit != 0 {
		t.Errorf("%+v %v", got, err)
	}
}

func TestUsage_WithoutADeviceBridgesAreNotCountedTwice(t *testing.T) {
	inside := map[string]string{"proc/stat": files["proc/stat"],
		"proc/net/dev":                files["proc/net/dev"] + "docker0:  500       5    0    0    0     0          0         0   600       6    0    0    0     0       0          0\n",
		"sys/class/net/eth0/mtu":      "1500",
		"sys/class/net/veth1/brport/": "", "sys/class/net/docker0/bridge/": "",
	}
	got, err := machine(t, inside).Usage(t.Context())
	if err != nil || got.NetworkRx != 1000 || got.NetworkTx != 2000 {
		t.Errorf("%+v %v", got, err)
	}
}

func TestUsage_WholeDisksOfAllKindsOnce(t *testing.T) {
	stats, system := "", map[string]string{"proc/stat": files["proc/stat"]}
	for i, name := range []string{"nvme0n1", "nvme0n1p1", "vda", "mmcblk0", "md0", "zram0", "ram0", "sr0", "bcache0", "dm-1"} {
		stats += fmt.Sprintf(" 259 %d %s 1 0 %d 5 1 0 %d 6 0 7 8\n", i, name, 1<<i, 2<<i)
		if name != "nvme0n1p1" {
			system["sys/block/"+name+"/size"] = "1"
		}
	}
	system["proc/diskstats"] = stats
	got, err := machine(t, system).Usage(t.Context())
	if want := int64(1|4|8) * 512; err != nil || got.DiskRead != want || got.DiskWrite != 2*want {
		t.Errorf("read %d, written %d, want %d and twice that, %v", got.DiskRead, got.DiskWrite, want, err)
	}
}

func TestNow_TellsTheMoment(t *testing.T) {
	r := machine(t, files)
	got, err := r.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.DiskUsed <= 0 || got.DiskFree <= 0 {
		t.Errorf("disk %d used, %d free", got.DiskUsed, got.DiskFree)
	}
	got.DiskUsed, got.DiskFree, got.Time = 0, 0, time.Time{}
	want := metrics.Host{Cores: 2, Memory: 600 << 10, MemoryTotal: 1000 << 10, SwapUsed: 30 << 10, SwapTotal: 50 << 10, Load: [3]float64{0.5, 1.25, 2},
		Pressure: &metrics.Pressure{CPU: 0.125, IO: 0.5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := os.RemoveAll(filepath.Join(r.proc, "pressure")); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Now(t.Context()); err != nil || got.Pressure != nil {
		t.Errorf("%+v %v of a kernel that measures no pressure", got.Pressure, err)
	}
}

func TestReader_OfThisMachine(t *testing.T) {
	r := New(t.TempDir())
	u, err := r.Usage(t.Context())
	if err != nil || u.CPU <= 0 || u.Memory <= 0 || u.MemoryLimit <= u.Memory {
		t.Errorf("%+v %v", u, err)
	}
	h, err := r.Now(t.Context())
	if err != nil || h.Cores < 1 || h.MemoryTotal != u.MemoryLimit || h.DiskFree <= 0 {
		t.Errorf("%+v %v", h, err)
	}
}

func TestReader_WithoutProcSaysSo(t *testing.T) {
	r := &Reader{proc: filepath.Join(t.TempDir(), "none"), sys: "/sys", data: "/"}
	if _, err := r.Usage(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
	if _, err := r.Now(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
}
