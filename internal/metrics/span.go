package metrics

import (
	"time"

	"sandboxd/internal/sandbox"
)

// span is what was used in a stretch of time: between two readings, or in a bucket of a tier.
type span struct {
	from     int64 // Unix nanoseconds
	took     int64 // nanoseconds that were measured
	usage    used
	peak     held
	oomKills int32
}

// used are sums.
type used struct {
	cpu, throttled                            int64 // nanoseconds
	networkRx, networkTx, diskRead, diskWrite int64 // bytes
}

// held are the largest values seen.
type held struct {
	memory, cache, limit int64 // bytes
	processes            int32
}

// Row is a span as a Store keeps it. It is added to one that is there for the same time.
type Row struct {
	Time                                      time.Time     // when the bucket begins, a multiple of its tier's step
	Measured                                  time.Duration // the part of it that was measured
	CPU, Throttled                            time.Duration
	NetworkRx, NetworkTx, DiskRead, DiskWrite int64 // bytes
	Memory, Cache, MemoryLimit                int64 // bytes, the largest seen
	Processes, OOMKills                       int64
}

func (s span) row() Row {
	return Row{
		Time: time.Unix(0, s.from).UTC(), Measured: time.Duration(s.took), CPU: time.Duration(s.usage.cpu), Throttled: time.Duration(s.usage.throttled),
		NetworkRx: s.usage.networkRx, NetworkTx: s.usage.networkTx, DiskRead: s.usage.diskRead, DiskWrite: s.usage.diskWrite,
		Memory: s.peak.memory, Cache: s.peak.cache, MemoryLimit: s.peak.limit, Processes: int64(s.peak.processes), OOMKills: int64(s.oomKills),
	}
}

func (r Row) span() span {
	return span{
		from: r.Time.UnixNano(), took: int64(r.Measured), oomKills: int32(r.OOMKills),
		usage: used{int64(r.CPU), int64(r.Throttled), r.NetworkRx, r.NetworkTx, r.DiskRead, r.DiskWrite},
		peak:  held{r.Memory, r.Cache, r.MemoryLimit, int32(r.Processes)},
	}
}

// point gives the span as the point of a step that begins at its from.
func (s span) point(state sandbox.State) Point {
	p := Point{Time: time.Unix(0, s.from).UTC(), State: state, Measured: time.Duration(s.took)}
	if s.took <= 0 {
		return p
	}
	r := s.row()
	p.CPU, p.Throttled = float64(s.usage.cpu)/float64(s.took), r.Throttled
	p.Memory, p.Cache, p.MemoryLimit = r.Memory, r.Cache, r.MemoryLimit
	p.NetworkRx, p.NetworkTx, p.DiskRead, p.DiskWrite = r.NetworkRx, r.NetworkTx, r.DiskRead, r.DiskWrite
	p.Processes, p.OOMKills = r.Processes, r.OOMKills
	return p
}

// What is above all that can be used from one reading to the next. A source that says more tells nonsense, which must not pass the end
// of a sum.
const (
	mostBytes = 1 << 46
	mostCores = 4096
)

// maxGap is the longest time between two readings that is spread over the time between them.
const maxGap = time.Hour

// between gives what was used from one reading to the next. ok is false when they tell nothing: the later one is
// not later, or very much so.
// Where counters went back, the sandbox was started anew in between, and they count from zero.
func between(before, now Reading) (s span, ok bool) {
	took := now.Time.Sub(before.Time)
	if took <= 0 || took > maxGap {
		return span{}, false
	}
	b := before.Usage
	if now.CPU < b.CPU {
		b = Usage{}
	}
	up := func(from, to, most int64) int64 {
		if to < from { // one counter alone, such as that of a network that was put in the place of another
			from = 0
		}
		return min(max(to-from, 0), most)
	}
	return span{
		from: now.Time.Add(-took).UnixNano(), took: int64(took), oomKills: int32(up(b.OOMKills, now.OOMKills, 1<<31-1)),
		usage: used{
			up(int64(b.CPU), int64(now.CPU), mostCores*int64(took)), up(int64(b.Throttled), int64(now.Throttled), mostCores*int64(took)),
			up(b.NetworkRx, now.NetworkRx, mostBytes), up(b.NetworkTx, now.NetworkTx, mostBytes),
			up(b.DiskRead, now.DiskRead, mostBytes), up(b.DiskWrite, now.DiskWrite, mostBytes),
		},
		peak: held{now.Memory, now.Cache, now.MemoryLimit, int32(min(now.Processes, 1<<31-1))},
	}, true
}

// add merges o into s.
func (s *span) add(o span) {
	s.took += o.took
	s.oomKills += o.oomKills
	s.usage.cpu += o.usage.cpu
	s.usage.throttled += o.usage.throttled
	s.usage.networkRx += o.usage.networkRx
	s.usage.networkTx += o.usage.networkTx
	s.usage.diskRead += o.usage.diskRead
	s.usage.diskWrite += o.usage.diskWrite
	s.peak.memory = max(s.peak.memory, o.peak.memory)
	s.peak.cache = max(s.peak.cache, o.peak.cache)
	s.peak.processes = max(s.peak.processes, o.peak.processes)
	s.peak.limit = max(s.peak.limit, o.peak.limit)
}

// cut gives the part of s, which covers [from, to), that is within [since, until). Sums are shared out by time, so that the
// parts of a whole add up to it.
func (s span) cut(to, since, until int64) (part span, ok bool) {
	length := to - s.from
	begin, end := max(s.from, since), min(to, until)
	if begin >= end || length <= 0 {
		return span{}, false
	}
	if begin == s.from && end == to {
		return s, true
	}
	share := func(n int64) int64 { // of the sums up to both ends, so that no unit is lost or counted twice
		upTo := func(at int64) int64 { return int64(float64(n) * float64(at-s.from) / float64(length)) }
		return upTo(end) - upTo(begin)
	}
	part = span{from: begin, took: share(s.took), oomKills: int32(share(int64(s.oomKills))), peak: s.peak}
	u := s.usage
	part.usage = used{share(u.cpu), share(u.throttled), share(u.networkRx), share(u.networkTx), share(u.diskRead), share(u.diskWrite)}
	return part, true
}
