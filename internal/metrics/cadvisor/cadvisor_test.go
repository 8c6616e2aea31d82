package cadvisor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/cadvisor/info/v1"
	v2 "github.com/google/cadvisor/info/v2"
	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
)

// fake is a cAdvisor that answers as a test says, and a source that asks it.
func fake(t *testing.T, answer http.HandlerFunc) *Source {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	s, err := New(server.URL, "main")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// says gives an answer with the containers of all.
func says(t *testing.T, all map[string]v2.ContainerInfo) http.HandlerFunc {
	t.Helper()
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) { w.Write(text) }
}

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// sample is one with so much CPU time at a moment.
func sample(at time.Time, cpu time.Duration) *v2.ContainerStats {
	return &v2.ContainerStats{
		Timestamp: at, Cpu: &v1.CpuStats{Usage: v1.CpuUsage{Total: uint64(cpu)}}, Memory: &v1.MemoryStats{WorkingSet: 100, Cache: 10},
	}
}

func named(name string, samples ...*v2.ContainerStats) v2.ContainerInfo {
	return v2.ContainerInfo{Spec: v2.ContainerSpec{Aliases: []string{name, "c0ffee"}}, Stats: samples}
}

func TestRead_UnderstandsARecordedAnswer(t *testing.T) {
	text, err := os.ReadFile("testdata/answer-0.38.7.json")
	if err != nil {
		t.Fatal(err)
	}
	asked := ""
	s := fake(t, func(w http.ResponseWriter, r *http.Request) { asked = r.Method + " " + r.URL.String(); w.Write(text) })
	found, err := s.Read(t.Context(), []string{"k3x9", "other"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]metrics.Reading{"k3x9": {
		Usage: metrics.Usage{
			CPU: 1661276465, Throttled: 217131969, Memory: 618496, Cache: 131072, MemoryLimit: 256 << 20,
			NetworkRx: 736, DiskRead: 4096, DiskWrite: 8192,
		},
		Time: time.Date(2026, 11, 24, 0, 3, 38, 704511397, time.UTC),
	}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	if asked != "GET /api/v2.1/stats/?count=1&recursive=true&type=docker" {
		t.Errorf("asked %s", asked)
	}
}

func TestRead_GivesOnlyTheAskedContainersOfItsInstance(t *testing.T) {
	s := fake(t, says(t, map[string]v2.ContainerInfo{
		"/docker/1": named("sandboxd-main-a", sample(noon, 1)),
		"/docker/2": named("sandboxd-other-b", sample(noon, 2)),
		"/docker/3": named("sandboxd-main-notasked", sample(noon, 3)),
		"/docker/4": named("a", sample(noon, 4)),
		"/docker/5": named("sandboxd-main-b", sample(noon.Add(-time.Second), 5)), // was just replaced
		"/docker/6": named("sandboxd-main-b", sample(noon, 6)),
		"/docker/7": {Stats: []*v2.ContainerStats{sample(noon, 7)}},
	}))
	found, err := s.Read(t.Context(), []string{"a", "b", "gone"})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found["a"].CPU != 1 || found["b"].CPU != 6 {
		t.Errorf("found %+v", found)
	}
}

func TestRead_LeavesOutWhatASampleDoesNotTell(t *testing.T) {
	bare, dark, timeless := sample(noon, 1), sample(noon, 1), sample(time.Time{}, 1)
	bare.Memory, dark.Cpu = nil, nil
	wide := sample(noon, 1)
	wide.Processes = &v1.ProcessStats{ProcessCount: 3, ThreadsCurrent: 9}
	wide.Network = &v2.NetworkStats{Interfaces: []v1.InterfaceStats{
		{Name: "lo", RxBytes: 1 << 40}, {Name: "eth0", RxBytes: 5, TxBytes: 6}, {Name: "eth1", RxBytes: 1<<64 - 1, TxBytes: 1},
	}}
	unlimited := named("sandboxd-main-wide", nil, sample(noon.Add(-time.Minute), 2), wide)
	unlimited.Spec.HasMemory, unlimited.Spec.Memory.Limit = true, 1<<64-1
	s := fake(t, says(t, map[string]v2.ContainerInfo{
		"/1": named("sandboxd-main-bare", bare), "/2": named("sandboxd-main-dark", dark), "/3": named("sandboxd-main-timeless", timeless),
		"/4": named("sandboxd-main-new"), "/5": unlimited,
	}))
	found, err := s.Read(t.Context(), []string{"bare", "dark", "timeless", "new", "wide"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]metrics.Reading{"wide": {Time: noon, Usage: metrics.Usage{
		CPU: 1, Memory: 100, Cache: 10, Processes: 9, NetworkRx: mostCounted, NetworkTx: 7,
	}}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}

// wrong is an answer that gives no figures, and what is said of it.
type wrong struct {
	answer http.HandlerFunc
	kind   fault.Kind
	words  string
}

func wrongs(good []byte, elsewhere string) map[string]wrong {
	return map[string]wrong{
		"never answers": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, fault.Timeout, "too long to answer"},
		"stops in the middle": {func(w http.ResponseWriter, r *http.Request) {
			w.Write(good[:500])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, fault.Timeout, "too long to answer"},
		"dies in the middle": {func(w http.ResponseWriter, _ *http.Request) {
			w.Write(good[:500])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, fault.Unavailable, "broke its answer off"},
		"ends in the middle":  {func(w http.ResponseWriter, _ *http.Request) { w.Write(good[:500]) }, fault.Unavailable, "broke its answer off"},
		"ends before the end": {func(w http.ResponseWriter, _ *http.Request) { w.Write(good[:len(good)-1]) }, fault.Unavailable, "broke its answer off"},
		"hangs up":            {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fault.Unavailable, "does not answer"},
		"500": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "unable to find data in memory cache", 500)
		}, fault.Unavailable, "status 500"},
		"wants a password": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, fault.Unavailable, "status 401"},
		"leads elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		}, fault.Unavailable, "elsewhere (status 307)"},
		"empty":       {func(http.ResponseWriter, *http.Request) {}, fault.Unavailable, "not understood"},
		"a page":      {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>It works!</html>") }, fault.Unavailable, "not understood"},
		"a list":      {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "[1, 2]") }, fault.Unavailable, "not understood"},
		"null":        {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "null") }, fault.Unavailable, "not understood"},
		"other types": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"/docker/1": {"stats": "many"}}`) }, fault.Unavailable, "not understood"},
		"negative": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"/a":{"stats":[{"cpu":{"usage":{"total":-1}}}]}}`)
		}, fault.Unavailable, "not understood"},
		"endless space":         {endless("{", " "), fault.Unavailable, "far too long"},
		"endless text":          {endless(`{"`, "x"), fault.Unavailable, "far too long"},
		"an endless container":  {endless(`{"/docker/1":{"stats":[{}`, ",{}"), fault.Unavailable, "far too long"},
		"endless nesting":       {endless(`{"/docker/1":`, "["), fault.Unavailable, "not understood"},
		"endless containers":    {endless(`{"/docker/1":{"stats":[]}`, `,"/docker/1":{"stats":[]}`+strings.Repeat(" ", 4<<10)), fault.Unavailable, "far too long"},
		"endless header fields": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, fault.Unavailable, "does not answer"},
	}
}

