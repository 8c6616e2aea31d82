package docker

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/metrics"
)

const netDev = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     999       9    0    0    0     0          0         0      999       9    0    0    0     0       0          0
  eth0:    1000       5    0    0    0     0          0         0     2000       6    0    0    0     0       0          0
  eth1: 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0
`

// fakeProcess is the first process of a container.
func fakeProcess(t *testing.T, k kernel, pid int, groups string) {
	t.Helper()
	folder := filepath.Join(k.proc, strconv.Itoa(pid))
	put(t, filepath.Join(folder, "cgroup"), groups)
	put(t, filepath.Join(folder, "net/dev"), netDev)
}

func TestGroups_ReadsCgroupV2(t *testing.T) {
	k := kernel{proc: t.TempDir(), cgroup: t.TempDir()}
	at := filepath.Join(k.cgroup, "system.slice/docker-"+containerID+".scope")
	for name, text := range map[string]string{
		"cpu.stat":       "usage_usec 1500000\nuser_usec 1\nnr_throttled 2\nthrottled_usec 250000\n",
		"memory.current": "1000\n", "memory.stat": "anon 100\nfile 700\ninactive_file 300\n", "memory.max": "4096\n",
		"memory.events": "low 0\nhigh 0\nmax 3\noom 2\noom_kill 1\n", "pids.current": "12\n",
		"io.stat": "8:0 rbytes=10 wbytes=20 rios=1 wios=1 dbytes=0 dios=0\n8:16 rbytes=1 wbytes=2\n",
	} {
		put(t, filepath.Join(at, name), text)
	}
	fakeProcess(t, k, 42, "0::/system.slice/docker-"+containerID+".scope/init\n")
	folder, err := k.groupIn(groupTree{file: "cpu.stat"}, containerID, 42)
	if err != nil || folder != at {
		t.Fatalf("%s %v", folder, err)
	}
	g := &Groups{kernel: k}
	p := place{containerID, 42, groupFolders{v2: true, cpu: folder, memory: folder, blkio: folder, pids: folder}}
	got, ok := g.usage(p)
	want := metrics.Usage{CPU: 1500 * time.Millisecond, Throttled: 250 * time.Millisecond, Memory: 700, Cache: 700, MemoryLimit: 4096,
		NetworkRx: 1001, NetworkTx: 2002, DiskRead: 11, DiskWrite: 22, Processes: 12, OOMKills: 1}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("%v\n%s", ok, diff)
	}
	put(t, filepath.Join(at, "memory.max"), "max\n")
	for _, gone := range []string{"io.stat", "memory.events", "pids.current"} { // of controllers that are not there
		if err := os.Remove(filepath.Join(at, gone)); err != nil {
			t.Fatal(err)
		}
	}
	if got, ok := g.usage(p); !ok || got.MemoryLimit != 0 || got.CPU == 0 {
		t.Errorf("%v %+v", ok, got)
	}
	if !g.still(p) {
		t.Error("the process is there")
	}
	fakeProcess(t, k, 42, "0::/user.slice\n") // its number has passed to another
	if g.still(p) {
		t.Error("another process is taken for it")
	}
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	if _, ok := g.usage(p); ok {
		t.Error("a group that is gone has figures")
	}
}

func TestGroups_ReadsCgroupV1(t *testing.T) {
	k := kernel{proc: t.TempDir(), cgroup: t.TempDir()}
	id := "/docker/" + containerID
	for name, text := range map[string]string{
		"cpuacct" + id + "/cpuacct.usage": "1500000000\n", "cpuacct" + id + "/cgroup.procs": "",
		"cpu" + id + "/cpu.stat": "nr_periods 1\nnr_throttled 2\nthrottled_time 250000000\n", "cpu" + id + "/cgroup.procs": "",
		"memory" + id + "/memory.usage_in_bytes": "1000\n", "memory" + id + "/cgroup.procs": "",
		"memory" + id + "/memory.stat":                    "cache 1\nhierarchical_memory_limit 9223372036854771712\ntotal_cache 700\ntotal_inactive_file 300\n",
		"memory" + id + "/memory.oom_control":             "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
		"blkio" + id + "/cgroup.procs":                    "",
		"blkio" + id + "/blkio.throttle.io_service_bytes": "8:0 Read 10\n8:0 Write 20\n8:0 Sync 30\n8:0 Total 30\n8:16 Read 1\nTotal 31\n",
		"pids" + id + "/pids.current":                     "12\n", "pids" + id + "/cgroup.procs": "",
	} {
		put(t, filepath.Join(k.cgroup, name), text)
	}
	fakeProcess(t, k, 42, "9:pids:"+id+"\n8:blkio:"+id+"\n7:memory:"+id+"\n4:cpu,cpuacct:"+id+"\n0::/\n")
	var f groupFolders
	for controller, folder := range map[string]*string{"cpuacct": &f.cpu, "cpu": &f.throttle, "memory": &f.memory, "blkio": &f.blkio, "pids": &f.pids} {
		var err error
		if *folder, err = k.groupIn(groupTree{controller, "cgroup.procs"}, containerID, 42); err != nil {
			t.Fatal(controller, err)
		}
	}
	got, ok := (&Groups{kernel: k}).usage(place{containerID, 42, f})
	want := metrics.Usage{CPU: 1500 * time.Millisecond, Throttled: 250 * time.Millisecond, Memory: 700, Cache: 700,
		NetworkRx: 1001, NetworkTx: 2002, DiskRead: 11, DiskWrite: 20, Processes: 12, OOMKills: 1}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("%v\n%s", ok, diff)
	}
}
