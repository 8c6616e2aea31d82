package socketproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// inspected is what may be known of a sandbox's container: whether it is up and which routes it has.
type inspected struct {
	ID    string `json:"Id"`
	Name  string
	State struct {
		Status  string
		Running bool
		Health  *struct{ Status string } `json:",omitempty"`
	}
	Config struct {
		Labels map[string]string
	}
}

// inspect tells of one sandbox's container; no other one is there, whatever it is called.
func (p *Proxy) inspect(w http.ResponseWriter, r *http.Request, version, id string) {
	ctx, cancel := context.WithTimeout(r.Context(), callLimit)
	defer cancel()
	resp, ok := p.send(w, r.WithContext(ctx), version+"/containers/"+id+"/json", nil)
	if !ok {
		return
	}
	var told inspected
	switch {
	case resp.StatusCode >= http.StatusInternalServerError:
		resp.Body.Close()
		refuse(w, resp.StatusCode, fmt.Sprintf("the engine says %d", resp.StatusCode))
		return
	case resp.StatusCode != http.StatusOK: // also where the beginning of an id fits several
		resp.Body.Close()
	case !read(w, resp, &told):
		return
	}
	if told.Config.Labels[mark] == "" {
		refuse(w, http.StatusNotFound, "No such container: "+id)
		return
	}
	keepOwnRoute(told.Config.Labels)
	write(w, http.StatusOK, told)
}

// keepOwnRoute leaves of a container's labels only the marks and the route that sandboxd writes. An image brings labels of its
// own, which could lead any host, the dashboard's too, to a server of the image's maker. Labels with a middleware are those of an older
// sandboxd, which led straight to the container: they go as a whole.
func keepOwnRoute(labels map[string]string) {
	route := "sbx-" + labels[identity]
	router, service := "traefik.http.routers."+route+".", "traefik.http.services."+route+"."
	own := map[string]bool{"traefik.enable": true, service + "loadbalancer.server.url": true}
	for _, key := range []string{"rule", "priority", "service", "entrypoints", "tls", "tls.certresolver"} {
		own[router+key] = true
	}
	_, direct := labels[router+"middlewares"]
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return strings.HasPrefix(strings.ToLower(key), "traefik.") && (direct || !own[key])
	})
}

// happening is what may be known of an event.
type happening struct {
	Type, Action   string
	ID             string `json:"id"`
	Time, TimeNano int64
	Actor          struct{ ID string }
}

// events streams the starts and ends of sandboxes, until the caller or the engine goes.
func (p *Proxy) events(w http.ResponseWriter, r *http.Request, version string) {
	resp, ok := p.ask(w, r, version+"/events", filters(map[string][]string{
		"type": {"container"}, "label": {mark}, "event": {"start", "die", "health_status"},
	}))
	if !ok {
		return
	}
	defer resp.Body.Close()
	w.Header().Set("Content-Type", "application/json")
	flush := http.NewResponseController(w).Flush
	if flush() != nil {
		return
	}
	events, out := json.NewDecoder(resp.Body), json.NewEncoder(w)
	for {
		var e happening
		if events.Decode(&e) != nil || out.Encode(e) != nil || flush() != nil {
			return
		}
	}
}
