package proxy

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// What browsers send, as looked at in Chromium 156: Sec-Fetch-User with what a person clicks, types, submits or reloads by
// the browser's button, and nothing of the kind with a refresh or location.reload(), nor on plain HTTP beyond localhost.
var (
	shown     = append(page, "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", "document")
	shownTo   = append(shown[:len(shown):len(shown)], "Sec-Fetch-User", "?1")
	inFrame   = append(page[:len(page):len(page)], "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", "iframe")
	fetched   = header{"Accept", "*/*", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", "empty"}
	plainPage = header{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
	plain     = header{"Accept", "*/*"}
)

// steady pauses are alike but for a part of them.
func steady(every, jitter time.Duration) func() time.Duration {
	chance := rand.New(rand.NewPCG(1, 2))
	return func() time.Duration { return every - jitter + time.Duration(chance.Int64N(int64(2*jitter+1))) }
}

// moody pauses are a person's.
func moody(every time.Duration) func() time.Duration {
	chance := rand.New(rand.NewPCG(3, 4))
	return func() time.Duration { return time.Second + time.Duration(chance.ExpFloat64()*float64(every)) }
}

// TestPage_WhoIsThere has the same asked for three hours long, then puts the sandbox to sleep, and lets it be asked for
// once more. Whoever is there keeps it up, and wakes it; a page that is forgotten does neither.
func TestPage_WhoIsThere(t *testing.T) {
	for what, c := range map[string]struct {
		method, path string // %d is another number each time
		h            header
		token        bool // instead of a session
		pause        func() time.Duration
		there        bool
	}{
		"telemetry by POST every 30s, give or take 2s":    {method: "POST", path: "/telemetry", h: fetched, pause: steady(30*time.Second, 2*time.Second)},
		"telemetry by PUT, throttled to one a minute":     {method: "PUT", path: "/telemetry", h: fetched, pause: steady(time.Minute, 50*time.Millisecond)},
		"GraphQL by POST every 10s":                       {method: "POST", path: "/graphql", h: fetched, pause: steady(10*time.Second, time.Second)},
		"a refresh every 60s":                             {method: "GET", path: "/", h: shown, pause: steady(time.Minute, time.Second)},
		"location.reload() every 5 min":                   {method: "GET", path: "/board", h: shown, pause: steady(5*time.Minute, time.Second)},
		"a frame that its page loads anew":                {method: "GET", path: "/widget", h: inFrame, pause: steady(time.Minute, time.Second)},
		"a long poll with another path each time":         {method: "GET", path: "/poll/%d", h: fetched, pause: steady(25*time.Second, time.Second)},
		"a picture with another name each time":           {method: "GET", path: "/cam-%d.jpg", h: fetched, pause: steady(5*time.Second, 100*time.Millisecond)},
		"a script on plain HTTP":                          {method: "GET", path: "/api/status", h: plain, pause: steady(10*time.Second, time.Second)},
		"a script on plain HTTP, now and then":            {method: "GET", path: "/api/status", h: plain, pause: moody(time.Minute)},
		"telemetry on plain HTTP":                         {method: "POST", path: "/telemetry", h: plain, pause: steady(30*time.Second, 2*time.Second)},
		"a refresh on plain HTTP":                         {method: "GET", path: "/", h: plainPage, pause: steady(time.Minute, time.Second)},
		"a person who saves by POST":                      {method: "POST", path: "/api/save", h: fetched, pause: moody(5 * time.Minute), there: true},
		"a person who saves by POST on plain HTTP":        {method: "POST", path: "/api/save", h: plain, pause: moody(5 * time.Minute), there: true},
		"a person who looks at one after the other":       {method: "GET", path: "/items/%d", h: fetched, pause: moody(2 * time.Minute), there: true},
		"a person who loads pages":                        {method: "GET", path: "/wiki", h: shownTo, pause: moody(10 * time.Minute), there: true},
		"a person who loads pages, whose browser is mute": {method: "GET", path: "/wiki", h: shown, pause: moody(10 * time.Minute), there: true},
		"a person who loads pages on plain HTTP":          {method: "GET", path: "/wiki", h: plainPage, pause: moody(10 * time.Minute), there: true},
		"a person who reloads like clockwork":             {method: "GET", path: "/", h: shownTo, pause: steady(time.Minute, time.Second), there: true},
		"a person who submits forms":                      {method: "POST", path: "/form", h: shownTo, pause: moody(10 * time.Minute), there: true},
		"CI with a token":                                 {method: "GET", path: "/status", token: true, pause: steady(30*time.Second, 0), there: true},
		"CI with a token that posts":                      {method: "POST", path: "/jobs", token: true, pause: steady(30*time.Second, 0), there: true},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newStillWorld(t)
				w.serve(portHost(3000), greet)
				h := append(header{"Cookie", w.signIn("3000-ml.localhost")}, c.h...)
				if c.token {
					h = bearer
				}
				n := 0
				ask := func() {
					n++
					w.ask(c.method, port3000+strings.ReplaceAll(c.path, "%d", strconv.Itoa(n)), h)
				}
				for began := time.Now(); time.Since(began) < 3*time.Hour; time.Sleep(c.pause()) {
					ask()
				}
				if got := w.boxes.uses.Counts("ml"); got != c.there {
					t.Errorf("somebody is there: %v, want %v", got, c.there)
				}
				w.boxes.set("ml", sandbox.Asleep, "")
				ask()
				if got := w.boxes.state("ml") == sandbox.Running; got != c.there {
					t.Errorf("woken: %v, want %v", got, c.there)
				}
			})
		})
	}
}

