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

// asking is one request of a day.
type asking struct {
	at   time.Duration
	path string
}

const day = 3 * time.Hour

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

func merged(all ...[]asking) []asking {
	one := slices.Concat(all...)
	slices.SortStableFunc(one, func(a, b asking) int { return cmp.Compare(a.at, b.at) })
	return one
}

// TestPage_ADayOfIt has a page or a person ask for three hours, with the sandbox put to sleep before the last time: whoever
// is there keeps it up all the time, and wakes it; a page that is forgotten does neither.
func TestPage_ADayOfIt(t *testing.T) {
	const s = time.Second
	for what, c := range map[string]struct {
		method string
		day    []asking
		there  bool
	}{
		"four parts of a dashboard every 30s":       {"POST", paced(0, steady(30*s, s), 4, "/api/ds/query"), false},
		"six parts of a dashboard every 30s":        {"POST", paced(0, steady(30*s, s), 6, "/api/ds/query"), false},
		"seven parts of a dashboard every 30s":      {"POST", paced(0, steady(30*s, s), 7, "/api/ds/query"), false},
		"twelve parts of a dashboard every minute":  {"POST", paced(0, steady(60*s, s), 12, "/api/ds/query"), false},
		"GraphQL every 5s and every 30s":            {"POST", merged(paced(0, steady(5*s, s/10), 1, "/graphql"), paced(2*s, steady(30*s, s/10), 1, "/graphql")), false},
		"GraphQL every 10s and every minute":        {"POST", merged(paced(0, steady(10*s, s/10), 1, "/graphql"), paced(4*s, steady(60*s, s/10), 1, "/graphql")), false},
		"JSON-RPC every 7s and every 11s":           {"POST", merged(paced(0, steady(7*s, s/10), 1, "/rpc"), paced(s, steady(11*s, s/10), 1, "/rpc")), false},
		"a script with a random value, irregularly": {"GET", paced(0, moody(60*s), 1, "/status?x=9f%d7a1c0b4e8d25f3"), false},
		"a script with the time, irregularly":       {"GET", paced(0, moody(60*s), 1, "/api/kernels?17182%d00000"), false},
		"Socket.IO's poll, irregularly":             {"GET", paced(0, moody(20*s), 1, "/socket.io/?EIO=4&transport=polling&t=Nz%dkX"), false},
		"a script with a counter, in a rhythm":      {"GET", paced(0, steady(20*s, s), 1, "/log?after=%d"), false},
		"a person who searches":                     {"GET", paced(0, moody(180*s), 1, "/api/search?q=word%d"), true},
		"a person who turns pages":                  {"GET", paced(0, moody(180*s), 1, "/api/rows?page=%d"), true},
		"a person whose click asks seven times":     {"POST", paced(0, moody(240*s), 7, "/api/ds/query"), true},
		"a person beside a poll of the same":        {"POST", merged(paced(0, steady(10*s, s/10), 1, "/graphql"), paced(4*s, moody(240*s), 1, "/graphql")), true},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newStillWorld(t)
				w.serve(portHost(3000), greet)
				h := append(header{"Cookie", w.signIn("3000-ml.localhost")}, fetched...)
				began, kept := time.Now(), true
				last := len(c.day) - 1
				for last > 0 && c.day[last].at-c.day[last-1].at < 2*time.Second {
					last--
				}
				for _, a := range c.day[:last] {
					time.Sleep(time.Until(began.Add(a.at)))
					kept = kept && w.boxes.uses.Counts("ml")
					w.ask(c.method, port3000+a.path, h)
				}
				if kept != c.there || w.boxes.uses.Counts("ml") != c.there {
					t.Errorf("kept up: %v, somebody is there: %v, want %v", kept, w.boxes.uses.Counts("ml"), c.there)
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

// TestPage_ALongPollIsForgottenAndSomebodyWhoWaitsIsNot has each request answered after a while, when something happens.
func TestPage_ALongPollIsForgottenAndSomebodyWhoWaitsIsNot(t *testing.T) {
	for what, c := range map[string]struct {
		method, path string // %d is another number each time
		think        func() time.Duration
		there        bool
	}{
		"SockJS":                            {"POST", "/sockjs/042/k3j5h2g9/xhr", steady(50*time.Millisecond, 20*time.Millisecond), false},
		"Odoo":                              {"POST", "/longpolling/poll", steady(200*time.Millisecond, 100*time.Millisecond), false},
		"a GET from where it is":            {"GET", "/sync?since=%d", steady(50*time.Millisecond, 20*time.Millisecond), false},
		"a person who asks a model":         {"POST", "/api/chat", moody(20 * time.Second), true},
		"a person who runs one and another": {"POST", "/run", moody(3 * time.Minute), true},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newStillWorld(t)
				chance := rand.New(rand.NewPCG(7, 8))
				w.serve(portHost(3000), func(http.ResponseWriter, *http.Request) {
					time.Sleep(time.Duration(chance.ExpFloat64() * float64(20*time.Second)))
				})
				h := append(header{"Cookie", w.signIn("3000-ml.localhost")}, fetched...)
				n := 0
				ask := func() {
					n++
					w.ask(c.method, port3000+strings.ReplaceAll(c.path, "%d", fmt.Sprint(n)), h)
				}
				kept := true
				for began := time.Now(); time.Since(began) < day; time.Sleep(c.think()) {
					ask()
					kept = kept && w.boxes.uses.Counts("ml")
				}
				if kept != c.there {
					t.Errorf("kept up: %v, want %v", kept, c.there)
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

// TestPage_ALongPollThatAStopCutsTriesAgainInVain has a page wait for longer than it otherwise would before it asks again.
func TestPage_ALongPollThatAStopCutsTriesAgainInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		hold := time.Second
		w.serve(portHost(3000), func(http.ResponseWriter, *http.Request) { time.Sleep(hold) })
		cookie := w.signIn("3000-ml.localhost")
		h := append(header{"Cookie", cookie}, fetched...)
		next := moody(20 * time.Second)
		for began := time.Now(); time.Since(began) < day; hold = next() {
			w.ask("POST", port3000+"/longpolling/poll", h)
		}
		hold = 3 * time.Second
		cut := time.AfterFunc(2*time.Second, func() { w.boxes.set("ml", sandbox.Sleeping, "") })
		defer cut.Stop()
		w.ask("POST", port3000+"/longpolling/poll", h)
		for _, pause := range []time.Duration{11 * time.Second, 33 * time.Second, 20 * time.Minute} {
			time.Sleep(pause)
			if a := w.ask("POST", port3000+"/longpolling/poll", h); a.StatusCode != 503 || w.boxes.state("ml") != sandbox.Sleeping {
				t.Errorf("%d after %s", a.StatusCode, pause)
			}
		}
		w.wantStatus(w.ask("GET", port3000+"/", append(shown[:len(shown):len(shown)], "Cookie", cookie)), 200)
		if w.boxes.state("ml") != sandbox.Running || !w.boxes.uses.Counts("ml") {
			t.Error("a person does not wake it")
		}
	})
}

func TestLasting_LeavesOutWhatAPageMakesUp(t *testing.T) {
	for query, want := range map[string]string{
		"": "", "page=3": "page=3", "q=word17&page=12": "q=word17&page=12", "q=internationalization": "q=internationalization",
		"q=how+to+use+python+3.12+now": "q=how+to+use+python+3.12+now", "date=2024-05-01": "date=2024-05-01", "at=12:30": "at=12:30",
		"run=experiment-v2-run17": "run=experiment-v2-run17", "path=/home/me/src2/main.go": "path=/home/me/src2/main.go",
		"lat=52.5200&lon=13.4050": "lat=52.5200&lon=13.4050", "ip=192.168.10.200": "ip=192.168.10.200", "year=2024": "year=2024",
		"_=1718200000000": "_=#", "t=Nz3kX9a&sid=page": "t=#&sid=page", "1718200000000": "#", "content=1&1718200000000": "content=1&#",
		"start=1718200000.5&end=1718203600&step=15": "start=#&end=#&step=15", "x=0.8372648261950": "x=#",
		"since=2024-05-01T12%3A00%3A00.000Z": "since=#", "since=2024-05-01+12:00:00": "since=#",
		"id=6f9619ff-8b86-d011-b42d-00cf4fc964ff": "id=#", "k=9f3c0b7ad1e24c58": "k=#", "k=aB3xYz90QwErTy12_-==": "k=#",
		"k=aBcDeFgHiJkLmNoP": "k=#", "k=%zz": "k=%zz", "a=1&&b": "a=1&&b", "=123456": "=#",
		"q=" + strings.Repeat("a b", maxQuery): "q=" + strings.Repeat("a b", maxQuery)[:maxQuery-2],
	} {
		if got := lasting(query); got != want {
			t.Errorf("%.60q: %.60q, want %.60q", query, got, want)
		}
	}
}

func TestPoll_AnotherPageOfTheSameIsNew(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	cookie := w.signIn("3000-ml.localhost")
	for i, c := range []struct {
		query      string
		unattended bool
	}{{"?page=1", false}, {"?page=2", false}, {"?page=1", true}, {"?page=3&_=1718200000000", false}, {"?page=3&_=1718200009999", true}} {
		w.wantStatus(w.ask("GET", port3000+"/rows"+c.query, script(cookie)), 200)
		if got := w.boxes.usesSeen()[i]; got.Unattended != c.unattended || got.Kind != idle.Web {
			t.Errorf("%s: %+v", c.query, got)
		}
	}
}
