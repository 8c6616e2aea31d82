package guest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/wire"
)

var gatewayKey = bytes.Repeat([]byte{1}, wire.GatewayKeySize)

// openGateway serves a gateway and gives its address.
func openGateway(t *testing.T) (*gateway, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway("", func() {})
	g.take(gatewayKey)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.serve(ctx, l)
		g.serving.Wait()
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("the gateway does not end")
		}
	})
	return g, l.Addr().String()
}

// program serves h as a program in the sandbox does, and gives its host.
func program(t *testing.T, h http.HandlerFunc) (host string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port + "-box.example.com"
}

// direct is a request as Traefik sends it.
func direct(t *testing.T, method, address, host, path string, body io.Reader) *http.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	r.Header.Set(wire.PassHeader, wire.NewPass(gatewayKey, host, time.Now().Add(wire.PassLife)))
	return r
}

func do(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func TestGateway_IsClosedToWhoHasNoPass(t *testing.T) {
	g, address := openGateway(t)
	asked := 0
	host := program(t, func(http.ResponseWriter, *http.Request) { asked++ })
	soon := time.Now().Add(wire.PassLife)
	good := wire.NewPass(gatewayKey, host, soon)
	for name, passes := range map[string][]string{
		"none":          nil,
		"empty":         {""},
		"garbage":       {"let me in"},
		"two":           {good, good},
		"over":          {wire.NewPass(gatewayKey, host, time.Now().Add(-time.Second))},
		"other host":    {wire.NewPass(gatewayKey, "1"+host, soon)},
		"other key":     {wire.NewPass(bytes.Repeat([]byte{2}, wire.GatewayKeySize), host, soon)},
		"without a key": {wire.NewPass(nil, host, soon)},
	} {
		r := direct(t, http.MethodPost, address, host, "/", strings.NewReader("body"))
		r.Header[wire.PassHeader] = passes
		if res, body := do(t, r); res.StatusCode != http.StatusForbidden || body != "" {
			t.Errorf("%s: %d, %q", name, res.StatusCode, body)
		}
	}
	ask := func() int { res, _ := do(t, direct(t, http.MethodGet, address, host, "/", nil)); return res.StatusCode }
	if ask() != http.StatusOK || asked != 1 {
		t.Errorf("who has a pass is kept out, or others got in: %d", asked)
	}
	for name, key := range map[string][]byte{"another key": bytes.Repeat([]byte{2}, wire.GatewayKeySize), "no key": nil} {
		g.take(key)
		if ask() != http.StatusForbidden || asked != 1 {
			t.Errorf("with %s old passes are valid", name)
		}
	}
	g.take(gatewayKey)
	if ask() != http.StatusOK {
		t.Error("the key does not come back")
	}
}

func TestGateway_PassesTheRequestOnAsItCame(t *testing.T) {
	_, address := openGateway(t)
	var got *http.Request
	var uri string
	host := program(t, func(_ http.ResponseWriter, r *http.Request) { got, uri = r, r.RequestURI })
	host += ":8443"
	r := direct(t, http.MethodGet, address, host, "", nil)
	r.URL.Opaque = "//" + host + "/a%2Fb/../c;x?q=1;2&z=%zz&"
	for k, v := range map[string]string{"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": host, "X-Forwarded-Proto": "https",
		"X-Forwarded-Server": "traefik", "X-Real-Ip": "10.0.0.1", "Forwarded": "for=x", "X-Sandboxd-User": "admin", "X-Sandboxd-Share": "secret",
		"X_Sandboxd_User": "admin", "Sandboxd-Exec": "1", "Cookie": "a=b", "Authorization": "Bearer mine", "Accept": "x/y"} {
		r.Header[k] = []string{v}
	}
	do(t, r)
	if uri != "/a%2Fb/../c;x?q=1;2&z=%zz&" || got.Host != host {
		t.Errorf("got %q at %q", uri, got.Host)
	}
	got.Header.Del("User-Agent")
	want := http.Header{"X-Forwarded-For": {"203.0.113.9"}, "X-Forwarded-Host": {host}, "X-Forwarded-Proto": {"https"},
		"Cookie": {"a=b"}, "Authorization": {"Bearer mine"}, "Accept": {"x/y"}, "Accept-Encoding": {"gzip"}}
	if d := cmp.Diff(want, got.Header); d != "" {
		t.Error(d)
	}
}

func TestGateway_AnswerStaysWithinItsHost(t *testing.T) {
	_, address := openGateway(t)
	host := program(t, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Set-Cookie"] = []string{"a=b; Path=/", "a=b; domain=example.com", "__Host-sandboxd=x", "=x", "c=d"}
		h.Set("Clear-Site-Data", `"cookies"`)
		h.Set("Alt-Svc", "h3")
		h.Set("Sandboxd-Exec", "1")
		h.Set("X-Own", "1")
		h.Set("Trailer", "X-Sum, Set-Cookie")
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "hello")
		h.Set("X-Sum", "5")
		h["Set-Cookie"] = []string{"late=1"}
	})
	r := direct(t, http.MethodGet, address, host, "/", nil)
	var hints []textproto.MIMEHeader
	trace := &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error { hints = append(hints, h); return nil }}
	res, body := do(t, r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if len(hints) != 1 || hints[0].Get("X-Own") != "1" {
		t.Errorf("hints %v", hints)
	}
	for _, h := range append(hints, textproto.MIMEHeader(res.Header)) {
		if d := cmp.Diff([]string{"a=b; Path=/", "c=d"}, h["Set-Cookie"]); d != "" {
			t.Error(d)
		}
		for _, gone := range []string{"Clear-Site-Data", "Alt-Svc", "Sandboxd-Exec"} {
			if _, ok := h[gone]; ok {
				t.Errorf("%s comes out", gone)
			}
		}
	}
	if body != "hello" || res.Trailer.Get("X-Sum") != "5" || res.Trailer.Get("Set-Cookie") != "" {
		t.Errorf("got %q, trailers %v", body, res.Trailer)
	}
}

