package web

import (
	"cmp"
	"strconv"
	"strings"

	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// maxBadges is how many a row of the list has room for.
const maxBadges = 6

// badges are what matters of a sandbox beside its state: who else may use it, then what it offers. They come from memory.
func (s *sandboxHandlers) badges(box sandbox.Sandbox) []views.Badge {
	list := s.openPorts(box)
	usable := box.State == sandbox.Running || box.State.Resting() // using one that rests wakes it
	if usable && s.cfg.Sandboxes.OffersIDE(box) {
		list = append(list, views.Badge{Icon: "code", Text: "VS Code", Title: "Open VS Code", URL: s.cfg.Hosts.IDEURL(box.Name), Away: true})
	}
	if n := len(s.cfg.Sandboxes.Services(box)); n > 0 {
		list = append(list, views.Badge{Icon: "server", Text: several(n, "service"), Title: "Services of " + box.Name, URL: servicesURL(box.Name)})
	}
	if usable {
		for _, p := range s.workspace.templateOf(box.Spec).Ports {
			url := s.cfg.Hosts.PortURL(box.Name, p.Number)
			list = append(list, views.Badge{Icon: "globe", Text: cmp.Or(p.Title, "Port"), Port: strconv.Itoa(p.Number), Title: url, URL: url, Away: true})
		}
	}
	return list[:min(len(list), maxBadges)]
}

// openPorts are the badges of ports that others may use.
func (s *sandboxHandlers) openPorts(box sandbox.Sandbox) (list []views.Badge) {
	for _, p := range s.cfg.Ports.List(box.ID) {
		number := strconv.Itoa(p.Number)
		b := views.Badge{Port: number, URL: sameURL(box, "/ports/"+number), Sheet: true}
		switch {
		case p.Visibility == sandbox.Public:
			b.Icon, b.Text, b.Tone, b.Title = "globe", "Public", "busy", "Anyone can open port "+number
		case len(p.Shares) > 0:
			b.Icon, b.Text, b.Title = "link", several(len(p.Shares), "link"), several(len(p.Shares), "link")+" to port "+number
		default:
			continue
		}
		list = append(list, b)
	}
	return list
}

// several is a number of things of one name.
func several(n int, name string) string {
	switch {
	case n == 1:
		return "1 " + name
	case strings.HasSuffix(name, "x"):
		name += "e"
	}
	return strconv.Itoa(n) + " " + name + "s"
}
