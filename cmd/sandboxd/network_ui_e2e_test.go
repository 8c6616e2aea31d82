//go:build e2e

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// front stands between a browser and a server, and takes requests for one path away, as a network does that changes.
type front struct {
	s     *server
	proxy httputil.ReverseProxy
	addr  string

	mu    sync.Mutex
	path  string
	left  int           // how many requests for it are taken away yet
	sites []string      // the Sec-Fetch-Site of those that came
	held  chan struct{} // gets one when a request waits for the browser to give up; nil when they are cut off at once
	freed chan bool     // gets whether the browser did
}

func newFront(t *testing.T, s *server) *front {
	t.Helper()
	f := &front{s: s}
	f.proxy.Rewrite = func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: s.addr})
		r.Out.Host = r.In.Host
	}
	listener := httptest.NewServer(f)
	t.Cleanup(listener.Close)
	f.addr = listener.Listener.Addr().String()
	return f
}

// elsewhere is a page of another origin with a link to path.
const elsewhere = `<!doctype html><title>Elsewhere</title><a href="http://localhost:%s%s">a link</a>`

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.Host, "elsewhere.") {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(io.Writer(w), elsewhere, f.s.port(), r.URL.Path)
		return
	}
	if f.takes(r) {
		panic(http.ErrAbortHandler) // cuts the connection without an answer
	}
	f.proxy.ServeHTTP(w, r)
}

// takes reports whether a request is taken away, once the browser has given it up where that is wanted.
func (f *front) takes(r *http.Request) bool {
	f.mu.Lock()
	if r.URL.Path != f.path {
		f.mu.Unlock()
		return false
	}
	f.sites = append(f.sites, r.Header.Get("Sec-Fetch-Site"))
	taken := f.left > 0
	f.left--
	held, freed := f.held, f.freed
	f.mu.Unlock()
	if taken && held != nil {
		held <- struct{}{}
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
		<-ctx.Done()
		cancel()
		freed <- r.Context().Err() != nil
	}
	return taken
}

// takesAway has the next requests for path fail.
func (f *front) takesAway(path string, times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.path, f.left, f.sites, f.held, f.freed = path, times, nil, nil, nil
}

// holds has the next request for path wait until the browser gives it up.
func (f *front) holds(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.path, f.left, f.sites, f.held, f.freed = path, 1, nil, make(chan struct{}, 1), make(chan bool, 1)
}

// came gives the Sec-Fetch-Site of each request for the path.
func (f *front) came() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.sites, " ")
}

// arrives waits for a page that comes by itself: nobody reloads it.
func (p *person) arrives(what, script string) {
	p.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(eventLimit); p.reads(script) != "true"; <-tick.C {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: the page at %s shows %s", what, p.reads("location.href"), p.reads("document.body.innerText"))
		}
	}
}

// TestNetwork_AClickOutlivesAChangeOfNetworks clicks links of the dashboard while a network of this machine comes and goes.
func TestNetwork_AClickOutlivesAChangeOfNetworks(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	f := newFront(t, s)
	p := newPerson(t, chromedp.Flag("host-resolver-rules", "MAP * "+f.addr))
	p.signsIn("http://localhost:" + s.port())
	p.sees("the service worker", `navigator.serviceWorker.controller?.state === "activated"`)
	nav := func(path string) {
		t.Helper()
		p.does("click", chromedp.Click(`.nav a[href="`+path+`"]`))
	}

	f.holds("/templates")
	nav("/templates")
	<-f.held
	network := "sandboxd-e2e-" + s.port()
	engine(t, "network", "create", network)
	t.Cleanup(func() { engine(t, "network", "rm", network) })
	t.Logf("the browser gave the request up by itself: %v", <-f.freed)
	p.arrives("after a change of networks", at("/templates")+` && document.querySelector('.nav a[href="/templates"][aria-current]') !== null`)

	f.takesAway("/backups", 3)
	nav("/backups")
	p.arrives("after three failures", at("/backups")+` && document.querySelector('.nav a[href="/backups"][aria-current]') !== null`)
	t.Logf("asked for %d times", len(strings.Fields(f.came())))

	f.takesAway("/activity", 1000)
	nav("/activity")
	p.arrives("the browser's own page when nothing helps", `location.protocol === "chrome-error:"`)
	f.takesAway("", 0)
	p.does("open the list again", chromedp.Navigate("http://localhost:"+s.port()+"/"))

	const asked = "/sandboxes/lab/ports" // which is for scripts of ours alone
	p.does("open a page of another origin", chromedp.Navigate("http://elsewhere.localhost:"+s.port()+asked))
	f.takesAway(asked, 2)
	p.does("follow its link", chromedp.Click("a"))
	p.arrives("that it is refused", `document.body.innerText.includes("came from another website")`)
	if came := f.came(); strings.Trim(came, " sameit-") != "" || strings.Contains(came, "origin") {
		t.Errorf("where the link comes from is told as %q", came)
	}
	t.Logf("where the link comes from: %q", f.came())
}
