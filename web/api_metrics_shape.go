package web

import (
	"time"

	"sandboxd/internal/metrics"
)

// metricsShape is a stretch of history as programs see it.
type metricsShape struct {
	Step    float64              `json:"step"` // seconds
	Points  []metricsPointShape  `json:"points"`
	Changes []metricsChangeShape `json:"changes"`
}

// metricsPointShape is what was used within one step. One that was not measured has no figures.
type metricsPointShape struct {
	Time  time.Time `json:"time"`
	State string    `json:"state"` // "" when it is not known, and for the host
	*figuresShape
}

type figuresShape struct {
	CPU         float64 `json:"cpu_cores"`
	Memory      int64   `json:"memory_bytes"`
	Cache       int64   `json:"cache_bytes"`
	MemoryLimit int64   `json:"memory_limit_bytes"` // 0 for none
	NetworkRx   int64   `json:"network_rx_bytes"`
	NetworkTx   int64   `json:"network_tx_bytes"`
	DiskRead    int64   `json:"disk_read_bytes"`
	DiskWrite   int64   `json:"disk_write_bytes"`
	Processes   int64   `json:"processes"`
	Throttled   float64 `json:"throttled_seconds"`
	OOMKills    int64   `json:"oom_kills"`
}

type metricsChangeShape struct {
	Time  time.Time `json:"time"`
	State string    `json:"state"`
	Mark  string    `json:"mark"` // "" for a mere change of state
}

func newMetricsShape(s metrics.Series) metricsShape {
	out := metricsShape{Step: s.Step.Seconds(), Points: make([]metricsPointShape, 0, len(s.Points)), Changes: make([]metricsChangeShape, 0, len(s.Changes))}
	for _, p := range s.Points {
		out.Points = append(out.Points, newMetricsPointShape(p))
	}
	for _, c := range s.Changes {
		out.Changes = append(out.Changes, metricsChangeShape{Time: c.Time.UTC(), State: string(c.State), Mark: string(c.Mark)})
	}
	return out
}

func newMetricsPointShape(p metrics.Point) metricsPointShape {
	out := metricsPointShape{Time: p.Time.UTC(), State: string(p.State)}
	if p.Measured > 0 {
		out.figuresShape = &figuresShape{
			CPU: p.CPU, Memory: p.Memory, Cache: p.Cache, MemoryLimit: p.MemoryLimit,
			NetworkRx: p.NetworkRx, NetworkTx: p.NetworkTx, DiskRead: p.DiskRead, DiskWrite: p.DiskWrite,
			Processes: p.Processes, Throttled: p.Throttled.Seconds(), OOMKills: p.OOMKills,
		}
	}
	return out
}

// boxMetricsShape is a sandbox's history with its size.
type boxMetricsShape struct {
	metricsShape
	*sizedShape // nil when it was not measured yet
}

// sizedShape is metrics.Size as programs see it.
type sizedShape struct {
	Home  int64     `json:"home_bytes"`
	Layer int64     `json:"layer_bytes"`
	At    time.Time `json:"sized_at"`
}

func (s *metricsHandlers) sizeOf(id string) *sizedShape {
	size, at, ok := s.cfg.Metrics.Size(id)
	if !ok {
		return nil
	}
	return &sizedShape{Home: size.Home, Layer: size.Layer, At: at.UTC()}
}

// hostMetricsShape is the host's history with what it has and uses now.
type hostMetricsShape struct {
	metricsShape
	Now hostShape `json:"now"`
}

// hostShape is metrics.Host as programs see it. A figure that the host does not tell is 0.
type hostShape struct {
	Time        time.Time      `json:"time"`
	Cores       int            `json:"cores"`
	CPU         float64        `json:"cpu_cores"`
	Memory      int64          `json:"memory_bytes"`
	MemoryTotal int64          `json:"memory_total_bytes"`
	SwapUsed    int64          `json:"swap_used_bytes"`
	SwapTotal   int64          `json:"swap_total_bytes"`
	DiskUsed    int64          `json:"disk_used_bytes"`
	DiskFree    int64          `json:"disk_free_bytes"`
	NetworkRx   int64          `json:"network_rx_bytes"`
	NetworkTx   int64          `json:"network_tx_bytes"`
	DiskRead    int64          `json:"disk_read_bytes"`
	DiskWrite   int64          `json:"disk_write_bytes"`
	Load        [3]float64     `json:"load"`
	Pressure    *pressureShape `json:"pressure"` // null where it is not measured
	Pool        *poolShape     `json:"storage_pool"`
}

// poolShape is the storage pool, in bytes.
type poolShape struct {
	Used int64 `json:"used_bytes"`
	Size int64 `json:"size_bytes"`
}

// pressureShape is shares of the last ten seconds, 0 to 1.
type pressureShape struct {
	CPU    float64 `json:"cpu"`
	Memory float64 `json:"memory"`
	IO     float64 `json:"io"`
}

func newHostShape(h metrics.Host) hostShape {
	out := hostShape{
		Time: h.Time.UTC(), Cores: h.Cores, CPU: h.CPU, Memory: h.Memory, MemoryTotal: h.MemoryTotal, SwapUsed: h.SwapUsed, SwapTotal: h.SwapTotal,
		DiskUsed: h.DiskUsed, DiskFree: h.DiskFree, NetworkRx: h.NetworkRx, NetworkTx: h.NetworkTx, DiskRead: h.DiskRead, DiskWrite: h.DiskWrite,
		Load: h.Load,
	}
	if p := h.Pressure; p != nil {
		out.Pressure = &pressureShape{CPU: p.CPU, Memory: p.Memory, IO: p.IO}
	}
	return out
}
