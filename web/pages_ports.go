package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/access"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/visibility"
	"sandboxd/internal/wire"
	"sandboxd/views"
)

// portsWait is how long a page waits to hear what listens. Its stream brings it later.
const portsWait = time.Second

// visibilityLooks are the words, tones and shapes of who may use a port.
var visibilityLooks = map[sandbox.Visibility]views.State{
	sandbox.Private: {Tone: "still", Icon: "lock", Text: "Private"},
	sandbox.Shared:  {Tone: "calm", Icon: "link", Text: "Shared"},
	sandbox.Public:  {Tone: "busy", Icon: "globe", Text: "Public"},
}

// visibilityDone says that a port is so from now on.
var visibilityDone = map[sandbox.Visibility]string{
	sandbox.Private: "Port %d is private. Its links no longer work.",
	sandbox.Public:  "Port %d is public.",
}

// listening is what listens in a sandbox, as far as that is known.
type listening struct {
	open  []wire.PortOpen
	known bool
}

// whatListens asks what listens in a sandbox. It wakes nothing.
func (s *portHandlers) whatListens(ctx context.Context, h access.Handle) listening {
	if h.Sandbox().State != sandbox.Running {
		return listening{}
	}
	ctx, cancel := context.WithTimeout(ctx, portsWait)
	defer cancel()
	open, err := s.cfg.Services.Ports(ctx, h)
	if err != nil { // the page is of use without
		s.log.Debug("list ports", "sandbox", h.Name(), "err", err)
		return listening{}
	}
	return listening{open, true}
}

// ports is the menu of a sandbox's ports.
func (s *portHandlers) ports(ctx context.Context, h access.Handle, l listening) views.Ports {
	box := h.Sandbox()
	v := views.Ports{IDE: s.ide.ideHead(ctx, h), Pattern: s.sandboxes.portsTemplate(box.Name), Here: sandboxURL(box.Name), Share: sameURL(box, "/share"), List: s.portList(box, l)}
	v.Pages = s.workspace.quickLinks(box, catalog.Template{}) // without the template's ports, which are in the list
	return v
}

// portList joins a sandbox's listening ports, declared ports and ports open to others.
func (s *portHandlers) portList(box sandbox.Sandbox, l listening) views.PortList {
	ports := map[int]views.Port{}
	at := func(number int, change func(p *views.Port)) {
		p := ports[number]
		change(&p)
		ports[number] = p
	}
	for _, p := range s.workspace.templateOf(box.Spec).Ports {
		at(p.Number, func(v *views.Port) { v.Title = p.Title })
	}
	for _, d := range s.cfg.Sandboxes.Services(box) {
		if d.Port != 0 {
			at(d.Port, func(v *views.Port) { v.Title, v.Service = cmp.Or(v.Title, d.Name), true })
		}
	}
	for _, p := range l.open {
		at(p.Port, func(v *views.Port) { v.Process, v.Open = p.Process, true })
	}
	for _, p := range s.cfg.Ports.List(box.ID) {
		at(p.Number, func(v *views.Port) { v.Who, v.Links = visibilityLooks[openTo(p)], len(p.Shares) })
	}
	list := views.PortList{Name: box.Name, Live: l.known && box.State == sandbox.Running}
	for _, number := range slices.Sorted(maps.Keys(ports)) {
		p := ports[number]
		p.Number, p.URL = strconv.Itoa(number), s.cfg.Hosts.PortURL(box.Name, number)
		p.Sheet = sameURL(box, "/ports/"+p.Number)
		if p.Who.Icon == "" {
			p.Who = visibilityLooks[sandbox.Private]
		}
		if p.Who.Icon == visibilityLooks[sandbox.Private].Icon { // people come to share it
			p.Sheet += "&choice=" + string(sandbox.Shared)
		}
		list.Items = append(list.Items, p)
	}
	return list
}

// portURL is the page of who may use a port.
func portURL(name, port string) string { return sandboxURL(name) + "/ports/" + port }

// portOf reads the port that the path names, or the form that asks for one.
func (r *request) portOf() (int, error) {
	number, err := strconv.Atoi(cmp.Or(r.param("port"), strings.TrimSpace(r.query("port"))))
	if err != nil || number < 1 || number > 65535 {
		return 0, fault.New(fault.NotFound, "There is no such port. A port is a number between 1 and 65535.")
	}
	return number, nil
}

