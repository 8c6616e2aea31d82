package tools

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"sandboxd/internal/access"
	"sandboxd/internal/logs"
	"sandboxd/internal/services"
	"sandboxd/internal/tools/risk"
)

func (t *table) listPorts() spec {
	return spec{
		name: "list_ports", title: "List ports",
		description: "List the TCP ports on which programs in the sandbox listen, such as a web server that you started.",
		run: func(ctx context.Context, _ args, _ io.Writer) (Result, error) {
			ports, err := t.cfg.Services.Ports(ctx, t.seat.Handle)
			if err != nil {
				return ended(ctx, err)
			}
			if len(ports) == 0 {
				return Result{Text: "[Nothing listens.]"}, nil
			}
			var b strings.Builder
			for _, p := range ports {
				fmt.Fprintf(&b, "%d  %s  %s\n", p.Port, cmp.Or(p.Address, "?"), cmp.Or(p.Process, "?"))
			}
			return Result{Text: b.String()}, nil
		},
	}
}

func (t *table) listServices() spec {
	return spec{
		name: "list_services", title: "List services",
		description: "List the services of the sandbox, which are programs that it keeps running, and how they stand.",
		run: func(ctx context.Context, _ args, _ io.Writer) (Result, error) {
			l, err := t.cfg.Services.List(ctx, t.seat.Handle)
			if err != nil {
				return ended(ctx, err)
			}
			if len(l.Services) == 0 {
				return Result{Text: "[There are none.]"}, nil
			}
			var b strings.Builder
			for _, s := range l.Services {
				b.WriteString(serviceLine(s))
			}
			return Result{Text: shorten(b.String(), maxText)}, nil
		},
	}
}

func serviceLine(s services.Status) string {
	line := s.Name + "  " + string(s.State)
	if s.Health != "" {
		line += ", " + string(s.Health)
	}
	if s.Port != 0 {
		line += fmt.Sprintf(", port %d", s.Port)
	}
	if s.Restarts > 0 {
		line += fmt.Sprintf(", restarted %d times", s.Restarts)
	}
	if s.Problem != "" {
		line += ": " + s.Problem
	}
	return line + "\n"
}

func (t *table) controlService() spec {
	return spec{
		name: "control_service", title: "Control a service", changes: true,
		description: "Start, stop or restart a service of the sandbox.",
		params: []param{
			{name: "service", kind: isText, required: true, about: "Its name, as list_services gives it."},
			{name: "action", kind: isText, required: true, enum: []string{"start", "stop", "restart"}, about: "What to do with it."},
		},
		preview: func(a args) Preview {
			return Preview{Code: a.text("action") + " " + a.text("service"), Language: "text", Risk: atLeast(hiddenIn(a.text("service")), risk.Changing)}
		},
		run: func(ctx context.Context, a args, _ io.Writer) (Result, error) {
			do := map[string]func(context.Context, access.Handle, string) (services.Status, error){
				"start": t.cfg.Services.Start, "stop": t.cfg.Services.Stop, "restart": t.cfg.Services.Restart,
			}[a.text("action")]
			s, err := do(ctx, t.seat.Handle, a.text("service"))
			if err != nil {
				return ended(ctx, err)
			}
			return Result{Text: serviceLine(s)}, nil
		},
	}
}

func (t *table) serviceLog() spec {
	return spec{
		name: "service_log", title: "Read a log",
		description: "Read the newest lines that the services of the sandbox have written, oldest first.",
		params: []param{
			{name: "service", kind: isText, about: "One service; all if you say nothing."},
			{name: "query", kind: isText, about: "Words that a line must have."},
			{name: "lines", kind: isNumber, min: 1, max: 500, about: "How many at most; 100 if you say nothing."},
		},
		run: func(ctx context.Context, a args, _ io.Writer) (Result, error) {
			q := logs.Query{Scope: logs.Only(t.seat.Handle.ID()), Filter: logs.Filter{Text: a.text("query")}, Limit: a.number("lines", 100)}
			if s := a.text("service"); s != "" {
				q.Services = []string{s}
			}
			found, err := t.cfg.Logs.Search(ctx, q)
			if err != nil {
				return ended(ctx, err)
			}
			if len(found.Lines) == 0 {
				return Result{Text: "[There are no such lines.]"}, nil
			}
			var b strings.Builder
			lines := slices.Clone(found.Lines)
			slices.SortFunc(lines, func(x, y logs.Line) int { return cmp.Compare(x.ID, y.ID) })
			for _, l := range lines {
				fmt.Fprintf(&b, "%s %s: %s\n", l.Time.UTC().Format("15:04:05.000"), cmp.Or(l.Service, "-"), plain(l.Text))
			}
			return Result{Text: shorten(b.String(), maxText)}, nil
		},
	}
}
