package web

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"sandboxd/internal/access"
	"sandboxd/internal/catalog"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/services"
	"sandboxd/internal/wire"
	"sandboxd/views"
)

// servicesURL is the page of a sandbox's services.
func servicesURL(name string) string { return sandboxURL(name) + "/services" }

// pageServices shows what a sandbox runs by itself, and what listens in it. It wakes nothing.
func (s *serviceHandlers) pageServices(ctx context.Context, r *request) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	return s.servicesPage(ctx, r, h, "")
}

func (s *serviceHandlers) servicesPage(ctx context.Context, r *request, h access.Handle, problem string) (templ.Component, error) {
	box := h.Sandbox()
	list, err := s.cfg.Services.List(ctx, h)
	if err != nil {
		return nil, err
	}
	v := views.Services{
		Frame: s.frame(r, "Services of "+boxTitle(box), "sandboxes"), Name: box.Name, Title: boxTitle(box),
		State: s.workspace.state(box, s.cfg.Sandboxes.Progress(box.ID)), List: s.serviceList(ctx, box, list), Fault: problem,
		Ports: s.ports.portList(box, s.ports.whatListens(ctx, h)),
	}
	v.Frame.Live.Topic = sameURL(box, "/services")
	return views.ServicesPage(v), nil
}

// boxTitle is what a sandbox is called.
func boxTitle(box sandbox.Sandbox) string {
	if box.Label != "" {
		return box.Label
	}
	return box.Name
}

// serviceList shows a sandbox's services.
func (s *serviceHandlers) serviceList(ctx context.Context, box sandbox.Sandbox, list services.List) views.ServiceList {
	v := views.ServiceList{Name: box.Name, ID: box.ID, Overridden: list.Overridden, Bare: len(s.workspace.templateOf(box.Spec).Services) == 0}
	switch {
	case box.State.Resting():
		v.Rests = "The sandbox is at rest. Starting a service wakes it."
	case box.State == sandbox.Stopped, box.State == sandbox.Failed:
		v.Rests, v.Off = "The sandbox is not running. Start it to start its services.", true
	case box.State != sandbox.Running:
		v.Off = true
	}
	for _, one := range list.Services {
		v.Items = append(v.Items, s.serviceView(ctx, box, one))
	}
	return v
}

// serviceLooks are the words, tones and shapes of the states of services.
var serviceLooks = map[services.State]views.State{
	services.Running: {Tone: "good", Icon: "state-running", Text: "Running"},
	services.Waiting: {Tone: "busy", Icon: "state-busy", Text: "Starting"},
	services.Stopped: {Tone: "still", Icon: "state-stopped", Text: "Stopped"},
	services.Asleep:  {Tone: "calm", Icon: "state-asleep", Text: "Asleep"},
	services.Unknown: {Tone: "busy", Icon: "state-busy", Text: "Not known yet"},
}

var healthLooks = map[wire.ServiceHealth]views.State{
	wire.HealthHealthy:   {Tone: "good", Icon: "check", Text: "Healthy"},
	wire.HealthUnhealthy: {Tone: "bad", Icon: "warn", Text: "Unhealthy"},
}

// serviceView shows one service.
func (s *serviceHandlers) serviceView(ctx context.Context, box sandbox.Sandbox, one services.Status) views.Service {
	url := "/services/" + one.Name
	v := views.Service{
		Name: one.Name, State: serviceLooks[one.State], Health: healthLooks[one.Health], Problem: one.Problem,
		Command: commandText(one.Command), Facts: serviceFacts(one), Auto: one.Autostart,
	}
	if one.Port != 0 {
		v.Port, v.URL = strconv.Itoa(one.Port), s.cfg.Hosts.ServiceURL(one.Name, box.Name)
		if v.URL == "" {
			v.URL = s.cfg.Hosts.PortURL(box.Name, one.Port)
		}
		v.Address = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(v.URL, "https://"), "http://"), "/")
	}
	now := s.cfg.Now()
	start := views.Action{Icon: "play", Text: "Start", URL: sameURL(box, url+"/start"), Post: true}
	stop := views.Action{Icon: "stop", Text: "Stop", URL: sameURL(box, url+"/stop"), Post: true}
	restart := views.Action{Icon: "restart", Text: "Restart", URL: sameURL(box, url+"/restart"), Post: true}
	switch one.State {
	case services.Running:
		v.Notes, v.Acts = []views.Note{{Text: "for", Time: spanOf(one.Since, now)}}, []views.Action{restart, stop}
	case services.Waiting:
		v.Acts = []views.Action{start, stop}
		if !one.Retry.IsZero() {
			v.State.Text = "Waiting"
			v.Notes = []views.Note{{Text: "to restart", Time: aheadOf(one.Retry, now)}}
		}
	default:
		v.Acts = []views.Action{start}
	}
	return v
}

// serviceFacts are what else there is to know of a service.
func serviceFacts(one services.Status) []string {
	var facts []string
	if one.Cwd != "" {
		facts = append(facts, "in "+one.Cwd)
	}
	if one.Restarts > 0 {
		facts = append(facts, fmt.Sprintf("restarted %d times", one.Restarts))
	}
	if one.ExitCode != 0 {
		facts = append(facts, fmt.Sprintf("last ended with exit code %d", one.ExitCode))
	}
	if h := one.Service.Health; h != nil {
		interval := h.Interval
		if interval == 0 {
			interval = catalog.DefaultHealthInterval
		}
		check := "TCP check"
		if h.Path != "" {
			check = "HTTP check of " + h.Path
		}
		facts = append(facts, fmt.Sprintf("%s every %s", check, catalog.After(interval)))
	}
	return facts
}

// commandText is a command as a person would type it.
func commandText(command []string) string {
	if line, ok := exec.ShellLine(command); ok {
		return line
	}
	words := make([]string, len(command))
	for i, w := range command {
		words[i] = quoteWord(w)
	}
	return strings.Join(words, " ")
}

// quoteWord is a word as a shell takes it.
func quoteWord(w string) string {
	plain := func(c rune) bool {
		return c < 0x80 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_@%+=:,./-", c))
	}
	if w != "" && strings.IndexFunc(w, func(c rune) bool { return !plain(c) }) < 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// submitService starts, stops or restarts a service; that wakes the sandbox. The page's stream shows what comes of it.
func (s *serviceHandlers) submitService(do func(ctx context.Context, h access.Handle, service string) (services.Status, error)) func(context.Context, *request) (string, error) {
	return func(ctx context.Context, r *request) (string, error) {
		h, err := named(ctx, s.Server, r)
		if err != nil {
			return "", err
		}
		box := h.Sandbox()
		if _, err := do(ctx, h, r.param("service")); err != nil {
			return "", err
		}
		return r.back(servicesURL(box.Name)), nil
	}
}

// againServices shows the page of services with what went wrong.
func (s *serviceHandlers) againServices(ctx context.Context, r *request, cause error) (templ.Component, error) {
	if r.byScript() {
		return nil, cause // said over the page that is there
	}
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	return s.servicesPage(ctx, r, h, fault.Message(cause))
}

// submitResetServices gives a sandbox its template's services again.
func (s *serviceHandlers) submitResetServices(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	box := h.Sandbox()
	if _, err := s.cfg.Services.Put(ctx, h, nil, nil); err != nil {
		return "", err
	}
	return servicesURL(box.Name), nil
}
