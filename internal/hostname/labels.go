package hostname

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// GatewayPort is the port in a sandbox at which its guest takes requests from Traefik and leads them to the terminal
// or to a port, by Host.
const GatewayPort = 7880

// AuthMiddleware is the Traefik middleware that asks sandboxd whether a request may pass. Every router names it:
// where it is not configured, Traefik refuses the router, so a sandbox is never served without it.
const AuthMiddleware = "sandboxd-auth@file"

// directPriority puts the direct route above sandboxd's catch-all, which has priority 1.
const directPriority = 1000

// Labels gives the Traefik labels that route the sandbox's hosts straight to its gateway: its terminal host, and the
// given ports or, when there are none, every port. (What has no direct route falls to sandboxd's proxy.) They hold no
// secret. A name that is none gets no labels.
func (h Hosts) Labels(id, name string, ports []int) map[string]string {
	if CheckName(name) != nil {
		return nil
	}
	service := "sbx-" + id
	labels := map[string]string{
		"traefik.enable": "true",
		"traefik.http.services." + service + ".loadbalancer.server.port": strconv.Itoa(GatewayPort),
	}
	if h.Network != "" {
		labels["traefik.docker.network"] = h.Network
	}
	h.addRouter(labels, service, service, hostRule(h.Host(Target{Kind: Terminal, Name: name})))
	h.addRouter(labels, service+"-ports", service, h.portsRule(name, ports))
	return labels
}

func (h Hosts) addRouter(labels map[string]string, router, service, rule string) {
	prefix := "traefik.http.routers." + router + "."
	labels[prefix+"rule"] = rule
	labels[prefix+"service"] = service
	labels[prefix+"middlewares"] = AuthMiddleware
	labels[prefix+"priority"] = strconv.Itoa(directPriority)
	labels[prefix+"entrypoints"] = "web"
	if h.Scheme == "https" {
		labels[prefix+"entrypoints"] = "websecure"
		labels[prefix+"tls"] = "true"
	}
}

func (h Hosts) portsRule(name string, ports []int) string {
	if len(ports) == 0 {
		return fmt.Sprintf("HostRegexp(`^[1-9][0-9]{0,4}-%s$`)", regexp.QuoteMeta(name+"."+h.Domain))
	}
	var rules []string
	for _, port := range ports {
		rules = append(rules, hostRule(h.Host(Target{Kind: Port, Name: name, Port: port})))
	}
	return strings.Join(rules, " || ")
}

func hostRule(host string) string { return "Host(`" + host + "`)" }
