package proxy

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
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
	plain     = header{"Accept", "*/*", "Referer", port3000 + "/"}
)

func TestAttended_OneRequest(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	cookie := w.signIn("3000-ml.localhost")
	byScript := script(cookie)
	for what, c := range map[string]struct {
		method, path string
		h            header
		attended     bool
	}{
		"a script's GET":                               {"GET", "/api/status", byScript, false},
		"a page that is loaded ahead":                  {"GET", "/next", header{"Cookie", cookie, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Purpose", "prefetch;prerender"}, false},
		"a page that is loaded ahead on plain HTTP":    {"GET", "/next", header{"Cookie", cookie, "Accept", "text/html", "Purpose", "prefetch"}, false},
		"a script's HEAD":                              {"HEAD", "/api/status", byScript, false},
		"a script's OPTIONS":                           {"OPTIONS", "/api/status", byScript, false},
		"a picture":                                    {"GET", "/cam.jpg", header{"Cookie", cookie, "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Site", "same-origin"}, false},
		"a script's POST":                              {"POST", "/api/run", byScript, true},
		"a script's DELETE":                            {"DELETE", "/api/run", byScript, true},
		"a navigation":                                 {"GET", "/", header{"Cookie", cookie, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Site", "none"}, true},
		"a program with a token":                       {"GET", "/api/t", bearer, true},
		"a token in a page":                            {"GET", "/api/p", append(header{"Sec-Fetch-Mode", "cors"}, bearer...), true},
		"a script's GET on plain HTTP":                 {"GET", "/api/c", header{"Cookie", cookie, "Accept", "*/*", "Referer", port3000 + "/"}, false},
		"a program that knows a cookie":                {"GET", "/api/c", header{"Cookie", cookie, "Accept", "*/*"}, true},
		"a page on plain HTTP":                         {"GET", "/p", header{"Cookie", cookie, "Accept", "text/html,*/*;q=0.8"}, true},
		"a frame":                                      {"GET", "/f", append(page, "Cookie", cookie, "Sec-Fetch-Dest", "iframe"), false},
		"a frame that a person navigated":              {"GET", "/f", append(page, "Cookie", cookie, "Sec-Fetch-Dest", "iframe", "Sec-Fetch-User", "?1"), true},
		"a person's, whatever it is":                   {"GET", "/api/u", append(script(cookie), "Sec-Fetch-User", "?1"), true},
		"a script that asks for a WebSocket's address": {"GET", "/ws", append(script(cookie), "Origin", port3000), false},
	} {
		w.wantStatus(w.ask(c.method, port3000+c.path, c.h), 200)
		uses := w.boxes.usesSeen()
		if got := uses[len(uses)-1]; got.Unattended == c.attended || got.Kind != idle.Web {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

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

// asking is one request of a day.
type asking struct {
	at   time.Duration
	path string
}

const day = 2 * time.Hour

// paced has so many requests at once, a few milliseconds apart, at each pause; %d in path is another number at each.
func paced(start time.Duration, pause func() time.Duration, times int, path string) []asking {
	var all []asking
	for n, at := 0, start; at < day; n, at = n+1, at+pause() {
		for i := range times {
			all = append(all, asking{at + time.Duration(i)*15*time.Millisecond, strings.ReplaceAll(path, "%d", fmt.Sprint(n))})
		}
	}
	return all
}

// lately is a person who sends two requests at the end of the day.
func lately(path string) []asking {
	return []asking{{day + 13*time.Second, path}, {day + 16*time.Second, path}}
}

func one(pause func() time.Duration, path string) []asking { return paced(0, pause, 1, path) }

func merged(all ...[]asking) []asking {
	one := slices.Concat(all...)
	slices.SortStableFunc(one, func(a, b asking) int { return cmp.Compare(a.at, b.at) })
	return one
}

// daysOf are days of persons, programs and pages at one address.
var daysOf = func() map[string]dayOf {
	const s, m = time.Second, time.Minute
	return map[string]dayOf{
		"a page that is opened":                        {"GET", shownTo, one(moody(10*m), "/wiki"), true},
		"a page that is opened, whose browser is mute": {"GET", shown, one(moody(10*m), "/wiki"), true},
		"a page that is opened on plain HTTP":          {"GET", plainPage, one(moody(10*m), "/wiki"), true},
		"a page that a person reloads like clockwork":  {"GET", shownTo, one(steady(m, s), "/"), true},
		"a form":                     {"POST", shownTo, one(moody(10*m), "/form"), true},
		"a person who saves by POST": {"POST", fetched, one(moody(5*m), "/api/save"), true},
		"a person who saves by POST on plain HTTP":        {"POST", plain, one(moody(5*m), "/api/save"), true},
		"a person whose click asks seven times":           {"POST", fetched, paced(0, moody(240*s), 7, "/api/ds/query"), true},
		"a person beside a poll by POST of the same":      {"POST", fetched, merged(one(steady(10*s, s/10), "/graphql"), paced(4*s, moody(240*s), 1, "/graphql"), lately("/graphql")), true},
		"a person who asks a model":                       {"POST", fetched, one(moody(40*s), "/api/chat"), true},
		"a program with a token":                          {"GET", nil, one(steady(30*s, 0), "/status"), true},
		"a program with a token that posts":               {"POST", nil, one(steady(30*s, 0), "/jobs"), true},
		"a program that knows the cookie, now and then":   {"GET", header{"Accept", "*/*"}, one(moody(10*m), "/data"), true},
		"a program that knows the cookie, like clockwork": {"GET", header{"Accept", "*/*"}, one(steady(m, s), "/data"), false},

		// Scripts that read count for an hour, whatever they read.
		"a poll":                                                   {"GET", fetched, one(steady(10*s, s), "/api/status"), false},
		"a poll on plain HTTP":                                     {"GET", plain, one(steady(10*s, s), "/api/status"), false},
		"a poll on plain HTTP, now and then":                       {"GET", plain, one(moody(m), "/api/status"), false},
		"a poll by HEAD":                                           {"HEAD", fetched, one(moody(m), "/api/status"), false},
		"a long poll with another path each time":                  {"GET", fetched, one(steady(25*s, s), "/poll/%d"), false},
		"a long poll from where it is, irregularly":                {"GET", fetched, one(moody(m), "/sync?since=%d"), false},
		"a picture with another name each time":                    {"GET", fetched, one(steady(30*s, s/10), "/cam-%d.jpg"), false},
		"a script with a random value, irregularly":                {"GET", fetched, one(moody(m), "/status?x=9f%d7a1c0b4e8d25f3"), false},
		"Socket.IO's poll, irregularly":                            {"GET", fetched, one(moody(m), "/socket.io/?EIO=4&transport=polling&t=Nz%dkX"), false},
		"a frame that its page loads anew":                         {"GET", inFrame, one(moody(m), "/widget"), false},
		"a person who only searches, by a script":                  {"GET", fetched, one(moody(180*s), "/api/search?q=word%d"), false},
		"a person who only turns pages, by a script":               {"GET", fetched, one(moody(180*s), "/api/rows?page=%d"), false},
		"a person who only opens one after the other, by a script": {"GET", fetched, one(moody(120*s), "/items/%d"), false},

		// What a timer does is told by its pauses.
		"a refresh every 60s":                          {"GET", shown, one(steady(m, s), "/"), false},
		"a refresh on plain HTTP":                      {"GET", plainPage, one(steady(m, s), "/"), false},
		"location.reload() every 5 min":                {"GET", shown, one(steady(5*m, s), "/board"), false},
		"telemetry by POST every 30s, give or take 2s": {"POST", fetched, one(steady(30*s, 2*s), "/telemetry"), false},
		"telemetry by PUT, throttled to one a minute":  {"PUT", fetched, one(steady(m, s/20), "/telemetry"), false},
		"telemetry on plain HTTP":                      {"POST", plain, one(steady(30*s, 2*s), "/telemetry"), false},
		"GraphQL by POST every 10s":                    {"POST", fetched, one(steady(10*s, s), "/graphql"), false},
		"four parts of a dashboard every minute":       {"POST", fetched, paced(0, steady(m, s), 4, "/api/ds/query"), false},
		"twelve parts of a dashboard every 2 min":      {"POST", fetched, paced(0, steady(2*m, s), 12, "/api/ds/query"), false},

		// Where that does not tell, what posts counts: two timers with one address, tabs that take turns, long polls by POST.
		"GraphQL by POST every 10s and every minute": {"POST", fetched, merged(one(steady(10*s, s/10), "/graphql"), paced(4*s, steady(m, s/10), 1, "/graphql"), lately("/graphql")), true},
		"JSON-RPC every 7s and every 11s":            {"POST", fetched, merged(one(steady(7*s, s/10), "/rpc"), paced(s, steady(11*s, s/10), 1, "/rpc"), lately("/rpc")), true},
		"a long poll by POST":                        {"POST", fetched, one(moody(m), "/longpolling/poll"), true},
	}
}()

// dayOf is a day at one address.
type dayOf struct {
	method string
	h      header // of a session; nil for a token instead
	day    []asking
	there  bool
}

// TestAttended_WhoIsThere has the same asked for two hours long, then puts the sandbox to sleep, and lets it be asked for
// once more. What counts as a person keeps it up all the time, and wakes it; all else does neither.
func TestAttended_WhoIsThere(t *testing.T) {
	for what, c := range daysOf {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newStillWorld(t)
				w.serve(portHost(3000), greet)
				h := append(header{"Cookie", w.signIn("3000-ml.localhost")}, c.h...)
				if c.h == nil {
					h = bearer
				}
				last := len(c.day) - 1
				for last > 0 && c.day[last].at-c.day[last-1].at < 2*time.Second {
					last--
				}
				began, kept := time.Now(), true
				for _, a := range c.day[:last] {
					time.Sleep(time.Until(began.Add(a.at)))
					kept = kept && w.boxes.uses.Counts("1")
					w.ask(c.method, port3000+a.path, h)
				}
				if kept != c.there || w.boxes.uses.Counts("1") != c.there {
					t.Errorf("kept up: %v, at the end: %v, want %v", kept, w.boxes.uses.Counts("1"), c.there)
				}
				w.boxes.set("ml", sandbox.Asleep, "")
				time.Sleep(time.Until(began.Add(c.day[last].at)))
				w.ask(c.method, port3000+c.day[last].path, h)
				if got := w.boxes.state("ml") == sandbox.Running; got != c.there {
					t.Errorf("woken: %v, want %v", got, c.there)
				}
			})
		})
	}
}

// asleep has a page ask by a timer until its sandbox sleeps, and ten hours more; then then.
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
			beat(600) // a script keeps trying
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

func TestAttended_APersonAlwaysWakes(t *testing.T) {
	for what, c := range map[string]struct {
		left, by header // what is left open, and what wakes
		path     string // of both
		method   string
	}{
		"reload of a forgotten page":                    {left: shown, by: shownTo, path: "/", method: "GET"},
		"reload, in a browser that does not say so":     {left: shown, by: shown, path: "/", method: "GET"},
		"reload on plain HTTP":                          {left: plainPage, by: plainPage, path: "/", method: "GET"},
		"a page beside a script that keeps trying":      {left: fetched, by: shown, path: "/telemetry", method: "GET"},
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

func TestAttended_AReloadAfterItsPageWasTurnedAwayWakes(t *testing.T) {
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
				if a := w.ask("GET", port3000+"/", h); a.StatusCode != 503 || !contains(a.body, "Reload the page.", "Wake it") {
					t.Errorf("the page is not turned away: %d %s", a.StatusCode, a.body)
				}
				time.Sleep(20 * time.Second)
				w.wantStatus(w.ask("GET", port3000+"/", h), 200)
			})
		})
	}
}

// TestAttended_WhatAStopCutsOffLooksForItInVain has what a page had open end with a stop, and looks at what it asks for then.
func TestAttended_WhatAStopCutsOffLooksForItInVain(t *testing.T) {
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
		"a ping while a person is there":          {method: "GET", path: "/", h: fetched, after: time.Second, there: true},
		"a script's first request, an hour later": {method: "GET", path: "/new", h: fetched, after: time.Hour},
		"a person's save at that moment":          {method: "POST", path: "/save", h: fetched, after: time.Second, wakes: true},
		"a person's reload at that moment":        {method: "GET", path: "/", h: shown, after: time.Second, wakes: true},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newStillWorld(t)
				w.serve(portHost(3000), func(http.ResponseWriter, *http.Request) {})
				h := append(header{"Cookie", w.signIn("3000-ml.localhost")}, c.h...)
				w.boxes.uses.Touch("1", idle.Use{Kind: idle.Web})
				time.Sleep(5 * time.Hour)
				if c.there {
					w.boxes.uses.Touch("1", idle.Use{Kind: idle.Exec})
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
