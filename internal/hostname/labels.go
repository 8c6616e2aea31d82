package hostname

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sandboxd/internal/wire"
)

// AuthMiddleware is the Traefik middleware that asks sandboxd whether a request may pass. Every router names it:
// where it is not configured, Traefik refuses the router, so a sandbox is never served without it.
const AuthMiddleware = "sandboxd-auth@file"

// scrubMiddleware is the Traefik middleware that takes out of a sandbox's answer what would reach beyond its own host.
const scrubMiddleware = "sandboxd-scrub@file"

// directPriority puts the direct route above sandboxd's catch-all, which has priority 1.
const directPriority = 1000

// ObserveHeader with the value 1 marks a probe: it uses nothing and wakes nothing.
const ObserveHeader = "X-Sandboxd-Observe"

// ShareHeader is how a program shows the secret of a link to a shared port.
const ShareHeader = "X-Sandboxd-Share"

// notDirect keeps from the direct route what only sandboxd's proxy can do: connections that are upgraded or made into
// tunnels, since only sandboxd can thaw a sandbox when a byte arrives on an open one; probes that must not count; and
// sandboxd's own pages at a sandbox's host.
const notDirect = " && !HeaderRegexp(`Upgrade`, `.+`) && !HeaderRegexp(`" + ObserveHeader + "`, `.+`) && !Method(`CONNECT`) && !PathPrefix(`" + OwnPath + "`)"

// Labels gives the Traefik labels that route the hosts of the sandbox's ports straight to its gateway: those of the given
// ports or, when there are none, of every port. What has no direct route, such as the terminal's host and every
// WebSocket, falls to sandboxd's proxy. Labels hold no secret. A name that is none gets no labels.
func (h Hosts) Labels(id, name string, ports []int) map[string]string {
	if CheckName(name) != nil {
		return nil
	}
	route := "sbx-" + id // the router's name, and its service's
	router := "traefik.http.routers." + route + "."
	labels := map[string]string{
		"traefik.enable":       "true",
		router + "rule":        h.portsRule(name, ports) + notDirect,
		router + "priority":    strconv.Itoa(directPriority),
		router + "middlewares": AuthMiddleware + "," + scrubMiddleware,
		router + "service":     route,
		router + "entrypoints": "web",
		"traefik.http.services." + route + ".loadbalancer.server.port": strconv.Itoa(wire.GatewayPort),
	}
	if h.Scheme == "https" {
		labels[router+"entrypoints"] = "websecure"
		labels[router+"tls"] = "true"
	}
	if h.Network != "" {
		labels["traefik.docker.network"] = h.Network
	}
	return labels
}

func (h Hosts) portsRule(name string, ports []int) string {
	if len(ports) == 0 {
		return fmt.Sprintf("HostRegexp(`^[1-9][0-9]{0,4}-%s$`)", regexp.QuoteMeta(name+"."+h.Domain))
	}
	rules := make([]string, len(ports))
	for i, port := range ports {
		rules[i] = "Host(`" + h.Host(Target{Kind: Port, Name: name, Port: port}) + "`)"
	}
	return "(" + strings.Join(rules, " || ") + ")"
}
