package metrics

import (
	"context"
	"runtime"
	"time"
)

// recentStep is the step of what Recent gives.
const recentStep = 30 * time.Second

// Recent gives the last FineLife of a sandbox that runs, or of the host, from memory: one point for each 30 seconds, oldest
// first. It gives none for one that rests.
func (r *Recorder) Recent(id string) []Point {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tracks[id]
	if t == nil || id != HostID && !t.asked() || len(t.fine) == 0 {
		return nil
	}
	now := time.Now().Round(0)
	b := newBuckets(stretch{now.Add(-FineLife).Truncate(recentStep).Add(recentStep), now, recentStep})
	for _, s := range t.fine {
		b.put(s, s.from+s.took, b.since.UnixNano(), now.UnixNano())
	}
	return b.points([]Change{{State: t.state}})
}

// Latest gives what a sandbox that runs, or the host, used between the last two readings; false when there were none yet.
func (r *Recorder) Latest(id string) (Point, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tracks[id]
	if t == nil || id != HostID && !t.asked() || len(t.fine) == 0 {
		return Point{}, false
	}
	n := len(t.fine)
	return t.fine[(t.next+n-1)%n].point(t.state), true
}

// OOMKills counts the processes of a sandbox that were killed for want of memory since sandboxd was started, as far as it was measured.
func (r *Recorder) OOMKills(id string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tracks[id]; t != nil {
		return t.kills
	}
	return 0
}

// latestAge is how old the host's last reading may be to be its use of now.
const latestAge = time.Minute

// Host gives what the host has and uses now. Its fields are 0 where they cannot be told.
func (r *Recorder) Host(ctx context.Context) (Host, error) {
	h := Host{Cores: runtime.NumCPU()}
	if r.c.HostNow != nil {
		var err error
		if h, err = r.c.HostNow(ctx); err != nil {
			return Host{}, err
		}
	}
	h.Time = time.Now().Round(0)
	if p, ok := r.Latest(HostID); ok && h.Time.Sub(p.Time) < latestAge {
		h.CPU, h.NetworkRx, h.NetworkTx, h.DiskRead, h.DiskWrite = p.CPU, p.NetworkRx, p.NetworkTx, p.DiskRead, p.DiskWrite
	}
	return h, nil
}
