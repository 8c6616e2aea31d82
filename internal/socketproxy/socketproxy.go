// Package socketproxy lets Traefik learn from a Docker engine which sandboxes are awake, and nothing else: it answers the
// few reading calls that Traefik makes, of sandboxes alone, with no more than the routes need.
//
// It is no general proxy: what it does not know is refused, and no environment, command or mount is ever told. It has no
// authentication: who may reach its socket may read.
//
// Invariant: only GET and HEAD reach the engine, on paths that are built here and not taken from the caller.
package socketproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"time"
)

// mark is the label on every sandbox's container.
const mark = "sandboxd.instance"

// identity is the label with a sandbox's ID, which names its route. See hostname.Hosts.Labels.
const identity = "sandboxd.id"

// Bounds on one call to the engine. The stream of events has no end, but a beginning.
const (
	callLimit = 10 * time.Second
	maxAnswer = 16 << 20
	maxIdle   = 8
)

// call is the form of a path of the engine's API: the requested version, or "", and the rest.
var call = regexp.MustCompile(`^(/v[0-9]{1,2}\.[0-9]{1,3})?(/_ping|/version|/events|/containers/json|/containers/([a-zA-Z0-9][a-zA-Z0-9_.-]{0,127})/json)$`)

// Proxy is the handler. Safe for concurrent use; make it with New.
type Proxy struct{ engine *http.Client }

// New gives a proxy for the engine that listens on a unix socket. It does not connect until it is asked.
func New(socket string) *Proxy {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &Proxy{engine: &http.Client{Transport: &http.Transport{
		DialContext: dial, MaxIdleConnsPerHost: maxIdle, ResponseHeaderTimeout: callLimit,
	}}}
}

// ServeHTTP answers one call of the engine's API, or refuses it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := call.FindStringSubmatch(r.URL.Path)
	if parts == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuse(w, http.StatusForbidden, "this proxy only tells of sandboxes")
		return
	}
	version, what, id := parts[1], parts[2], parts[3]
	switch what {
	case "/_ping":
		p.ping(w, r, version)
	case "/version":
		p.version(w, r, version)
	case "/events":
		p.events(w, r, version)
	case "/containers/json":
		p.list(w, r, version)
	default:
		p.inspect(w, r, version, id)
	}
}

// ping tells which versions the engine speaks.
func (p *Proxy) ping(w http.ResponseWriter, r *http.Request, version string) {
	resp, ok := p.ask(w, r, version+"/_ping", nil)
	if !ok {
		return
	}
	defer resp.Body.Close()
	for _, name := range []string{"Api-Version", "Ostype"} {
		w.Header().Set(name, resp.Header.Get(name))
	}
	io.WriteString(w, "OK")
}

func (p *Proxy) version(w http.ResponseWriter, r *http.Request, version string) {
	var told struct{ Version, ApiVersion, MinAPIVersion, Os, Arch string }
	p.tell(w, r, version+"/version", nil, &told)
}

// list gives the ids of the sandboxes that are up, also when all containers are asked for: no other has a route, and each
// would cost the caller a look.
func (p *Proxy) list(w http.ResponseWriter, r *http.Request, version string) {
	var told []struct {
		ID string `json:"Id"`
	}
	p.tell(w, r, version+"/containers/json", filters(map[string][]string{"label": {mark}}), &told)
}

// send sends a request of ours to the engine and gives its answer. When there is none, it has answered.
func (p *Proxy) send(w http.ResponseWriter, r *http.Request, path string, query url.Values) (*http.Response, bool) {
	to := url.URL{Scheme: "http", Host: "engine", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, to.String(), nil)
	if err != nil {
		refuse(w, http.StatusBadRequest, "this is no call of the engine's")
		return nil, false
	}
	resp, err := p.engine.Do(req)
	if err != nil {
		refuse(w, http.StatusBadGateway, "the engine does not answer")
		return nil, false
	}
	return resp, true
}

// ask is send for a success. When it is none, it has answered.
func (p *Proxy) ask(w http.ResponseWriter, r *http.Request, path string, query url.Values) (*http.Response, bool) {
	resp, ok := p.send(w, r, path, query)
	if ok && resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		refuse(w, resp.StatusCode, fmt.Sprintf("the engine says %d", resp.StatusCode))
		return nil, false
	}
	return resp, ok
}

// read takes the body of resp into told, which has the fields that may be known. When it cannot, it has answered.
func read(w http.ResponseWriter, resp *http.Response, told any) bool {
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(told); err != nil {
		refuse(w, http.StatusBadGateway, "the engine's answer cannot be read")
		return false
	}
	return true
}

// tell answers with what the engine does, as far as told has fields for it.
func (p *Proxy) tell(w http.ResponseWriter, r *http.Request, path string, query url.Values, told any) {
	ctx, cancel := context.WithTimeout(r.Context(), callLimit)
	defer cancel()
	if resp, ok := p.ask(w, r.WithContext(ctx), path, query); ok && read(w, resp, told) {
		write(w, http.StatusOK, told)
	}
}

// filters is a query in which the engine takes conditions.
func filters(conditions map[string][]string) url.Values {
	text, err := json.Marshal(conditions)
	if err != nil {
		panic(err) // strings always marshal
	}
	return url.Values{"filters": {string(text)}}
}

// refuse answers as an engine does.
func refuse(w http.ResponseWriter, status int, why string) {
	write(w, status, map[string]string{"message": why})
}

// write sends JSON. Nobody is left to be told of an error: the caller has gone.
func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
