package proxy

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// links are the links of a page, by their text.
func links(t *testing.T, page string) map[string]string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "a" {
			for _, a := range n.Attr {
				if a.Key == "href" {
					out[n.FirstChild.Data] = a.Val
				}
			}
		}
	}
	return out
}

// TestNotice_OfAPageThatWakesNobodyHasAWayToWakeIt has a page load itself anew until its sandbox rests, and clicks.
func TestNotice_OfAPageThatWakesNobodyHasAWayToWakeIt(t *testing.T) {
	for what, c := range map[string]struct{ path, leads string }{
		"the front page":                {"/", "/"},
		"a path with a query":           {`/a%20b%2Fc?x=1&y="2"&z=<b>`, `/a%20b%2Fc?x=1&y=%222%22&z=%3cb%3e`},
		"a path that looks like a host": {"//evil.example/a", "//evil.example/a"},
		"a path with a colon":           {"/javascript:alert(1)", "/javascript:alert%281%29"},
		"an escaped host":               {"/%2F/evil.example", "/%2F/evil.example"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newStillWorld(t)
				w.serve(portHost(3000), func(rw http.ResponseWriter, r *http.Request) { rw.Header().Set("Got", r.RequestURI) })
				cookie := w.signIn("3000-ml.localhost")
				for range 90 {
					w.ask("GET", port3000+c.path, append(header{"Cookie", cookie}, shown...))
					time.Sleep(time.Minute)
				}
				w.boxes.set("ml", sandbox.Asleep, "")
				a := w.ask("GET", port3000+c.path, append(header{"Cookie", cookie}, shown...))
				w.wantStatus(a, 503)
				wake := links(t, a.body)["Wake it"]
				if wake != port3000+c.leads {
					t.Fatalf("it leads to %q\n%s", wake, a.body)
				}
				if strings.Index(a.body, "Wake it") > strings.Index(a.body, "Open in the dashboard") {
					t.Error("it is not the first")
				}
				w.wantStatus(w.ask("GET", wake, append(header{"Cookie", cookie}, shownTo...)), 200)
			})
		})
	}
}

func TestNotice_WhatIsNoPageHasNoButton(t *testing.T) {
	asleep(t, "POST", "/telemetry", append(header{"Accept", "text/html"}, fetched[2:]...), func(t *testing.T, w *world, cookie string) {
		h := append(header{"Cookie", cookie, "Accept", "text/html"}, fetched[2:]...)
		a := w.ask("POST", port3000+"/telemetry", h)
		if _, there := links(t, a.body)["Wake it"]; a.StatusCode != 503 || there {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	})
}

// TestNotice_AnAddressIsAlwaysAtItsOwnHost asks for what no browser asks for.
func TestNotice_AnAddressIsAlwaysAtItsOwnHost(t *testing.T) {
	w := newWorld(t)
	for _, at := range []string{"a:@evil.example/", "http://evil.example/a?b", "//evil.example", "/", "x:evil.example"} {
		q := request{hosts: w.hosts, r: &http.Request{URL: parseURL(t, at)}, target: mustParse(t, w, "3000-ml.localhost:8080")}
		if got := parseURL(t, q.here("x").URL); got.Host != "3000-ml.localhost:8080" || got.User != nil || got.Scheme != "http" {
			t.Errorf("%s leads to %s", at, got)
		}
	}
}

func mustParse(t *testing.T, w *world, host string) hostname.Target {
	t.Helper()
	target, err := w.hosts.Parse(host)
	if err != nil {
		t.Fatal(err)
	}
	return target
}
