package web

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// maxBadges is how many a row of the list has room for.
const maxBadges = 6

// badges are what matters of a sandbox beside its state: what its agent does, who else may use it, then what it offers. They come from memory.
func (s *listHandlers) badges(box sandbox.Sandbox) []views.Badge {
	list := slices.Concat(s.agentBadge(box), s.trials.tryBadge(box), s.openPorts(box))
	if usable(box) && s.cfg.Sandboxes.OffersIDE(box) {
		list = append(list, views.Badge{Icon: "code", Text: "VS Code", Title: "Open VS Code", URL: s.cfg.Hosts.IDEURL(box.Name), Away: true})
	}
	if n := len(s.cfg.Sandboxes.Services(box)); n > 0 {
		list = append(list, views.Badge{Icon: "server", Text: several(n, "service"), Title: "Services of " + box.Name, URL: servicesURL(box.Name)})
	}
	if usable(box) {
		for _, p := range s.workspace.templateOf(box.Spec).Ports {
			url := s.cfg.Hosts.PortURL(box.Name, p.Number)
			list = append(list, views.Badge{Icon: "globe", Text: cmp.Or(p.Title, "Port"), Port: strconv.Itoa(p.Number), Title: url, URL: url, Away: true})
		}
	}
	return list[:min(len(list), maxBadges)]
}

// openPorts are the badges of ports that others may use: each that is public, and all links together.
func (s *listHandlers) openPorts(box sandbox.Sandbox) (list []views.Badge) {
	links, to := 0, []string{}
	for _, p := range s.cfg.Ports.List(box.ID) {
		number := strconv.Itoa(p.Number)
		if p.Visibility == sandbox.Public {
			list = append(list, views.Badge{
				Icon: "globe", Text: "Public", Port: number, Tone: "busy", Title: "Anyone can open port " + number, URL: sameURL(box, "/ports/"+number), Sheet: true,
			})
		} else if len(p.Shares) > 0 {
			links, to = links+len(p.Shares), append(to, number)
		}
	}
	if links == 0 {
		return list
	}
	b := views.Badge{Icon: "link", Text: several(links, "link"), Title: "Links that open port " + strings.Join(to, ", "), URL: servicesURL(box.Name)}
	if len(to) == 1 {
		b.URL, b.Sheet = sameURL(box, "/ports/"+to[0]), true
	}
	return append(list, b)
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
