package web

import (
	"context"
	"math"
	"strconv"
	"time"

	"sandboxd/internal/metrics"
)

// columnsShape is a series as the page's script wants it: by column, in few bytes. Rates are per second of what was measured.
type columnsShape struct {
	Since    float64              `json:"since"` // Unix time in seconds, as all times here
	Until    float64              `json:"until"`
	Step     float64              `json:"step"`
	Live     bool                 `json:"live"`      // it ends now, and goes on
	CPULimit float64              `json:"cpu_limit"` // cores; 0 for none
	Time     column               `json:"time"`
	Measured column               `json:"measured"` // seconds; null where nothing was, as in the columns below
	Columns  map[string]column    `json:"columns"`
	Changes  []metricsColumnsMark `json:"changes"`
}

type metricsColumnsMark struct {
	Time  float64 `json:"time"`
	State string  `json:"state"`
	Mark  string  `json:"mark"`
}

// column is numbers, of which those that are not known are NaN, and null in JSON.
type column []float64

// MarshalJSON writes them with as many digits as a plot can show. A time has more.
func (c column) MarshalJSON() ([]byte, error) {
	const digits, times = 6, 1e9
	out := append(make([]byte, 0, 8*len(c)+2), '[')
	for i, v := range c {
		if i > 0 {
			out = append(out, ',')
		}
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			out = append(out, "null"...)
		case v == math.Trunc(v) && math.Abs(v) < 1e15:
			out = strconv.AppendInt(out, int64(v), 10)
		case v >= times:
			out = strconv.AppendFloat(out, v, 'f', 3, 64)
		default:
			out = strconv.AppendFloat(out, v, 'g', digits, 64)
		}
	}
	return append(out, ']'), nil
}

// apiColumns gives the page's script the series that the page's address asks for. It wakes nothing.
func (s *metricsHandlers) apiColumns(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	out, err := s.columns(ctx, r, h.ID())
	out.CPULimit = h.Sandbox().Spec.Limits.CPUs
	return reply{body: out}, err
}

// columns is the stretch of the history of an id that a page's address asks for.
func (s *metricsHandlers) columns(ctx context.Context, r *request, id string) (columnsShape, error) {
	now := s.cfg.Now()
	asked, err := readPageRange(r, now)
	if err != nil {
		return columnsShape{}, err
	}
	series, err := s.cfg.Metrics.Series(ctx, id, asked.Range)
	if err != nil {
		return columnsShape{}, err
	}
	out := newColumns(series)
	out.Since, out.Until, out.Live = unix(asked.Since), unix(asked.until(now)), asked.Until.IsZero()
	return out, nil
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// figuresOf are what a point has for plots, by the name of the column.
var figuresOf = map[string]func(p metrics.Point) float64{
	"cpu":    func(p metrics.Point) float64 { return p.CPU },
	"memory": func(p metrics.Point) float64 { return float64(p.Memory) },
	"cache":  func(p metrics.Point) float64 { return float64(p.Cache) },
	"limit":  func(p metrics.Point) float64 { return float64(p.MemoryLimit) },
	"rx":     func(p metrics.Point) float64 { return rateOf(p.NetworkRx, p.Measured) },
	"tx":     func(p metrics.Point) float64 { return rateOf(p.NetworkTx, p.Measured) },
	"read":   func(p metrics.Point) float64 { return rateOf(p.DiskRead, p.Measured) },
	"write":  func(p metrics.Point) float64 { return rateOf(p.DiskWrite, p.Measured) },
}

func rateOf(bytes int64, in time.Duration) float64 { return float64(bytes) / in.Seconds() }

func newColumns(s metrics.Series) columnsShape {
	out := columnsShape{Step: s.Step.Seconds(), Time: make(column, len(s.Points)), Measured: make(column, len(s.Points)),
		Columns: map[string]column{}, Changes: make([]metricsColumnsMark, 0, len(s.Changes))}
	for name := range figuresOf {
		out.Columns[name] = make(column, len(s.Points))
	}
	for i, p := range s.Points {
		out.Time[i], out.Measured[i] = unix(p.Time), measuredOf(p)
		for name, of := range figuresOf {
			out.Columns[name][i] = math.NaN()
			if p.Measured > 0 {
				out.Columns[name][i] = of(p)
			}
		}
	}
	for _, c := range s.Changes {
		out.Changes = append(out.Changes, metricsColumnsMark{unix(c.Time), string(c.State), string(c.Mark)})
	}
	return out
}

func measuredOf(p metrics.Point) float64 {
	if p.Measured <= 0 {
		return math.NaN()
	}
	return p.Measured.Seconds()
}
