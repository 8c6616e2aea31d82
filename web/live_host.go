package web

import (
	"context"
	"math"
	"strconv"

	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// hostNow is what the host has and uses now.
func (s *hostHandlers) hostNow(ctx context.Context) views.HostNow {
	h, err := s.cfg.Metrics.Host(ctx)
	if err != nil { // the rest of the page is of use without
		s.log.Warn("read the host's figures", "err", err)
		return views.HostNow{Problem: fault.Message(err)}
	}
	n := hostView(h)
	if s.cfg.Pool != nil {
		n.Resources = append(n.Resources, s.hostPool(ctx))
	}
	return n
}

// hostPool is what the storage pool has, beside the host's disk, which may hold it.
func (s *hostHandlers) hostPool(ctx context.Context) views.Resource {
	r := views.Resource{Name: "Storage pool", Now: unknown}
	used, size, ok := storagePool(ctx, s.Server)
	if !ok {
		return r
	}
	r.Now, r.Of, r.Note = text.Size(used), "of "+text.Size(size), text.Size(max(0, size-used))+" free"
	return full(r, used, size)
}

// storagePool gives what of the storage pool is used, and its size, in bytes. ok is false when there is none, or it cannot be read.
func storagePool(ctx context.Context, s *Server) (used, size int64, ok bool) {
	if s.cfg.Pool == nil {
		return 0, 0, false
	}
	used, size, err := s.cfg.Pool(ctx)
	if err != nil {
		s.log.Warn("read the figures of the storage pool", "err", err)
	}
	return used, size, err == nil && size > 0
}

// unknown stands for a figure that the host does not tell.
const unknown = "unknown"

func hostView(h metrics.Host) views.HostNow {
	n := views.HostNow{Resources: []views.Resource{hostCPU(h), hostMemory(h), hostSwap(h), hostDisk(h)}}
	if p := h.Pressure; p != nil {
		n.Pressure = []views.Figure{{Name: "CPU", Text: shareText(p.CPU)}, {Name: "Memory", Text: shareText(p.Memory)}, {Name: "Disk", Text: shareText(p.IO)}}
	}
	return n
}

func shareText(share float64) string { return partText(share) + " %" }

func hostCPU(h metrics.Host) views.Resource {
	r := views.Resource{Name: "CPU", Now: cores(h.CPU), Of: "of " + coresText(float64(h.Cores))}
	if h.Cores > 0 {
		r.Part = partText(h.CPU / float64(h.Cores))
		if h.CPU >= fullShare*float64(h.Cores) {
			r.Tone, r.Word = "busy", "busy"
		}
	}
	r.Note = "Load " + loadText(h.Load[0]) + " · " + loadText(h.Load[1]) + " · " + loadText(h.Load[2])
	return r
}

func loadText(n float64) string { return strconv.FormatFloat(math.Round(100*n)/100, 'f', 2, 64) }

func hostMemory(h metrics.Host) views.Resource {
	if h.MemoryTotal == 0 {
		return views.Resource{Name: "Memory", Now: unknown}
	}
	return full(views.Resource{
		Name: "Memory", Now: text.Size(h.Memory), Of: "of " + text.Size(h.MemoryTotal), Note: text.Size(max(0, h.MemoryTotal-h.Memory)) + " available",
	}, h.Memory, h.MemoryTotal)
}

func hostSwap(h metrics.Host) views.Resource {
	if h.SwapTotal == 0 {
		return views.Resource{Name: "Swap", Now: "none"}
	}
	return full(views.Resource{Name: "Swap", Now: text.Size(h.SwapUsed), Of: "of " + text.Size(h.SwapTotal)}, h.SwapUsed, h.SwapTotal)
}

func hostDisk(h metrics.Host) views.Resource {
	total := h.DiskUsed + h.DiskFree
	if total == 0 {
		return views.Resource{Name: "Disk", Now: unknown}
	}
	return full(views.Resource{
		Name: "Disk", Now: text.Size(h.DiskUsed), Of: "of " + text.Size(total), Note: text.Size(h.DiskFree) + " free",
	}, h.DiskUsed, total)
}

// full completes a resource with how much of it is used, and a word when little is left.
func full(r views.Resource, used, total int64) views.Resource {
	share := float64(used) / float64(total)
	r.Part = partText(share)
	switch {
	case share >= fullestShare:
		r.Tone, r.Word = "bad", "full"
	case share >= fullShare:
		r.Tone, r.Word = "bad", "nearly full"
	}
	return r
}

// fullestShare is the share from which nothing useful is left.
const fullestShare = 0.99

// hostPlots are the plots of the host's history.
func (s *hostHandlers) hostPlots(ctx context.Context, r *request, q useQuery) (views.Metrics, error) {
	q.span = nil // the plots have it
	url := q.url(hostPath)
	if url == hostPath {
		url += "?sort=" + q.sort // they add to a query
	}
	v := views.Metrics{Series: hostPath + "/series?", Points: hostPath + "/points", Page: url}
	var err error
	v.Range, _, err = s.metrics.rangePart(ctx, r, metrics.HostID, url)
	v.Range.Here = url
	v.Range.None = views.Still{Title: "No figures in this time", Text: "The first come a few seconds after sandboxd starts."}
	return v, err
}

// apiHostColumns gives the page's script the history that the page's address asks for.
func (s *hostHandlers) apiHostColumns(ctx context.Context, r *request, _ none) (reply, error) {
	out, err := s.metrics.columns(ctx, r, metrics.HostID)
	if err != nil {
		return reply{}, err
	}
	h, err := s.cfg.Metrics.Host(ctx)
	if err != nil { // only the limit is missing
		s.log.Warn("read the host's figures", "err", err)
	}
	out.CPULimit = float64(h.Cores)
	return reply{body: out}, nil
}

// openHostPoints follows what the host uses, for the plots of its page: an event "tick" at once and for every reading.
func (s *hostHandlers) openHostPoints(_ context.Context, r *request) (pump, func(), error) {
	if err := adminOnly.check(r.who); err != nil {
		return nil, nil, err
	}
	ticks := s.cfg.Metrics.Subscribe()
	f := &pointFeed{metrics: s.cfg.Metrics, id: metrics.HostID}
	return func(ctx context.Context, out events) error {
		err := eventJSON(out, "tick", f.tick(s.cfg.Now()))
		for err == nil {
			select {
			case <-ctx.Done():
				return nil
			case t, ok := <-ticks.C:
				if !ok {
					return nil // the page was too slow, and asks anew
				}
				err = eventJSON(out, "tick", f.tick(t.Time))
			}
		}
		return err
	}, ticks.Close, nil
}

// liveHost keeps what the host uses now up to date. The table stays as it was drawn: what moves cannot be ticked.
type liveHost struct {
	handlers *hostHandlers
	request  *request
	shown    string // print of what the page shows
	figures  bool   // there are new ones
}

func (s *hostHandlers) openLiveHost(_ context.Context, r *request) (livePage, error) {
	if err := adminOnly.check(r.who); err != nil {
		return nil, err
	}
	return &liveHost{handlers: s, request: r}, nil
}

func (l *liveHost) begin(context.Context, *parts) error { return nil } // figures come soon

func (l *liveHost) take(n news) bool {
	l.figures = l.figures || n.figures
	return n.figures
}

func (l *liveHost) tell(ctx context.Context, _ bool, out *parts) error {
	if !l.figures {
		return nil
	}
	l.figures = false
	now := l.handlers.hostNow(ctx)
	if seen := printOf(now); seen != l.shown {
		l.shown = seen
		out.add("host-now", views.Replace, views.HostNowPart(now))
	}
	return nil
}

func (l *liveHost) beside(ctx context.Context, hand func(news)) {
	tellFigures(ctx, l.handlers.Server, l.request, hand)
}
