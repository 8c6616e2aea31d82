package wire

import (
	"strings"

	"sandboxd/internal/text"
)

// IDEPath is where the versions of VS Code in the browser (code-server) are mounted, read-only: a folder for each, empty
// until VS Code is first switched on.
const IDEPath = "/.sandboxd/ide"

// PathIDE is VS Code in the sandbox: GET answers IDEStatus; POST /dial takes IDEStart and connects to its HTTP server, which
// is started when needed.
const PathIDE = "/v1/ide"

// What IDEStart is told by in the query of a dial.
const (
	IDEVersion = "version"
	IDEPorts   = "ports"
)

// What stands in IDEStart.Ports for a port's number and for the sandbox's own name.
const (
	PortPlace = "{{port}}"
	NamePlace = "{{name}}"
)

const maxPorts = 512

// IDEStart is what a guest starts VS Code with. One that runs is left alone, whatever it was started with.
type IDEStart struct {
	Version string `json:"version"` // a folder in IDEPath
	Ports   string `json:"ports"`   // where a port is reached: a URL with PortPlace and NamePlace in it, or "" where that cannot be told
}

// Check says whether s is within its bounds.
func (s *IDEStart) Check() error {
	if err := checkLabel("version", s.Version, maxName); err != nil {
		return err
	}
	if strings.ContainsAny(s.Ports, "\r\n") {
		return badField("ports")
	}
	return checkText("ports", s.Ports, maxPorts)
}

// IDEState is where VS Code stands in a sandbox.
type IDEState string

// The states of VS Code.
const (
	IDEStopped  IDEState = "stopped"
	IDEStarting IDEState = "starting"
	IDERunning  IDEState = "running"
)

// IDEStatus is how VS Code stands in a sandbox.
type IDEStatus struct {
	State   IDEState `json:"state"`
	Version string   `json:"version,omitempty"` // what runs
	Problem string   `json:"problem,omitempty"` // why the last start came to nothing, or how the last run ended by itself
}

// Check says whether s is within its bounds and cleans its texts.
func (s *IDEStatus) Check() error {
	switch s.State {
	case IDEStopped, IDEStarting, IDERunning:
	default:
		return badField("ide state")
	}
	if s.Version != "" {
		if err := checkLabel("version", s.Version, maxName); err != nil {
			return err
		}
	}
	s.Problem = text.OneLine(s.Problem, maxTitle)
	return nil
}
