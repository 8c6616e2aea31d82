package wire

import (
	"strings"
	"time"

	"sandboxd/internal/text"
)

// Bounds of what a guest lists.
const (
	MaxTabs  = 16
	maxTitle = 256
)

// Terminal is one tab.
type Terminal struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Viewers int       `json:"viewers"`
	Title   string    `json:"title,omitempty"`
	Folder  string    `json:"folder,omitempty"` // where its program stands, absolute; "" where that is not known
	Full    bool      `json:"full,omitempty"`   // its program has the whole screen, without a scrollback (tmux only)
}

// Terminals is the reply to GET PathTerminals.
type Terminals []Terminal

// Check says whether the list is within its bounds and cleans the titles.
func (l *Terminals) Check() error {
	if len(*l) > MaxTabs {
		return badField("terminals: too many")
	}
	for i := range *l {
		t := &(*l)[i]
		if err := CheckTab(t.Name); err != nil {
			return err
		}
		if t.Viewers < 0 || t.Viewers > 1<<16 {
			return badField("viewers")
		}
		t.Title = text.OneLine(t.Title, maxTitle)
		if t.Folder = text.OneLine(t.Folder, maxPath); !strings.HasPrefix(t.Folder, "/") {
			t.Folder = ""
		}
	}
	return nil
}

// ServiceState is where a service stands.
type ServiceState string

// The states of a service.
const (
	ServiceStopped ServiceState = "stopped" // never started, ended by hand, or being ended
	ServiceRunning ServiceState = "running"
	ServiceWaiting ServiceState = "waiting" // about to run: at Retry, where it has ended by itself, else right now
)

// ServiceHealth is whether a running service works, as its checks say.
type ServiceHealth string

// The healths of a service. It is HealthUnknown while nothing is checked, or nothing has been found out yet.
const (
	HealthUnknown   ServiceHealth = ""
	HealthHealthy   ServiceHealth = "healthy"
	HealthUnhealthy ServiceHealth = "unhealthy"
)

// ServiceStatus is how one declared service stands.
type ServiceStatus struct {
	Name     string       `json:"name"`
	State    ServiceState `json:"state"`
	Port     int          `json:"port,omitempty"`
	PID      int          `json:"pid,omitempty"`       // while running
	ExitCode int          `json:"exit_code,omitempty"` // of the last run that ended; 128+n for a signal
	Restarts int          `json:"restarts,omitempty"`  // since it was last started by hand or by a setup
	Since    time.Time    `json:"since"`               // when State began
	Retry    time.Time    `json:"retry,omitzero"`      // while waiting after a run that ended
	Problem  string       `json:"problem,omitempty"`   // why it could not be started or is unhealthy, a sentence
	// Health is what its checks say. A guest that is older than this checks nothing.
	Health ServiceHealth `json:"health,omitempty"`
}

// ServiceStatuses is the reply to GET PathServices.
type ServiceStatuses []ServiceStatus

// Check says whether the list is within its bounds and cleans its texts.
func (l *ServiceStatuses) Check() error {
	if len(*l) > MaxServices {
		return badField("services: too many")
	}
	for i := range *l {
		s := &(*l)[i]
		if err := checkLabel("service name", s.Name, maxName); err != nil {
			return err
		}
		switch s.State {
		case ServiceStopped, ServiceRunning, ServiceWaiting:
		default:
			return badField("service state")
		}
		switch s.Health {
		case HealthUnknown, HealthHealthy, HealthUnhealthy:
		default:
			return badField("service health")
		}
		if s.Port < 0 || s.Port > 65535 || s.PID < 0 || s.Restarts < 0 || s.ExitCode < 0 || s.ExitCode > 255 {
			return badField("service status")
		}
		s.Problem = text.OneLine(s.Problem, maxTitle)
	}
	return nil
}
