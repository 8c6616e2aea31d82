package main

import (
	"bufio"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
)

// families are what a scrape gives, as Prometheus reads it.
type families map[string]*dto.MetricFamily

func readFamilies(t testing.TB, text io.Reader) families {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	f, err := parser.TextToMetricFamilies(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// value gives the value of the series that has these labels, which are name, value, name, value …; NaN when there is none. Of a
// histogram it is the number of observations.
func (f families) value(name string, labels ...string) float64 {
	for _, m := range f[name].GetMetric() {
		have := map[string]string{}
		for _, l := range m.GetLabel() {
			have[l.GetName()] = l.GetValue()
		}
		same := true
		for i := 0; i < len(labels); i += 2 {
			same = same && have[labels[i]] == labels[i+1]
		}
		switch {
		case !same:
		case m.GetHistogram() != nil:
			return float64(m.GetHistogram().GetSampleCount())
		default:
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return math.NaN()
}

func (f families) has(t testing.TB, want float64, name string, labels ...string) {
	t.Helper()
	if got := f.value(name, labels...); got != want {
		t.Errorf("%s%v is %v, want %v", name, labels, got, want)
	}
}

func TestMetrics_OthersNeedAToken(t *testing.T) {
	for address, want := range map[string]string{
		"": "", "127.0.0.1:0": "", "[::1]:9464": "", "localhost:9464": "",
		":9464": "metrics-token-file", "0.0.0.0:9464": "metrics-token-file", "192.168.1.2:1": "metrics-token-file", "9464": "metrics-listen",
	} {
		if got := fault.FieldOf((&Config{MetricsListen: address}).checkMetrics()); got != want {
			t.Errorf("%q: refused for %q, want %q", address, got, want)
		}
	}
	if err := (&Config{MetricsListen: ":9464", MetricsTokenFile: "token"}).checkMetrics(); err != nil {
		t.Error(err)
	}
}

func TestMetricsToken_IsOneWordAndNotShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	c := &Config{MetricsTokenFile: path}
	if _, err := c.metricsToken(); !fault.Is(err, fault.Invalid) {
		t.Errorf("of a file that is not there: %v", err)
	}
	const good = "0123456789abcdef"
	for text, ok := range map[string]bool{
		good: true, " " + good + "\n": true, "": false, "short": false, good + " " + good: false, good + "\n" + good: false, strings.Repeat("x", 5000): false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if token, err := c.metricsToken(); ok != (err == nil) || ok && string(token) != good {
			t.Errorf("%.40q: %q, %v", text, token, err)
		}
	}
}

func TestMetricsHandler_AsksForTheToken(t *testing.T) {
	figures := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") })
	const token = "0123456789abcdef"
	for _, c := range []struct {
		token, host, path, header string
		want                      int
	}{
		{token, "box:1", "/metrics", "Bearer " + token, 200},
		{token, "box:1", "/metrics", "bearer " + token, 200},
		{token, "box:1", "/metrics", "", 401},
		{token, "box:1", "/metrics", "Bearer", 401},
		{token, "box:1", "/metrics", "Bearer " + token + "0", 401},
		{token, "box:1", "/metrics", "Basic " + token, 401},
		{token, "127.0.0.1:1", "/metrics", "Bearer 0123456789abcdeg", 401},
		{token, "box:1", "/", "Bearer " + token, 404},
		{"", "127.0.0.1:1", "/metrics", "", 200},
		{"", "localhost", "/metrics", "", 200},
		{"", "evil.example:1", "/metrics", "", 403},
		{"", "127.0.0.1:1", "/debug/pprof/", "", 404},
	} {
		var secret []byte
		if c.token != "" {
			secret = []byte(c.token)
		}
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r.Host = c.host
		if c.header != "" {
			r.Header.Set("Authorization", c.header)
		}
		w := httptest.NewRecorder()
		if metricsHandler(figures, secret).ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

// counted serves h as the server does when it counts requests, and gives the address, what waits until none is open, and what a scrape tells.
func counted(t *testing.T, h http.HandlerFunc) (address string, ended func(), scrape func() families) {
	t.Helper()
	hosts, err := hostname.New("http://box.example:80")
	if err != nil {
		t.Fatal(err)
	}
	w := &app{config: &Config{MetricsListen: "127.0.0.1:0"}}
	if err := w.newWatch(); err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	whole := w.requests(hosts, h)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Done()
		whole.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), open.Wait, func() families {
		recorder := httptest.NewRecorder()
		w.figures.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/", nil))
		return readFamilies(t, recorder.Body)
	}
}

func TestRequests_AreCountedByWhatTheyAreFor(t *testing.T) {
	address, ended, scrape := counted(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/writes":
			_, _ = io.WriteString(w, "hello")
		case "/flushes":
			_ = http.NewResponseController(w).Flush()
		case "/interim":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusBadGateway)
		case "/aborts":
			panic(http.ErrAbortHandler)
		case "/api/v1/x":
			w.WriteHeader(http.StatusConflict)
		}
	})
	for _, c := range [][2]string{
		{"otter.box.example", "/writes"}, {"3000-otter.box.example", "/flushes"}, {"code-otter.box.example", "/interim"}, {"web--otter.box.example", "/"},
		{"box.example", "/sandboxes/otter"}, {"box.example", "/api/v1/x"}, {"box.example", "/readyz"}, {"evil.example", "/"}, {"box.example", "/aborts"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+c[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c[0]
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
	}
	ended() // a client may have its answer before
	f := scrape()
	const name = "sandboxd_http_requests_total"
	for to, code := range map[string]string{
		"terminal": "2xx", "port": "2xx", "ide": "5xx", "service": "2xx", "dashboard": "2xx", "api": "4xx", "health": "2xx", "unknown": "2xx",
	} {
		f.has(t, 1, name, "to", to, "code", code)
		f.has(t, 1, "sandboxd_http_first_byte_seconds", "to", to)
		f.has(t, 0, "sandboxd_http_requests_open", "to", to)
	}
	f.has(t, 1, "sandboxd_errors_total", "part", "api", "kind", "conflict")
}

// TestRequests_NobodyCanMakeSeries sends what scanners and hostile clients do.
func TestRequests_NobodyCanMakeSeries(t *testing.T) {
	hosts, err := hostname.New("http://box.example:80")
	if err != nil {
		t.Fatal(err)
	}
	a := &app{config: &Config{MetricsListen: "127.0.0.1:0"}}
	if err := a.newWatch(); err != nil {
		t.Fatal(err)
	}
	h := a.requests(hosts, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(200 + len(r.URL.Path)) }))
	count := func() (n int) {
		w := httptest.NewRecorder()
		a.figures.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		for _, f := range readFamilies(t, w.Body) {
			n += len(f.GetMetric())
		}
		return n
	}
	before := count()
	for i := range 2000 {
		r := httptest.NewRequest("METHOD"+strconv.Itoa(i), "/"+strings.Repeat("x", i%700)+`"\n{}`, nil)
		r.Host = []string{strconv.Itoa(i) + "-otter.box.example", "otter" + strconv.Itoa(i) + ".box.example", "code-x" + strconv.Itoa(i) + ".box.example", strconv.Itoa(i) + `"\nup 1`, "box.example"}[i%5]
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if more := count() - before; more > 40 { // some of 8 kinds, each of 6 classes
		t.Errorf("%d more series", more)
	}
}

func TestRequests_AWebSocketIsOneThatSwitches(t *testing.T) {
	inside := make(chan struct{})
	address, _, scrape := counted(t, func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		<-inside
	})
	raw, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_, _ = io.WriteString(raw, "GET / HTTP/1.1\r\nHost: otter.box.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if line, err := bufio.NewReader(raw).ReadString('\n'); err != nil || !strings.Contains(line, "101") {
		t.Fatalf("%q, %v", line, err)
	}
	f := scrape()
	f.has(t, 1, "sandboxd_http_requests_total", "to", "terminal", "code", "1xx")
	f.has(t, 1, "sandboxd_http_requests_open", "to", "terminal")
	close(inside)
}