// asleep has a page ask in a rhythm until its sandbox sleeps, and ten hours more; then then.
func asleep(t *testing.T, method, path string, h header, then func(t *testing.T, w *world, cookie string)) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), greet)
		cookie := w.signIn("3000-ml.localhost")
		h := append(header{"Cookie", cookie}, h...)
		beat := func(n int) {
			for range n {
				w.ask(method, port3000+path, h)
				time.Sleep(time.Minute)
			}
		}
		beat(90)
		w.boxes.set("ml", sandbox.Asleep, "")
		if path == "/telemetry" {
			beat(600) // a script goes on trying
		} else {
			beat(1) // and then our page stands there
			time.Sleep(10 * time.Hour)
		}
		if w.boxes.state("ml") != sandbox.Asleep {
			t.Fatal("the page has woken it")
		}
		then(t, w, cookie)
	})
}

func TestPage_APersonAlwaysWakes(t *testing.T) {
	for what, c := range map[string]struct {
		left, by header // what is left open, and what wakes
		path     string // of both
		method   string
	}{
		"reload of a forgotten page":                    {left: shown, by: shownTo, path: "/", method: "GET"},
		"reload, in a browser that does not say so":     {left: shown, by: shown, path: "/", method: "GET"},
		"reload on plain HTTP":                          {left: plainPage, by: plainPage, path: "/", method: "GET"},
		"a page beside a script that goes on":           {left: fetched, by: shown, path: "/telemetry", method: "GET"},
		"a form beside a script that posts to the same": {left: fetched, by: shownTo, path: "/telemetry", method: "POST"},
		"a form on plain HTTP":                          {left: plain, by: plainPage, path: "/telemetry", method: "POST"},
		"a form":                                        {left: shown, by: shownTo, path: "/", method: "POST"},
		"a save by a script":                            {left: shown, by: fetched, path: "/", method: "POST"},
		"a save on plain HTTP":                          {left: plainPage, by: plain, path: "/", method: "POST"},
	} {
		method := "GET"
		if c.path == "/telemetry" {
			method = "POST"
		}
		t.Run(what, func(t *testing.T) {
			asleep(t, method, c.path, c.left, func(t *testing.T, w *world, cookie string) {
				w.wantStatus(w.ask(c.method, port3000+c.path, append(header{"Cookie", cookie}, c.by...)), 200)
			})
		})
	}
}