// pageShare asks which port is to be shared, and leads on to who may use it; a script gets it as a sheet.
func (s *portHandlers) pageShare(ctx context.Context, r *request) (templ.Component, error) {
	typed := views.Field{Value: r.query("port")}
	if typed.Value != "" {
		if _, err := r.portOf(); err == nil {
			return s.portForm(ctx, r, views.PortSheet{Choice: string(sandbox.Shared)})
		}
		typed.Fault = "A port is a number between 1 and 65535."
	}
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	v := views.ShareSheet{Port: typed, List: s.portList(box, s.whatListens(ctx, h)), ID: box.ID, Next: r.origin(sandboxURL(box.Name))}
	if r.byScript() {
		return views.ShareSheetPart(v), nil
	}
	v.Frame = s.frame(r, "Share a port of "+box.Name, "sandboxes")
	return views.ShareSheetPage(v), nil
}

// openTo is who can open a port now. One that is shared by links of which none is left is private.
func openTo(p visibility.Port) sandbox.Visibility {
	if p.Visibility == sandbox.Shared && len(p.Shares) == 0 {
		return sandbox.Private
	}
	return p.Visibility
}

// pagePort shows who may use a port, and lets that be changed; a script gets it as a sheet. "?choice=" is what the form has chosen.
func (s *portHandlers) pagePort(ctx context.Context, r *request) (templ.Component, error) {
	return s.portForm(ctx, r, views.PortSheet{Choice: knownChoice(r.query("choice"))})
}

func knownChoice(text string) string {
	if _, known := visibilityLooks[sandbox.Visibility(text)]; known {
		return text
	}
	return ""
}

// portsBehind draws anew what the page behind a sheet shows of ports: the workspace's menu, or the list beside the services.
func (s *portHandlers) portsBehind(ctx context.Context, r *request, h access.Handle) templ.Component {
	box := h.Sandbox()
	behind, err := url.Parse(r.http.Header.Get("HX-Current-URL"))
	if err != nil {
		return templ.NopComponent
	}
	switch {
	case behind.Path == servicesURL(box.Name):
		return views.Part("ports", views.Replace, views.PortsPart(s.portList(box, s.whatListens(ctx, h))))
	case behind.Path == sandboxURL(box.Name) && len(s.workspace.quickLinks(box, catalog.Template{})) > 0: // the menu stands beside the quick links
		return views.Part("ws-ports", views.Replace, views.PortMenu(s.ports(ctx, h, s.whatListens(ctx, h))))
	}
	return templ.NopComponent
}

// portForm is the sheet with what v has to say.
func (s *portHandlers) portForm(ctx context.Context, r *request, v views.PortSheet) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	number, err := r.portOf()
	if err != nil {
		return nil, err
	}
	v.Box, v.ID, v.Number, v.URL = box.Name, box.ID, strconv.Itoa(number), s.cfg.Hosts.PortURL(box.Name, number)
	v.Next, v.TTL.Value = r.origin(sandboxURL(box.Name)), cmp.Or(v.TTL.Value, "24h")
	v.Local = s.cfg.Hosts.Domain == "localhost" || strings.HasSuffix(s.cfg.Hosts.Domain, ".localhost")
	v.Sleeps = s.endsAsleep(box, number)
	present := s.portRule(box, number)
	v.Current = string(openTo(present))
	v.Choice = cmp.Or(v.Choice, v.Current)
	now := s.cfg.Now()
	for _, share := range present.Shares {
		v.Shares = append(v.Shares, views.Share{
			ID: share.ID, Label: share.Label, Made: timeOf(share.Created, now), Expires: aheadOf(share.Expires, now),
		})
	}
	if r.byScript() {
		return templ.Join(views.PortSheetPart(v), s.portsBehind(ctx, r, h)), nil
	}
	v.Frame = s.frame(r, "Port "+v.Number+" of "+box.Name, "sandboxes")
	return views.PortSheetPage(v), nil
}