func TestRead_SaysWhatIsWrongWithCAdvisor(t *testing.T) {
	good, err := os.ReadFile("testdata/answer-0.38.7.json")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("followed to %s", r.URL)
	}))
	defer elsewhere.Close()
	for name, c := range wrongs(good, elsewhere.URL) {
		t.Run(name, func(t *testing.T) {
			s := fake(t, c.answer)
			if c.kind == fault.Timeout {
				s.limit = 200 * time.Millisecond
			} else {
				s.limit = time.Minute
				s.most = 4 << 20
			}
			found, err := s.Read(t.Context(), []string{"k3x9"})
			if !fault.Is(err, c.kind) || !strings.Contains(fault.Message(err), c.words) || found != nil {
				t.Errorf("found %v, %v; want %q", found, err, c.words)
			}
		})
	}
}

// endless answers with begin, and then with more until the caller hangs up.
func endless(begin, more string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		more := strings.Repeat(more, 1+(32<<10)/len(more))
		_, err := io.WriteString(w, begin)
		for err == nil {
			_, err = io.WriteString(w, more)
		}
	}
}

func TestRead_SaysThatNothingListens(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	s, err := New(server.URL, "main")
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	_, err = s.Read(t.Context(), []string{"a"})
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "does not answer") {
		t.Errorf("got %v", err)
	}
}

func TestRead_WorksAgainAfterCAdvisorWasRestarted(t *testing.T) {
	var down atomic.Bool
	answer := says(t, map[string]v2.ContainerInfo{"/docker/1": named("sandboxd-main-a", sample(noon, 1))})
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		answer(w, r)
	})
	for _, away := range []bool{false, true, false} {
		down.Store(away)
		found, err := s.Read(t.Context(), []string{"a"})
		if (err != nil) != away || len(found) == 0 != away {
			t.Errorf("away %t: %v, %v", away, found, err)
		}
	}
}

func TestRead_EndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := fake(t, func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	s.limit = time.Hour
	if _, err := s.Read(ctx, []string{"a"}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
}

func TestNew_RefusesWhatIsNoAddress(t *testing.T) {
	for _, address := range []string{
		"", "127.0.0.1:8081", "localhost:8081", "unix:///run/x.sock", "http://", "http://:8081", "/metrics", "http://host:port", "ftp://host",
		"http://host/?count=1", "http://host/#x", "http://a b", "http://host:8081\n",
	} {
		_, err := New(address, "main")
		if !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != "cadvisor" {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestNew_TakesAPathAndAPassword(t *testing.T) {
	asked := ""
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		asked = r.URL.Path + " " + user + " " + password
		fmt.Fprint(w, `"0.38.7"`)
	})
	behind, err := New(strings.Replace(s.Address(), "http://", "http://anna:secret@", 1)+"/base/", "main")
	if err != nil {
		t.Fatal(err)
	}
	defer behind.client.CloseIdleConnections()
	version, err := behind.Version(t.Context())
	if err != nil || version != "0.38.7" || asked != "/base/api/v2.1/version anna secret" {
		t.Errorf("version %q, %v, asked %q", version, err, asked)
	}
	if strings.Contains(behind.Address(), "secret") {
		t.Errorf("the address shows the password: %s", behind.Address())
	}
}