func TestPage_AReloadRightAfterItsPageWasTurnedAwayWakes(t *testing.T) {
	for what, h := range map[string]header{"a browser that does not say so": shown, "plain HTTP": plainPage} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newStillWorld(t)
				w.serve(portHost(3000), greet)
				h := append(header{"Cookie", w.signIn("3000-ml.localhost")}, h...)
				for range 90 {
					w.ask("GET", port3000+"/", h)
					time.Sleep(time.Minute)
				}
				w.boxes.set("ml", sandbox.Frozen, "")
				if a := w.ask("GET", port3000+"/", h); a.StatusCode != 503 || !contains(a.body, "Reload the page.") {
					t.Errorf("the page is not turned away: %d %s", a.StatusCode, a.body)
				}
				time.Sleep(time.Minute) // at worst in time
				w.wantStatus(w.ask("GET", port3000+"/", h), 200)
			})
		})
	}
}

func TestPage_WhatIsTurnedAwayTriesAgainInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), greet)
		h := append(header{"Cookie", w.signIn("3000-ml.localhost")}, fetched...)
		for range 90 {
			w.ask("POST", port3000+"/telemetry", h)
			time.Sleep(time.Minute)
		}
		w.boxes.set("ml", sandbox.Frozen, "")
		for _, pause := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 17 * time.Minute} {
			time.Sleep(pause)
			if a := w.ask("POST", port3000+"/telemetry", h); a.StatusCode != 503 || w.boxes.state("ml") != sandbox.Frozen {
				t.Errorf("%d after %s", a.StatusCode, pause)
			}
		}
	})
}

// TestPage_WhatAStopCutsOffLooksForItInVain has what a page had open end with a stop, and looks at what it asks for then.
func TestPage_WhatAStopCutsOffLooksForItInVain(t *testing.T) {
	for what, c := range map[string]struct {
		method, path string
		h            header
		after        time.Duration
		there, wakes bool
	}{
		"events that are asked for again":         {method: "GET", path: "/events", h: append(header{"Accept", "text/event-stream"}, fetched[2:]...), after: 3 * time.Second},
		"a ping, until the server is back":        {method: "GET", path: "/", h: fetched, after: time.Second},
		"a ping from a tab in the background":     {method: "HEAD", path: "/", h: fetched, after: time.Minute},
		"a ping on plain HTTP":                    {method: "GET", path: "/ping", h: plain, after: time.Second},
		"a ping while somebody is there":          {method: "GET", path: "/", h: fetched, after: time.Second, there: true, wakes: true},
		"a script's first request, an hour later": {method: "GET", path: "/new", h: fetched, after: time.Hour, wakes: true},
		"a person's save at that moment":          {method: "POST", path: "/save", h: fetched, after: time.Second, wakes: true},
		"a person's reload at that moment":        {method: "GET", path: "/", h: shown, after: time.Second, wakes: true},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newStillWorld(t)
				w.serve(portHost(3000), func(http.ResponseWriter, *http.Request) {})
				h := append(header{"Cookie", w.signIn("3000-ml.localhost")}, c.h...)
				w.boxes.uses.Touch("ml", idle.Use{Kind: idle.Web})
				time.Sleep(5 * time.Hour)
				if c.there {
					w.boxes.uses.Touch("ml", idle.Use{Kind: idle.Exec})
				}
				w.boxes.set("ml", sandbox.Asleep, "")
				for range 5 {
					time.Sleep(c.after)
					w.ask(c.method, port3000+c.path, h)
				}
				if got := w.boxes.state("ml") == sandbox.Running; got != c.wakes {
					t.Errorf("woken: %v, want %v", got, c.wakes)
				}
			})
		})
	}
}

func TestShape_LeavesOutWhatChanges(t *testing.T) {
	for path, want := range map[string]string{
		"/": "/", "": "", "/api/status": "/api/status", "/poll/1234": "/poll/#", "/poll/1235/x": "/poll/#/x",
		"/jobs/6f9619ff-8b86-d011-b42d-00cf4fc964ff": "/jobs/#", "/sockjs/123/ab3xyz9q/xhr_send": "/sockjs/#/#/xhr_send",
		"/room/aBcDeFgHiJkLmNoPqRsTuVwXyZ/ping": "/room/#/ping", "/cam-17.jpg": "/#", "/notifications//": "/notifications//",
	} {
		if got := shape(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
