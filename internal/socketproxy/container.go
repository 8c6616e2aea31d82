package socketproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// inspected is what may be known of a sandbox's container: where it is and which routes lead there.
type inspected struct {
	ID    string `json:"Id"`
	Name  string
	State struct {
		Status  string
		Running bool
		Health  *struct{ Status string } `json:",omitempty"`
	}
	HostConfig struct{ NetworkMode string }
	Config     struct {
		Labels map[string]string
	}
	NetworkSettings struct {
		Networks map[string]*endpoint
	}
}

// endpoint is a container's place in one network.
type endpoint struct{ NetworkID, IPAddress, GlobalIPv6Address string }

// inspect tells of one sandbox's container; no other one is there, whatever it is called. A frozen one is told to be
// running: its route stays, and forwardAuth thaws it before anything goes there.
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
	if told.State.Status == "paused" {
		told.State.Status = "running"
	}
	write(w, http.StatusOK, told)
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
