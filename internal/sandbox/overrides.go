package sandbox

import (
	"encoding/json"
	"errors"
	"time"

	"sandboxd/internal/catalog"
)

// overridesRow is overrides as they are kept. A list that is there, empty or not, replaces the template's.
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

// MarshalJSON gives o as stores and backups keep it.
func (o Overrides) MarshalJSON() ([]byte, error) {
	row := overridesRow{IDE: o.IDE}
	if o.HasServices {
		list := make([]serviceRow, 0, len(o.Services))
		for _, s := range o.Services {
			list = append(list, serviceRow{Name: s.Name, Command: s.Command, Port: s.Port, Cwd: s.Cwd, Env: s.Env,
				Autostart: s.Autostart, Health: (*healthRow)(s.Health)})
		}
		row.Services = &list
	}
	return json.Marshal(row)
}

// errOverrides stands for the decoder's own error, which would quote what may be a secret.
var errOverrides = errors.New("not the settings of a sandbox")

// UnmarshalJSON reads what MarshalJSON has written. It checks no value.
func (o *Overrides) UnmarshalJSON(text []byte) error {
	var row overridesRow
	if err := json.Unmarshal(text, &row); err != nil {
		return errOverrides
	}
	*o = Overrides{IDE: row.IDE}
	if row.Services == nil {
		return nil
	}
	o.HasServices = true
	for _, s := range *row.Services {
		o.Services = append(o.Services, catalog.Service{Name: s.Name, Command: s.Command, Port: s.Port, Cwd: s.Cwd, Env: s.Env,
			Autostart: s.Autostart, Health: (*catalog.Health)(s.Health)})
	}
	return nil
}
