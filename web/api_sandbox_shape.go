package web

import (
	"context"
	"strings"
	"time"

	"sandboxd/internal/sandbox"
)

// sandboxShape is a sandbox as programs see it. Golden files pin it.
type sandboxShape struct {
	Name       string           `json:"name"`
	Label      string           `json:"label"`
	Template   string           `json:"template"` // "" for a plain image
	Image      string           `json:"image"`    // "" for a template
	State      string           `json:"state"`
	Problem    string           `json:"problem"`
	Owner      string           `json:"owner"` // user name
	CreatedAt  time.Time        `json:"created_at"`
	ClonedFrom string           `json:"cloned_from"` // name then of the sandbox that it is a clone of; "" for none
	URLs       urlsShape        `json:"urls"`
	Limits     limitsShape      `json:"limits"`
	Update     *standingShape   `json:"update"` // null for a plain image
	Agent      *agentStateShape `json:"agent"`  // null while none works, asks or has failed lately

	Volumes []boxVolumeShape `json:"volumes"`
	restShape
}

type urlsShape struct {
	Terminal  string `json:"terminal"`
	Dashboard string `json:"dashboard"`
	Ports     string `json:"ports"` // with {port} in place of a port's number
}

type limitsShape struct {
	CPUs   float64 `json:"cpus"`
	Memory int64   `json:"memory"` // bytes
	Pids   int64   `json:"pids"`
	Disk   int64   `json:"disk"` // bytes of the home, 0 for no limit
}

func limitsOf(l sandbox.Limits) limitsShape {
	return limitsShape{CPUs: l.CPUs, Memory: l.Memory, Pids: l.Pids, Disk: l.Disk}
}

// shape gives a sandbox as programs see it.
func (s *sandboxHandlers) shape(ctx context.Context, names *owners, box sandbox.Sandbox) (sandboxShape, error) {
	owner, err := names.name(ctx, box.Owner)
	if err != nil {
		return sandboxShape{}, err
	}
	return sandboxShape{
		Name: box.Name, Label: box.Label, Template: box.Spec.Template, Image: box.Spec.Image,
		State: string(box.State), Problem: box.Problem, Owner: owner, CreatedAt: box.Created.UTC(), ClonedFrom: box.ClonedFrom,
		URLs: urlsShape{
			Terminal:  s.cfg.Hosts.TerminalURL(box.Name),
			Dashboard: s.cfg.Hosts.DashboardURL() + "/sandboxes/" + box.Name,
			Ports:     s.portsTemplate(box.Name),
		},
		Limits:    limitsOf(box.Spec.Limits),
		Update:    s.updates.standing(box),
		Agent:     s.agentStateShape(box.ID),
		Volumes:   s.volumes.boxVolumeShapes(box),
		restShape: s.restShape(box),
	}, nil
}

// portsTemplate is the address of a port with {port} in place of its number.
func (s *sandboxHandlers) portsTemplate(name string) string {
	return strings.Replace(s.cfg.Hosts.PortURL(name, 1), "//1-", "//{port}-", 1)
}

// sandboxReply answers with one sandbox.
func (s *sandboxHandlers) sandboxReply(ctx context.Context, status int, box sandbox.Sandbox) (reply, error) {
	shape, err := s.shape(ctx, newOwners(s.cfg.Accounts), box)
	if err != nil {
		return reply{}, err
	}
	return reply{status: status, body: shape}, nil
}

func sandboxPath(name string) string { return apiPrefix + "/sandboxes/" + name }