func TestGateway_SaysWhatItDoesNotLead(t *testing.T) {
	_, address := openGateway(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	host := program(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "here") })
	rude := rudeProgram(t)
	for name, c := range map[string]struct {
		host, upgrade string
		status        int
		says          string
	}{
		"a port":         {host: host, status: 200, says: "here"},
		"a lone label":   {host: strings.TrimSuffix(host, ".example.com"), status: 200, says: "here"},
		"nothing there":  {host: free + "-box.example.com:80", status: 502, says: "Nothing listens on port " + free + " in box.\n"},
		"no HTTP":        {host: rude, status: 502, says: "gave no proper answer"},
		"a WebSocket":    {host: host, upgrade: "websocket", status: 426},
		"h2c":            {host: host, upgrade: "h2c", status: 426},
		"a terminal":     {host: "box.example.com", status: 404},
		"no name":        {host: "8080-.example.com", status: 404},
		"no number":      {host: "x-box.example.com", status: 404},
		"a leading zero": {host: "080-box.example.com", status: 404},
		"port 0":         {host: "0-box.example.com", status: 404},
		"a huge port":    {host: "65536-box.example.com", status: 404},
		"a sign":         {host: "+80-box.example.com", status: 404},
		"an address":     {host: "127.0.0.1:8080", status: 404},
		"the gateway":    {host: strings.TrimPrefix(address, "127.0.0.1:") + "-box.example.com", status: 403},
	} {
		r := direct(t, http.MethodGet, address, c.host, "/", nil)
		if c.upgrade != "" {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", c.upgrade)
		}
		if res, body := do(t, r); res.StatusCode != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d, %q", name, res.StatusCode, body)
		}
	}
}

// rudeProgram answers with anything but HTTP.
func rudeProgram(t *testing.T) (host string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "220 smtp ready\r\n")
			c.Close()
		}
	}()
	return fmt.Sprintf("%d-box.example.com", l.Addr().(*net.TCPAddr).Port)
}

func TestGateway_ReachesWhatListensOnIPv6Alone(t *testing.T) {
	_, address := openGateway(t)
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "six") }))
	s.Listener.Close()
	s.Listener = l
	s.Start()
	defer s.Close()
	host := fmt.Sprintf("%d-box.localhost", l.Addr().(*net.TCPAddr).Port)
	if res, body := do(t, direct(t, http.MethodGet, address, host, "/", nil)); res.StatusCode != 200 || body != "six" {
		t.Errorf("got %d, %q", res.StatusCode, body)
	}
}

