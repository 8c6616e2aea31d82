package socketproxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// engine is an engine that tells too much.
type engine struct {
	mu    sync.Mutex
	asked []string // method and URI of every call
	more  chan string
}

const secret = "hunter2"

var containers = map[string]string{
	"awake":  `"State":{"Status":"running","Running":true,"Pid":7,"Health":{"Status":"healthy","Log":["hunter2"]}},"Config":{"Env":["KEY=hunter2"],"Cmd":["hunter2"],"Labels":{"sandboxd.instance":"i","a":"b"}}`,
	"frozen": `"State":{"Status":"paused","Running":true,"Paused":true},"Config":{"Env":["KEY=hunter2"],"Labels":{"sandboxd.instance":"i"}}`,
	"older":  `"State":{"Status":"running"},"Config":{"Labels":{"sandboxd.instance":"i","sandboxd.id":"r","traefik.enable":"true","traefik.http.routers.sbx-r.rule":"x","traefik.http.routers.sbx-r.middlewares":"m"}}`,
	"taker": `"State":{"Status":"running"},"Config":{"Labels":{"sandboxd.instance":"i","sandboxd.id":"r","traefik.enable":"true","traefik.http.routers.sbx-r.rule":"x",` +
		`"traefik.http.routers.sbx-r.observability.accesslogs":"false","traefik.http.routers.taker.rule":"PathPrefix(/)","Traefik.http.routers.taker.priority":"9",` +
		`"traefik.tcp.routers.taker.rule":"HostSNI(*)","traefik.docker.network":"n"}}`,
	"other": `"State":{"Status":"running","Running":true},"Config":{"Labels":{"traefik.enable":"true"}}`,
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	e.asked = append(e.asked, r.Method+" "+r.RequestURI)
	e.mu.Unlock()
	switch path := strings.TrimPrefix(r.URL.Path, "/v1.41"); path {
	case "/_ping":
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Docker-Experimental", secret)
	case "/version":
		io.WriteString(w, `{"Version":"20.10","ApiVersion":"1.41","KernelVersion":"hunter2","Components":[{"Name":"hunter2"}]}`)
	case "/containers/json":
		io.WriteString(w, `[{"Id":"awake","Command":"hunter2","Names":["/awake"]},{"Id":"frozen","Mounts":[{"Source":"hunter2"}]}]`)
	case "/events":
		w.(http.Flusher).Flush()
		for text := range e.more {
			io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
	default:
		id := strings.TrimSuffix(strings.TrimPrefix(path, "/containers/"), "/json")
		if text, there := containers[id]; there {
			fmt.Fprintf(w, `{"Id":%q,"Name":"/%s","Path":"hunter2","Mounts":[{"Source":"hunter2"}],"HostConfig":{"NetworkMode":"n","Binds":["hunter2"]},`+
				`"NetworkSettings":{"Ports":{},"Networks":{"n":{"NetworkID":"1","IPAddress":"10.0.0.2","MacAddress":"hunter2"}}},%s}`, id, id, text)
			return
		}
		status := http.StatusNotFound
		switch id {
		case "several":
			status = http.StatusBadRequest
		case "broken":
			status = http.StatusInternalServerError
		}
		http.Error(w, `{"message":"hunter2"}`, status)
	}
}

// newProxy serves a proxy in front of an engine.
func newProxy(t *testing.T) (*engine, string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "engine.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{more: make(chan string)}
	behind := &http.Server{Handler: e}
	go behind.Serve(listener)
	t.Cleanup(func() { behind.Close() })
	front := httptest.NewServer(New(socket))
	t.Cleanup(front.Close)
	return e, front.URL
}

func get(t *testing.T, address string) (int, string) {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(body))
}

func TestReads_TellWhatRoutesNeedAndNoMore(t *testing.T) {
	_, url := newProxy(t)
	for path, want := range map[string]string{
		"/_ping":                       `OK`,
		"/v1.41/version":               `{"Version":"20.10","ApiVersion":"1.41","MinAPIVersion":"","Os":"","Arch":""}`,
		"/v1.41/containers/json?all=1": `[{"Id":"awake"},{"Id":"frozen"}]`,
		"/containers/awake/json": `{"Id":"awake","Name":"/awake","State":{"Status":"running","Running":true,"Health":{"Status":"healthy"}},` +
			`"Config":{"Labels":{"a":"b","sandboxd.instance":"i"}}}`,
	} {
		status, got := get(t, url+path)
		if diff := cmp.Diff(want, got); diff != "" || status != http.StatusOK {
			t.Errorf("%s: %d\n%s", path, status, diff)
		}
	}
}

// What an earlier sandboxd has written on containers led past sandboxd.
func TestInspect_RoutesOfAnEarlierVersionAreNotTold(t *testing.T) {
	_, url := newProxy(t)
	status, got := get(t, url+"/v1.41/containers/older/json")
	if status != http.StatusOK || !strings.Contains(got, `"Labels":{"sandboxd.id":"r","sandboxd.instance":"i"}`) {
		t.Errorf("%d %s", status, got)
	}
}

