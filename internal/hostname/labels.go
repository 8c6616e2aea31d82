package hostname

import "regexp"

// sandboxdService is the service of Traefik's file provider that leads to sandboxd.
const sandboxdService = "sandboxd@file"

// labelPriority puts a sandbox's own router above the one for all sandboxes' hosts, which has priority 1.
const labelPriority = "1000"

// ObserveHeader with the value 1 marks a probe: it uses nothing and wakes nothing.
const ObserveHeader = "X-Sandboxd-Observe"

// ShareHeader is how a program shows the secret of a link to a shared port.
const ShareHeader = "X-Sandboxd-Share"

// Labels gives the Traefik labels of a sandbox's container: a router that leads all hosts of the sandbox to sandboxd.
// Labels hold no secret. A name that is none gets no labels.
func (h Hosts) Labels(id, name string) map[string]string {
	if CheckName(name) != nil {
		return nil
	}
	router := "traefik.http.routers.sbx-" + id + "."
	labels := map[string]string{
		"traefik.enable":       "true",
		router + "rule":        "HostRegexp(`^([a-z][a-z0-9-]*--|[0-9]+-|code-)?" + regexp.QuoteMeta(name+"."+h.Domain) + "$`)",
		router + "priority":    labelPriority,
		router + "service":     sandboxdService,
		router + "entrypoints": "web",
		// Without a service of its own, Traefik makes one of a port of the container's, and refuses a container that
		// exposes none. Nothing leads to this one.
		"traefik.http.services.sbx-" + id + ".loadbalancer.server.url": "http://sandboxd.invalid",
	}
	if h.Scheme == "https" {
		labels[router+"entrypoints"] = "websecure"
		labels[router+"tls"] = "true"
	}
	return labels
}