func TestGateway_StreamsBothWaysAndTellsOfIt(t *testing.T) {
	g, address := openGateway(t)
	if got := g.flow.now(); got.InFlight != 0 || got.Idle >= 0 {
		t.Errorf("at first: %+v", got)
	}
	host := program(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush()
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Body.Read(buf)
			w.Write(buf[:n])
			http.NewResponseController(w).Flush()
			if err != nil {
				return
			}
		}
	})
	out, in := io.Pipe()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(direct(t, http.MethodPost, address, host, "/", out))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b := make([]byte, 5)
	for range 3 {
		io.WriteString(in, "hello")
		if _, err := io.ReadFull(res.Body, b); err != nil || string(b) != "hello" {
			t.Fatalf("got %q, %v", b, err)
		}
	}
	if got := g.flow.now(); got.InFlight != 1 || got.Idle < 0 || got.Idle > patience {
		t.Errorf("under way: %+v", got)
	}
	quiet := g.flow.now().Idle
	within(t, "the time without a byte", func() bool { return g.flow.now().Idle > quiet+20*time.Millisecond })
	data := make([]byte, 8<<20)
	rand.Read(data)
	go func() {
		in.Write(data)
		in.Close()
	}()
	if got, err := io.ReadAll(res.Body); !bytes.Equal(got, data) || err != nil {
		t.Errorf("%d bytes come back, %v", len(got), err)
	}
	within(t, "the end", func() bool { got := g.flow.now(); return got.InFlight == 0 && got.Idle >= 0 })
}

func TestGateway_VisitorWhoLeavesEndsTheRequest(t *testing.T) {
	g, address := openGateway(t)
	gone := make(chan struct{})
	host := program(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	r := direct(t, http.MethodGet, address, host, "/", nil)
	ctx, cancel := context.WithCancel(r.Context())
	res, err := http.DefaultClient.Do(r.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	res.Body.Close()
	select {
	case <-gone:
	case <-time.After(patience):
		t.Fatal("the program is not told")
	}
	within(t, "the end", func() bool { return g.flow.now().InFlight == 0 })
}

func TestGateway_TellsWhatWaitsForItsProgram(t *testing.T) {
	g, address := openGateway(t)
	next := make(chan struct{})
	defer close(next)
	var headers http.Header
	host := program(t, func(w http.ResponseWriter, r *http.Request) {
		headers = r.Header.Clone()
		http.NewResponseController(w).EnableFullDuplex()
		<-next
		http.NewResponseController(w).Flush()
		<-next
		io.Copy(io.Discard, r.Body)
		<-next
	})
	for what, c := range map[string]struct {
		body       int
		unattended bool
		waits      [3]int // at first, when the answer has begun, when the body is taken
	}{
		"a quiet request":             {0, false, [3]int{1, 0, 0}},
		"an upload that is not taken": {16 << 20, false, [3]int{1, 1, 0}},
		"one that does not count":     {0, true, [3]int{0, 0, 0}},
	} {
		r := direct(t, http.MethodPost, address, host, "/", bytes.NewReader(make([]byte, c.body)))
		in := 1
		if c.unattended {
			r.Header.Set(wire.UnattendedHeader, "1")
			in = 0
		}
		before := g.flow.last.Load()
		begun, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
			close(begun)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			io.Copy(io.Discard, res.Body)
		}()
		for i, waits := range c.waits {
			if i > 0 {
				next <- struct{}{}
				<-begun
			}
			within(t, what, func() bool { got := g.flow.now(); return got.Waiting == waits && got.InFlight == in })
		}
		next <- struct{}{}
		<-done
		within(t, "the end", func() bool { return g.flow.now().InFlight == 0 })
		if counted := g.flow.last.Load() != before; counted == c.unattended {
			t.Errorf("%s: its bytes count: %v", what, counted)
		}
		if _, ok := headers[wire.UnattendedHeader]; ok {
			t.Errorf("%s: the program sees %v", what, headers)
		}
	}
}