// endsAsleep gives after what time a sandbox sleeps, when what listens on the port does not come back with it: no service does.
func (s *portHandlers) endsAsleep(box sandbox.Sandbox, number int) string {
	returns := func(d catalog.Service) bool { return d.Port == number && d.Autostart }
	after := s.cfg.Sandboxes.Resting(box).StopAfter
	if after <= 0 || slices.ContainsFunc(s.cfg.Sandboxes.Services(box), returns) {
		return ""
	}
	return afterText(after)
}

// portRule is who may use a port.
func (s *portHandlers) portRule(box sandbox.Sandbox, number int) visibility.Port {
	for _, p := range s.cfg.Ports.List(box.ID) {
		if p.Number == number {
			return p
		}
	}
	return visibility.Port{Number: number, Visibility: sandbox.Private}
}

// changePort lets act change something about the port that the path names, and shows the sheet with what it says of it. Without
// scripts it leads to the sheet's page.
func (s *portHandlers) changePort(ctx context.Context, r *request, act func(box sandbox.Sandbox, number int) (views.PortSheet, error)) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	box := h.Sandbox()
	number, err := r.portOf()
	if err != nil {
		return "", err
	}
	v, err := act(box, number)
	if err != nil {
		return "", err
	}
	r.answer, err = s.portForm(ctx, r, v)
	return portURL(box.Name, strconv.Itoa(number)), err
}

// submitPort makes a port private or public, or makes a link to it.
func (s *portHandlers) submitPort(ctx context.Context, r *request) (string, error) {
	return s.changePort(ctx, r, func(box sandbox.Sandbox, number int) (views.PortSheet, error) {
		choice := sandbox.Visibility(r.field("visibility"))
		r.object = fmt.Sprintf("%d: %s", number, choice)
		if choice == sandbox.Shared {
			return s.share(ctx, r, box, number)
		}
		if err := s.cfg.Ports.Set(ctx, box, number, choice); err != nil {
			return views.PortSheet{}, err
		}
		return views.PortSheet{Done: fmt.Sprintf(visibilityDone[choice], number)}, nil
	})
}

// share makes a link to a port, which is shown once. A public port is open to links alone from then on.
func (s *portHandlers) share(ctx context.Context, r *request, box sandbox.Sandbox, number int) (views.PortSheet, error) {
	text := r.field("ttl")
	if text == customAfter {
		text = r.field("ttl_custom")
	}
	ttl, err := enteredSpan(text)
	if err != nil {
		return views.PortSheet{}, fault.Field("ttl", "Say after what time the link expires, for example 30 min, 12 hours or 3 days.")
	}
	n := visibility.NewShare{Port: number, By: r.who.User.ID, Label: r.field("label"), TTL: ttl}
	share, secret, err := s.cfg.Ports.Share(ctx, box, n)
	if err != nil {
		return views.PortSheet{}, err
	}
	if s.cfg.Ports.Public(box.ID, number) {
		if err := s.cfg.Ports.Set(ctx, box, number, sandbox.Shared); err != nil {
			return views.PortSheet{}, err
		}
	}
	return views.PortSheet{Secret: s.cfg.Hosts.ShareURL(box.Name, number, secret), Made: aheadOf(share.Expires, s.cfg.Now())}, nil
}

// submitRevokeShare ends a link to a port.
func (s *portHandlers) submitRevokeShare(ctx context.Context, r *request) (string, error) {
	return s.changePort(ctx, r, func(box sandbox.Sandbox, number int) (views.PortSheet, error) {
		if err := s.cfg.Ports.Revoke(ctx, box, number, r.param("id")); err != nil {
			return views.PortSheet{}, err
		}
		return views.PortSheet{Done: "The link was revoked and no longer works."}, nil
	})
}

// againPort shows the sheet again with the input's error.
func (s *portHandlers) againPort(ctx context.Context, r *request, cause error) (templ.Component, error) {
	v := views.PortSheet{
		Choice: knownChoice(r.field("visibility")), Label: views.Field{Value: r.field("label")},
		TTL: views.Field{Value: r.field("ttl")}, Custom: views.Field{Value: r.field("ttl_custom")},
	}
	message := fault.Message(cause)
	switch fault.FieldOf(cause) {
	case "label":
		v.Label.Fault = message
	case "ttl":
		v.TTL.Fault = message
	default:
		v.Fault = message
	}
	return s.portForm(ctx, r, v)
}
