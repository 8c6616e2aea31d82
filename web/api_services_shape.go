package web

import (
	"context"
	"encoding/json"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/services"
)

// servicesShape is the services of a sandbox as programs see them.
type servicesShape struct {
	Services   []serviceShape `json:"services"`
	Overridden bool           `json:"own"` // the sandbox has a list of its own in place of its template's
}

// serviceShape is a declared service with its status.
type serviceShape struct {
	serviceBody
	URL     string       `json:"url"`      // its own address; "" when it has none
	PortURL string       `json:"port_url"` // the address of its port; "" when it has none
	Status  serviceStand `json:"status"`
}

type serviceStand struct {
	State    string     `json:"state"`
	Health   string     `json:"health"` // "healthy", "unhealthy", or "" while that is not known
	PID      int        `json:"pid"`
	ExitCode int        `json:"exit_code"`
	Restarts int        `json:"restarts"`
	Since    *time.Time `json:"since"`
	RetryAt  *time.Time `json:"retry_at"`
	Problem  string     `json:"problem"`
}

// servicesBody declares a whole list.
type servicesBody struct {
	Services *[]serviceBody `json:"services"`
}

// serviceBody is a service as it is declared.
type serviceBody struct {
	Name      string            `json:"name"`
	Command   commandWords      `json:"command"`
	Port      int               `json:"port"`
	Cwd       string            `json:"cwd"`
	Env       map[string]string `json:"env"`
	Autostart *bool             `json:"autostart"` // true when it is left out
	Health    *healthBody       `json:"health"`    // null for no checks
}

// healthBody is how a service's health is found out.
type healthBody struct {
	Path     string         `json:"path"`
	Interval healthInterval `json:"interval"`
}

// healthInterval is the time between two checks, in JSON a number of seconds or a text such as "10s".
type healthInterval time.Duration

// UnmarshalJSON reads either form.
func (d *healthInterval) UnmarshalJSON(b []byte) error {
	return readSpan((*time.Duration)(d), "health.interval", b)
}

// MarshalJSON writes a text.
func (d healthInterval) MarshalJSON() ([]byte, error) {
	return json.Marshal(catalog.After(d).String())
}

// commandWords is a command: in JSON a list, which is run as it is, or one text, which the login shell runs.
type commandWords []string

// UnmarshalJSON reads either form.
func (c *commandWords) UnmarshalJSON(b []byte) error {
	var line string
	if json.Unmarshal(b, &line) == nil {
		*c = nil
		if line != "" {
			*c = exec.Shell(line)
		}
		return nil
	}
	if json.Unmarshal(b, (*[]string)(c)) != nil {
		return fault.Field("command", "command must be a list of words, the program first, or one text for the shell.")
	}
	return nil
}

// MarshalJSON writes the form in which it was given.
func (c commandWords) MarshalJSON() ([]byte, error) {
	if line, ok := exec.ShellLine(c); ok {
		return json.Marshal(line)
	}
	return json.Marshal([]string(c))
}

// service gives the declared service, not yet checked.
func (b serviceBody) service() catalog.Service {
	out := catalog.Service{Name: b.Name, Command: b.Command, Port: b.Port, Cwd: b.Cwd, Env: b.Env,
		Autostart: b.Autostart == nil || *b.Autostart}
	if b.Health != nil {
		out.Health = &catalog.Health{Path: b.Health.Path, Interval: time.Duration(b.Health.Interval)}
	}
	return out
}

func newServiceBody(d catalog.Service) serviceBody {
	out := serviceBody{Name: d.Name, Command: d.Command, Port: d.Port, Cwd: d.Cwd, Env: d.Env, Autostart: &d.Autostart}
	if out.Env == nil {
		out.Env = map[string]string{}
	}
	if h := d.Health; h != nil {
		interval := h.Interval
		if interval == 0 {
			interval = catalog.DefaultHealthInterval
		}
		out.Health = &healthBody{Path: h.Path, Interval: healthInterval(interval)}
	}
	return out
}

func (s *serviceHandlers) serviceShape(ctx context.Context, name string, one services.Status) serviceShape {
	out := serviceShape{serviceBody: newServiceBody(one.Service), Status: serviceStand{
		State: string(one.State), Health: string(one.Health), PID: one.PID, ExitCode: one.ExitCode, Restarts: one.Restarts,
		Since: timeOrNull(one.Since), RetryAt: timeOrNull(one.Retry), Problem: one.Problem,
	}}
	if one.Port != 0 {
		out.URL, out.PortURL = s.cfg.Hosts.ServiceURL(one.Name, name), s.cfg.Hosts.PortURL(name, one.Port)
	}
	return out
}
