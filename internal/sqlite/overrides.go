package sqlite

import (
	"encoding/json"
	"fmt"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/sandbox"
)

// overridesRow is the overrides of a sandbox as the column holds it. A list that is there, empty or not, replaces the template's.
type overridesRow struct {
	Services *[]serviceRow `json:"services,omitempty"`
	IDE      *bool         `json:"ide,omitempty"`
}

type serviceRow struct {
	Name      string            `json:"name"`
	Command   []string          `json:"command"`
	Port      int               `json:"port,omitempty"`
	Cwd       string            `json:"cwd,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Autostart bool              `json:"autostart,omitempty"`
	Health    *healthRow        `json:"health,omitempty"`
}

type healthRow struct {
	Path     string        `json:"path,omitempty"`
	Interval time.Duration `json:"interval,omitempty"` // nanoseconds
}

// overridesText gives the column of o, "" when there is nothing to keep.
func overridesText(o sandbox.Overrides) (string, error) {
	row := overridesRow{IDE: o.IDE}
	if o.HasServices {
		list := make([]serviceRow, 0, len(o.Services))
		for _, s := range o.Services {
			list = append(list, serviceRow{Name: s.Name, Command: s.Command, Port: s.Port, Cwd: s.Cwd, Env: s.Env,
				Autostart: s.Autostart, Health: (*healthRow)(s.Health)})
		}
		row.Services = &list
	}
	if row.Services == nil && row.IDE == nil {
		return "", nil
	}
	text, err := json.Marshal(row)
	if err != nil {
		return "", fmt.Errorf("write own services: %w", err)
	}
	return string(text), nil
}

// overridesOf reads the column of a sandbox.
func overridesOf(name string, text []byte) (o sandbox.Overrides, err error) {
	if len(text) == 0 {
		return o, nil
	}
	var row overridesRow
	if err := json.Unmarshal(text, &row); err != nil {
		return o, fmt.Errorf("read own services of %s: %w", name, errBadJSON)
	}
	o.IDE = row.IDE
	if row.Services == nil {
		return o, nil
	}
	o.HasServices = true
	for _, s := range *row.Services {
		o.Services = append(o.Services, catalog.Service{Name: s.Name, Command: s.Command, Port: s.Port, Cwd: s.Cwd, Env: s.Env,
			Autostart: s.Autostart, Health: (*catalog.Health)(s.Health)})
	}
	return o, nil
}