// An image's labels are its container's too: with them, its maker could take the dashboard's host, or any.
func TestInspect_OnlyTheRouteThatSandboxdWritesIsTold(t *testing.T) {
	_, url := newProxy(t)
	status, got := get(t, url+"/v1.41/containers/taker/json")
	want := `"Labels":{"sandboxd.id":"r","sandboxd.instance":"i","traefik.enable":"true","traefik.http.routers.sbx-r.rule":"x"}`
	if status != http.StatusOK || !strings.Contains(got, want) {
		t.Errorf("%d %s", status, got)
	}
}

// Nobody can find out by the answers which other containers there are.
func TestInspect_OtherContainersAreNotThere(t *testing.T) {
	_, url := newProxy(t)
	for _, id := range []string{"gone", "other", "several"} {
		status, got := get(t, url+"/containers/"+id+"/json")
		if want := `{"message":"No such container: ` + id + `"}`; status != http.StatusNotFound || got != want {
			t.Errorf("%s: %d %s, want 404 %s", id, status, got, want)
		}
	}
}

func TestInspect_AnEngineInTroubleSaysSo(t *testing.T) {
	_, url := newProxy(t)
	if status, got := get(t, url+"/containers/broken/json"); status != http.StatusInternalServerError || strings.Contains(got, secret) {
		t.Errorf("%d %s", status, got)
	}
}

// The engine is asked with conditions of our own, whatever the caller's are.
func TestList_AsksForSandboxesThatAreUp(t *testing.T) {
	e, address := newProxy(t)
	get(t, address+"/containers/json?all=1&size=1&filters="+url.QueryEscape(`{"name":["x"]}`))
	want := []string{"GET /containers/json?filters=" + url.QueryEscape(`{"label":["sandboxd.instance"]}`)}
	if diff := cmp.Diff(want, e.asked); diff != "" {
		t.Error(diff)
	}
}

func TestAllElse_IsRefusedAndNeverReachesTheEngine(t *testing.T) {
	e, address := newProxy(t)
	for _, c := range [][2]string{
		{"POST", "/containers/create"}, {"POST", "/containers/awake/json"}, {"DELETE", "/containers/awake"}, {"PUT", "/_ping"}, {"OPTIONS", "/version"},
		{"GET", "/containers/awake/archive?path=/"}, {"GET", "/containers/awake/logs?stdout=1"}, {"GET", "/containers/awake/export"},
		{"GET", "/containers/awake/top"}, {"GET", "/info"}, {"GET", "/images/json"}, {"GET", "/networks"}, {"GET", "/secrets"}, {"GET", "/"},
		{"GET", "/containers/../images/json"}, {"GET", "/containers/..%2Fimages/json"}, {"GET", "/containers/%2e%2e/json"}, {"GET", "/v1.41/v1.41/version"},
		{"GET", "/v1.41/../info"}, {"GET", "/v1/version"}, {"GET", "//version"}, {"GET", "/version/"}, {"GET", "/version%0a"}, {"GET", "/containers/a%20b/json"},
	} {
		req, err := http.NewRequest(c[0], address, nil)
		if err != nil {
			t.Fatal(err)
		}
		path, query, _ := strings.Cut(c[1], "?")
		req.URL.Opaque, req.URL.RawQuery = "//"+req.URL.Host+path, query
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s: %s", c[0], c[1], resp.Status)
		}
	}
	if len(e.asked) > 0 {
		t.Errorf("the engine was asked %q", e.asked)
	}
}

func TestEvents_StreamStartsAndEndsWithoutTheirAttributes(t *testing.T) {
	e, address := newProxy(t)
	resp, err := http.Get(address + "/v1.41/events?filters=" + url.QueryEscape(`{"type":["image"]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for range 2 {
		e.more <- `{"status":"start","id":"1","Type":"container","Action":"start","Actor":{"ID":"1","Attributes":{"k":"hunter2"}},"time":5,"timeNano":6}`
		var got happening
		if !lines.Scan() || strings.Contains(lines.Text(), secret) || json.Unmarshal(lines.Bytes(), &got) != nil {
			t.Fatalf("got %q, %v", lines.Text(), lines.Err())
		}
		want := happening{Type: "container", Action: "start", ID: "1", Time: 5, TimeNano: 6}
		want.Actor.ID = "1"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	close(e.more)
	if lines.Scan() {
		t.Errorf("after the engine's end comes %q", lines.Text())
	}
	want := []string{"GET /v1.41/events?filters=" + url.QueryEscape(`{"event":["start","die","health_status"],"label":["sandboxd.instance"],"type":["container"]}`)}
	if diff := cmp.Diff(want, e.asked); diff != "" {
		t.Error(diff)
	}
}

func TestAnEngineThatIsAway_IsABadGateway(t *testing.T) {
	front := httptest.NewServer(New(filepath.Join(t.TempDir(), "none.sock")))
	defer front.Close()
	for _, path := range []string{"/_ping", "/version", "/events", "/containers/json", "/containers/a/json"} {
		if status, _ := get(t, front.URL+path); status != http.StatusBadGateway {
			t.Errorf("%s: %d", path, status)
		}
	}
}
