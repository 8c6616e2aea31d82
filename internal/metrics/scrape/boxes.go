package scrape

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandboxd/internal/event"
	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
)

// Sandboxes is what is asked of sandbox.Manager.
type Sandboxes interface {
	List(ctx context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error)
	Subscribe() *event.Subscription[sandbox.Event]
}

// Figures is what is asked of metrics.Recorder and metrics.Sizer. It answers from memory.
type Figures interface {
	// Latest gives the newest point of a sandbox; ok is false when there is none.
	Latest(id string) (p metrics.Point, ok bool)
	Subscribe() *event.Subscription[metrics.Tick]
	// Size gives the size of a sandbox and when it was measured; ok is false when it was not yet.
	Size(id string) (size metrics.Size, at time.Time, ok bool)
}

// maxNamed is how many sandboxes have series of their own. Each has nine.
const maxNamed = 500

// others is the label of all further sandboxes together. It cannot be a name.
const others = "_other"

// states are all that a sandbox may have.
var states = []sandbox.State{sandbox.Creating, sandbox.Starting, sandbox.Running, sandbox.Stopping, sandbox.Stopped, sandbox.Frozen,
	sandbox.Sleeping, sandbox.Asleep, sandbox.Failed, sandbox.Deleting, sandbox.Capturing, sandbox.Restoring}

// boxes follows the sandboxes that there are, and sums up what they use.
type boxes struct {
	mu       sync.Mutex
	byID     map[string]*box
	measured bool // there are figures of their use
	named    int
	rest     use // counters of those without a name of their own, also of deleted ones
}

// box is one sandbox.
type box struct {
	name  string
	named bool // it has series of its own
	state sandbox.State
	use   use // counters
	last  metrics.Point
	size  metrics.Size
	sized bool // size is known
}

// use is what was used since the beginning.
type use struct {
	cpu, rx, tx, read, written float64
}

func newBoxes() *boxes { return &boxes{byID: map[string]*box{}} }

// relisten is the pause before the sandboxes are listed again, after that has failed.
const relisten = 5 * time.Second

// Run follows sandboxes and their use until ctx ends. f is nil when their use is not measured.
func (b *boxes) Run(ctx context.Context, s Sandboxes, f Figures) error {
	for ctx.Err() == nil {
		if b.follow(ctx, s, f) != nil {
			select {
			case <-time.After(relisten):
			case <-ctx.Done():
			}
		}
	}
	return nil
}

// follow lists the sandboxes and notes changes, until ctx ends or it has missed some.
func (b *boxes) follow(ctx context.Context, s Sandboxes, f Figures) error {
	changes := s.Subscribe()
	defer changes.Close()
	rows, _, err := s.List(ctx, sandbox.Filter{})
	if err != nil {
		return err
	}
	b.reset(rows, f != nil)
	var ticks <-chan *metrics.Tick
	if f != nil {
		read := f.Subscribe()
		defer read.Close()
		ticks = read.C
	}
	for {
		select {
		case e, open := <-changes.C:
			if !open {
				return nil
			}
			b.note(*e)
		case _, open := <-ticks:
			if !open {
				return nil
			}
			b.read(f)
		case <-ctx.Done():
			return nil
		}
	}
}

// reset takes the rows for all that there is.
func (b *boxes) reset(rows []sandbox.Sandbox, measured bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.measured = measured
	there := make(map[string]bool, len(rows))
	for _, s := range rows {
		there[s.ID] = true
	}
	for id := range b.byID {
		if !there[id] {
			b.drop(id)
		}
	}
	for _, s := range rows {
		b.put(s)
	}
}

func (b *boxes) note(e sandbox.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.Deleted {
		b.drop(e.Sandbox.ID)
		return
	}
	b.put(e.Sandbox)
}

// put notes the row of a sandbox. It needs mu.
func (b *boxes) put(s sandbox.Sandbox) {
	one := b.byID[s.ID]
	if one == nil {
		one = &box{name: s.Name}
		b.byID[s.ID] = one
	}
	one.state = s.State
	if !one.named && b.named < maxNamed {
		one.named = true
		b.named++
	}
}

// drop forgets a sandbox. It needs mu.
func (b *boxes) drop(id string) {
	if one := b.byID[id]; one != nil && one.named {
		b.named--
	}
	delete(b.byID, id)
}

// read adds what sandboxes have used since the last time.
func (b *boxes) read(f Figures) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, one := range b.byID {
		one.size, _, one.sized = f.Size(id)
		p, known := f.Latest(id)
		if !known || p.Time.Before(one.last.Time) {
			continue
		}
		more := used(p)
		if p.Time.Equal(one.last.Time) { // the point has grown
			more = more.since(used(one.last))
		}
		one.last = p
		if one.named {
			one.use.add(more)
		} else {
			b.rest.add(more)
		}
	}
}

