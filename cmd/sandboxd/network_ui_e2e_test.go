//go:build e2e

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// front is between a browser and a server, and fails as a network does: it cuts requests off without an answer.
type front struct {
	s        *server
	proxy    httputil.ReverseProxy
	listener *httptest.Server

	mu   sync.Mutex
	path string   // which requests it cuts off, as path.Match has it
	left int      // how many more requests for it are cut off
	came []string // of each request for it, where it comes from and what for, as the browser says
}

func newFront(t *testing.T, s *server) *front {
	t.Helper()
	f := &front{s: s}
	f.proxy.Rewrite = func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: s.addr})
		r.Out.Host = r.In.Host
	}
	f.listener = httptest.NewServer(f)
	t.Cleanup(f.listener.Close)
	return f
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.Host, "elsewhere."):
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>Elsewhere</title><a href="http://localhost:%s%s">a link</a>`, f.s.port(), r.URL.Path)
	case f.cuts(r):
		panic(http.ErrAbortHandler)
	default:
		f.proxy.ServeHTTP(w, r)
	}
}

func (f *front) cuts(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if is, _ := path.Match(f.path, r.URL.Path); !is {
		return false
	}
	f.came = append(f.came, r.Header.Get("Sec-Fetch-Site")+" "+r.Header.Get("Sec-Fetch-Dest"))
	f.left--
	return f.left >= 0
}

// fails has the next requests for path fail. The connections are cut, too: a browser sends what fails on an old one anew by itself.
func (f *front) fails(pattern string, times int) {
	f.mu.Lock()
	f.path, f.left, f.came = pattern, times, nil
	f.mu.Unlock()
	f.listener.CloseClientConnections()
}

// heard gives what came of requests for the path.
func (f *front) heard() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.came
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

// TestNetwork_AClickOutlivesItsFailures clicks links of the dashboard while the network fails, as it does for a moment when one of
// the computer's networks comes or goes (ERR_NETWORK_CHANGED).
func TestNetwork_AClickOutlivesItsFailures(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	f := newFront(t, s)
	p := newPerson(t, chromedp.Flag("host-resolver-rules", "MAP * "+f.listener.Listener.Addr().String()))
	p.signsIn("http://localhost:" + s.port())
	p.sees("the service worker", `navigator.serviceWorker.controller?.state === "activated"`)

	f.fails("/templates", 4)
	p.does("click", chromedp.Click(`.nav a[href="/templates"]`))
	p.arrives("after four failures", `document.querySelector('.nav a[href="/templates"][aria-current]') !== null`)
	if came := strings.Join(f.heard(), ", "); !strings.Contains(came, "same-origin empty") {
		t.Errorf("the worker has not asked: %s", came)
	}

	const asked = "/sandboxes/lab/ports" // which is for scripts of ours alone
	p.does("open a page of another origin", chromedp.Navigate("http://elsewhere.localhost:"+s.port()+asked))
	f.fails(asked, 4)
	p.runs("follow its link", `setTimeout(() => document.querySelector("a").click())`) // a click by the protocol waits for its page
	p.arrives("that it is refused", `document.body.innerText.includes("came from another website")`)
	came := strings.Join(f.heard(), ", ")
	if !strings.Contains(came, "empty") || strings.Contains(came, "same-origin") || strings.Contains(came, "none") {
		t.Errorf("the worker tells where the link comes from as %s", came)
	}

	s.create(map[string]any{"name": "lab", "template": "base"})
	p.does("open a workspace", chromedp.Navigate("http://localhost:"+s.port()+"/sandboxes/lab"))
	p.sees("a prompt", promptShown)
	f.fails("/static/chunk-*.js", 8)
	p.opensChat()
	if came := f.heard(); len(came) <= 8 {
		t.Errorf("only %d scripts were asked for", len(came))
	}

	p.does("open the list", chromedp.Navigate("http://localhost:"+s.port()+"/"))
	f.fails("/activity", 1000)
	p.does("click", chromedp.Click(`.nav a[href="/activity"]`))
	p.arrives("the browser's own page when nothing helps", `location.protocol === "chrome-error:"`)
}
