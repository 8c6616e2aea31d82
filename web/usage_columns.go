package web

import (
	"context"

	"sandboxd/internal/gateway"
)

// usageFigureOf are what a part of a range has for plots, by the name of the column.
var usageFigureOf = map[string]func(u gateway.Usage) float64{
	"requests": func(u gateway.Usage) float64 { return float64(u.Requests) },
	"failed":   func(u gateway.Usage) float64 { return float64(u.Failed) },
	"input":    func(u gateway.Usage) float64 { return float64(u.Tokens.Input) },
	"output":   func(u gateway.Usage) float64 { return float64(u.Tokens.Output) },
	"cached":   func(u gateway.Usage) float64 { return float64(cachedOf(u.Tokens)) },
	"dollars":  func(u gateway.Usage) float64 { return inDollars(u.Cost) },
}

// apiUsageColumns gives the page's script the series that the page's address asks for. A part in which nothing was used is 0.
func (s *usageHandlers) apiUsageColumns(ctx context.Context, r *request, _ none) (reply, error) {
	shown, err := readUsageRange(r)
	if err != nil {
		return reply{}, err
	}
	scope, err := s.usageScope(ctx, r)
	if err != nil {
		return reply{}, err
	}
	now := s.cfg.Now()
	from, to := shown.bounds(now)
	parts, err := s.cfg.Models.Usage(ctx, scope.query(from, to, shown.step, ""))
	if err != nil {
		return reply{}, err
	}
	n := int(shown.span / shown.step)
	out := columnsShape{Since: unix(from), Until: unix(to), Step: shown.step.Seconds(), Time: make(column, n), Measured: make(column, n), Columns: map[string]column{},
		Changes: []metricsColumnsMark{}}
	for name := range usageFigureOf {
		out.Columns[name] = make(column, n)
	}
	for i := range n {
		out.Time[i], out.Measured[i] = unix(from)+float64(i)*out.Step, out.Step
	}
	for _, u := range parts {
		if i := int(u.From.Sub(from) / shown.step); i >= 0 && i < n {
			for name, of := range usageFigureOf {
				out.Columns[name][i] += of(u)
			}
		}
	}
	return reply{body: out}, nil
}