// used is what was used within a point.
func used(p metrics.Point) use {
	if p.Measured <= 0 {
		return use{}
	}
	return use{
		cpu: p.CPU * p.Measured.Seconds(), rx: float64(p.NetworkRx), tx: float64(p.NetworkTx),
		read: float64(p.DiskRead), written: float64(p.DiskWrite),
	}
}

// since is what u has more than v. Counters never fall.
func (u use) since(v use) use {
	return use{cpu: max(u.cpu-v.cpu, 0), rx: max(u.rx-v.rx, 0), tx: max(u.tx-v.tx, 0),
		read: max(u.read-v.read, 0), written: max(u.written-v.written, 0)}
}

func (u *use) add(v use) {
	u.cpu += max(v.cpu, 0)
	u.rx += max(v.rx, 0)
	u.tx += max(v.tx, 0)
	u.read += max(v.read, 0)
	u.written += max(v.written, 0)
}

// The descriptions of what is collected of sandboxes.
var (
	descStates  = desc("sandboxes", "Sandboxes by state.", "state")
	descCPU     = desc("sandbox_cpu_seconds_total", "CPU time that a sandbox has used.", "sandbox")
	descMemory  = desc("sandbox_memory_bytes", "Memory that a running sandbox holds (the working set).", "sandbox")
	descLimit   = desc("sandbox_memory_limit_bytes", "Memory that a running sandbox may hold.", "sandbox")
	descRx      = desc("sandbox_network_receive_bytes_total", "Bytes that a sandbox has received.", "sandbox")
	descTx      = desc("sandbox_network_transmit_bytes_total", "Bytes that a sandbox has sent.", "sandbox")
	descRead    = desc("sandbox_disk_read_bytes_total", "Bytes that a sandbox has read from disk.", "sandbox")
	descWritten = desc("sandbox_disk_written_bytes_total", "Bytes that a sandbox has written to disk.", "sandbox")
	descHome    = desc("sandbox_home_bytes", "Size of a sandbox's home.", "sandbox")
	descLayer   = desc("sandbox_layer_bytes", "Size of a sandbox's writable layer.", "sandbox")
)

func desc(name, help, label string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, []string{label}, nil)
}

// Describe implements prometheus.Collector.
func (b *boxes) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descStates, descCPU, descMemory, descLimit, descRx, descTx, descRead, descWritten, descHome, descLayer} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (b *boxes) Collect(out chan<- prometheus.Metric) {
	for _, m := range b.present() {
		out <- m
	}
}

// present gives the figures of now.
func (b *boxes) present() []prometheus.Metric {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := &gathered{}
	count := make(map[sandbox.State]int, len(states))
	var memory, limit int64
	var rest metrics.Size
	shown := map[string]bool{} // a name may have changed hands a moment ago
	for _, one := range b.byID {
		count[one.state]++
		switch {
		case !b.measured:
		case one.named && !shown[one.name]:
			shown[one.name] = true
			g.used(one.name, one.use)
			if one.runs() {
				g.holds(one.name, one.last.Memory, one.last.MemoryLimit)
			}
			if one.sized {
				g.stores(one.name, one.size)
			}
		case !one.named:
			rest.Home, rest.Layer = rest.Home+one.size.Home, rest.Layer+one.size.Layer
			if one.runs() {
				memory, limit = memory+one.last.Memory, limit+one.last.MemoryLimit
			}
		}
	}
	for _, s := range states {
		g.gauge(descStates, float64(count[s]), string(s))
	}
	if b.measured && (len(b.byID) > b.named || b.rest != use{}) {
		g.used(others, b.rest)
		g.holds(others, memory, limit)
		g.stores(others, rest)
	}
	return g.metrics
}

// runs reports whether it runs and what it holds is known. One that rests is not asked.
func (o *box) runs() bool { return o.state == sandbox.Running && o.last.Measured > 0 }

// gathered collects metrics.
type gathered struct{ metrics []prometheus.Metric }

func (g *gathered) gauge(d *prometheus.Desc, v float64, label string) {
	g.metrics = append(g.metrics, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, label))
}

func (g *gathered) counter(d *prometheus.Desc, v float64, label string) {
	g.metrics = append(g.metrics, prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, label))
}

func (g *gathered) used(name string, u use) {
	g.counter(descCPU, u.cpu, name)
	g.counter(descRx, u.rx, name)
	g.counter(descTx, u.tx, name)
	g.counter(descRead, u.read, name)
	g.counter(descWritten, u.written, name)
}

func (g *gathered) holds(name string, memory, limit int64) {
	g.gauge(descMemory, float64(memory), name)
	g.gauge(descLimit, float64(limit), name)
}

func (g *gathered) stores(name string, s metrics.Size) {
	g.gauge(descHome, float64(s.Home), name)
	g.gauge(descLayer, float64(s.Layer), name)
}
