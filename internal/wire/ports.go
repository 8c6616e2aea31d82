package wire

import (
	"net/netip"

	"sandboxd/internal/text"
)

// Bounds of what a guest lists of its ports.
const (
	MaxOpenPorts = 256
	maxProcess   = 64
)

// PortOpen is a TCP port on which something in the sandbox listens.
type PortOpen struct {
	Port    int    `json:"port"`
	Address string `json:"address,omitempty"` // where it listens: "0.0.0.0", "127.0.0.1", "::" …
	Process string `json:"process,omitempty"` // name of the program, "" when that cannot be told
	PID     int    `json:"pid,omitempty"`     // of that program, as the sandbox counts; 0 when that cannot be told
}

// Ports is the reply to GET PathPorts and the payload of FramePorts: each port once, in ascending order.
type Ports []PortOpen

// Check says whether the list is within its bounds and cleans its texts.
func (l *Ports) Check() error {
	if len(*l) > MaxOpenPorts {
		return badField("ports: too many")
	}
	last := 0
	for i := range *l {
		p := &(*l)[i]
		if p.Port <= last || p.Port > 65535 {
			return badField("port")
		}
		last = p.Port
		if p.PID < 0 {
			return badField("port's pid")
		}
		if a, err := netip.ParseAddr(p.Address); p.Address != "" && (err != nil || a.Zone() != "") {
			return badField("port's address")
		}
		p.Process = text.OneLine(p.Process, maxProcess)
	}
	return nil
}
